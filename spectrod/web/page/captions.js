/** The words on a panel: what its lines are, what is under the pointer, why it stands still. */

import { levelAt } from "./bins.js";
import { durationText, rowsDueMs } from "./status.js";
import { formatHertz, formatLevel, formatTime } from "./time.js";
import { topicTitle } from "./topics.js";

const STATISTICS = Object.freeze({ max: "greatest of its bins", mean: "mean power of its bins" });
const LINES = Object.freeze({ now: "now", max: "maximum", min: "minimum", mean: "mean", reference: "reference" });

/**
 * Lines of a panel with their colours' names, and what a pixel of several bins shows.
 *
 * @param {import("./channel.js").Channel[]} channels
 * @param {{holds: readonly string[], statistic: string}} view
 * @returns {Array<{text: string, colour: string | null}>}
 */
export function legend(channels, view) {
  const note = { text: `pixel: ${STATISTICS[view.statistic]}`, colour: null };
  if (channels.length > 1) {
    return [...channels.map(({ info }, k) => ({ text: topicTitle(info), colour: `series${k}` })), note];
  }
  const names = ["now", ...view.holds, ...(channels[0].reference === null ? [] : ["reference"])];
  return [...names.map((name) => ({ text: LINES[name], colour: name })), note];
}

/** Why a panel stands still, or nothing: a plot that stands still looks like a steady sound. */
export function bannerText(channels, now, isPaused) {
  if (isPaused) return "paused";
  if (channels.every(({ receivedAt }) => receivedAt === null)) return "waiting for rows";
  const isLate = ({ receivedAt, description }) => receivedAt !== null && now - receivedAt > rowsDueMs(description);
  const text = ({ info, receivedAt }) => `no rows from ${topicTitle(info)} for ${durationText((now - receivedAt) / 1000)}`;
  return channels.filter(isLate).map(text).join("; ");
}

/** What is under the pointer. */
export function pointText({ hz, row, unit, time, zone }) {
  const level = row === null ? NaN : levelAt(row.values, row.description, hz);
  const parts = [formatHertz(hz), formatLevel(level, unit), time === null ? "" : formatTime(time, zone, 1)];
  return parts.filter(Boolean).join("  ");
}
