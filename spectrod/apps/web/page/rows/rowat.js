/**
 * Which row is at a time: one rule for the readout, the line spectra, cursors, tables and files.
 *
 * Rows are a `RowRing` or `JoinedRows`: `length`, `at(i)` and `timeAt(i)`, 0 the newest.
 */

import { valuesOfPixel } from "../plot/axis.js";
import { levelOfValues } from "./bins.js";
import { linesOf, previousOf, rowSpan } from "./rowspan.js";

/** The newest rows of sources and streams are not of the same time [ms]. */
const NEAR_MS = 1000;

/** Return the index of the row whose middle is nearest to a time, -1 without rows; times descend. */
export function nearestIndex(rows, tMs) {
  if (rows.length === 0) return -1;
  let newer = 0;
  let older = rows.length - 1;
  while (older - newer > 1) {
    const middle = (newer + older) >> 1;
    if (rows.timeAt(middle) >= tMs) newer = middle;
    else older = middle;
  }
  return Math.abs(rows.timeAt(newer) - tMs) <= Math.abs(rows.timeAt(older) - tMs) ? newer : older;
}

/** Return the time that a row takes on the axis, as the waterfall draws it. */
export function spanOf(rows, i) {
  const row = rows.at(i);
  const older = i + 1 < rows.length ? rows.at(i + 1) : null;
  return rowSpan(row, row.description, older && previousOf(older, older.description));
}

/**
 * Return the row that is at a time, or null where nothing is known of it.
 *
 * That is the row whose time this is, else the newest one that the waterfall draws in the time's line. A time
 * that is newer than all rows, by a second or two rows at most, has the newest: other sources are ahead of it.
 *
 * @param {object} rows
 * @param {number} tMs
 * @param {number} msPerPx time of a line of the waterfall
 */
export function rowAt(rows, tMs, msPerPx) {
  const nearest = nearestIndex(rows, tMs);
  for (const i of [nearest, nearest - 1, nearest + 1]) {
    if (i < 0 || i >= rows.length) continue;
    const { beginMs, endMs } = spanOf(rows, i);
    if (beginMs <= tMs && tMs < endMs) return rows.at(i);
  }
  const [drawn] = rowsOfLine(rows, Math.floor(tMs / msPerPx), msPerPx);
  if (drawn !== undefined) return drawn;
  return nearest === 0 && isJustAfter(rows.at(0), tMs) ? rows.at(0) : null;
}

function isJustAfter({ tMs: middleMs, merged, description }, tMs) {
  const lengthMs = 1000 * merged * description.row_s;
  const sinceMs = tMs - (middleMs + lengthMs / 2);
  return sinceMs >= 0 && sinceMs <= Math.max(NEAR_MS, 2 * lengthMs);
}

/** Return the rows that the waterfall draws in a line, the newest first. */
export function rowsOfLine(rows, line, msPerPx) {
  const found = [];
  const nearest = nearestIndex(rows, (line + 0.5) * msPerPx);
  if (nearest < 0) return found;
  const linesAt = (i) => linesOf(spanOf(rows, i), rows.timeAt(i), msPerPx);
  let i = nearest;
  while (i > 0 && linesAt(i - 1).first <= line) i -= 1;
  for (; i < rows.length; i += 1) {
    const { first, last } = linesAt(i);
    if (last < line && i > nearest) break;
    if (first <= line && line <= last) found.push(rows.at(i));
  }
  return found;
}

/**
 * Return the level that the waterfall shows in a pixel: the greatest of all values that it stands for, in all
 * rows of its line; NaN where it shows no data.
 *
 * @param {object} rows
 * @param {{line: number, msPerPx: number, axis: import("../plot/axis.js").Axis, px: number}} pixel
 */
export function levelOfPixel(rows, { line, msPerPx, axis, px }) {
  let greatest = NaN;
  for (const { values, description } of rowsOfLine(rows, line, msPerPx)) {
    const level = levelOfValues(values, description, valuesOfPixel(axis, description, px));
    if (!(level <= greatest) && !Number.isNaN(level)) greatest = level;
  }
  return greatest;
}
