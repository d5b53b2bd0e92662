/**
 * Rows of one stream in memory: a ring that is allocated once.
 */

import { rowLength } from "../plot/axis.js";

const slicesText = new WeakMap();

/** Whether rows of two descriptions have values of the same bins. */
export function hasSameValues(a, b) {
  const textOf = ({ slices }) => {
    if (!slicesText.has(slices)) slicesText.set(slices, JSON.stringify(slices));
    return slicesText.get(slices);
  };
  return a.slices === b.slices || textOf(a) === textOf(b);
}

const isSameAnalysis = (a, b) => ["epoch", "first_hz", "bin_hz", "n_bins", "unit"].every((name) => a[name] === b[name]);

/**
 * The newest rows of a stream, each with the description that it was sent under.
 *
 * Rows of older generations stay: they draw with their own frequencies.
 */
export class RowRing {
  #rows;
  #valuesMax;
  #values = null;
  #bits = 0;
  #description = null;
  #rowLength = -1;
  #descriptions;
  #fields;
  #total = 0;
  #length = 0;
  #alikeSince = 0;
  #mixedUntil = 0;

  /**
   * @param {{rows: number, valuesMax: number}} size rows that are kept, and the most values of one;
   *   rows of 8 bits take rows * valuesMax bytes, those of 16 bits twice as much
   */
  constructor({ rows, valuesMax }) {
    if (!(Number.isInteger(rows) && rows >= 1)) {
      throw new Error(`rows=${rows}: must be an integer, at least 1`);
    }
    if (!(Number.isInteger(valuesMax) && valuesMax >= 1)) {
      throw new Error(`valuesMax=${valuesMax}: must be an integer, at least 1`);
    }
    this.#rows = rows;
    this.#valuesMax = valuesMax;
    this.#descriptions = new Array(rows).fill(null);
    this.#fields = {
      seq: new Uint32Array(rows),
      missed: new Uint32Array(rows),
      merged: new Uint16Array(rows),
      flags: new Uint16Array(rows),
      tMs: new Float64Array(rows),
      gapSamples: new Float64Array(rows),
    };
  }

  /**
   * Say what the rows from now on are. Another number of bits empties the ring: values of one ring
   * have one type.
   *
   * @param {object} description text `stream` of the server; it must not change afterwards
   * @throws {Error} if its rows have more than `valuesMax` values
   */
  setDescription(description) {
    const length = rowLength(description);
    if (length > this.#valuesMax) {
      throw new Error(`rows of ${length} values: at most ${this.#valuesMax}`);
    }
    if (description.bits !== this.#bits) {
      const Values = description.bits === 8 ? Uint8Array : Uint16Array;
      this.#values = new Values(this.#rows * this.#valuesMax);
      this.#bits = description.bits;
      this.clear();
    }
    this.#noteChange(description);
    this.#description = description;
    this.#rowLength = length;
  }

  #noteChange(description) {
    const before = this.#description;
    if (before === null || before === description) return;
    if (!isSameAnalysis(before, description)) this.#mixedUntil = this.#total;
    if (!hasSameValues(before, description) || before.statistic !== description.statistic) this.#alikeSince = this.#total;
  }

  /** What rows from now on are; null before it was said. */
  get description() {
    return this.#description;
  }

  /**
   * How many of the newest rows have values of the bins that the stream has now, as it had others at another zoom. All of
   * them, while there are some of another analysis: the past is not known on their axis.
   */
  get alike() {
    return this.isMixed ? this.#length : Math.min(this.#length, this.#total - this.#alikeSince);
  }

  /** Whether there are rows of another analysis than that of the newest. */
  get isMixed() {
    return this.#total - this.#length < this.#mixedUntil;
  }

  /** Forget all rows. */
  clear() {
    this.#length = 0;
    this.#descriptions.fill(null);
  }

  /**
   * Add the newest row; the oldest one goes if the ring is full. Copies the values, allocates nothing.
   *
   * @param {import("./decode.js").Row} row
   * @throws {Error} if it does not fit the description
   */
  push(row) {
    const { length, BYTES_PER_ELEMENT } = row.values;
    if (length !== this.#rowLength || BYTES_PER_ELEMENT * 8 !== this.#bits) {
      throw new Error(
        `row of ${length} values of ${BYTES_PER_ELEMENT * 8} bits: ` +
          `the stream has ${this.#rowLength} of ${this.#bits}`,
      );
    }
    const slot = this.#total % this.#rows;
    this.#values.set(row.values, slot * this.#valuesMax);
    this.#descriptions[slot] = this.#description;
    for (const name in this.#fields) this.#fields[name][slot] = row[name];
    this.#total += 1;
    this.#length = Math.min(this.#length + 1, this.#rows);
  }

  /** Rows in the ring. */
  get length() {
    return this.#length;
  }

  /** Rows ever pushed: the row of index i keeps the number `total - 1 - i` when others come. */
  get total() {
    return this.#total;
  }

  /**
   * Return a row; its values are a view that is valid until the next `push`.
   *
   * @param {number} i 0 is the newest
   * @returns {import("./decode.js").Row & {description: object}}
   * @throws {RangeError} if there is no such row
   */
  at(i) {
    const slot = this.#slot(i);
    const description = this.#descriptions[slot];
    const begin = slot * this.#valuesMax;
    const { seq, missed, merged, flags, tMs, gapSamples } = this.#fields;
    return {
      seq: seq[slot],
      missed: missed[slot],
      merged: merged[slot],
      flags: flags[slot],
      tMs: tMs[slot],
      gapSamples: gapSamples[slot],
      values: this.#values.subarray(begin, begin + rowLength(description)),
      description,
    };
  }

  /** Return the time of a row [ms], as `at(i).tMs`, without a view of its values. */
  timeAt(i) {
    return this.#fields.tMs[this.#slot(i)];
  }

  #slot(i) {
    if (!(Number.isInteger(i) && i >= 0 && i < this.#length)) {
      throw new RangeError(`row ${i}: there are ${this.#length}`);
    }
    return (this.#total - 1 - i) % this.#rows;
  }
}
