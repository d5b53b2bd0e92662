/** Where in a topic's bins or bands, and in a row's values, a frequency lies. */

import { levelOf } from "./levels.js";

/** Number of the bin or band nearest to a frequency, or -1 if the topic has none there. */
export function binAt(description, hz) {
  if (description.edges_hz) return bandAt(description.edges_hz, hz);
  const bin = Math.round((hz - description.first_hz) / description.bin_hz);
  return bin >= 0 && bin < description.n_bins ? bin : -1;
}

function bandAt([lower, upper], hz) {
  let first = 0;
  let last = lower.length;
  while (first < last) {
    const middle = (first + last) >> 1;
    if (upper[middle] <= hz) first = middle + 1;
    else last = middle;
  }
  return first < lower.length && lower[first] <= hz ? first : -1;
}

/** Index into a row's values of the one that has a bin, or -1 if the row does not reach there. */
export function indexOfBin(description, bin) {
  let offset = 0;
  for (const { first, per_value, values } of description.slices) {
    const index = Math.floor((bin - first) / per_value);
    if (index >= 0 && index < values) return offset + index;
    offset += values;
  }
  return -1;
}

/** Level of a row at a frequency; NaN where it has none. */
export function levelAt(values, description, hz) {
  const bin = binAt(description, hz);
  const index = bin < 0 ? -1 : indexOfBin(description, bin);
  return index < 0 || index >= values.length ? NaN : levelOf(description, values[index]);
}

/** Greatest level of the values first to last of a row; NaN where there is no data. */
export function levelOfValues(values, description, { first, last }) {
  let greatest = NaN;
  for (let j = first; j <= last; j += 1) {
    const level = levelOf(description, values[j]);
    if (!(level <= greatest) && !Number.isNaN(level)) greatest = level;
  }
  return greatest;
}

/** Frequency of the middle of a bin or band. */
export function frequencyOfBin(description, bin) {
  if (!description.edges_hz) return description.first_hz + bin * description.bin_hz;
  const [lower, upper] = description.edges_hz;
  return lower[bin] > 0 ? Math.sqrt(lower[bin] * upper[bin]) : (lower[bin] + upper[bin]) / 2;
}

/**
 * Frequencies that a topic covers.
 *
 * @returns {{f0: number, f1: number, least: number}} `least`: where a logarithmic axis begins, the
 *   larger of one bin and 10 Hz, or NaN if the topic has both sides of 0 Hz
 */
export function extentOf(description) {
  if (description.edges_hz) {
    const [lower, upper] = description.edges_hz;
    const f0 = lower[0];
    return { f0, f1: upper[upper.length - 1], least: f0 > 0 ? f0 : Math.min(10, upper[0]) };
  }
  const f0 = description.first_hz;
  const f1 = f0 + (description.n_bins - 1) * description.bin_hz;
  return { f0, f1, least: f0 < 0 ? NaN : Math.max(f0, Math.min(f1 / 2, Math.max(10, description.bin_hz))) };
}

/** Calls `visit(hz, level, bin, per_value)` for each value of a row. */
export function eachValue(values, description, visit) {
  let offset = 0;
  for (const slice of description.slices) {
    for (let j = 0; j < slice.values; j++) {
      const bin = slice.first + j * slice.per_value;
      visit(frequencyOfBin(description, bin), levelOf(description, values[offset + j]), bin, slice.per_value);
    }
    offset += slice.values;
  }
}
