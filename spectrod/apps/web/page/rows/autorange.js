/** The range of levels that follows what is visible, slowly enough to look at. */

import { eachValue } from "./bins.js";

const LOW_SHARE = 0.1;
const HIGH_SHARE = 0.999;
const MARGIN_DB = 3;
const LEAST_DB = 40;
const SPEED_DB_S = 3;
const DEAD_BAND_DB = 2;
const BIN_DB = 0.5;
const LOWEST_DB = -400;
const BINS = 1600;

/** Histogram of levels from -400 to 400 dB in steps of 0.5 dB. */
export class LevelHistogram {
  #counts = new Uint32Array(BINS);
  #total = 0;

  /** Count the values of a row from `f0` to `f1`; those without data are left out. */
  add(values, description, f0 = -Infinity, f1 = Infinity) {
    eachValue(values, description, (hz, level) => {
      if (!(hz >= f0 && hz <= f1) || Number.isNaN(level)) return;
      const bin = Math.floor((level - LOWEST_DB) / BIN_DB);
      this.#counts[Math.max(0, Math.min(BINS - 1, bin))] += 1;
      this.#total += 1;
    });
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
 * Range that shows a histogram: 10th percentile - 3 dB to 99.9th + 3 dB, at least 40 dB; null without values.
 *
 * @param {LevelHistogram} histogram
 * @param {number} highest level that is shown in any case, such as the top of a line; -Infinity: none
 */
export function rangeOf(histogram, highest = -Infinity) {
  const lo = histogram.quantile(LOW_SHARE) - MARGIN_DB;
  const hi = Math.max(histogram.quantile(HIGH_SHARE), highest) + MARGIN_DB;
  if (Number.isNaN(lo)) return null;
  return hi - lo >= LEAST_DB ? { lo, hi } : { lo: hi - LEAST_DB, hi };
}

function approach(now, target, step) {
  const off = target - now;
  if (Math.abs(off) <= DEAD_BAND_DB) return now;
  return now + Math.max(-step, Math.min(step, off));
}

/**
 * Range of levels after `seconds` more: at most 3 dB/s toward the target, still within 2 dB of it.
 * Without a range yet it is the target's at once.
 */
export function followRange(now, target, seconds) {
  if (now === null || target === null) return now ?? target;
  const step = SPEED_DB_S * seconds;
  const lo = approach(now.lo, target.lo, step);
  const hi = approach(now.hi, target.hi, step);
  return { lo, hi: Math.max(hi, lo + LEAST_DB / 2) };
}
