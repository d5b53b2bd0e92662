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

/** Measurements come five times a second, rows of 16 bits twenty times: those of a time are no further from it [ms]. */
const MEASURED_MS = 250;

/** Whether a row is of about a time: within its length. */
export function isNear({ tMs, merged, description }, otherMs) {
  return Math.abs(tMs - otherMs) <= Math.max(MEASURED_MS, 1000 * merged * description.row_s);
}

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

/** Return the time that a place of the waterfall stands for: the middle of the row that fills its line, else the line's. */
export function timeOfLine(rows, line, msPerPx) {
  const [row, ...others] = rowsOfLine(rows, line, msPerPx);
  const isLong = row !== undefined && others.length === 0 && lengthMs(row) >= msPerPx;
  return isLong ? row.tMs : (line + 0.5) * msPerPx;
}

/** Return the time of the next later (1) or earlier (-1) row, or line where rows are shorter. */
export function stepInTime(rows, tMs, msPerPx, direction) {
  const nearest = nearestIndex(rows, tMs);
  const row = nearest < 0 ? null : rows.at(nearest);
  if (row === null || lengthMs(row) < msPerPx) return tMs + direction * msPerPx;
  const next = nearest - direction;
  const step = lengthMs(row);
  const found = next >= 0 && next < rows.length ? rows.timeAt(next) : NaN;
  return Math.abs(found - tMs) < 2 * step && direction * (found - tMs) > 0 ? found : tMs + direction * step;
}

/**
 * Return what the waterfall draws in the line of a time as one row, each value the greatest of its rows, and how
 * many messages are in it; null where it shows no data.
 *
 * @param {object} rows
 * @param {number} tMs
 * @param {{msPerPx: number, rowMs: number}} scale time of a line, and from one message of the topic to the next
 */
export function lineRowAt(rows, tMs, { msPerPx, rowMs }) {
  const drawn = rowsOfLine(rows, Math.floor(tMs / msPerPx), msPerPx);
  const row = drawn.length < 2 ? rowAt(rows, tMs, msPerPx) : greatestOf(drawn);
  if (row === null) return null;
  const parts = drawn.filter(({ description }) => description === row.description);
  const length = Math.max(lengthMs(row), parts.reduce((sum, part) => sum + lengthMs(part), 0));
  return { ...row, tMs: drawn.length < 2 ? row.tMs : tMs, count: Math.max(1, Math.round((row.soundMs ?? length) / rowMs)) };
}

/** One row with the greatest of each value of some, of those that are as the newest is. */
function greatestOf([newest, ...others]) {
  const { description } = newest;
  const noData = description.bits === 8 ? 0 : 65535;
  const values = newest.values.slice();
  for (const other of others) {
    if (other.description !== description) continue;
    for (let j = 0; j < values.length; j += 1) {
      const value = other.values[j];
      if (value !== noData && (values[j] === noData || value > values[j])) values[j] = value;
    }
  }
  return { ...newest, values };
}

const lengthMs = ({ merged, description }) => 1000 * merged * description.row_s;

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
