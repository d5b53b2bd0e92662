/** The difference of two spectra of the same bins, whatever bins their values have taken together. */

import { rowLength } from "../plot/axis.js";
import { levelTable } from "./levels.js";

const FINE = Object.freeze({ bits: 16, lo: -327.67, step: 0.01 });
const NO_DATA = 65535;

const plans = new WeakMap();

/** Reference of the levels of differences: they compare with no others. */
const REFERENCE = "difference";

/** Whether two descriptions have the same bins or bands. */
export function hasSameBins(a, b) {
  if (a.n_bins !== b.n_bins || Boolean(a.edges_hz) !== Boolean(b.edges_hz)) return false;
  if (!a.edges_hz) return a.first_hz === b.first_hz && a.bin_hz === b.bin_hz;
  return a.edges_hz.every((ends, k) => ends.every((hz, n) => hz === b.edges_hz[k][n]));
}

/** First bins of the values of a description, and the bin after the last one. */
function startsOf({ slices, n_bins }) {
  const starts = [];
  let end = 0;
  for (const { first, per_value, values } of slices) {
    for (let j = 0; j < values; j += 1) starts.push(first + j * per_value);
    end = Math.min(first + values * per_value, n_bins);
  }
  return [...starts, end];
}

/** Cells in which both have whole values: for each its first bin, and the values of both that are in it. */
function planOf(a, b) {
  let ofA = plans.get(a);
  if (ofA === undefined) plans.set(a, (ofA = new WeakMap()));
  if (!ofA.has(b)) ofA.set(b, makePlan(a, b));
  return ofA.get(b);
}

function makePlan(a, b) {
  const [startsA, startsB] = [startsOf(a), startsOf(b)];
  const placesB = new Map(startsB.map((bin, j) => [bin, j]));
  const common = startsA.map((bin, i) => ({ bin, i, j: placesB.get(bin) })).filter(({ j }) => j !== undefined);
  const cells = common.slice(1).map((end, k) => ({ from: common[k], end }));
  const slices = [];
  for (const { from, end } of cells) {
    const per_value = end.bin - from.bin;
    const last = slices.at(-1);
    if (last?.per_value === per_value && last.first + last.values * per_value === from.bin) last.values += 1;
    else slices.push({ first: from.bin, per_value, values: 1 });
  }
  return { cells, widthsA: widthsOf(startsA), widthsB: widthsOf(startsB), description: Object.freeze({ ...a, ...FINE, unit: "dB", ref: REFERENCE, isDifference: true, hasDensities: isDensity(a), slices }) };
}

const widthsOf = (starts) => starts.slice(1).map((end, k) => end - starts[k]);

/** Level of the values from first to before end: the greatest, or that of the mean power of their bins. */
function pooled(levels, values, widths, first, end, isMean) {
  let greatest = NaN;
  let [sum, bins] = [0, 0];
  for (let j = first; j < end; j += 1) {
    const level = levels[values[j]];
    if (Number.isNaN(level)) continue;
    if (!(level <= greatest)) greatest = level;
    if (isMean) sum += widths[j] * 10 ** (level / 10);
    bins += widths[j];
  }
  return isMean && bins > 0 ? 10 * Math.log10(sum / bins) : greatest;
}

/** Why there is no difference of two topics, for a person; empty where there is one. */
export function whyNoDifference(a, b) {
  if (a.unit !== b.unit || (a.ref ?? null) !== (b.ref ?? null)) return `other levels, ${levelsText(a)} and ${levelsText(b)}`;
  return hasSameBins(a, b) ? "" : "other bins";
}

const levelsText = ({ unit, ref }) => (ref ? `${unit} re ${ref}` : unit);

/** Whether levels are those of densities. */
export const isDensity = ({ unit, hasDensities }) => hasDensities ?? String(unit).includes("/Hz");

/** Description of the difference of two topics of the same bins. */
export const describeDifference = (a, b) => planOf(a, b).description;

const isSingle = ({ slices }) => slices.every(({ per_value }) => per_value === 1);

/**
 * Level of a row less that of another one [dB], in the finest cells in which both have whole values.
 *
 * @param {{values: ArrayLike<number>, description: object}} row
 * @param {{values: ArrayLike<number>, description: object}} other
 * @returns {object | null} a row; null if they have other bins, or one has the greatest of bins and the other their
 *   mean power
 */
export function differenceOf(row, other) {
  const [a, b] = [row.description, other.description];
  if (!hasSameBins(a, b)) return null;
  const isAlike = (a.statistic ?? "max") === (b.statistic ?? "max") || (isSingle(a) && isSingle(b));
  if (!isAlike) return null;
  const { cells, widthsA, widthsB, description } = planOf(a, b);
  if (rowLength(description) === 0) return null;
  const isMean = a.statistic === "mean";
  const [levelsA, levelsB] = [levelTable(a), levelTable(b)];
  const values = Uint16Array.from(cells, ({ from, end }) => {
    const level = pooled(levelsA, row.values, widthsA, from.i, end.i, isMean) - pooled(levelsB, other.values, widthsB, from.j, end.j, isMean);
    return Number.isNaN(level) ? NO_DATA : Math.max(0, Math.min(NO_DATA - 1, Math.round((level - FINE.lo) / FINE.step)));
  });
  return { ...row, values, description };
}

/** The difference as `differenceOf` has it, with both rows: what is summed over frequency is subtracted after that. */
export function differenceWith(row, other) {
  const found = differenceOf(row, other);
  return found && { ...found, of: [row, other] };
}
