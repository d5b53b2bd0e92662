/** The words on a panel: what its lines are, what is under the pointer, why it stands still. */

import { durationText, rowsDueMs } from "../side/status.js";
import { lineText } from "../plot/linekinds.js";
import { decimalsOf, formatHertz, formatLevel, formatTime } from "../plot/time.js";
import { hasBars, hasNoBars, hasSums, shownRow } from "../rows/spectrumsum.js";
import { topicText, topicTitle } from "../link/topics.js";

const BARS = Object.freeze({ third: "third octaves", "third-a": "third octaves, A weighting" });

/** How line spectra differ from what was measured; empty if not. */
function shapeText(view, { description }, { row }) {
  const { smoothing = 0, bars = "none" } = view;
  if (hasSums(view) && row?.description.isDifference && row.of === undefined) return "; lines: bins, as the two spectra of this time are not there";
  const hasNone = bars !== "none" && row !== null && !(shownRow(row, view)?.description.n_bins > 0);
  if (hasNone) return "; lines: none, as no third octave here is a bin wide and known as a whole";
  if (bars !== "none" && description !== null && hasBars(description)) return `; lines: ${BARS[bars]}`;
  return smoothing > 0 ? `; lines: smoothed, 1/${smoothing} octave` : "";
}

const STATISTICS = Object.freeze({ max: "max", mean: "mean power" });

/**
 * Lines of a panel with their colours' names, and what a pixel of several bins shows.
 *
 * @param {import("../rows/channel.js").Channel[]} channels
 * @param {{holds: readonly string[], statistic: string, t1: number | null, span: number, times: readonly number[],
 *   decay: number, holdTime: number, timeConstant: number}} view as of the time whose spectrum is shown
 * @param {{moments: Array<import("../rows/moment.js").Moment>, seconds: Array<import("../rows/moment.js").Moment>,
 *   zone: string}} shown of each channel; `seconds`, of two times: those of the second cursor
 * @returns {Array<{text: string, colour: string | null}>}
 */
export function legend(channels, view, { moments, seconds = [], zone }) {
  const note = { text: `bins in a pixel: ${STATISTICS[view.statistic]}${shapeText(view, channels[0], moments[0])}`, colour: null };
  const texts = (k) => view.holds.map((name) => ({ name, text: lineText(name, view), why: whyNoHold(channels[k], moments[k], view, name) }));
  if (channels.length > 1) {
    const lines = channels.map(({ info }, k) => ({ text: [topicTitle(info), timeText(moments[k], view, zone)].filter(Boolean).join("  "), colour: `series${k}` }));
    const others = seconds.slice(0, 1).map((second) => ({ text: `dashed: ${secondText(second, view, zone)}`, colour: null }));
    const holds = texts(0).map(({ text }) => ({ text: `thin: ${text}`, colour: null }));
    const missing = channels.flatMap((channel, k) => texts(k).filter(({ why }) => why !== "").map(({ text, why }) => `${topicTitle(channel.info)}: no ${text}: ${why}`));
    return [...lines, ...others, ...holds, ...missing.map((text) => ({ text, colour: null })), note];
  }
  const now = { text: view.t1 === null ? lineText("now", view) : timeText(moments[0], view, zone), colour: "now" };
  const holds = texts(0).map(({ name, text, why }) => (why === "" ? { text, colour: name } : { text: `no ${text}: ${why}`, colour: null }));
  const reference = channels[0].reference === null ? [] : [{ text: referenceText(channels[0], zone), colour: "reference" }];
  const others = seconds.map((second) => ({ text: secondText(second, view, zone), colour: "second" }));
  return [now, ...others, ...holds, ...reference, note];
}

/** Time of a line of the past, and whose cursor's it is; empty of a live one. */
function timeText(moment, { t1, times = [], span, statistic }, zone) {
  if (t1 === null) return "";
  const place = times.indexOf(t1);
  return momentText(moment, t1, { cursor: ["A: ", "B: "][place] ?? "", statistic, zone, decimals: place < 0 ? 1 : decimalsOf(span) });
}

function secondText(moment, { times, span, statistic }, zone) {
  return momentText(moment, times[1], { cursor: "B: ", statistic, zone, decimals: decimalsOf(span) });
}

function momentText({ row, tMs }, t1, { cursor, statistic, zone, decimals }) {
  if (row === null) return `${cursor}no data at ${formatTime(t1, zone, decimals)}`;
  const pooled = row.count > 1 ? `, ${STATISTICS[statistic]} of ${row.count} rows` : "";
  return `${cursor}${formatTime(cursor === "" ? tMs : t1, zone, decimals)}${pooled}`;
}

function referenceText({ reference }, zone) {
  return `${lineText("reference", {})}, ${formatTime(reference.tMs, zone, 1)}`;
}

/** Why a hold that is on has no line; empty if it has one, or will have. */
function whyNoHold({ unsent, description }, { holds }, view, name) {
  const { t1 } = view;
  if (hasNoBars(name, description, view)) return "the extremes of bins are not those of bands";
  if (holds[name]) return "";
  if (unsent.has(name)) return unsent.why;
  return t1 === null ? "" : "not known of this time";
}

/** Why a panel stands still, or nothing: a plot that stands still looks like a steady sound. */
export function bannerText(channels, now, { t1, zone }) {
  if (channels.every(({ info }) => info?.stored !== undefined)) return channels.map(({ gone }) => gone).filter(Boolean).join(". ");
  if (t1 !== null) return `${channels.some((channel) => channel.isPausedAt(t1)) ? "paused" : "the past"}, ${formatTime(t1, zone, 1)}`;
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
