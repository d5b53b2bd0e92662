/**
 * Which time a row takes on the time axis, and which is missing before it.
 */

import { FLAG_DROPPED, FLAG_GAP, FLAG_NEW_EPOCH } from "./decode.js";
import { CODE_DROPPED, CODE_GAP, CODE_NONE } from "./levels.js";

/**
 * @typedef {object} Previous
 * @property {number} tMs middle of the row
 * @property {number} endMs
 * @property {string} epoch of its description
 */

/** Return what the row after this one needs to know of it. */
export function previousOf(row, description) {
  return { tMs: row.tMs, endMs: row.tMs + lengthOf(row, description) / 2, epoch: description.epoch };
}

function lengthOf(row, description) {
  return row.merged * description.row_s * 1000;
}

/**
 * Return the time of a row on the axis, and of the hole before it.
 *
 * A row whose neighbour ends about where it begins begins exactly there, so that rounding leaves no
 * line between them.
 *
 * @param {import("./decode.js").Row} row
 * @param {object} description of its stream
 * @param {Previous|null} previous row before it
 * @returns {{beginMs: number, endMs: number, holeMs: number, mark: number}} `holeMs` is where the hole
 *   begins, `mark` its code, 0 if nothing is said to be missing
 */
export function rowSpan(row, description, previous) {
  const length = lengthOf(row, description);
  const endMs = row.tMs + length / 2;
  const beginMs = row.tMs - length / 2;
  const mark = isRestarted(previous, description) ? CODE_GAP : markOf(row);
  const before = previous !== null && previous.tMs < row.tMs ? previous.endMs : NaN;
  if (mark !== CODE_NONE) {
    return { beginMs, endMs, holeMs: holeBegin(row, description, { before, beginMs, length, previous }), mark };
  }
  const isNext = Math.abs(before - beginMs) < length;
  return { beginMs: isNext ? before : beginMs, endMs, holeMs: beginMs, mark };
}

/**
 * Return the first and the last line of the waterfall that a row is drawn in: those whose middles it covers.
 *
 * @param {{beginMs: number, endMs: number}} span see `rowSpan`
 * @param {number} tMs middle of the row
 * @param {number} msPerPx time of a line; line n begins at n * msPerPx
 */
export function linesOf({ beginMs, endMs }, tMs, msPerPx) {
  const first = lineFrom(beginMs, msPerPx);
  const last = lineFrom(endMs, msPerPx) - 1;
  if (last >= first) return { first, last };
  // A row that is shorter than a line has the middle of none, and is drawn where it is.
  const line = Math.floor(tMs / msPerPx);
  return { first: line, last: line };
}

/** Return the first line whose middle is at a time or after it. */
export function lineFrom(ms, msPerPx) {
  return Math.ceil(ms / msPerPx - 0.5);
}

/**
 * Where the hole before a row begins. Of a gap alone its length is known: what is missing before that, because
 * nobody asked for it, is no loss. Frames that the gap cuts are lost with it, up to a window's length.
 */
function holeBegin({ gapSamples, flags, missed }, description, { before, beginMs, length, previous }) {
  const { fs, win_length = 0 } = description;
  const missingMs = (gapSamples / fs) * 1000;
  if (Number.isNaN(before)) return beginMs - missingMs;
  const isGapAlone = flags === FLAG_GAP && missed === 0 && gapSamples > 0 && !isRestarted(previous, description);
  return isGapAlone ? Math.max(before, beginMs - missingMs - length - (win_length / fs) * 1000) : before;
}

/** Whether the daemon has restarted in between, as far as both epochs are known. */
function isRestarted(previous, { epoch }) {
  return Boolean(previous?.epoch) && Boolean(epoch) && previous.epoch !== epoch;
}

function markOf({ flags, missed }) {
  if (flags & (FLAG_GAP | FLAG_NEW_EPOCH)) return CODE_GAP;
  return flags & FLAG_DROPPED || missed > 0 ? CODE_DROPPED : CODE_NONE;
}
