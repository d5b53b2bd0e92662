/** The legend: what the lines of a spectrum, the hatchings of a waterfall and the marks are. */

import { element } from "../side/dom.js";
import { LINE_KINDS } from "../plot/linekinds.js";
import { cssColour, MARKS } from "../plot/palette.js";

/** Hatchings, by the name of their colours in `MARKS`; `angle` [degrees] of CSS: 135 leans as `/` does. */
export const HATCHINGS = Object.freeze([
  { mark: "none", stripe: "stripe", angle: 135, widthPx: 1, text: "no data: not received, not recorded, or no such frequencies" },
  { mark: "none", stripe: "gap", angle: 45, widthPx: 3, text: "gap: samples were lost, or the daemon restarted" },
  { mark: "none", stripe: "dropped", angle: 135, widthPx: 3, text: "rows lost on the way, or dropped for this page" },
]);

const OTHERS = Object.freeze([
  { kind: "cursor-a", text: "cursor A" },
  { kind: "cursor-b", text: "cursor B" },
  { kind: "band", text: "band whose power is measured" },
  { kind: "event", text: "event, on the time axis" },
]);

const PERIOD_PX = 8;

/** CSS of a hatching in a theme. */
export function hatchingCss({ mark, stripe, angle, widthPx }, theme) {
  const [under, over] = [MARKS[theme][mark], MARKS[theme][stripe]].map(cssColour);
  return `repeating-linear-gradient(${angle}deg, ${over} 0 ${widthPx}px, ${under} ${widthPx}px ${PERIOD_PX}px)`;
}

/** The legend in a place of the page. */
export class Legend {
  #hatchings;

  /** @param {HTMLElement} place */
  constructor(place) {
    const lines = Object.entries(LINE_KINDS).map(([name, { text, border }]) => {
      const { root, sign } = makeItem("line", text);
      sign.style.borderTop = `3px ${border} var(--${name})`;
      return root;
    });
    this.#hatchings = HATCHINGS.map((hatching) => ({ hatching, ...makeItem("hatching", hatching.text) }));
    const others = OTHERS.map(({ kind, text }) => makeItem(kind, text).root);
    place.append(
      ...listOf("Spectrum", lines),
      ...listOf("Waterfall hatching", this.#hatchings.map(({ root }) => root)),
      ...listOf("Marks", others),
    );
  }

  /** Use the colours of a theme, `light` or `dark`. */
  restyle(theme) {
    for (const { hatching, sign } of this.#hatchings) sign.style.background = hatchingCss(hatching, theme);
  }
}

function makeItem(kind, text) {
  const sign = element("span", { class: "sign", "data-sign": kind, "aria-hidden": "true" });
  return { root: element("li", {}, sign, text), sign };
}

function listOf(title, items) {
  return [element("h3", {}, title), element("ul", { class: "signs", "aria-label": title }, ...items)];
}

/** Open the legend, also where the options are hidden, or close it; the focus stays where keys work. Returns whether it is open. */
export function toggleLegend(openOptions) {
  const box = document.getElementById("legend");
  box.open = !box.open;
  if (box.open) {
    openOptions();
    box.scrollIntoView({ block: "nearest" });
  }
  return box.open;
}
