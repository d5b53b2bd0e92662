/** The card of a selection: what is in it, and what can be done with it. */

import { topicTitle } from "../link/topics.js";
import { decimalsOf, formatHertz, formatLevel, formatTime } from "../plot/time.js";
import { measureSelection } from "../rows/selection.js";
import { element, setText } from "../side/dom.js";
import { secondsText } from "../side/tables.js";

/** A selection that is being dragged changes with each frame. */
const SETTLED_MS = 300;

/** Part of a view that shows a selection and nothing else. */
export const zoomedTo = ({ t0, t1, f0, f1 }) => ({ f0, f1, t1, span: (t1 - t0) / 1000, selection: null });

/** A box between the two cursors if both have a time, else one in the middle of what is shown; null without times. */
export function boxOf({ view, axis, newestMs }) {
  const [[a, b], [from, to]] = [view.cursors, view.times];
  if (typeof from === "number" && typeof to === "number" && from !== to && a !== b) {
    return { t0: Math.min(from, to), t1: Math.max(from, to), f0: Math.min(a, b), f1: Math.max(a, b) };
  }
  const top = view.t1 ?? newestMs;
  if (top === null) return null;
  const [f0, f1] = [0.4, 0.6].map((share) => axis.toHertz(share * axis.width));
  return { t0: top - 600 * view.span, t1: top - 400 * view.span, f0, f1 };
}

/** What a selection covers, for a person. */
export function boxText({ t0, t1, f0, f1 }, zone) {
  const decimals = decimalsOf((t1 - t0) / 1000);
  const begin = formatTime(t0, zone, decimals).replace(/ [^ ]+$/, "");
  return `${begin} to ${formatTime(t1, zone, decimals).slice(11)}, ${secondsText((t1 - t0) / 1000)}; ${formatHertz(f0)} to ${formatHertz(f1)}`;
}

/** What is in a selection of a channel: its band's level, its peak, and how much sound that is of. */
export function measuredText({ band, peak, seconds, rows, isOfCells }, zone, span) {
  if (peak === null) return "no data";
  const level = band === null ? "" : `Leq of the band ${formatLevel(band.level, band.unit)}; `;
  const place = `${formatHertz(peak.hz, peak.bandHz / 10)}, ${formatTime(peak.tMs, zone, decimalsOf(span)).slice(11)}`;
  const sound = `${rows} rows, ${secondsText(seconds)}${isOfCells ? ", from cells of a pyramid" : ""}`;
  return `${level}peak ${formatLevel(peak.level, peak.unit)} at ${place} (${sound})`;
}

/** The card in the page; it lies over the foot of the page, so that it neither moves nor hides the plots. */
export class SelectionCard {
  root;
  #text = element("p", {});
  #list = element("ul", {});
  #note = element("p", { class: "empty", role: "status" });
  /** Apart from the note of the measurement, which may come later. */
  #copied = element("p", { class: "empty", role: "status" });
  #link = element("input", { type: "text", readonly: true, hidden: true, "aria-label": "Link to this view" });
  #shown = "";
  #timer = null;
  #abort = null;
  #selection = null;
  #given;

  /**
   * @param {{base: string, fetch: Function, change: (part: object) => void, save: (format: string) => Promise<void>,
   *   toLoudest: () => void, link: () => string, say: (text: string) => void}} given `save`: files of the selection; `link`: address of the view
   */
  constructor(given) {
    this.#given = given;
    const button = (text, act) => {
      const made = element("button", { type: "button" }, text);
      made.addEventListener("click", act);
      return made;
    };
    const saving = (format) => () => given.save(format).catch((error) => setText(this.#note, error.message));
    this.root = element(
      "section",
      { class: "selection-card", "aria-label": "Selection", hidden: true },
      this.#text,
      this.#list,
      this.#note,
      this.#copied,
      element(
        "div",
        { class: "fields" },
        button("Zoom to it", () => this.#selection && given.change(zoomedTo(this.#selection))),
        button("To its peak", () => given.toLoudest()),
        button("PNG", saving("png")),
        button("CSV", saving("csv")),
        button("Copy link", () => this.#copyLink()),
        button("Close", () => given.change({ selection: null })),
      ),
      this.#link,
    );
  }

  /**
   * Show a view's selection, and measure it once it stays.
   *
   * @param {{selection: object | null, zone: string, hasHistory: boolean,
   *   channels: Array<import("../rows/channel.js").Channel>}} shown
   */
  show({ selection, zone, hasHistory, channels }) {
    this.root.hidden = selection === null || channels.length === 0;
    this.#selection = selection;
    if (this.root.hidden) {
      this.#forget();
      return;
    }
    setText(this.#text, boxText(selection, zone));
    const isDescribed = channels.every(({ description }) => description !== null);
    const key = JSON.stringify([selection, zone, hasHistory, isDescribed, channels.map(({ info }) => [info.endpoint, info.topic])]);
    if (key === this.#shown) return;
    this.#forget();
    this.#shown = key;
    this.#list.replaceChildren();
    setText(this.#note, hasHistory ? "measuring" : "this server keeps no past: a selection cannot be measured");
    if (hasHistory && isDescribed) this.#timer = setTimeout(() => this.#measure(selection, zone, channels), SETTLED_MS);
  }

  #forget() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#shown = "";
    setText(this.#copied, "");
    this.#link.hidden = true;
  }

  async #measure(box, zone, channels) {
    const abort = new AbortController();
    this.#abort = abort;
    const notes = new Set();
    const texts = [];
    for (const { info, description } of channels) {
      const title = topicTitle(info);
      try {
        const asked = { topic: info, rowMs: 1000 * description.row_s, box, signal: abort.signal };
        const measured = await measureSelection(this.#given.fetch, this.#given.base, asked);
        texts.push(`${title}: ${measuredText(measured, zone, (box.t1 - box.t0) / 1000)}`);
        for (const text of measured.leftOut) notes.add(text);
      } catch (error) {
        if (abort.signal.aborted) return;
        texts.push(`${title}: ${error.message}`);
      }
      if (abort.signal.aborted) return;
      this.#list.replaceChildren(...texts.map((text) => element("li", {}, text)));
    }
    setText(this.#note, [...notes].join("; "));
    this.#given.say(texts.join(". "));
  }

  /** Copy the link, or show it where the browser does not let the page. */
  async #copyLink() {
    const link = this.#given.link();
    try {
      await navigator.clipboard.writeText(link);
      setText(this.#copied, "the link is copied");
    } catch {
      this.#link.hidden = false;
      this.#link.value = link;
      this.#link.select();
    }
  }
}
