/** The range of levels that follows what is visible: at once where something would be cut, else slowly enough to look at. */

import { valueEdges } from "../plot/axis.js";
import { levelTable, onceAScale } from "./levels.js";

const LOW_SHARE = 0.1;
const HIGH_SHARE = 0.999;
const MARGIN_DB = 3;
const LEAST_DB = 40;
/** Lower levels than so many decibels below the top are not looked for: digital silence is no floor. */
const MOST_DB = 140;
const SPEED_DB_S = 3;
const DEAD_BAND_DB = 2;
/** An end that need not move rests until it is so far off, so that the range does not breathe. */
const REST_DB = 6;
const BIN_DB = 0.5;
const LOWEST_DB = -400;
/** No sound has more: infinite and absurd values, which a message has as the end of its scale, move no range [dB]. */
const HIGHEST_DB = 300;
const BINS = 1600;

/** Return the bin of each value of a stream in a histogram, `BINS` for none. */
const binTable = onceAScale((description) => {
  const binOf = (level) => (Number.isNaN(level) || level > HIGHEST_DB ? BINS : Math.max(0, Math.min(BINS - 1, Math.floor((level - LOWEST_DB) / BIN_DB))));
  return Uint16Array.from(levelTable(description), binOf);
});

/** Return the first value of a row that reaches above a frequency, and how many begin below another one. */
function valuesBetween(description, f0, f1) {
  const { lower, upper } = valueEdges(description);
  const countUntil = (values, isTrue) => {
    const found = values.findIndex(isTrue);
    return found < 0 ? values.length : found;
  };
  return { first: countUntil(upper, (hz) => hz > f0), end: countUntil(lower, (hz) => hz >= f1) };
}

/** Histogram of levels from -400 to 400 dB in steps of 0.5 dB. */
export class LevelHistogram {
  #counts = new Uint32Array(BINS + 1); // the last one: no data
  #total = 0;

  /** Count the values of a row from `f0` to `f1`; those without data, or above 300 dB, are left out. */
  add(values, description, f0 = -Infinity, f1 = Infinity) {
    const bins = binTable(description);
    const { first, end } = valuesBetween(description, f0, f1);
    const stop = Math.min(end, values.length);
    const blank = this.#counts[BINS];
    for (let j = first; j < stop; j += 1) this.#counts[bins[values[j]]] += 1;
    this.#total += Math.max(0, stop - first) - (this.#counts[BINS] - blank);
  }

  /** Level below which a share of the values lies, or NaN without values. */
  quantile(share) {
    if (this.#total === 0) return NaN;
    let left = share * this.#total;
    let bin = 0;
    while (bin < BINS - 1 && left > this.#counts[bin]) left -= this.#counts[bin++];
    return LOWEST_DB + (bin + 0.5) * BIN_DB;
  }
}

/**
 * Range of histograms, each of a channel: the lowest 10th percentile - 3 dB to the highest 99.9th + 3 dB, from 40 to
 * 140 dB; null without values.
 *
 * @param {LevelHistogram[]} histograms
 * @param {number} highest level that is shown in any case, such as the top of a line; -Infinity: none
 */
export function rangeOf(histograms, highest = -Infinity) {
  const quantiles = (share) => histograms.map((one) => one.quantile(share)).filter((level) => !Number.isNaN(level));
  const lo = Math.min(...quantiles(LOW_SHARE)) - MARGIN_DB;
  const hi = Math.max(...quantiles(HIGH_SHARE), highest) + MARGIN_DB;
  if (!Number.isFinite(lo)) return null;
  return { lo: Math.max(hi - MOST_DB, Math.min(lo, hi - LEAST_DB)), hi };
}

/** Range of differences about 0: as far as the 0.1st and the 99.9th percentile, at least 3 dB; null without values. */
export function centredRangeOf(histograms) {
  const sizes = histograms.flatMap((one) => [-one.quantile(1 - HIGH_SHARE), one.quantile(HIGH_SHARE)]).filter((level) => !Number.isNaN(level));
  if (sizes.length === 0) return null;
  const size = Math.max(MARGIN_DB, Math.ceil(Math.max(...sizes)));
  return { lo: -size, hi: size };
}

/** Tops of lines that pass, each with its time: one that was there once in a window is a click, and counts as the next one. */
export class PassingTops {
  #tops = [];

  /** Note a top [dB], and forget those before a time [ms]. */
  note(level, now, sinceMs) {
    this.#tops = this.#tops.filter(({ at }) => at >= sinceMs);
    if (Number.isFinite(level)) this.#tops.push({ level, at: now });
  }

  /** The highest but one; of a single top that one; -Infinity without any. */
  get level() {
    const [first = -Infinity, second = first] = this.#tops.map(({ level }) => level).sort((a, b) => b - a);
    return second;
  }
}

/** Ends of a range, which follow a target. */
export class EasyRange {
  #range = null;
  #isMoving = { lo: false, hi: false };

  /** @param {{lo: number, hi: number} | null} range to begin with */
  constructor(range = null) {
    this.#range = range;
  }

  get range() {
    return this.#range;
  }

  /**
   * Follow a target for `seconds` more.
   *
   * The top rises at once to what would be cut. An end that is more than 6 dB off moves by 3 dB/s until it is there.
   *
   * @param {{lo: number, hi: number} | null} target null: not known
   * @param {number} seconds infinite: at once, as far as it is more than 2 dB off
   * @returns {{lo: number, hi: number} | null}
   */
  follow(target, seconds) {
    const now = this.#range;
    if (target === null) return now;
    if (now === null) this.#range = target;
    else {
      const lo = this.#end("lo", target.lo, seconds);
      const hi = target.hi - now.hi > DEAD_BAND_DB ? target.hi : this.#end("hi", target.hi, seconds);
      this.#range = { lo: Math.min(lo, hi - LEAST_DB / 2), hi };
    }
    return this.#range;
  }

  #end(end, target, seconds) {
    const now = this.#range[end];
    const off = target - now;
    if (seconds === Infinity) return Math.abs(off) > DEAD_BAND_DB ? target : now;
    if (!this.#isMoving[end] && Math.abs(off) <= REST_DB) return now;
    const step = SPEED_DB_S * seconds;
    this.#isMoving[end] = Math.abs(off) > step;
    return now + Math.max(-step, Math.min(step, off));
  }
}
