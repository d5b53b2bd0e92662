/**
 * Levels and other measurements over time: each interval that has come since the page was opened, with the numbers as they
 * were sent. Nothing is filled in: an interval that did not come, or had no value, stays a gap.
 */

import { measurementsOf } from "../link/topics.js";

/** Numbers that are kept of a topic, and columns that are. */
const NUMBERS_MAX = 65_536;
const COLUMNS_MAX = 64;
const TOPICS_MAX = 64;
/** Less than so much of an interval between two is no gap: their times are rounded, and corrected as the clock is known better. */
const TOUCH = 0.1;

/** Name of a column in a view. */
export const columnName = ({ product }, name) => `${product}/${name}`;

/** Intervals of one topic. */
class Series {
  names;
  units;
  /** Intervals by time: `{t0, t1, values}` [ms UTC], `values` of the columns, null where there is none. */
  intervals = [];
  #kept;

  constructor(names, units) {
    this.names = names.slice(0, COLUMNS_MAX);
    this.units = units.slice(0, COLUMNS_MAX);
    this.#kept = Math.floor(NUMBERS_MAX / Math.max(1, this.names.length));
  }

  isOf(names, units) {
    return this.names.every((name, k) => name === names[k] && this.units[k] === units[k]) && this.names.length === Math.min(names.length, COLUMNS_MAX);
  }

  /** Take an interval that is later than all before it. */
  take(t0, t1, values) {
    const last = this.intervals.at(-1);
    if (last !== undefined && t0 <= last.t0) return;
    // The first of a measurement, and one that was cut, are shorter than their interval.
    if (last !== undefined) last.t1 = Math.min(last.t1, t0);
    this.intervals.push({ t0, t1, values: values.slice(0, COLUMNS_MAX) });
    // In lots: taking away the first of a long list moves all others.
    if (this.intervals.length > 1.25 * this.#kept) this.intervals.splice(0, this.intervals.length - this.#kept);
  }
}

export class LevelSeries {
  #series = new Map();
  /** Grows with each interval. */
  version = 0;

  /**
   * Take a `values` text.
   *
   * @param {object} info its topic
   * @param {{t_ms: number, interval_s: number, names: string[], units: string[], values: Array<number | null>}} message
   */
  take(info, { t_ms: t0, interval_s: length, names, units, values }) {
    if (!Number.isFinite(t0) || !(length > 0)) return;
    const key = keyOf(info);
    let found = this.#series.get(key);
    if (found === undefined || !found.isOf(names, units)) {
      found = new Series(names, units);
      this.#series.delete(key);
      this.#series.set(key, found);
      if (this.#series.size > TOPICS_MAX) this.#series.delete(this.#series.keys().next().value);
    }
    found.take(t0, t0 + 1000 * length, values);
    this.version += 1;
  }

  /**
   * Columns that there are of some channels, each once.
   *
   * @param {object[]} topics
   * @param {object[]} infos topics of the channels
   * @returns {string[]} names as in a view
   */
  columns(topics, infos) {
    const about = measurementsOf(topics).filter((one) => infos.some((info) => isOfChannel(one, info)));
    return [...new Set(about.flatMap((one) => (this.#series.get(keyOf(one))?.names ?? []).map((name) => columnName(one, name))))];
  }

  /**
   * A column of a channel.
   *
   * @param {string} column name as in a view
   * @param {object} info topic of the channel
   * @param {object[]} topics
   * @returns {Column | null} null without an interval so far
   */
  column(column, info, topics) {
    for (const one of measurementsOf(topics)) {
      if (!isOfChannel(one, info) || !column.startsWith(`${one.product}/`)) continue;
      const series = this.#series.get(keyOf(one));
      const k = series?.names.findIndex((name) => columnName(one, name) === column) ?? -1;
      if (k >= 0) return new Column(series, k);
    }
    return null;
  }
}

/** One column of a topic. */
export class Column {
  #series;
  #k;

  constructor(series, k) {
    this.#series = series;
    this.#k = k;
  }

  get name() {
    return this.#series.names[this.#k];
  }

  get unit() {
    return this.#series.units[this.#k];
  }

  /** When the first interval that is kept began [ms UTC]; null without any. */
  get since() {
    return this.#series.intervals[0]?.t0 ?? null;
  }

  /** Value of the interval that a time is in, or null. */
  at(tMs) {
    const { intervals } = this.#series;
    const found = intervals[firstAfter(intervals, tMs) - 1];
    return found !== undefined && tMs < found.t1 ? this.#valueOf(found) : null;
  }

  /** Value of the newest interval, or null. */
  get newest() {
    const { intervals } = this.#series;
    return intervals.length > 0 ? this.#valueOf(intervals.at(-1)) : null;
  }

  #valueOf({ values }) {
    return values[this.#k] ?? null;
  }

  /**
   * What there is in a span of time, in runs without gaps; intervals that lie in one step of time are one point with the
   * least and the greatest value.
   *
   * @param {number} t0 [ms UTC]
   * @param {number} t1 [ms UTC]
   * @param {number} stepMs of a pixel
   * @returns {Array<Array<{t0: number, t1: number, lo: number, hi: number, last: number}>>} `last`: value of the last interval
   */
  runs(t0, t1, stepMs) {
    const { intervals } = this.#series;
    const runs = [];
    let run = null;
    for (let n = Math.max(0, firstAfter(intervals, t0) - 1); n < intervals.length && intervals[n].t0 < t1; n += 1) {
      const one = intervals[n];
      const value = this.#valueOf(one);
      if (one.t1 <= t0) continue;
      if (value === null || !Number.isFinite(value)) {
        run = null;
        continue;
      }
      const before = run?.at(-1);
      if (before === undefined || one.t0 - before.t1 > TOUCH * (one.t1 - one.t0)) {
        run = [{ t0: one.t0, t1: one.t1, lo: value, hi: value, last: value }];
        runs.push(run);
      } else if (Math.floor(one.t0 / stepMs) === Math.floor(before.t0 / stepMs)) {
        Object.assign(before, { t1: one.t1, lo: Math.min(before.lo, value), hi: Math.max(before.hi, value), last: value });
      } else run.push({ t0: one.t0, t1: one.t1, lo: value, hi: value, last: value });
    }
    return runs;
  }
}

/** Place of the first interval that begins after a time. */
function firstAfter(intervals, tMs) {
  let [low, high] = [0, intervals.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (intervals[middle].t0 <= tMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Numbers of topics change when a server starts again. */
const keyOf = ({ endpoint, topic }) => `${endpoint} ${topic}`;

const isOfChannel = (one, info) => ["endpoint", "source", "channel"].every((name) => one[name] === info[name]);
