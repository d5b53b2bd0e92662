/** The levels on the screen: by hand at once, by themselves slowly. */

import { followRange, LevelHistogram, rangeOf } from "./autorange.js";

const INTERVAL_MS = 250;
const ROWS_LOOKED_AT = 24;
const AT_FIRST = Object.freeze({ lo: -120, hi: 0 });

/** Range of levels that some channels show, from rows spread over the time on the screen. */
export function visibleRange(channels, axis, spanMs) {
  const histogram = new LevelHistogram();
  for (const { ring } of channels) {
    if (ring === null || ring.length === 0) continue;
    const oldest = ring.findTime(ring.timeAt(0) - spanMs);
    const step = Math.max(1, Math.floor((oldest + 1) / ROWS_LOOKED_AT));
    for (let i = 0; i <= oldest; i += step) {
      const { values, description } = ring.at(i);
      histogram.add(values, description, axis.f0, axis.f1);
    }
  }
  return rangeOf(histogram);
}

/** Follows the levels of one panel. */
export class LevelFollower {
  #levels = null;
  #at = -Infinity;

  /**
   * Levels to draw with.
   *
   * @param {{lo: number | null, hi: number | null, t1: number | null, span: number}} view
   * @param {number} now [ms]
   * @param {import("./channel.js").Channel[]} channels
   * @param {import("./axis.js").Axis} axis
   * @returns {{lo: number, hi: number}}
   */
  levels(view, now, channels, axis) {
    if (view.lo !== null) {
      this.#levels = { lo: view.lo, hi: view.hi };
      this.#at = now;
    } else if (now - this.#at >= INTERVAL_MS) {
      const seconds = Math.min(1, (now - this.#at) / 1000);
      this.#at = now;
      // A plot that stands still keeps its colours, too.
      if (view.t1 === null || this.#levels === null) {
        this.#levels = followRange(this.#levels, visibleRange(channels, axis, view.span * 1000), seconds);
      }
    }
    return this.#levels ?? AT_FIRST;
  }
}
