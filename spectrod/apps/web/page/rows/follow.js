/** The levels on the screen: by hand at once, by themselves as `autorange.js` says. */

import { centredRangeOf, EasyRange, LevelHistogram, PassingTops, rangeOf } from "./autorange.js";
import { nearestIndex } from "./rowat.js";

const INTERVAL_MS = 250;
/** Rows of a waterfall that are looked at, as far apart on the screen as they can be. */
const ROWS_LOOKED_AT = 40;
const AT_FIRST = Object.freeze({ lo: -120, hi: 0 });
const DIFFERENCES_AT_FIRST = Object.freeze({ lo: -20, hi: 20 });
/** After another view its rows come one after another: so long the range is theirs at once [ms]. */
const SETTLE_MS = 1500;
/** Tops of passing lines are remembered for as long as the waterfall shows them, and at most [ms]: */
const PASSING_MS_MAX = 60_000;
/** From this span on a waterfall is mostly past, and comes late rather than changes [s]. */
const LONG_S = 600;
const LONG_SPEED = 10;

/**
 * @typedef {object} Shown levels of one channel on the screen
 * @property {LevelHistogram} histogram of its waterfall
 * @property {number} held top of the lines that stay, such as a max hold [dB]; -Infinity without any
 * @property {number} passing top of the spectrum that goes on with the time [dB]
 */

/**
 * Levels of a channel on the screen, from rows spread evenly over its waterfall and from its line spectra.
 *
 * @param {{rows: object, line: object | null, held: object[], tops: number[] | undefined}} channel rows of its waterfall, live and past; the row
 *   of its line spectrum if that goes on; rows of lines that stay: holds, references, spectra of a time; other levels
 *   that are shown [dB]
 * @param {import("../plot/axis.js").Axis} axis
 * @param {{newestMs: number, spanMs: number}} time at the top of the waterfall, and its length
 * @returns {Shown}
 */
export function shownLevels({ rows, line, held, tops = [] }, axis, { newestMs, spanMs }) {
  const histogram = new LevelHistogram();
  for (const row of spread(rows, newestMs, spanMs)) histogram.add(row.values, row.description, axis.f0, axis.f1);
  const top = (row) => topOf(row, axis);
  return { histogram, held: Math.max(-Infinity, ...held.map(top), ...tops), passing: line === null ? -Infinity : top(line) };
}

function topOf({ values, description }, axis) {
  const histogram = new LevelHistogram();
  histogram.add(values, description, axis.f0, axis.f1);
  const top = histogram.quantile(1);
  return Number.isNaN(top) ? -Infinity : top;
}

/** Some rows of a span of time, evenly spread over it, each once. */
function* spread(rows, newestMs, spanMs) {
  let before = -1;
  for (let k = 0; k < ROWS_LOOKED_AT; k += 1) {
    const tMs = newestMs - ((k + 0.5) / ROWS_LOOKED_AT) * spanMs;
    const i = nearestIndex(rows, tMs);
    if (i < 0 || i === before) continue;
    before = i;
    const row = rows.at(i);
    const reachMs = Math.max(500 * row.merged * row.description.row_s, spanMs / ROWS_LOOKED_AT / 2);
    if (Math.abs(row.tMs - tMs) <= reachMs) yield row;
  }
}

/** Follows the levels of panels that share a range. */
export class LevelFollower {
  #isCentred;
  #easy = new EasyRange();
  #tops = new PassingTops();
  #at = -Infinity;
  #view = "";
  #settledAt = Infinity;

  /** @param {boolean} isCentred whether the levels are differences, and 0 dB is in the middle */
  constructor(isCentred = false) {
    this.#isCentred = isCentred;
  }

  /**
   * Levels to draw with.
   *
   * @param {object} view
   * @param {{lo: number, hi: number} | null} range that the view gives; null: automatic
   * @param {number} now [ms]
   * @param {() => Shown[]} shown of each channel
   * @returns {{lo: number, hi: number}}
   */
  levels(view, range, now, shown) {
    this.#noteView(view, now);
    if (range !== null) {
      this.#easy = new EasyRange(range);
      this.#settledAt = now + SETTLE_MS; // automatic again is at once what is there
    } else if (now - this.#at >= INTERVAL_MS) {
      const target = this.#target(shown(), view, now);
      this.#easy.follow(target, this.#seconds(view, now));
      this.#at = now;
    }
    if (!this.#isCentred) return this.#easy.range ?? AT_FIRST;
    const { hi } = this.#easy.range ?? DIFFERENCES_AT_FIRST;
    return range ?? { lo: -hi, hi };
  }

  /** A view that shows something else is fitted at once. */
  #noteView({ t1, f0, f1, span, axis, topics }, now) {
    const text = [t1, f0, f1, span, axis, ...topics].join();
    if (text === this.#view) return;
    this.#view = text;
    this.#at = -Infinity;
    this.#settledAt = now + SETTLE_MS;
    this.#tops = new PassingTops();
  }

  #target(shown, { span }, now) {
    if (this.#isCentred) return centredRangeOf(shown.map(({ histogram }) => histogram));
    this.#tops.note(Math.max(-Infinity, ...shown.map(({ passing }) => passing)), now, now - Math.min(1000 * span, PASSING_MS_MAX));
    const held = shown.map((one) => one.held);
    return rangeOf(shown.map(({ histogram }) => histogram), Math.max(this.#tops.level, ...held));
  }

  #seconds({ t1, span }, now) {
    if (t1 !== null || now < this.#settledAt || this.#at === -Infinity) return Infinity;
    return Math.min(1, (now - this.#at) / 1000) * (span >= LONG_S ? LONG_SPEED : 1);
  }
}
