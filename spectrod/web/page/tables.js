/** What the plots say, as tables: peaks, cursors, band, events. Everything that a canvas shows is here as text. */

import { difference } from "./cursor.js";
import { element, fillTable } from "./dom.js";
import { TERMS } from "./terms.js";
import { formatHertz, formatLevel, formatTime, noteName } from "./time.js";
import { topicTitle } from "./topics.js";

const PEAKS_SHOWN = 10;
const EVENTS_SHOWN = 50;

/** A table with a caption, in a place of the page. */
class Table {
  #body = element("tbody");
  #empty;
  #table;

  constructor(place, { caption, note = "", columns, empty }) {
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col", title: TERMS[name] ?? null }, name)));
    const title = TERMS[caption.toLowerCase()] ?? null;
    const heading = element("caption", { title }, caption, element("span", { class: "aside" }, note));
    this.#table = element("table", {}, heading, element("thead", {}, head), this.#body);
    this.#empty = element("p", { class: "empty" }, empty);
    place.append(this.#table, this.#empty);
  }

  show(rows) {
    fillTable(this.#body, rows);
    this.#empty.hidden = rows.length > 0;
  }
}

/** Which of some channels one is, in as few words as tell them apart. */
function channelText({ info }, channels) {
  const isAlike = (name) => channels.every((other) => other.info[name] === info[name]);
  if (!isAlike("product")) return topicTitle(info);
  return isAlike("source") ? info.channel : `${info.source} · ${info.channel}`;
}

/** Rows of the table of peaks: of several channels each says whose it is. */
export function peakRows(channels) {
  const rows = channels.flatMap((channel) =>
    channel.peaks.list().map((peak) => ({ ...peak, channel, unit: channel.description?.unit ?? "dB" })),
  );
  rows.sort((a, b) => b.level - a.level);
  return rows.slice(0, PEAKS_SHOWN).map(({ hz, level, hz_error, channel, unit }) => [
    formatHertz(hz, Math.max(hz_error ?? 0, Math.abs(hz) * 1e-5)),
    formatLevel(level, unit),
    noteName(hz),
    channelText(channel, channels),
  ]);
}

/** Rows of the table of cursors: each cursor, then their difference. */
export function cursorRows(readings, unit, binHz) {
  const rows = readings.map(({ hz, level, isExact }, k) => [
    "AB"[k],
    formatHertz(hz, binHz / 10),
    `${isExact ? "" : "≈ "}${formatLevel(level, unit)}`,
    noteName(hz),
  ]);
  if (readings.length < 2) return rows;
  const { hz, octaves, level } = difference(readings);
  const interval = Number.isNaN(octaves) ? "" : `${octaves.toFixed(3)} oct`;
  return [...rows, ["B − A", formatHertz(hz, binHz / 10), formatLevel(level, "dB"), interval]];
}

/** Rows of the table of the band's level: the server's measurements of unpooled power. */
export function bandRows(channels, band) {
  if (band === null) return [];
  return channels.map((channel) => {
    const measured = channel.measured?.bands?.[0];
    const text = measured ? formatLevel(measured.level ?? NaN, measured.unit) : "not measured yet";
    return [topicTitle(channel.info), `${formatHertz(band[0])} to ${formatHertz(band[1])}`, text];
  });
}

/** Rows of the table of events. */
export function eventRows(entries, zone) {
  return entries
    .slice(0, EVENTS_SHOWN)
    .map(({ tMs, kind, source, text }) => [formatTime(tMs, zone, 1), source, kind, text]);
}

/** All tables. */
export class Tables {
  #peaks;
  #cursors;
  #band;
  #events;

  /** @param {{peaks: HTMLElement, cursors: HTMLElement, band: HTMLElement, events: HTMLElement}} places */
  constructor({ peaks, cursors, band, events }) {
    this.#peaks = new Table(peaks, {
      caption: "Peaks",
      note: ", between the bins",
      columns: ["frequency", "level", "note", "channel"],
      empty: "no steady peak",
    });
    this.#cursors = new Table(cursors, {
      caption: "Cursors",
      note: ", each on a bin",
      columns: ["cursor", "frequency", "level", "note"],
      empty: "none; click in a plot or press C",
    });
    this.#band = new Table(band, {
      caption: "Band power",
      columns: ["channel", "band", "level"],
      empty: "none; Shift and drag in a plot, or press B",
    });
    this.#events = new Table(events, {
      caption: "Events",
      columns: ["time", "source", "kind", "event"],
      empty: "none",
    });
  }

  /** Show measurements of the channels, and the first panel's cursors. */
  show({ channels, view, readings, unit, binHz }) {
    this.#peaks.show(view.peaks ? peakRows(channels) : []);
    this.#cursors.show(cursorRows(readings, unit, binHz));
    this.#band.show(bandRows(channels, view.band));
  }

  showEvents(entries, zone) {
    this.#events.show(eventRows(entries, zone));
  }
}
