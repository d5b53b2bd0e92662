/** Answers of `api/history`: their bytes as rows of a waterfall, of 16 bits. */

import { FLAG_GAP } from "./decode.js";

const COLUMNS_MAX = 2048;
/** Values of a column: three a pixel of the widest axis. */
const VALUES_MAX = 3 * 4096;
const HEADER_BYTES_MAX = 1 << 20;
const GAP = 65535;
const U16 = Object.freeze({ bits: 16, lo: -327.67, step: 0.01 });
/** Sources whose holes are losses; of others nobody may have asked the daemon to compute the rows. */
const RECORDED = Object.freeze(["pyramid", "segment"]);

/**
 * Read an answer of `api/history`.
 *
 * @param {ArrayBuffer} buffer
 * @returns {{header: object, effort: Float32Array, layers: Uint16Array[]}}
 * @throws {Error} if it is not one
 */
export function decodeHistory(buffer) {
  const view = new DataView(buffer);
  const length = buffer.byteLength < 4 ? 0 : view.getUint32(0, true);
  if (length < 2 || length > HEADER_BYTES_MAX || 4 + length > buffer.byteLength) {
    throw new Error(`history: a header of ${length} bytes in ${buffer.byteLength}`);
  }
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const { w, h, layers, cell_ms, t0, f0, f1 } = header;
  const isSize = isCount(w, COLUMNS_MAX) && isCount(h, VALUES_MAX);
  const isPlace = [cell_ms, t0, f0, f1].every(Number.isFinite) && cell_ms > 0 && f1 > f0;
  if (!isSize || !isPlace || !Array.isArray(layers) || !hasSlices(header)) throw new Error("history: a header without its numbers");
  const begin = Math.ceil((4 + length) / 4) * 4;
  const bytes = begin + 4 * w + 2 * w * h * layers.length;
  if (bytes !== buffer.byteLength) throw new Error(`history: ${buffer.byteLength} bytes: must be ${bytes}`);
  const valuesBegin = begin + 4 * w;
  return {
    header,
    effort: new Float32Array(buffer, begin, w),
    layers: layers.map((_, n) => new Uint16Array(buffer, valuesBegin + 2 * n * w * h, w * h)),
  };
}

const isCount = (n, most) => Number.isInteger(n) && n >= 1 && n <= most;

/** Whether the slices of an answer, if it has any, are as many values as it says, of bins that there are. */
function hasSlices({ h, slices, first_hz, bin_hz, n_bins }) {
  if (slices === undefined) return true;
  const isSlice = ({ first, per_value, values }) =>
    Number.isInteger(first) && first >= 0 && isCount(per_value, Infinity) && isCount(values, VALUES_MAX) && first + (values - 1) * per_value < n_bins;
  const isBins = Number.isFinite(first_hz) && bin_hz > 0 && isCount(n_bins, Infinity);
  return isBins && Array.isArray(slices) && slices.every(isSlice) && slices.reduce((sum, { values }) => sum + values, 0) === h;
}

/** Return the time of a row in an answer [ms]: that of the recording that it is from, else the topic's. */
export function rowMsOf({ header: { row_s, sources = [] } }, topicMs) {
  const isRecorded = sources.some((source) => RECORDED.includes(source));
  return isRecorded && row_s > 0 ? 1000 * row_s : topicMs;
}

/** Return the description of an answer's columns, as one of a stream. */
function describe({ kind, topic, unit, enbw_hz, weighting, less, cell_ms, h, f0, f1, edges_hz, slices, first_hz, bin_hz, n_bins }) {
  const equal = (f1 - f0) / h;
  const bins = slices
    ? { first_hz, bin_hz, n_bins, slices }
    : { first_hz: f0 + equal / 2, bin_hz: equal, n_bins: h, slices: [{ first: 0, per_value: 1, values: h }] };
  return Object.freeze({ ...U16, kind, topic, unit, enbw_hz, weighting, row_s: cell_ms / 1000, fs: 1, edges_hz, isDifference: less !== undefined, ...bins });
}

/**
 * Return the rows of an answer, the oldest first; columns without sound are left out. The row after them has a
 * gap before it if they were recorded: a row that nobody asked the daemon for is no loss.
 */
export function rowsOf({ header, effort, layers }) {
  const description = describe(header);
  const isRecorded = (header.sources ?? []).some((source) => RECORDED.includes(source));
  const rows = [];
  let isAfterGap = false;
  for (let n = 0; n < header.w; n += 1) {
    const values = layers[0].subarray(n * header.h, (n + 1) * header.h);
    if (effort[n] === 0 || values.every((value) => value === GAP)) {
      isAfterGap = true;
      continue;
    }
    const tMs = header.t0 + (n + 0.5) * header.cell_ms;
    const flags = isAfterGap && isRecorded ? FLAG_GAP : 0;
    rows.push({ seq: 0, missed: 0, merged: 1, flags, tMs, gapSamples: 0, values, description });
    isAfterGap = false;
  }
  return rows;
}
