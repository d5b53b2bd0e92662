/** What the plots say, as tables: peaks, cursors, band. Everything that a canvas shows is here as text. */

import { difference, readingText } from "../panel/cursor.js";
import { element, fillTable, setText } from "./dom.js";
import { unmeasuredText } from "../rows/moment.js";
import { TERMS } from "./terms.js";
import { decimalsOf, formatHertz, formatLevel, formatTime, noteName } from "../plot/time.js";
import { topicTitle } from "../link/topics.js";

const PEAKS_SHOWN = 10;

/** A table with a caption, in a place of the page. */
class Table {
  #body = element("tbody");
  #empty;
  #table;
  #note;
  #time = element("span", { class: "aside" });

  constructor(place, { caption, note = "", columns, empty }) {
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col", title: TERMS[name] ?? null }, name)));
    const title = TERMS[caption.toLowerCase()] ?? null;
    const heading = element("caption", { title }, caption, element("span", { class: "aside" }, note), this.#time);
    this.#table = element("table", {}, heading, element("thead", {}, head), this.#body);
    this.#empty = element("p", { class: "empty" }, empty);
    place.append(this.#table, this.#empty);
  }

  /** Show rows, of which time they are, and why there are none. */
  show(rows, { time = "", empty = null } = {}) {
    fillTable(this.#body, rows);
    setText(this.#time, time);
    if (empty !== null) setText(this.#empty, empty);
    this.#empty.hidden = rows.length > 0;
  }
}

/** Which of some channels one is, in as few words as tell them apart. */
function channelText({ info }, channels) {
  const isAlike = (name) => channels.every((other) => other.info[name] === info[name]);
  if (!isAlike("product")) return topicTitle(info);
  return isAlike("source") ? info.channel : `${info.source} · ${info.channel}`;
}

/**
 * Rows of the table of peaks: of several channels each says whose it is, and those that are not measured why.
 *
 * @param {Array<{channel: import("../rows/channel.js").Channel, moment: import("../rows/moment.js").Moment}>} moments
 */
export function peakRows(moments, view) {
  const channels = moments.map(({ channel }) => channel);
  const found = moments.flatMap(({ channel, moment }) =>
    moment.peaks.map((peak) => ({ ...peak, channel, unit: channel.description?.unit ?? "dB" })),
  );
  found.sort((a, b) => b.level - a.level);
  const rows = found.slice(0, PEAKS_SHOWN).map(({ hz, level, hz_error, channel, unit }) => [
    formatHertz(hz, Math.max(hz_error ?? 0, Math.abs(hz) * 1e-5)),
    formatLevel(level, unit),
    noteName(hz),
    channelText(channel, channels),
  ]);
  const missing = unmeasured(moments, view);
  if (missing.length === moments.length) return rows;
  return [...rows, ...missing.map(({ channel, why }) => [why, "", "", channelText(channel, channels)])];
}

/** Channels that are not measured, and why. */
function unmeasured(moments, view) {
  return moments
    .map(({ channel, moment }) => ({ channel, why: unmeasuredText(channel, moment, view) }))
    .filter(({ why }) => why !== "");
}

/** Why no peak is listed. */
export function noPeakText(moments, view) {
  if (!view.peaks) return "off";
  const missing = unmeasured(moments, view);
  return moments.length > 0 && missing.length === moments.length ? missing[0].why : "no steady peak";
}

/** Rows of the table of cursors: each cursor, their difference, then the harmonics of the first. */
export function cursorRows(readings, unit, binHz, { span = 0, zone = "UTC", harmonics = [] } = {}) {
  return [...placedRows(readings, unit, binHz, { span, zone }), ...harmonicRows(readings[0], harmonics, unit, binHz)];
}

/** Rows of harmonics, each with its level beside that of the first cursor. */
function harmonicRows(first, harmonics, unit, binHz) {
  return harmonics.map(({ n, hz, level, isExact }) => [
    `${n} A`,
    formatHertz(hz, binHz / 10),
    readingText({ level, isExact }, unit),
    Number.isNaN(level - first.level) ? "" : `${formatLevel(level - first.level, "dB")} re A`,
    "",
  ]);
}

function placedRows(readings, unit, binHz, { span, zone }) {
  const times = timeTexts(readings, span, zone);
  const rows = readings.map(({ hz, level, isExact }, k) => [
    "AB"[k],
    formatHertz(hz, binHz / 10),
    readingText({ level, isExact }, unit),
    noteName(hz),
    times[k],
  ]);
  if (readings.length < 2) return rows;
  const { hz, octaves, level } = difference(readings);
  const interval = Number.isNaN(octaves) ? "" : `${octaves.toFixed(3)} oct`;
  return [...rows, ["B − A", formatHertz(hz, binHz / 10), formatLevel(level, "dB"), interval, timeDifference(readings)]];
}

/** Times of readings as short as they tell the readings apart: the zone is above the table. */
function timeTexts(readings, span, zone) {
  const texts = readings.map(({ tMs = null }) => (tMs === null ? null : formatTime(tMs, zone, decimalsOf(span)).split(" ")));
  const days = new Set(texts.filter(Boolean).map(([day]) => day));
  return texts.map((parts) => (parts === null ? "" : parts.slice(days.size > 1 ? 0 : 1, 2).join(" ")));
}

/** Time from the first reading to the second; empty unless both have one. */
function timeDifference([{ tMs: first = null }, { tMs: second = null }]) {
  return first === null || second === null ? "" : secondsText((second - first) / 1000);
}

/** A difference of times: seconds to the millisecond, longer ones as hours, minutes and seconds. */
export function secondsText(seconds) {
  const size = Math.abs(seconds);
  if (size < 120) return `${seconds.toFixed(3)} s`;
  const whole = Math.round(size);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return `${seconds < 0 ? "-" : ""}${hours > 0 ? `${hours} h ` : ""}${minutes} min ${rest} s`;
}

/** Rows of the table of the band's level: the server's measurements of unpooled power. */
export function bandRows(moments, view) {
  const { band, t1 } = view;
  if (band === null) return [];
  return moments.map(({ channel, moment }) => {
    const measured = moment.measured?.bands?.find(({ f0, f1 }) => f0 === band[0] && f1 === band[1]);
    const why = unmeasuredText(channel, moment, view) || (t1 === null ? "not measured yet" : "not measured at this time");
    const text = measured ? formatLevel(measured.level ?? NaN, measured.unit) : why;
    return [topicTitle(channel.info), `${formatHertz(band[0])} to ${formatHertz(band[1])}`, text];
  });
}

/** Of which time measurements are; empty of live ones. */
export function measuredTimeText(moments, { t1 }, zone) {
  if (t1 === null) return "";
  const times = moments.map(({ moment }) => moment.measured?.t_ms ?? moment.row?.tMs).filter(Number.isFinite);
  return `, at ${formatTime(times.length > 0 ? Math.max(...times) : t1, zone, 1)}`;
}

/** All tables. */
export class Tables {
  #peaks;
  #cursors;
  #band;

  /** @param {{peaks: HTMLElement, cursors: HTMLElement, band: HTMLElement}} places */
  constructor({ peaks, cursors, band }) {
    this.#peaks = new Table(peaks, {
      caption: "Peaks",
      note: ", between the bins",
      columns: ["frequency", "level", "note", "channel"],
      empty: "no steady peak",
    });
    this.#cursors = new Table(cursors, {
      caption: "Cursors",
      note: ", each on a peak or a bin",
      columns: ["cursor", "frequency", "level", "note", "time"],
      empty: "none; click in a plot or press C",
    });
    this.#band = new Table(band, {
      caption: "Band power",
      columns: ["channel", "band", "level"],
      empty: "none; Shift and drag in a spectrum, or press B",
    });
  }

  /** Show measurements of the channels, and the active panel's cursors. */
  show({ moments, view, zone, readings, harmonics, unit, binHz }) {
    const time = measuredTimeText(moments, view, zone);
    this.#peaks.show(view.peaks ? peakRows(moments, view) : [], { time, empty: noPeakText(moments, view) });
    this.#cursors.show(cursorRows(readings, unit, binHz, { span: view.span, zone, harmonics }), { time });
    this.#band.show(bandRows(moments, view), { time });
  }
}
