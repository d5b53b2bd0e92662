/** The elements of a panel. */

import { element, setText } from "../side/dom.js";
import { LevelBar } from "./levelbar.js";
import { LevelLines } from "./levellines.js";
import { Strip } from "./strip.js";
import { topicTitle } from "../link/topics.js";

const canvasOf = (name) => element("canvas", { class: name, "aria-hidden": "true" });

/**
 * Make the elements of a panel: a line spectrum with its scales, and a waterfall for each channel.
 *
 * @param {import("../rows/channel.js").Channel[]} channels
 * @param {{forced: string | null, levels: object}} given `forced`: renderer of the waterfalls; `levels`: see `LevelBar`
 */
export function makeParts(channels, { forced, levels }) {
  const titles = channels.map(({ info }) => topicTitle(info)).join(" + ");
  const grid = canvasOf("grid");
  const traceCanvas = element("canvas", { class: "trace-lines", role: "img", "aria-label": "Line spectrum" });
  const traceBox = element("div", { class: "trace" }, grid, traceCanvas);
  const [levelRuler, frequencyRuler] = [canvasOf("level-ruler"), canvasOf("frequency-ruler")];
  const strips = channels.map((channel) => new Strip(channel, { hasCaption: channels.length > 1, forced }));
  const lines = new LevelLines(channels);
  const surface = element("div", {
    class: "surface",
    tabindex: 0,
    role: "group",
    "aria-label": `Plots of ${titles}. Keys work here; question mark lists them.`,
  });
  const bar = new LevelBar(titles, levels);
  bar.holdAxis(levelRuler);
  const unit = element("span", { class: "unit" });
  const corner = element("div", { class: "corner" }, unit);
  const readout = element("span", { class: "readout" });
  const legend = element("p", { class: "legend" });
  const banner = element("p", { class: "banner", hidden: true });
  const plot = element(
    "div",
    { class: "plot" },
    levelRuler,
    traceBox,
    corner,
    frequencyRuler,
    ...strips.flatMap((strip) => strip.elements),
    surface,
    bar.buttons,
    bar.box,
    ...lines.elements,
    banner,
  );
  // Above them are the bar where it lies, the line spectrum and its scale.
  strips.forEach((strip, k) => [...strip.elements, ...lines.elementsOf(k)].forEach((part) => part.style.setProperty("--row", 4 + 2 * k)));
  const head = element("header", {}, element("h2", {}, titles), readout, legend);
  const root = element("section", { class: "panel", "aria-label": titles }, head, plot);
  return { root, plot, grid, traceCanvas, traceBox, levelRuler, frequencyRuler, corner, strips, surface, lines, bar, unit, readout, legend, banner };
}

/**
 * Show the entries of a panel's legend.
 *
 * @param {HTMLElement} place
 * @param {Array<{text: string, colour: string | null}>} entries
 * @param {Record<string, string>} colours of the style sheet
 */
export function showLegend(place, entries, colours) {
  while (place.children.length > entries.length) place.lastElementChild.remove();
  entries.forEach(({ text, colour }, k) => {
    const item = place.children[k] ?? place.appendChild(element("span"));
    setText(item, text);
    if (colour === null) delete item.dataset.line;
    else item.dataset.line = colour;
    item.style.setProperty("--line", colours[colour] ?? "");
  });
}
