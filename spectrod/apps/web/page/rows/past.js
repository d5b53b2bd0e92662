/** Rows of the past and live rows as one ring, for a waterfall. */

/**
 * Live rows, and behind them older ones; the interface of `RowRing` that waterfalls read.
 *
 * The past ends before the oldest live row, so that no time is there twice.
 */
export class JoinedRows {
  #live;
  #past;

  /**
   * @param {import("./rows.js").RowRing | null} live may grow meanwhile
   * @param {Array<object>} past rows with their descriptions, the newest first
   */
  constructor(live, past) {
    this.#live = live;
    const seamMs = seamOf(live);
    this.#past = past.filter(({ tMs, merged = 1, description }) => tMs + 500 * merged * description.row_s <= seamMs);
  }

  get length() {
    return (this.#live?.length ?? 0) + this.#past.length;
  }

  /** As `RowRing.total`: grows with each live row. */
  get total() {
    return (this.#live?.total ?? 0) + this.#past.length;
  }

  /** @param {number} i 0 is the newest */
  at(i) {
    const count = this.#live?.length ?? 0;
    if (i < count) return this.#live.at(i);
    if (i < this.length) return this.#past[i - count];
    throw new RangeError(`row ${i}: there are ${this.length}`);
  }

  timeAt(i) {
    const count = this.#live?.length ?? 0;
    return i < count ? this.#live.timeAt(i) : this.at(i).tMs;
  }
}

/** Return the time at which live rows begin [ms]; infinite without any. */
export function seamOf(live) {
  if (live === null || live.length === 0) return Infinity;
  const { tMs, merged, description } = live.at(live.length - 1);
  return tMs - 500 * merged * description.row_s;
}
