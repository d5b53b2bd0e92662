/** The levels on the screen: by hand at once, by themselves slowly. */

import { followRange, LevelHistogram, rangeOf } from "./autorange.js";
import { nearestIndex } from "./rowat.js";

const INTERVAL_MS = 250;
const ROWS_LOOKED_AT = 24;
const AT_FIRST = Object.freeze({ lo: -120, hi: 0 });
/** How much faster the range follows in the past, where nothing else moves. */
const PAST_SPEED = 10;

/**
 * Range of levels that is on the screen, from rows spread over the waterfalls and from the lines of spectra.
 *
 * @param {Array<{rows: object, lines: Array<{values: ArrayLike<number>, description: object}>}>} shown of each
 *   channel: rows of its waterfall, live and past, and rows of its line spectra
 * @param {import("../plot/axis.js").Axis} axis
 * @param {{newestMs: number, spanMs: number}} time at the top of the waterfalls, and their length
 */
export function visibleRange(shown, axis, { newestMs, spanMs }) {
  const histogram = new LevelHistogram();
  let highest = -Infinity;
  for (const { rows, lines } of shown) {
    for (const row of spread(rows, newestMs, spanMs)) histogram.add(row.values, row.description, axis.f0, axis.f1);
    for (const { values, description } of lines) {
      const line = new LevelHistogram();
      line.add(values, description, axis.f0, axis.f1);
      highest = Math.max(highest, line.quantile(1) || -Infinity);
    }
  }
  return rangeOf(histogram, highest);
}

/** Some rows of a span of time, evenly spread. */
function* spread(rows, newestMs, spanMs) {
  if (rows.length === 0) return;
  const oldest = nearestIndex(rows, newestMs - spanMs);
  const newest = nearestIndex(rows, newestMs);
  const step = Math.max(1, Math.floor((oldest - newest + 1) / ROWS_LOOKED_AT));
  for (let i = newest; i <= oldest; i += step) {
    const tMs = rows.timeAt(i);
    if (tMs <= newestMs && tMs >= newestMs - spanMs) yield rows.at(i);
  }
}

/** Follows the levels of one panel. */
export class LevelFollower {
  #levels = null;
  #at = -Infinity;

  /**
   * Levels to draw with.
   *
   * @param {{lo: number | null, hi: number | null, t1: number | null}} view
   * @param {number} now [ms]
   * @param {() => {lo: number, hi: number} | null} visible see `visibleRange`
   * @returns {{lo: number, hi: number}}
   */
  levels(view, now, visible) {
    if (view.lo !== null) {
      this.#levels = { lo: view.lo, hi: view.hi };
      this.#at = now;
    } else if (now - this.#at >= INTERVAL_MS) {
      const seconds = Math.min(1, (now - this.#at) / 1000);
      this.#at = now;
      this.#levels = followRange(this.#levels, visible(), view.t1 === null ? seconds : PAST_SPEED * seconds);
    }
    return this.#levels ?? AT_FIRST;
  }
}
