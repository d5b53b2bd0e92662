/**
 * Sums of a spectrum over frequency: smoothing by a fraction of an octave, and third-octave bands.
 *
 * Both are sums of power, so rows must have the mean power of their bins, not the greatest.
 */

import { makeAxis, valueEdges } from "../plot/axis.js";
import { extentOf } from "./bins.js";
import { differenceOf, isDensity } from "./difference.js";
import { levelTable } from "./levels.js";

const FINE = Object.freeze({ bits: 16, lo: -327.67, step: 0.01 });
const NO_DATA = 65535;

/** Fractions of an octave that a spectrum can be smoothed by: 3 is a third. */
export const FRACTIONS = Object.freeze([0, 1, 3, 6, 12, 24, 48]);
/** Kinds of bars: none, third-octave bands, the same with A weighting. */
export const BARS = Object.freeze(["none", "third", "third-a"]);

const fineDescriptions = new WeakMap();

/** A description with other fields, the same for each row of a description: shapes are made once for it. */
function described(description, name, make) {
  let made = fineDescriptions.get(description);
  if (made === undefined) fineDescriptions.set(description, (made = new Map()));
  if (!made.has(name)) made.set(name, Object.freeze({ ...description, ...FINE, ...make() }));
  return made.get(name);
}

/** Return the value of 16 bits of a power, in steps of 0.01 dB; of none no data. */
function valueOf(power) {
  if (!(power > 0)) return NO_DATA;
  const value = Math.round((10 * Math.log10(power) - FINE.lo) / FINE.step);
  return Math.max(0, Math.min(NO_DATA - 1, value));
}

/** Integral of a row's power over frequency, and of the frequencies that have data. */
class PowerSum {
  #edges;
  #sums;
  #widths;

  /** @param {(hz: number) => number} gain of power at a frequency */
  constructor({ values, description }, gain = () => 1) {
    const { lower, upper } = valueEdges(description);
    const levels = levelTable(description);
    const count = lower.length;
    this.#edges = { lower, upper };
    this.#sums = new Float64Array(count + 1);
    this.#widths = new Float64Array(count + 1);
    for (let j = 0; j < count; j += 1) {
      const level = levels[values[j]];
      const width = Number.isNaN(level) ? 0 : upper[j] - lower[j];
      const power = width > 0 ? 10 ** (level / 10) * gain((lower[j] + upper[j]) / 2) : 0;
      this.#sums[j + 1] = this.#sums[j] + power * width;
      this.#widths[j + 1] = this.#widths[j] + width;
    }
  }

  /** Sum of power [power Hz] and of frequencies [Hz] below a frequency; a value's power is spread evenly over its width. */
  #below(hz) {
    const { lower, upper } = this.#edges;
    let first = 0;
    let last = upper.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (upper[middle] <= hz) first = middle + 1;
      else last = middle;
    }
    if (first === upper.length) return [this.#sums[first], this.#widths[first]];
    const share = Math.max(0, (hz - lower[first]) / (upper[first] - lower[first]));
    const at = (sums) => sums[first] + share * (sums[first + 1] - sums[first]);
    return [at(this.#sums), at(this.#widths)];
  }

  between(f1, f2) {
    const [[e1, w1], [e2, w2]] = [this.#below(f1), this.#below(f2)];
    return { energy: e2 - e1, width: w2 - w1 };
  }
}

/**
 * A row smoothed by a fraction of an octave: each value is the mean power from `2^(-1/2n)` to `2^(1/2n)` times its
 * middle, as far as there are values. Bands, and what lies at 0 Hz and below, stay as they are.
 *
 * @param {{values: ArrayLike<number>, description: object}} row of mean power
 * @param {number} n 3: a third of an octave
 */
export function smoothed(row, n) {
  const { values, description } = row;
  if (description.edges_hz) return row;
  const { lower, upper } = valueEdges(description);
  const levels = levelTable(description);
  const sum = new PowerSum(row);
  const half = 2 ** (1 / (2 * n));
  const smooth = Uint16Array.from(lower, (from, j) => {
    const middle = (from + upper[j]) / 2;
    const level = levels[values[j]];
    if (Number.isNaN(level)) return NO_DATA;
    if (!(middle > 0)) return valueOf(10 ** (level / 10));
    const { energy, width } = sum.between(middle / half, middle * half);
    return valueOf(energy / width);
  });
  return { ...row, values: smooth, description: described(description, "smooth", () => ({})) };
}

// Poles of A weighting from its defining frequencies (IEC 61672-1, annex E), as in spectrod/dsp/weighting.py [Hz^2].
const [F1, F4] = doublePoles();
const [F2, F3] = [-1, 1].map((sign) => (((3 + sign * Math.sqrt(5)) / 2) * 10 ** 2.45) ** 2);
const AT_1_KHZ = curveA(1e6);

function doublePoles() {
  const [low, high, reference, d] = [10 ** 3, 10 ** 7.8, 1e6, Math.sqrt(0.5)];
  const b = (reference + (low * high) / reference - d * (low + high)) / (1 - d);
  const root = Math.sqrt(b * b - 4 * low * high);
  return [(-b - root) / 2, (-b + root) / 2];
}

function curveA(f2) {
  return ((F4 * f2) / ((f2 + F1) * (f2 + F4))) ** 2 * ((f2 * f2) / ((f2 + F2) * (f2 + F3)));
}

/** Gain of power of A weighting at a frequency (IEC 61672-1): 1 at 1 kHz. */
export function weightingA(hz) {
  return curveA(hz * hz) / AT_1_KHZ;
}

/** Edges of the third-octave bands of base ten (IEC 61260-1) that lie within frequencies and are a bin wide. */
function thirdsWithin(f0, f1, bin_hz) {
  const bands = [];
  for (let k = Math.ceil(10 * Math.log10(Math.max(f0, 1) / 1000)); ; k += 1) {
    const [lower, upper] = [-0.5, 0.5].map((half) => 1000 * 10 ** ((k + half) / 10));
    if (upper > f1) return bands;
    if (lower >= f0 && upper - lower >= bin_hz) bands.push([lower, upper]);
  }
}

/**
 * The axis of what a line spectrum needs: where bars are shown, an axis that goes on to the ends of the bands of which a view shows a part, as far as
 * the topic goes; with as many pixels for each frequency.
 *
 * @param {import("../plot/axis.js").Axis} axis of the view
 */
export function axisOfBars(axis, description, { bars }) {
  if (bars === "none" || description === null || !hasBars(description)) return axis;
  const edge = (hz, half) => 1000 * 10 ** ((Math.round(10 * Math.log10(Math.max(0, hz) / 1000)) + half) / 10);
  const extent = extentOf(description);
  const f0 = Math.min(axis.f0, Math.max(extent.f0, edge(axis.f0, -0.5)));
  const f1 = Math.max(axis.f1, Math.min(extent.f1, edge(axis.f1, 0.5)));
  const width = Math.round(axis.toPixel(f1) - axis.toPixel(f0));
  return f0 === axis.f0 && f1 === axis.f1 ? axis : makeAxis({ kind: axis.kind, f0, f1, width });
}

/** Whether bars of bands can be made of a topic's rows: of bins that are levels, not densities. */
export function hasBars(description) {
  const { edges_hz, enbw_hz } = description;
  return !edges_hz && enbw_hz > 0 && !isDensity(description);
}

/** Whether a hold has no bars in a view: the sum of the extremes of bins is not the extreme of their sum. */
export function hasNoBars(name, description, { bars = "none" }) {
  return bars !== "none" && (name === "max" || name === "min") && description !== null && hasBars(description);
}

/**
 * Levels of third-octave bands: the sum of the bins' power times `bin_hz / enbw_hz`, of a bin on an edge its share.
 * Rows of bands and of densities stay as they are: a sum of those has another unit.
 *
 * @param {{values: ArrayLike<number>, description: object}} row of mean power
 * @param {boolean} isWeighted whether A weighting is applied; once only
 */
export function thirdOctaves(row, isWeighted) {
  const { description } = row;
  const { bin_hz, enbw_hz, weighting } = description;
  if (!hasBars(description)) return row;
  const gain = isWeighted && weighting !== "A" ? weightingA : undefined;
  const bands = described(description, "thirds", () => {
    const { lower, upper } = valueEdges(description);
    const found = thirdsWithin(lower[0], upper[upper.length - 1], bin_hz);
    const edges = [0, 1].map((end) => found.map((band) => band[end]));
    return { edges_hz: edges, n_bins: found.length, slices: [{ first: 0, per_value: 1, values: found.length }] };
  });
  const sum = new PowerSum(row, gain);
  const [lower, upper] = bands.edges_hz;
  const values = Uint16Array.from(lower, (f1, k) => {
    const { energy, width } = sum.between(f1, upper[k]);
    // A band that is not known as a whole has no level.
    return width >= (upper[k] - f1) * (1 - 1e-9) ? valueOf(energy / enbw_hz) : NO_DATA;
  });
  return { ...row, values, description: bands };
}

const shown = new WeakMap();

/** Whether a row has the greatest of its bins: sums of those would be too high. */
function isOfGreatest({ statistic, slices }) {
  return statistic === "max" && slices.some(({ per_value }) => per_value > 1);
}

/** Whether a view shows sums over frequency. */
export const hasSums = ({ smoothing = 0, bars = "none" }) => smoothing > 0 || bars !== "none";

/**
 * A row as a view shows its line: as it is, smoothed, or as bars. Made once for each row. One that was made with
 * the greatest of bins stays as it is, and so does a difference of which both rows are not there.
 *
 * @param {{values: ArrayLike<number>, description: object, of: object[] | undefined}} row `of`: see `differenceWith`
 * @param {{smoothing: number, bars: string}} view
 */
export function shownRow(row, view) {
  if (row === null || !hasSums(view) || isOfGreatest(row.description) || (row.description.isDifference && row.of === undefined)) return row;
  const { smoothing, bars } = view;
  const key = `${smoothing} ${bars}`;
  let found = shown.get(row);
  if (found?.key !== key) {
    found = { key, row: row.of ? differenceOf(...row.of.map((one) => shownRow(one, view))) : bars === "none" ? smoothed(row, smoothing) : thirdOctaves(row, bars === "third-a") };
    shown.set(row, found);
  }
  return found.row;
}
