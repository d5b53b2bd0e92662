/** Values beside the plots: measurements of every kind, levels as bars, others as numbers and tables. */

import { element, fillTable, setText } from "./dom.js";
import { measurementsOf, topicTitle } from "../link/topics.js";
import { formatLevel, formatTime } from "../plot/time.js";

const LEVELS = /^(dB|LU)/;
const DIGITS = 4;
/** A bar of levels shows this many decibels below the greatest it has seen, rounded up to ten. */
const BAR_DB = 80;
const TRACKS_SHOWN = 12;
const BOXES_MAX = 64;

/** Whether values of a unit are levels, which a bar can show. */
export const isLevel = (unit) => LEVELS.test(unit ?? "");

/** Whether a bar shows values of a unit: differences and ratios have no range to be shown in. */
export const hasBar = (unit) => isLevel(unit) && unit !== "dB" && unit !== "LU";

/** A name as a person reads it. */
export const nameText = (name) => name.replaceAll("_", " ");

/** A value with its unit, times below a second in milliseconds; null is no value. */
export function valueText(value, unit) {
  if (value === null || value === undefined) return "no value";
  if (isLevel(unit)) return formatLevel(value, unit);
  const [shown, sign] = unit === "s" && Math.abs(value) < 1 ? [1000 * value, "ms"] : [value, unit === "1" ? "" : (unit ?? "")];
  return `${Number(shown.toPrecision(DIGITS))} ${sign}`.trim();
}

/** Top of a bar for levels: the next ten above all that was seen, so that it seldom changes. */
export function barTop(top, values) {
  const highest = Math.max(...values.filter((value) => value !== null));
  if (!Number.isFinite(highest)) return top;
  return Math.max(top ?? -Infinity, Math.ceil(highest / 10) * 10);
}

/** Share of a bar that a level fills, 0 to 1. */
export function barShare(value, top) {
  if (value === null || top === null) return 0;
  return Math.max(0, Math.min(1, (value - (top - BAR_DB)) / BAR_DB));
}

/**
 * What a topic without a value so far says: an interval may be a day.
 *
 * @param {number | null} interval_s
 * @param {number} sinceMs when the page began to wait [ms UTC]
 * @param {string} zone
 */
export function waitingText(interval_s, sinceMs, zone) {
  if (!(interval_s > 0)) return "waiting for the first value";
  return `first value by ${formatTime(sinceMs + 1000 * interval_s, zone)}`;
}

/** Values of one topic. */
class ValueBox {
  #title;
  #heading;
  #top = null;
  #rows = [];
  #sinceMs = null;
  #waiting = element("p", { class: "empty" });
  #list = element("dl", { class: "values" });
  #tracks = element("tbody");
  #head = element("tr");
  #table = element("table", { hidden: true }, element("thead", {}, this.#head), this.#tracks);

  constructor(info) {
    this.#title = topicTitle(info);
    this.#heading = element("h3", {}, this.#title);
    this.root = element("section", { class: "value-box" }, this.#heading, this.#waiting, this.#list, this.#table);
  }

  /** Say that the first value is still to come. */
  wait({ interval_s }, nowMs, zone) {
    this.#sinceMs ??= nowMs;
    setText(this.#waiting, waitingText(interval_s, this.#sinceMs, zone));
  }

  show({ names, units, values, reference, columns, tracks }) {
    this.#waiting.hidden = true;
    setText(this.#heading, reference === undefined ? this.#title : `${this.#title} re ${reference}`);
    if (this.#rows.length !== names.length) this.#makeRows(names);
    const levels = values.filter((value, k) => hasBar(units[k]));
    this.#top = barTop(this.#top, levels);
    names.forEach((name, k) => this.#showRow(this.#rows[k], name, values[k], units[k]));
    this.#showTracks(columns, tracks);
  }

  #makeRows(names) {
    this.#rows = names.map(() => {
      const fill = element("span", { class: "fill" });
      const bar = element("span", { class: "bar", "aria-hidden": "true" }, fill);
      const text = element("span");
      return { term: element("dt"), detail: element("dd", {}, text, bar), bar, fill, text };
    });
    this.#list.replaceChildren(...this.#rows.flatMap(({ term, detail }) => [term, detail]));
  }

  #showRow({ term, bar, fill, text }, name, value, unit) {
    setText(term, nameText(name));
    setText(text, valueText(value, unit));
    bar.hidden = !hasBar(unit);
    fill.style.transform = `scaleX(${barShare(value, this.#top).toFixed(4)})`;
  }

  #showTracks(columns, tracks) {
    this.#table.hidden = !columns || !tracks || tracks.length === 0;
    if (this.#table.hidden) return;
    if (this.#head.cells.length !== columns.length) {
      this.#head.replaceChildren(...columns.map((name) => element("th", { scope: "col" }, name)));
    }
    const text = (value) => (value === null ? "" : String(Number(value.toPrecision(DIGITS))));
    fillTable(this.#tracks, tracks.slice(0, TRACKS_SHOWN).map((track) => track.map(text)));
  }
}

/** All topics of values, in a place of the page. */
export class Meters {
  #place;
  #boxes = new Map();

  /** @param {HTMLElement} place hidden while there are none */
  constructor(place) {
    this.#place = place;
  }

  /**
   * Show the newest values of each topic that has some, at most 64, and when the others' will come.
   *
   * @param {Map<number, object>} values `values` texts by topic
   * @param {object[]} topics
   * @param {{nowMs: number, zone: string}} clock
   */
  show(values, topics, { nowMs, zone }) {
    const listed = measurementsOf(topics).slice(0, BOXES_MAX);
    const ids = new Set(listed.map(({ id }) => id));
    for (const id of [...this.#boxes.keys()]) if (!ids.has(id)) this.#remove(id);
    for (const info of listed) {
      const box = this.#box(info.id, info);
      const message = values.get(info.id);
      if (message === undefined) box.wait(info, nowMs, zone);
      else box.show(message);
    }
    this.#place.hidden = this.#boxes.size === 0;
  }

  #box(id, info) {
    if (!this.#boxes.has(id)) {
      const box = new ValueBox(info);
      this.#boxes.set(id, box);
      this.#place.append(box.root);
    }
    return this.#boxes.get(id);
  }

  #remove(id) {
    this.#boxes.get(id)?.root.remove();
    this.#boxes.delete(id);
  }
}
