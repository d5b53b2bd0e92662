/** Values beside the plots: sound levels as bars, features and tones as tables. */

import { element, fillTable, setText } from "./dom.js";
import { topicTitle } from "./topics.js";
import { formatLevel } from "./time.js";

const LEVELS = /^(dB|LU)/;
const DIGITS = 4;
/** A bar of levels shows this many decibels below the greatest it has seen, rounded up to ten. */
const BAR_DB = 80;
const TRACKS_SHOWN = 12;

/** Whether values of a unit are levels, which a bar can show. */
export const isLevel = (unit) => LEVELS.test(unit ?? "");

/** A value with its unit; null is no value. */
export function valueText(value, unit) {
  if (value === null || value === undefined) return "no value";
  if (isLevel(unit)) return formatLevel(value, unit);
  return `${Number(value.toPrecision(DIGITS))} ${unit ?? ""}`.trim();
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

/** Values of one topic. */
class ValueBox {
  #top = null;
  #rows = [];
  #list = element("dl", { class: "values" });
  #tracks = element("tbody");
  #head = element("tr");
  #table = element("table", { hidden: true }, element("thead", {}, this.#head), this.#tracks);

  constructor(info) {
    this.root = element("section", { class: "value-box" }, element("h3", {}, topicTitle(info)), this.#list, this.#table);
  }

  show({ names, units, values, columns, tracks }) {
    if (this.#rows.length !== names.length) this.#makeRows(names);
    const levels = values.filter((value, k) => isLevel(units[k]));
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
    setText(term, name);
    setText(text, valueText(value, unit));
    bar.hidden = !isLevel(unit);
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
   * Show the newest values.
   *
   * @param {Map<number, object>} values `values` texts by topic
   * @param {object[]} topics
   */
  show(values, topics) {
    for (const [id, message] of values) {
      const info = topics.find((one) => one.id === id);
      if (info === undefined) this.#remove(id);
      else this.#box(id, info).show(message);
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
