/** What is shown of a channel: a row, holds and measurements, all of one time. */

import { rowAt } from "./rowat.js";

/** Measurements come five times a second, rows of 16 bits twenty times: those of a time are no further from it [ms]. */
const NEAR_MS = 250;

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
 * Return what a view shows of a channel: the newest, or what is known of the time at the top of its waterfall.
 *
 * @param {import("./channel.js").Channel} channel
 * @param {{rows: object, t1: number | null, msPerPx: number}} shown `rows` of the waterfall, live and past
 * @returns {Moment}
 */
export function momentOf(channel, { rows, t1, msPerPx }) {
  if (t1 === null) {
    const { newest: row, holds, measured, peaks } = channel;
    return { tMs: row?.tMs ?? null, row, holds, measured, peaks: peaks.list() };
  }
  const found = rowAt(rows, t1, msPerPx);
  const kept = channel.kept !== null && isNear(channel.kept.newest, t1) ? channel.kept : null;
  // Of the same time the row of 16 bits is the finer one.
  const row = found !== null && kept?.trace && isNear(kept.trace, found.tMs) ? kept.trace : found;
  const { holds = {}, measured = null, peaks = [] } = kept ?? {};
  return { tMs: row?.tMs ?? t1, row, holds, measured, peaks };
}

/** Whether a row is of about a time: within its length. */
function isNear({ tMs, merged, description }, otherMs) {
  return Math.abs(tMs - otherMs) <= Math.max(NEAR_MS, 1000 * merged * description.row_s);
}

/** Why there is no measurement of a channel, for a person. */
export function unmeasuredText(channel, { measured }, { t1 }) {
  if (measured !== null) return "";
  if (t1 !== null) return "not measured at this time";
  if (channel.gone) return "not there now";
  if (channel.unsent.has("trace")) return `not measured: ${channel.unsent.why}`;
  return channel.isSilent ? "no data now" : "not measured yet";
}
