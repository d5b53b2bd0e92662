/** The words on a panel: what its lines are, what is under the pointer, why it stands still. */

import { durationText, rowsDueMs } from "../side/status.js";
import { lineText } from "../plot/linekinds.js";
import { formatHertz, formatLevel, formatTime } from "../plot/time.js";
import { topicText, topicTitle } from "../link/topics.js";

const STATISTICS = Object.freeze({ max: "max", mean: "mean power" });

/**
 * Lines of a panel with their colours' names, and what a pixel of several bins shows.
 *
 * @param {import("../rows/channel.js").Channel[]} channels
 * @param {{holds: readonly string[], statistic: string, t1: number | null, decay: number, holdTime: number,
 *   timeConstant: number}} view
 * @param {{moments: Array<import("../rows/moment.js").Moment>, zone: string}} shown of each channel
 * @returns {Array<{text: string, colour: string | null}>}
 */
export function legend(channels, view, { moments, zone }) {
  const note = { text: `bins in a pixel: ${STATISTICS[view.statistic]}`, colour: null };
  const texts = (k) => view.holds.map((name) => ({ name, text: lineText(name, view), why: whyNoHold(channels[k], moments[k], view, name) }));
  if (channels.length > 1) {
    const lines = channels.map(({ info }, k) => ({ text: `${topicTitle(info)}${timeText(moments[k], view, zone)}`, colour: `series${k}` }));
    const holds = texts(0).map(({ text }) => ({ text: `thin: ${text}`, colour: null }));
    const missing = channels.flatMap((channel, k) => texts(k).filter(({ why }) => why !== "").map(({ text, why }) => `${topicTitle(channel.info)}: no ${text}: ${why}`));
    return [...lines, ...holds, ...missing.map((text) => ({ text, colour: null })), note];
  }
  const now = { text: view.t1 === null ? lineText("now", view) : timeText(moments[0], view, zone), colour: "now" };
  const holds = texts(0).map(({ name, text, why }) => (why === "" ? { text, colour: name } : { text: `no ${text}: ${why}`, colour: null }));
  const reference = channels[0].reference === null ? [] : [{ text: referenceText(channels[0], zone), colour: "reference" }];
  return [now, ...holds, ...reference, note];
}

/** Time of a line of the past; empty of a live one. */
function timeText({ row, tMs }, { t1 }, zone) {
  if (t1 === null) return "";
  return row === null ? `no data at ${formatTime(t1, zone, 1)}` : formatTime(tMs, zone, 1);
}

function referenceText({ reference }, zone) {
  return `${lineText("reference", {})}, ${formatTime(reference.tMs, zone, 1)}`;
}

/** Why a hold that is on has no line; empty if it has one, or will have. */
function whyNoHold({ unsent }, { holds }, { t1 }, name) {
  if (holds[name]) return "";
  if (unsent.has(name)) return unsent.why;
  return t1 === null ? "" : "not known of this time";
}

/** Why a panel stands still, or nothing: a plot that stands still looks like a steady sound. */
export function bannerText(channels, now, { t1, zone }) {
  if (t1 !== null) return `${channels.some(({ kept }) => kept !== null) ? "paused" : "the past"}, ${formatTime(t1, zone, 1)}`;
  const gone = channels.map((channel) => channel.gone).filter(Boolean);
  if (gone.length > 0) return gone.join(". ");
  if (channels.every(({ receivedAt }) => receivedAt === null)) return "waiting for data";
  const isLate = ({ receivedAt, description }) => receivedAt !== null && now - receivedAt > rowsDueMs(description);
  const since = ({ newer }) => (newer.length > 0 ? `; new since: ${newer.map(topicText).join(", ")}` : "");
  const text = (channel) => `no data from ${topicTitle(channel.info)} for ${durationText((now - channel.receivedAt) / 1000)}${since(channel)}`;
  return channels.filter(isLate).map(text).join("; ");
}

/** What is under the pointer; `name`: whose it is, where several channels share a panel. */
export function pointText({ name, hz, level, unit, tMs, zone }) {
  const parts = [name, formatHertz(hz), formatLevel(level, unit), tMs === null ? "" : formatTime(tMs, zone, 1)];
  return parts.filter(Boolean).join("  ");
}
