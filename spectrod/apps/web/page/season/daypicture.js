/** The picture of a day: time to the right, frequencies upwards, nothing where there is no data. */

import { binRanges } from "../plot/axis.js";

export const HEIGHT = 40;
const GAP = 65535;

/**
 * Paint the rows of a day.
 *
 * @param {Uint32Array} pixels (HEIGHT * columns,) of an image, all transparent
 * @param {number} columns
 * @param {object[]} rows of the day, see `rowsOf` in answer.js
 * @param {{begin: number, end: number}} day [ms]
 * @param {import("../plot/axis.js").Axis} axis of HEIGHT pixels
 * @param {(level: number) => number} colourOf a pixel of a level [dB]
 * @returns {number} columns that have data
 */
export function paintDay(pixels, columns, rows, { begin, end }, axis, colourOf) {
  const used = new Uint8Array(columns);
  const msPerColumn = (end - begin) / columns;
  let ranges = null;
  let before = null;
  for (const { tMs, values, description } of rows) {
    if (description !== before) {
      before = description;
      ranges = binRanges(axis, description);
    }
    const half = 500 * description.row_s;
    const first = Math.max(0, Math.floor((tMs - half - begin) / msPerColumn + 1e-6));
    const last = Math.min(columns - 1, Math.ceil((tMs + half - begin) / msPerColumn - 1e-6) - 1);
    if (last < first) continue;
    used.fill(1, first, last + 1);
    for (let y = 0; y < HEIGHT; y += 1) {
      const level = greatest(values, ranges.first[y], ranges.last[y], description);
      if (!Number.isNaN(level)) pixels.fill(colourOf(level), (HEIGHT - 1 - y) * columns + first, (HEIGHT - 1 - y) * columns + last + 1);
    }
  }
  return used.reduce((sum, one) => sum + one, 0);
}

function greatest(values, first, last, { lo, step }) {
  let found = -1;
  for (let k = first; k <= last; k += 1) if (values[k] !== GAP && values[k] > found) found = values[k];
  return found < 0 ? NaN : lo + step * found;
}
