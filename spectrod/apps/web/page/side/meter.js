/** Values beside the plots: measurements of every kind, levels as meters, others as numbers and tables. */

import { element, fillTable, setAttribute, setText } from "./dom.js";
import { LevelMeter } from "./levelmeter.js";
import { measurementsOf, topicTitle } from "../link/topics.js";
import { formatLevel, formatTime } from "../plot/time.js";

const LEVELS = /^(dB|LU)/;
const DIGITS = 4;
const TRACKS_SHOWN = 12;
const BOXES_MAX = 64;
/** Levels of bands are many: so many of a topic have a meter. */
const METERS_MAX = 16;
/** The flag of an interval in which a sample was at full scale. */
const OVERLOAD = "overload";
/** A value is old after this time, or after three intervals [s]. */
const OLD_S = 3;
const OLD_INTERVALS = 3;

/** Whether values of a unit are levels, which a meter can show. */
export const isLevel = (unit) => LEVELS.test(unit ?? "");

/** Whether a meter shows values of a unit: differences and ratios have no range to be shown in. */
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

/** What clipped, for the lamp: the time of the first interval, and how many there were since. */
export class ClipLamp {
  #first_ms = null;
  #count = 0;

  /** Take the flags of an interval. */
  take(flags, tMs) {
    if (!flags.includes(OVERLOAD)) return;
    this.#first_ms ??= tMs;
    this.#count += 1;
  }

  get isLit() {
    return this.#count > 0;
  }

  reset() {
    this.#first_ms = null;
    this.#count = 0;
  }

  /** Since when the lamp is lit, in a time zone. */
  sinceText(zone) {
    return this.isLit ? `clipped at ${formatTime(this.#first_ms, zone).slice(11)}` : "no clipping";
  }

  /** The same with how often since. */
  text(zone) {
    return this.#count > 1 ? `${this.sinceText(zone)}, ${this.#count} intervals` : this.sinceText(zone);
  }
}

/** Whether a value has not been followed by the next one when it was due. */
export function isOld({ interval_s }, takenAt, now) {
  return now - takenAt > 1000 * Math.max(OLD_S, OLD_INTERVALS * (interval_s || 0));
}

/** Values of one topic. */
class ValueBox {
  #title;
  #name = element("span");
  #lamp = element("button", { type: "button", class: "clip-lamp", hidden: true, title: "A sample was at full scale. Click: put the lamp out." });
  #note = element("span", { class: "aside" });
  #clips = new ClipLamp();
  #rows = [];
  #message = null;
  #takenAt = -Infinity;
  #sinceMs = null;
  #waiting = element("p", { class: "empty" });
  #list = element("dl", { class: "values" });
  #tracks = element("tbody");
  #head = element("tr");
  #table = element("table", { hidden: true }, element("thead", {}, this.#head), this.#tracks);

  constructor(info) {
    this.#title = topicTitle(info);
    setText(this.#name, this.#title);
    this.#lamp.addEventListener("click", () => {
      this.#clips.reset();
      this.#lamp.hidden = true;
    });
    const heading = element("div", { class: "value-head" }, element("h3", {}, this.#name, this.#note), this.#lamp);
    this.root = element("section", { class: "value-box" }, heading, this.#waiting, this.#list, this.#table);
  }

  /** Say that the first value is still to come. */
  wait({ interval_s }, nowMs, zone) {
    this.#sinceMs ??= nowMs;
    setText(this.#waiting, waitingText(interval_s, this.#sinceMs, zone));
  }

  get message() {
    return this.#message;
  }

  /** Take a `values` text at a time of the page [ms]. */
  take(message, now) {
    this.#message = message;
    this.#takenAt = now;
    const { names, units, values, t_ms: tMs, interval_s, flags } = message;
    if (!this.#isSame(names, units)) this.#makeRows(names, units);
    values.forEach((value, k) => this.#rows[k]?.meter?.take(value, { tMs, interval_s, now }));
    this.#clips.take(flags ?? [], tMs);
  }

  #isSame(names, units) {
    return this.#rows.length === names.length && this.#rows.every(({ name, unit }, k) => name === names[k] && unit === units[k]);
  }

  /** Bring the elements up to date; beside the past they say that they are of now. */
  show(now, zone, colours, isPast) {
    const { values, flags = [], reference, columns, tracks, t_ms: tMs } = this.#message;
    this.#waiting.hidden = true;
    setText(this.#name, reference === undefined ? this.#title : `${this.#title} re ${reference}`);
    const old = isOld(this.#message, this.#takenAt, now);
    const notes = old ? ["no value now"] : flags.filter((flag) => flag !== OVERLOAD).map(nameText);
    if (isPast && !old) notes.unshift(`live, ${formatTime(tMs, zone).slice(11, 19)}`);
    setText(this.#note, notes.length > 0 ? `  ${notes.join(", ")}` : "");
    setAttribute(this.root, "data-old", old);
    this.#lamp.hidden = !this.#clips.isLit;
    setText(this.#lamp, this.#clips.text(zone));
    this.#rows.forEach((row, k) => this.#showRow(row, k, values[k] ?? null, now, colours));
    this.#showTracks(columns, tracks);
  }

  /** Text for who cannot see the lamp, one of each time that it lights; empty while it is out. */
  alarm(zone) {
    return this.#clips.isLit ? `${this.#title}: ${this.#clips.sinceText(zone)}` : "";
  }

  #makeRows(names, units) {
    let left = METERS_MAX;
    this.#rows = names.map((name, k) => {
      const unit = units[k];
      const meter = hasBar(unit) && left-- > 0 ? new LevelMeter(nameText(name), unit) : null;
      const text = element("span", { class: "value-text" });
      const detail = element("dd", { "data-meter": meter !== null }, text, ...(meter?.elements ?? []));
      return { name, unit, term: element("dt", {}, nameText(name)), detail, text, meter };
    });
    this.#list.replaceChildren(...this.#rows.flatMap(({ term, detail }) => [term, detail]));
  }

  #showRow({ unit, text, meter }, k, value, now, colours) {
    setText(text, valueText(value, unit));
    // Of neighbours with one scale the last one has its numbers.
    const next = this.#rows[k + 1]?.meter;
    const isSame = next && ["lo", "hi"].every((end) => next.scale[end] === meter?.scale[end]);
    meter?.show(now, !isSame, colours);
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
   * Take a `values` text as it comes: of those between two pictures the peaks count.
   *
   * @param {object} message
   * @param {number} now [ms]
   */
  take(message, now) {
    const box = this.#boxes.get(message.topic_id);
    if (box !== undefined && box.message !== message) box.take(message, now);
  }

  /**
   * Show the newest values of each topic that has some, at most 64, and when the others' will come.
   *
   * @param {Map<number, object>} values `values` texts by topic
   * @param {object[]} topics
   * @param {{now: number, nowMs: number, zone: string, colours: Record<string, string>, isPast: boolean}} scene
   *   `now`: the page's clock, `nowMs`: UTC [ms]; whether the plots show the past
   * @returns {string[]} what has clipped, for who cannot see the lamps
   */
  show(values, topics, { now, nowMs, zone, colours, isPast }) {
    const listed = measurementsOf(topics).slice(0, BOXES_MAX);
    const ids = new Set(listed.map(({ id }) => id));
    for (const id of [...this.#boxes.keys()]) if (!ids.has(id)) this.#remove(id);
    for (const info of listed) {
      const box = this.#box(info.id, info);
      const message = values.get(info.id);
      if (message !== undefined) this.take(message, now);
      if (box.message === null) box.wait(info, nowMs, zone);
      else box.show(now, zone, colours, isPast);
    }
    this.#place.hidden = this.#boxes.size === 0;
    return [...this.#boxes.values()].map((box) => box.alarm(zone)).filter(Boolean);
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
