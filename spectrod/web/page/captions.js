/** The words on a panel: what its lines are, what is under the pointer, why it stands still. */

import { levelAt } from "./bins.js";
import { durationText, rowsDueMs } from "./status.js";
import { lineText } from "./linekinds.js";
import { formatHertz, formatLevel, formatTime } from "./time.js";
import { topicTitle } from "./topics.js";

const STATISTICS = Object.freeze({ max: "max", mean: "mean power" });

/**
 * Lines of a panel with their colours' names, and what a pixel of several bins shows.
 *
 * @param {import("./channel.js").Channel[]} channels
 * @param {{holds: readonly string[], statistic: string, decay: number, holdTime: number, timeConstant: number}} view
 * @returns {Array<{text: string, colour: string | null}>}
 */
export function legend(channels, view) {
  const note = { text: `bins in a pixel: ${STATISTICS[view.statistic]}`, colour: null };
  if (channels.length > 1) {
    return [...channels.map(({ info }, k) => ({ text: topicTitle(info), colour: `series${k}` })), note];
  }
  const names = ["now", ...view.holds, ...(channels[0].reference === null ? [] : ["reference"])];
  return [...names.map((name) => ({ text: lineText(name, view), colour: name })), note];
}

/** Why a panel stands still, or nothing: a plot that stands still looks like a steady sound. */
export function bannerText(channels, now, isPaused) {
  if (isPaused) return "paused";
  if (channels.every(({ receivedAt }) => receivedAt === null)) return "waiting for data";
  const isLate = ({ receivedAt, description }) => receivedAt !== null && now - receivedAt > rowsDueMs(description);
  const text = ({ info, receivedAt }) => `no data from ${topicTitle(info)} for ${durationText((now - receivedAt) / 1000)}`;
  return channels.filter(isLate).map(text).join("; ");
}

/** What is under the pointer. */
export function pointText({ hz, row, unit, time, zone }) {
  const level = row === null ? NaN : levelAt(row.values, row.description, hz);
  const parts = [formatHertz(hz), formatLevel(level, unit), time === null ? "" : formatTime(time, zone, 1)];
  return parts.filter(Boolean).join("  ");
}
