/**
 * The waterfall's lines: which codes (levels.js) are on the screen, before they have colours.
 *
 * A line is `msPerPx` of time, whatever the length of the FFT and the zoom are; line n begins at
 * n * msPerPx. Rows that are shorter than a line share it, the greatest level of each pixel counts;
 * longer rows fill several. Lines live in a ring of slots in which the next older line is the next
 * slot, so scrolling moves nothing.
 */

import { binRanges } from "./axis.js";
import { CODE_GAP, CODE_NONE, CODE_STRIPE, codeTable } from "../rows/levels.js";
import { poolCodes, stretchCodes } from "./pixels.js";
import { lineFrom, linesOf, previousOf, rowSpan } from "../rows/rowspan.js";

/** Lines above the uppermost one that are kept: rows may come before the screen gets to their time. */
export const LINES_AHEAD = 128;

const HATCH_PERIOD = 8;
const HATCH_WIDTH = 2;
const BLANK_PERIOD = 16; // of the stripes where there is no data

/** Lines of a waterfall of `width` pixels, `height` of them visible. */
export class LineStore {
  #axis = null;
  #ranges = new WeakMap();
  #pooled = new Uint16Array(0);
  #blank = new Uint16Array(0);
  #msPerPx = 0;
  #top = 0;
  #last = null;
  #lineOf = new Float64Array(0);
  #ring = null;
  #next = -1; // number of the ring's row that is redrawn next, -1 if all are
  #stale = new Uint8Array(0); // 1 where a slot shows what it did until rows are drawn into it again
  #isSwept = true; // whether no slot is stale
  #isAhead = false; // whether rows beyond the lines that are kept were left out

  width = 0;
  height = 0;
  /** Number of slots. */
  slots = 0;
  /** (slots * width,) codes, slot by slot. */
  codes = new Uint16Array(0);
  /** (slots,) 1 where a slot's codes have changed; whoever paints it makes it 0. */
  changed = new Uint8Array(0);

  /** Give the lines a size [px] and forget them; they come again from the ring. */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.slots = height + LINES_AHEAD;
    this.codes = new Uint16Array(this.slots * width);
    this.changed = new Uint8Array(this.slots);
    this.#lineOf = new Float64Array(this.slots);
    this.#stale = new Uint8Array(this.slots);
    this.#pooled = new Uint16Array(width);
    this.#blank = Uint16Array.from({ length: width + BLANK_PERIOD }, (_, px) =>
      px % BLANK_PERIOD === 0 ? CODE_STRIPE : CODE_NONE,
    );
    this.#restart();
  }

  /**
   * Draw along another axis, once its width is that of the lines. Until its rows are drawn again, a line
   * shows what it did, stretched: zooming never leaves the screen empty.
   *
   * @param {import("./axis.js").Axis} axis
   */
  setAxis(axis) {
    if (axis === this.#axis) return;
    const before = this.isReady ? this.#axis : null;
    this.#axis = axis;
    this.#ranges = new WeakMap();
    if (before === null || axis.width !== this.width || this.#ring === null) {
      this.#restart();
    } else {
      stretchCodes(this.codes, before, axis);
      this.#renew();
    }
  }

  /**
   * Say which time is at the top, and how much time a line has.
   *
   * @param {{newestMs: number, msPerPx: number}} scroll msPerPx above 0
   */
  setScroll({ newestMs, msPerPx }) {
    if (!(Number.isFinite(newestMs) && msPerPx > 0 && msPerPx < Infinity)) {
      throw new Error(`newestMs=${newestMs}, msPerPx=${msPerPx}: must be finite, the latter above 0`);
    }
    const top = Math.floor(newestMs / msPerPx);
    if (msPerPx !== this.#msPerPx) {
      this.#msPerPx = msPerPx;
      this.#top = top;
      this.#restart();
    } else if (top !== this.#top) {
      this.#moveTo(top);
    }
  }

  /** Move the uppermost line; what was not kept comes from the ring. */
  #moveTo(top) {
    const before = this.#top;
    this.#top = top;
    const isPast = top < before || top - before > LINES_AHEAD;
    if (isPast || this.#isAhead) this.#redraw();
    const from = Math.max(top + LINES_AHEAD - this.slots + 1, isPast ? -Infinity : before + LINES_AHEAD + 1);
    for (let line = from; line <= top + LINES_AHEAD; line += 1) {
      if (this.#lineOf[this.slotOf(line)] !== line) this.#empty(line);
    }
  }

  /** Draw all lines again from the rows of a ring, the newest first, in slices: see `work`. */
  rebuild(ring) {
    this.#ring = ring;
    this.#renew();
  }

  /** Let every line be what it is until it is drawn again, or turns out to have no rows. */
  #renew() {
    this.#stale.fill(1);
    this.changed.fill(1);
    this.#redraw();
    this.#isSwept = false;
  }

  /** Empty the lines that are stale still. */
  #sweep() {
    this.#isSwept = true;
    this.#stale.forEach((isStale, slot) => {
      if (isStale) this.#empty(this.#lineOf[slot]);
    });
  }

  #restart() {
    for (let n = 0; n < this.slots; n += 1) this.#empty(this.#top + LINES_AHEAD - n);
    this.#redraw();
  }

  #redraw() {
    this.#isAhead = false;
    this.#next = this.#ring === null ? -1 : this.#ring.total - 1;
  }

  /** Return the slot of a line; that of the next older line is one more, modulo `slots`. */
  slotOf(line) {
    const rest = -line % this.slots;
    return rest < 0 ? rest + this.slots : rest + 0;
  }

  /** The slot of the uppermost visible line. */
  get topSlot() {
    return this.slotOf(this.#top);
  }

  /** Whether there is enough to draw with: a size, an axis of this width, and a time. */
  get isReady() {
    return this.height > 0 && this.#axis?.width === this.width && this.#msPerPx > 0;
  }

  /** Whether rows of the ring wait to be drawn. */
  get isBehind() {
    return this.#next >= 0 || !this.#isSwept;
  }

  /**
   * Draw the newest row.
   *
   * @param {import("../rows/decode.js").Row} row
   * @param {object} description of its stream
   */
  append(row, description) {
    const span = rowSpan(row, description, this.#last);
    this.#last = previousOf(row, description);
    if (this.isReady) this.#drawRow(row, description, span);
  }

  /**
   * Draw rows of the ring until a time has come.
   *
   * @param {number} untilMs on the clock of `now`
   * @param {() => number} now [ms]
   */
  work(untilMs, now) {
    if (!this.isReady) return;
    const ring = this.#ring;
    while (this.#next >= 0 && now() < untilMs) {
      const i = ring.total - 1 - this.#next;
      this.#next = i >= ring.length ? -1 : this.#next - 1;
      if (i < ring.length && this.#isNear(ring, i)) this.#drawOld(ring, i);
    }
    if (this.#next < 0 && !this.#isSwept) this.#sweep();
  }

  /** Return whether a row of the ring, or the hole before it, may be on the kept lines. */
  #isNear(ring, i) {
    const older = i + 1 < ring.length ? ring.timeAt(i + 1) : -Infinity;
    const newer = i > 0 ? ring.timeAt(i - 1) : Infinity;
    const oldest = this.#top - this.height;
    const isBelow = Math.max(newer, ring.timeAt(i)) / this.#msPerPx < oldest;
    const isAbove = Math.min(older, ring.timeAt(i)) / this.#msPerPx > this.#top + LINES_AHEAD + 1;
    if (isAbove) this.#isAhead = true;
    return !isBelow && !isAbove;
  }

  #drawOld(ring, i) {
    const row = ring.at(i);
    const older = i + 1 < ring.length ? ring.at(i + 1) : null;
    const before = older === null ? null : previousOf(older, older.description);
    this.#drawRow(row, row.description, rowSpan(row, row.description, before));
  }

  #drawRow(row, description, span) {
    const { first, last } = linesOf(span, row.tMs, this.#msPerPx);
    const { holeMs, mark } = span;
    if (this.#isKept(first, last)) {
      this.#pool(row.values, description);
      for (let line = this.#lowest(first); line <= this.#highest(last); line += 1) this.#merge(line);
    }
    if (mark !== CODE_NONE) {
      // A hole that is shorter than a line is marked in the row's first.
      const from = Math.min(lineFrom(holeMs, this.#msPerPx), first);
      this.#hatch(this.#lowest(from), this.#highest(Math.max(from, first - 1)), mark);
    }
  }

  #isKept(first, last) {
    if (last > this.#top + LINES_AHEAD) this.#isAhead = true;
    return this.#lowest(first) <= this.#highest(last);
  }

  #lowest(line) {
    return Math.max(line, this.#top - this.height + 1);
  }

  #highest(line) {
    return Math.min(line, this.#top + LINES_AHEAD);
  }

  /** Make the greatest code of each pixel's values. */
  #pool(values, description) {
    let ranges = this.#ranges.get(description);
    if (ranges === undefined) {
      ranges = binRanges(this.#axis, description);
      this.#ranges.set(description, ranges);
    }
    poolCodes(values, codeTable(description), ranges, this.#pooled);
  }

  #merge(line) {
    const begin = this.#claim(line) * this.width;
    const { codes, width } = this;
    const pooled = this.#pooled;
    for (let px = 0; px < width; px += 1) {
      if (pooled[px] > codes[begin + px]) codes[begin + px] = pooled[px];
    }
  }

  /** Put diagonal stripes over lines; marks are above all levels. */
  #hatch(first, last, mark) {
    // Stripes of dropped rows lean the other way: the two differ without colours.
    const lean = mark === CODE_GAP ? 1 : -1;
    for (let line = first; line <= last; line += 1) {
      const begin = this.#claim(line) * this.width;
      const shift = (((lean * line) % HATCH_PERIOD) + HATCH_PERIOD) % HATCH_PERIOD;
      for (let px = 0; px < this.width; px += 1) {
        const isStripe = (px + shift) % HATCH_PERIOD < HATCH_WIDTH;
        if (isStripe && mark > this.codes[begin + px]) this.codes[begin + px] = mark;
      }
    }
  }

  /** Return the slot of a line, emptied if another line had it. */
  #claim(line) {
    const slot = this.slotOf(line);
    if (this.#lineOf[slot] !== line || this.#stale[slot] === 1) this.#empty(line);
    this.changed[slot] = 1;
    return slot;
  }

  /** Give a line its slot, without data: hatched, so that it is no colour of a map. */
  #empty(line) {
    const slot = this.slotOf(line);
    const shift = ((-line % BLANK_PERIOD) + BLANK_PERIOD) % BLANK_PERIOD;
    this.#lineOf[slot] = line;
    this.codes.set(this.#blank.subarray(shift, shift + this.width), slot * this.width);
    this.changed[slot] = 1;
    this.#stale[slot] = 0;
  }
}
