/**
 * The frequency axis: between hertz and pixels, and from pixels to the values of a row.
 *
 * One axis serves waterfall, trace, ticks and cursors, so they cannot disagree. All in float64.
 */

/** Kinds of an axis; `log` and `octave` differ in their ticks only. */
export const AXIS_KINDS = Object.freeze(["linear", "log", "mel", "octave"]);

// Slaney's mel scale, as in spectrod/dsp/bands.py: linear up to 1 kHz, then 27 mel for each factor 6.4.
const MEL_HZ = 200 / 3;
const MEL_LOG_FROM = 15;
const MEL_LOG_HZ = 1000;
const MEL_LOG_STEP = Math.log(6.4) / 27;

// An edge of a value that is this share of a pixel beyond the pixel's edge touches it by rounding alone.
const TOUCH = 1e-6;

// Where a logarithmic axis ends if the limits begin at 0 Hz or below [Hz].
const LOG_FLOOR_HZ = 1;

// Shortest axis as a share of its upper end: float64 keeps five more digits for its pixels.
const SPAN_MIN = 1e-9;

const WARPS = {
  linear: [(hz) => hz, (place) => place],
  log: [Math.log, Math.exp],
  octave: [Math.log2, (place) => 2 ** place],
  mel: [hertzToMel, melToHertz],
};

/** Return the mel of a frequency [Hz]; below 1 kHz proportional to it. */
export function hertzToMel(hz) {
  return hz < MEL_LOG_HZ ? hz / MEL_HZ : MEL_LOG_FROM + Math.log(hz / MEL_LOG_HZ) / MEL_LOG_STEP;
}

/** Return the frequency of a mel [Hz]; the inverse of `hertzToMel`. */
export function melToHertz(mel) {
  return mel < MEL_LOG_FROM ? mel * MEL_HZ : MEL_LOG_HZ * Math.exp((mel - MEL_LOG_FROM) * MEL_LOG_STEP);
}

/**
 * Make an axis.
 *
 * @param {{kind: string, f0: number, f1: number, width: number}} given ends [Hz], f0 < f1, and
 *   width [px], at least 1; logarithmic and octave axes need f0 > 0
 * @returns {Axis}
 * @throws {Error} that names the value and the rule
 */
export function makeAxis({ kind, f0, f1, width }) {
  if (!AXIS_KINDS.includes(kind)) {
    throw new Error(`axis=${kind}: must be one of ${AXIS_KINDS.join(", ")}`);
  }
  if (!Number.isFinite(f0) || !Number.isFinite(f1) || !(f0 < f1)) {
    throw new Error(`axis from ${f0} Hz to ${f1} Hz: must be finite and ascending`);
  }
  if (isLogarithmic(kind) && !(f0 > 0)) {
    throw new Error(`axis from ${f0} Hz: must start above 0 Hz if ${kind}`);
  }
  if (!Number.isInteger(width) || width < 1) {
    throw new Error(`axis of ${width} px: must be an integer, at least 1`);
  }
  return new Axis(kind, f0, f1, width);
}

function isLogarithmic(kind) {
  return kind === "log" || kind === "octave";
}

/** A frequency axis; it never changes. Made by `makeAxis`. */
export class Axis {
  #forward;
  #back;
  #start;
  #perPixel;

  constructor(kind, f0, f1, width) {
    this.kind = kind;
    this.f0 = f0;
    this.f1 = f1;
    this.width = width;
    [this.#forward, this.#back] = WARPS[kind];
    this.#start = this.#forward(f0);
    this.#perPixel = (this.#forward(f1) - this.#start) / width;
    Object.freeze(this);
  }

  /** Return the place of a frequency: 0 at the left end, `width` at the right [px]. */
  toPixel(hz) {
    return (this.#forward(hz) - this.#start) / this.#perPixel;
  }

  /** Return the place of a frequency as `toPixel`, before the axis where it has none [px]. */
  toPlace(hz) {
    const px = this.toPixel(hz);
    return Number.isFinite(px) ? px : -4;
  }

  /** Return the frequency at a place [Hz], the inverse of `toPixel`. */
  toHertz(px) {
    return this.#back(this.#start + px * this.#perPixel);
  }

  /**
   * Return the edges of the pixels: pixel i is from edge i to edge i + 1.
   *
   * @returns {Float64Array} (width + 1,) ascending, from exactly f0 to exactly f1 [Hz]
   */
  edges() {
    const edges = Float64Array.from({ length: this.width + 1 }, (_, px) => this.toHertz(px));
    edges[0] = this.f0;
    edges[this.width] = this.f1;
    return edges;
  }

  /**
   * Return an axis that shows `1 / factor` of this one, with the same frequency at `px` unless the
   * limits are in the way.
   *
   * @param {number} factor above 1 to see less of the axis, below 1 to see more
   * @param {number} px place that stays
   * @param {{f0: number, f1: number, minSpanHz?: number}} limits of what can be seen [Hz]
   * @returns {Axis} this one if nothing changes
   */
  zoom(factor, px, limits) {
    const from = px - px / factor;
    return this.#within(from, from + this.width / factor, limits);
  }

  /**
   * Return an axis moved by `px` to higher frequencies, of the same length, within the limits.
   *
   * @param {number} px
   * @param {{f0: number, f1: number, minSpanHz?: number}} limits [Hz]
   * @returns {Axis} this one if nothing changes
   */
  pan(px, limits) {
    return this.#within(px, px + this.width, limits);
  }

  /** Return the axis from one place to another, moved and then cut to be within the limits. */
  #within(from, to, limits) {
    const floor = isLogarithmic(this.kind) && !(limits.f0 > 0) ? LOG_FLOOR_HZ : limits.f0;
    const lo = this.toPixel(floor);
    const hi = this.toPixel(limits.f1);
    const span = Math.min(to - from, hi - lo);
    const start = Math.min(Math.max(from, lo), hi - span);
    const f0 = start <= lo + TOUCH ? floor : this.toHertz(start);
    const f1 = start + span >= hi - TOUCH ? limits.f1 : this.toHertz(start + span);
    const isSame = f0 === this.f0 && f1 === this.f1;
    const shortest = Math.max(limits.minSpanHz ?? 0, Math.abs(f1) * SPAN_MIN);
    const isTooShort = f1 - f0 < Math.min(shortest, this.f1 - this.f0);
    return isSame || isTooShort ? this : makeAxis({ kind: this.kind, f0, f1, width: this.width });
  }
}

const edgesOfValues = new WeakMap();

/**
 * Return the edges of each value of a row of this description; made once a description.
 *
 * Bin k is at `first_hz + k bin_hz` and covers half a bin width on either side; a band covers what
 * `edges_hz` says. Value j of a slice covers `per_value` of them, the last of the topic perhaps fewer.
 *
 * @param {object} description text `stream` of the server
 * @returns {{lower: Float64Array, upper: Float64Array}} both ascending [Hz]
 * @throws {Error} if the edges do not ascend
 */
export function valueEdges(description) {
  let edges = edgesOfValues.get(description);
  if (edges === undefined) {
    edges = makeValueEdges(description);
    edgesOfValues.set(description, edges);
  }
  return edges;
}

/** Return the number of values of a row of this description. */
export function rowLength(description) {
  return description.slices.reduce((sum, slice) => sum + slice.values, 0);
}

function makeValueEdges(description) {
  const count = rowLength(description);
  const lower = new Float64Array(count);
  const upper = new Float64Array(count);
  const [lowerOf, upperOf] = edgesOfBins(description);
  let at = 0;
  for (const { first, per_value: perValue, values } of description.slices) {
    for (let j = 0; j < values; j += 1, at += 1) {
      const begin = first + j * perValue;
      lower[at] = lowerOf(begin);
      upper[at] = upperOf(Math.min(begin + perValue, description.n_bins) - 1);
      if (!(at === 0 || (lower[at] >= lower[at - 1] && upper[at] >= upper[at - 1]))) {
        throw new Error(`stream ${description.id}: value ${at} is below the one before it`);
      }
    }
  }
  return { lower, upper };
}

function edgesOfBins({ edges_hz: edges, first_hz: firstHz, bin_hz: binHz }) {
  if (edges) return [(k) => edges[0][k], (k) => edges[1][k]];
  return [(k) => firstHz + (k - 0.5) * binHz, (k) => firstHz + (k + 0.5) * binHz];
}

/**
 * Return for each pixel the first and the last value of a row that touch it.
 *
 * Every value between the ends of the axis touches a pixel, so the greatest value of a pixel's never
 * leaves a tone out. A pixel beyond all values has none: first 0, last -1.
 *
 * @param {Axis} axis
 * @param {object} description text `stream` of the server
 * @returns {{first: Int32Array, last: Int32Array}} (width,) indices into the row's values
 */
export function binRanges(axis, description) {
  const { lower, upper } = valueEdges(description);
  const edges = axis.edges();
  const first = new Int32Array(axis.width);
  const last = new Int32Array(axis.width).fill(-1);
  let from = 0;
  let to = -1;
  for (let px = 0; px < axis.width; px += 1) {
    const margin = TOUCH * (edges[px + 1] - edges[px]);
    while (from < upper.length && upper[from] <= edges[px] + margin) from += 1;
    while (to + 1 < lower.length && lower[to + 1] < edges[px + 1] - margin) to += 1;
    if (from <= to) {
      first[px] = from;
      last[px] = to;
    }
  }
  return { first, last };
}

/**
 * Return the first and the last value of a row that touch a pixel, as `binRanges` has them for all pixels;
 * first 0, last -1 if there is none.
 *
 * @param {Axis} axis
 * @param {object} description text `stream` of the server
 * @param {number} px from 0 to width - 1
 */
export function valuesOfPixel(axis, description, px) {
  const { lower, upper } = valueEdges(description);
  const left = px === 0 ? axis.f0 : axis.toHertz(px);
  const right = px === axis.width - 1 ? axis.f1 : axis.toHertz(px + 1);
  const margin = TOUCH * (right - left);
  const first = countUntil(upper, (hz) => hz > left + margin);
  const last = countUntil(lower, (hz) => hz >= right - margin) - 1;
  return first <= last ? { first, last } : { first: 0, last: -1 };
}

/** Return how many of ascending values come before the first of which a condition is true. */
function countUntil(values, isTrue) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isTrue(values[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}
