/**
 * Levels and other measurements over time: each interval that has come since the page was opened, with the numbers as they
 * were sent. Nothing is filled in: an interval that did not come, or had no value, stays a gap.
 */

import { measurementsOf } from "../link/topics.js";

/** Numbers that are kept of a topic, with two times of each interval, and columns that are. */
const NUMBERS_MAX = 65_536;
const COLUMNS_MAX = 64;
const TOPICS_MAX = 64;
/** Less than so much of an interval between two is no gap: their times are rounded, and corrected as the clock is known better. */
const TOUCH = 0.1;

/** Name of a column in a view. */
export const columnName = ({ product }, name) => `${product}/${name}`;

/** Share of the intervals that go at once, when there is no room for another one. */
const DROPPED = 0.2;

/** Intervals of one topic by time, in memory that is there from the first one on: a page that stays open does not grow. */
class Series {
  names;
  units;
  count = 0;
  #width;
  #numbers; // (intervals, 2 + columns): begin, end [ms UTC], values, NaN where there is none

  constructor(names, units) {
    this.names = names.slice(0, COLUMNS_MAX);
    this.units = units.slice(0, COLUMNS_MAX);
    this.#width = 2 + this.names.length;
    this.#numbers = new Float64Array(Math.floor(NUMBERS_MAX / this.#width) * this.#width);
  }

  isOf(names, units) {
    return this.names.every((name, k) => name === names[k] && this.units[k] === units[k]) && this.names.length === Math.min(names.length, COLUMNS_MAX);
  }

  t0(n) {
    return this.#numbers[n * this.#width];
  }

  t1(n) {
    return this.#numbers[n * this.#width + 1];
  }

  /** Value of a column in an interval, or null. */
  value(n, k) {
    const value = this.#numbers[n * this.#width + 2 + k];
    return Number.isNaN(value) ? null : value;
  }

  /** Take an interval that is later than all before it. */
  take(t0, t1, values) {
    const last = this.count - 1;
    if (last >= 0 && t0 <= this.t0(last)) return;
    // The first of a measurement, and one that was cut, are shorter than their interval.
    if (last >= 0) this.#numbers[last * this.#width + 1] = Math.min(this.t1(last), t0);
    this.#makeRoom();
    const row = [t0, t1, ...this.names.map((_, k) => values[k] ?? NaN)];
    this.#numbers.set(row, this.count * this.#width);
    this.count += 1;
  }

  #makeRoom() {
    const most = this.#numbers.length / this.#width;
    if (this.count < most) return;
    const dropped = Math.ceil(DROPPED * most);
    this.#numbers.copyWithin(0, dropped * this.#width);
    this.count -= dropped;
  }

  /** Number of intervals that begin at a time or before it. */
  countUntil(tMs) {
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.t0(middle) <= tMs) low = middle + 1;
      else high = middle;
    }
    return low;
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
    return this.#series.count > 0 ? this.#series.t0(0) : null;
  }

  /** Value of the interval that a time is in, or null. */
  at(tMs) {
    const n = this.#series.countUntil(tMs) - 1;
    return n >= 0 && tMs < this.#series.t1(n) ? this.#series.value(n, this.#k) : null;
  }

  /** Value of the newest interval, or null. */
  get newest() {
    const { count } = this.#series;
    return count > 0 ? this.#series.value(count - 1, this.#k) : null;
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
    const series = this.#series;
    const runs = [];
    let run = null;
    for (let n = Math.max(0, series.countUntil(t0) - 1); n < series.count && series.t0(n) < t1; n += 1) {
      const one = { t0: series.t0(n), t1: series.t1(n) };
      if (one.t1 <= t0) continue;
      const value = series.value(n, this.#k);
      if (value === null) {
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

/** Corners of the line of a run, each a time and a value: a value holds for all of its interval. */
export const cornersOf = (run) => run.flatMap(({ t0, t1, lo, hi, last }) => [...(hi > lo ? [[t0, lo], [t0, hi]] : []), [t0, last], [t1, last]]);

/** Numbers of topics change when a server starts again. */
const keyOf = ({ endpoint, topic }) => `${endpoint} ${topic}`;

const isOfChannel = (one, info) => ["endpoint", "source", "channel"].every((name) => one[name] === info[name]);
