/** What is shown of a channel: a row, holds and measurements, all of one time. */

import { isNear, lineRowAt, rowAt } from "./rowat.js";

/**
 * @typedef {object} Moment
 * @property {number | null} tMs time of the row, else the time that is asked for; null before the first row
 * @property {{values: ArrayLike<number>, description: object, tMs: number} | null} row null: nothing is known of
 *   that time
 * @property {Record<string, object>} holds
 * @property {object | null} measured text of the server, of all bins; null: not measured at that time
 * @property {Array<{hz: number, level: number}>} peaks steady ones
 */

/**
 * Return what a view shows of a channel: the newest, or what is known of a time, that of a cursor or that at the top
 * of its waterfall.
 *
 * @param {import("./channel.js").Channel} channel
 * @param {{rows: object, t1: number | null, msPerPx: number, fine: ((scale: object, tMs: number) => object | null) | null,
 *   isCursor: boolean}} shown `rows` of the waterfall, live and past; `fine`: returns the row that the server has of a time, for a cursor
 *   instead of that of the waterfall, else of the time of that, to have more of its frequencies
 * @returns {Moment}
 */
export function momentOf(channel, { rows, t1, msPerPx, fine = null, isCursor = true }) {
  if (t1 === null) {
    const { newest: row, holds, measured, peaks } = channel;
    return { tMs: row?.tMs ?? null, row, holds, measured, peaks: peaks.list() };
  }
  const scale = { msPerPx, rowMs: 1000 * (channel.description?.row_s ?? 0) };
  const found = fine !== null && isCursor ? (fine(scale, t1) ?? lineRowAt(rows, t1, scale)) : wholeRow(asHeard(rowAt(rows, t1, msPerPx), channel.info), scale, fine);
  const kept = channel.isKeptAt(t1) ? channel.kept : null;
  // Of the same time the row of 16 bits is the finer one.
  const row = found !== null && kept?.trace && isNear(kept.trace, found.tMs) ? kept.trace : found;
  const { holds = {}, measured = null, peaks = [] } = kept ?? {};
  return { tMs: row?.tMs ?? t1, row, holds, measured, peaks };
}

const lengthMs = ({ merged, description }) => 1000 * merged * description.row_s;

/** The row that the server has of the time of a row, if it has one that is no longer than that: a longer one would be of another time. */
function wholeRow(row, scale, fine) {
  const found = row === null || fine === null ? null : fine({ ...scale, msPerPx: lengthMs(row) }, row.tMs);
  return found !== null && lengthMs(found) < lengthMs(row) + 1 ? found : row;
}

/** A row with the time of its sound: one of an archive may reach beyond what is stored, or over a pause. */
function asHeard(row, { stored }) {
  if (row === null) return row;
  const { tMs, merged, description, heardMs = tMs, soundMs = 1000 * merged * description.row_s } = row;
  const beyondMs = heardMs + soundMs / 2 - (stored?.[1] ?? Infinity);
  return { ...row, tMs: heardMs - Math.max(0, beyondMs) / 2 };
}

/** Why there is no measurement of a channel, for a person. */
export function unmeasuredText(channel, { measured }, { t1 }) {
  if (measured !== null) return "";
  if (channel.info?.less !== undefined) return "not measured of differences";
  if (t1 !== null) return "not measured at this time";
  if (channel.gone) return "not there now";
  if (channel.unsent.has("trace")) return `not measured: ${channel.unsent.why}`;
  return channel.isSilent ? "no data now" : "not measured yet";
}
