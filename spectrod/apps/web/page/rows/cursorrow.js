/**
 * Rows at the cursors' times, from the server: all that it knows of one line of a waterfall, to 0.01 dB.
 *
 * Live rows of a waterfall have steps of 0.5 dB, and the past those of its tiles. A person who puts a cursor
 * somewhere reads levels, so the line under it is asked for once more.
 */

import { columnFor, historyAddress, keyOf, LADDER_MS } from "./history.js";
import { decodeHistory, rowMsOf, rowsOf } from "./answer.js";

const KEPT = 64;
const STEP_DB = "0.01";
/** Time after which what was not known of a moment is asked for again: live rows are on their way. */
const RETRY_MS = 2000;

/** The rows at some times; at most 64 are kept, and one is fetched at a time. */
export class CursorRows {
  #found = new Map();
  #wanted = null;
  #running = null;
  #fetch;
  #base;
  #now;

  /** Grows with each row that comes. */
  version = 0;

  /** @param {{fetch: Function, base: string, now?: () => number}} given `base`: address of the page */
  constructor({ fetch, base, now = () => performance.now() }) {
    this.#fetch = fetch;
    this.#base = base;
    this.#now = now;
  }

  /**
   * Return the row at a time, or null until the server has sent it, and where it knows of none.
   *
   * @param {import("./history.js").About} about
   * @param {number} tMs
   * @param {{msPerPx: number, rowMs: number}} scale time of a line, and from one message of the topic to the next
   */
  at(about, tMs, { msPerPx, rowMs }) {
    // The shortest column within a long row has that row alone, wherever rows begin.
    const columnMs = rowMs < msPerPx ? columnFor(msPerPx) : LADDER_MS[0];
    const index = Math.floor(tMs / columnMs);
    const key = keyOf(about, columnMs, index);
    const found = this.#found.get(key);
    const isDue = found === undefined || (found.row === null && this.#now() - found.atMs > RETRY_MS);
    if (isDue && this.#running !== key) {
      this.#wanted = { key, about, columnMs, index, rowMs };
      this.#next();
    }
    return found?.row ? { ...found.row, tMs } : null;
  }

  /** Fetch what was asked for last. */
  #next() {
    if (this.#running !== null || this.#wanted === null) return;
    const wanted = this.#wanted;
    this.#wanted = null;
    this.#running = wanted.key;
    this.#load(wanted)
      .catch(() => null) // the row of the waterfall stays
      .then((row) => {
        this.#running = null;
        this.#keep(wanted.key, row);
        this.#next();
      });
  }

  async #load({ about, columnMs, index, rowMs }) {
    const address = historyAddress(this.#base, about, { t0: index * columnMs, t1: (index + 1) * columnMs, w: 1, step: STEP_DB });
    const response = await this.#fetch(address);
    if (!response.ok) return null;
    const answer = decodeHistory(await response.arrayBuffer());
    const [row] = rowsOf(answer);
    return row === undefined ? null : { ...row, count: Math.max(1, Math.round((1000 * answer.effort[0]) / rowMsOf(answer, rowMs))) };
  }

  #keep(key, row) {
    this.#found.delete(key);
    this.#found.set(key, { row, atMs: this.#now() });
    if (this.#found.size > KEPT) this.#found.delete(this.#found.keys().next().value);
    if (row !== null) this.version += 1;
  }
}
