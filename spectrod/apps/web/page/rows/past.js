/** Rows of the past and live rows as one ring, for a waterfall. */

import { hasSameValues } from "./rows.js";

/** Share of the time of live rows that the past must have, to take their place. */
const COVERED = 0.9;
/** Times are rounded [ms]. */
const ROUNDING_MS = 0.002;

const messageMs = ({ description }) => 1000 * description.row_s;
const lengthMs = (row) => (row.merged ?? 1) * messageMs(row);
const beginOf = (row) => row.tMs - lengthMs(row) / 2;
const endOf = (row) => row.tMs + lengthMs(row) / 2;

/** Live rows, and behind them older ones, see `refilled`; the interface of `RowRing` that waterfalls read. */
export class JoinedRows {
  #live;
  #past;
  #since;

  /**
   * @param {import("./rows.js").RowRing | null} live may grow meanwhile
   * @param {Array<object>} past rows with their descriptions, the newest first
   * @param {number} since number of the oldest live row that counts, as `RowRing.total` does
   */
  constructor(live, past, since = 0) {
    this.#live = live;
    this.#past = past;
    this.#since = since;
  }

  get #count() {
    return this.#live === null ? 0 : Math.min(this.#live.length, this.#live.total - this.#since);
  }

  get length() {
    return this.#count + this.#past.length;
  }

  /** As `RowRing.total`: grows with each live row. */
  get total() {
    return (this.#live?.total ?? 0) + this.#past.length;
  }

  /** @param {number} i 0 is the newest */
  at(i) {
    const count = this.#count;
    if (i < count) return this.#live.at(i);
    if (i < this.length) return this.#past[i - count];
    throw new RangeError(`row ${i}: there are ${this.length}`);
  }

  timeAt(i) {
    return i < this.#count ? this.#live.timeAt(i) : this.at(i).tMs;
  }
}

/**
 * Return the time at which live rows begin [ms]; infinite without any.
 *
 * @param {import("./rows.js").RowRing | null} live
 * @param {number} count newest rows that count; of none it is the end of the newest
 */
export function seamOf(live, count = live?.length ?? 0) {
  if (live === null || live.length === 0) return Infinity;
  const row = live.at(Math.max(count, 1) - 1);
  return count === 0 ? endOf(row) : beginOf(row);
}

/**
 * How many of the newest live rows have values of the bins that are shown. While no rows come, none may have: a stream says
 * its bins with its rows.
 *
 * @param {import("./rows.js").RowRing | null} live
 * @param {boolean} isSilent whether rows are late
 */
export function alikeOf(live, isSilent) {
  if (live === null) return 0;
  return isSilent && !live.isMixed ? 0 : live.alike;
}

/**
 * Join live rows and the past before them, which takes the place of live rows that came at another zoom, where it knows
 * their time.
 *
 * @param {import("./rows.js").RowRing | null} live
 * @param {Array<object>} past rows with their descriptions, the newest first
 * @param {{untilMs: number, alike: number}} given `untilMs`: end of the time that was asked for: newer rows are not shown;
 *   `alike`: see `alikeOf`
 * @returns {{past: Array<object>, since: number, seamMs: number}} for `JoinedRows`; gaps and losses of live rows stay
 */
export function refilled(live, past, { untilMs, alike }) {
  const [fromMs, toMs] = [seamOf(live), seamOf(live, alike)];
  const asTheyCame = { past: endingAt(past, live, fromMs), since: 0, seamMs: fromMs };
  if (live === null || alike === live.length) return asTheyCame;
  const oldest = past.at(-1);
  const shownMs = oldest === undefined ? Infinity : Math.max(fromMs, beginOf(oldest));
  const others = Array.from({ length: live.length - alike }, (_, n) => alike + n).filter((i) => live.timeAt(i) >= shownMs && live.timeAt(i) < untilMs);
  const sum = (rows) => rows.reduce((total, row) => total + lengthMs(row), 0);
  const known = past.filter((row) => row.tMs >= shownMs && row.tMs < toMs);
  const wanted = alike > 0 || known.length === 0 ? live.description : known[0].description;
  if (alike === 0 && hasSameValues(wanted, live.description)) {
    // No rows come, of the bins that are shown.
    return live.alike === 0 ? asTheyCame : refilled(live, past, { untilMs, alike: live.alike });
  }
  const same = known.filter((row) => hasSameValues(row.description, wanted));
  if (others.length === 0 || sum(same) < COVERED * sum(others.map((i) => live.at(i)))) return asTheyCame;
  const marked = withMarks(past, others.map((i) => live.at(i)));
  return { past: endingAt(marked, live, toMs), since: live.total - alike, seamMs: toMs };
}

/**
 * Return the past until live rows begin, so that no time is missing or there twice. The column in which they begin ends
 * there, with the values of all its rows; one that is shorter than a live row has only that of its middle.
 */
function endingAt(past, live, seamMs) {
  const isBefore = (row) => row.tMs < seamMs || (beginOf(row) < seamMs - ROUNDING_MS && messageMs(row) >= messageMs(live.at(0)));
  return past.filter(isBefore).map((row) => {
    if (endOf(row) <= seamMs) return row;
    const beginMs = beginOf(row);
    return { ...row, merged: (seamMs - beginMs) / messageMs(row), tMs: (beginMs + seamMs) / 2 };
  });
}

/** Rows of the past with the gaps and losses of live rows of their time, or before it. */
function withMarks(past, rows) {
  const found = [...past];
  for (const { tMs, flags, missed, gapSamples, description } of rows) {
    if (flags === 0 && missed === 0) continue;
    const n = found.findLastIndex((row) => endOf(row) > tMs);
    if (n < 0) continue;
    const row = found[n];
    // Of answers a sample is a second.
    const gap = (gapSamples / description.fs) * (row.description.fs ?? 1);
    found[n] = { ...row, flags: row.flags | flags, missed: row.missed + missed, gapSamples: row.gapSamples + gap };
  }
  return found;
}
