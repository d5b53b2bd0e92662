/** Two frequency cursors: their places, what they read, and their difference. */

import { binAt, eachValue, frequencyOfBin, levelAt } from "../rows/bins.js";
import { formatLevel } from "../plot/time.js";

/** Nearest frequency at which the topic has a bin or band; the frequency itself where it has none. */
export function snapToBin(hz, description) {
  const bin = binAt(description, hz);
  return bin < 0 ? hz : frequencyOfBin(description, bin);
}

/** Frequency of the greatest value within `reach` Hz; null where there is no data. */
export function nearestPeak(hz, reach, values, description) {
  let best = null;
  let highest = -Infinity;
  eachValue(values, description, (at, level) => {
    if (Math.abs(at - hz) > reach || !(level > highest)) return;
    best = at;
    highest = level;
  });
  return best;
}

/**
 * Put a cursor at a frequency: the nearer one moves, or a second one is made with `isNew`.
 *
 * @param {readonly number[]} cursors [Hz], at most two
 * @returns {number[]}
 */
export function placeCursor(cursors, hz, isNew = false) {
  if (cursors.length === 0) return [hz];
  if (isNew && cursors.length < 2) return [...cursors, hz];
  const distances = cursors.map((at) => Math.abs(Math.log2(Math.abs(at / hz)) || Math.abs(at - hz)));
  const nearest = distances.indexOf(Math.min(...distances));
  return cursors.map((at, k) => (k === nearest ? hz : at));
}

/**
 * Read a cursor: the listed peak of its bin, interpolated between bins; else the server's unpooled value where it has
 * measured one, else the row drawn.
 *
 * @param {number} hz
 * @param {import("../rows/moment.js").Moment} moment of the cursor's time
 * @returns {{hz: number, level: number, isExact: boolean}} `level` NaN where there is no data
 */
export function readCursor(hz, { measured, row, peaks = [] }) {
  const peak = peakOfBin(peaks, hz, row?.description);
  if (peak !== undefined) return { hz: peak.hz, level: peak.level, isExact: true };
  const exact = measured?.cursors?.find((one) => Math.abs(one.hz - hz) <= 1e-9 * Math.abs(hz));
  if (exact && typeof exact.level === "number") {
    return { hz: exact.bin_hz, level: exact.level, isExact: true };
  }
  if (row === null) return { hz, level: NaN, isExact: false };
  return { hz: snapToBin(hz, row.description), level: levelAt(row.values, row.description, hz), isExact: isSingle(row, hz) };
}

/** The peak in the bin or band of a frequency: between the middles of two bins the nearer bin has it. */
function peakOfBin(peaks, hz, description) {
  const bin = description ? binAt(description, hz) : -1;
  return bin < 0 ? undefined : peaks.find((peak) => binAt(description, peak.hz) === bin);
}

/** Whether the value of a row at a frequency is that of one bin, in one message, to 0.01 dB. */
function isSingle({ count, description }, hz) {
  const bin = binAt(description, hz);
  const slice = description.slices.find(({ first, per_value, values }) => bin >= first && bin < first + per_value * values);
  return count === 1 && description.bits === 16 && slice?.per_value === 1;
}

/** Level of a reading; ≈ in front of one that is read from the screen. */
export function readingText({ level, isExact }, unit) {
  return `${isExact || Number.isNaN(level) ? "" : "≈ "}${formatLevel(level, unit)}`;
}

/** Difference of two readings, second less first; `octaves` is NaN across 0 Hz. */
export function difference([first, second]) {
  const ratio = second.hz / first.hz;
  return {
    hz: second.hz - first.hz,
    octaves: ratio > 0 ? Math.log2(ratio) : NaN,
    level: second.level - first.level,
  };
}
