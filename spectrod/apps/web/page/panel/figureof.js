/** What a panel shows as a figure: its words, and what lies over its plots. */

import { harmonicsOf } from "./harmonics.js";
import { columnsOf, DASHES, runsOf, scaleOfRuns, wordsOf } from "./levellines.js";
import { boxText } from "./selectioncard.js";
import { bandRows, cursorRows } from "../side/tables.js";
import { nameText } from "../side/meter.js";
import { LINE_KINDS } from "../plot/linekinds.js";
import { decimalsOf, formatTime } from "../plot/time.js";
import { topicTitle } from "../link/topics.js";
import { atShownTime } from "./view.js";

const CURSORS = ["A", "B"];
/** Events whose texts a figure has. */
const EVENTS_MAX = 6;

/** Intervals of levels over time that lie in such a share of the time are one point: less than a line of print. */
const LEVEL_STEPS = 4096;

/**
 * A figure of a panel.
 *
 * @param {object} shown see `Panel.figure`
 * @returns {import("../plot/figure.js").Figure}
 */
export function figureOf({ panel, view, zone, colours, spectrum, strips, map, lines }) {
  const isAlone = panel.channels.length === 1;
  const times = view.times.map((tMs, k) => ({ name: CURSORS[k], tMs })).filter(({ tMs }) => tMs !== null);
  const quantity = panel.isDifference ? "Difference" : "Level";
  const units = [...new Set(panel.channels.map((_, k) => panel.unitOf(k)))].join(", ");
  const over = levelsOver(panel, strips, lines, { zone, colours, atMs: view.times[0] ?? undefined });
  return {
    title: panel.channels.map(({ info }) => topicTitle(info)).join(" + "),
    time: timeText(panel, view, strips, zone),
    zone,
    axis: panel.axis,
    direction: view.direction,
    split: view.split,
    levels: { ...spectrum.levels, text: `${quantity}, ${panel.unit.textContent.replace("Δ ", "")}` },
    colour: { map, ...panel.levels, text: `${quantity}, ${units}` },
    layers: spectrum.layers,
    legends: [spectrum.entries.map((entry) => legendOf(entry, colours)), over.legend],
    readings: [...cursorTexts(panel, view, zone), ...bandTexts(panel, view), ...(view.selection === null ? [] : [`Selection ${boxText(view.selection, zone)}`])],
    events: eventTexts(strips, zone),
    cursors: [...view.cursors.map((hz, k) => ({ name: CURSORS[k], hz })), ...harmonicsOf(view, panel.axis).map(({ n, hz }) => ({ name: String(n), hz }))],
    band: view.band,
    over: over.scale,
    strips: strips.map((strip, k) => ({ ...strip, title: isAlone ? "" : strip.title, times, box: view.selection, lines: over.lines[k] })),
  };
}

const legendOf = ({ text, colour, dash }, colours) => ({ text, stroke: colour === null ? null : colours[colour], dash: dash ?? LINE_KINDS[colour]?.dash ?? null });

/** Levels over time: lines of each waterfall, the scale that they have in common, null where none are chosen, and their names, with values where a cursor has a time. */
function levelsOver({ channels }, strips, shown, { zone, colours, atMs }) {
  const { chosen } = shown;
  if (chosen.length === 0) return { scale: null, lines: [], legend: [] };
  const found = columnsOf(channels, shown);
  const lookOf = (n) => ({ stroke: colours[`series${n % 8}`], dash: DASHES[n % DASHES.length] });
  const lines = strips.map(({ k, newestMs, spanMs }) =>
    runsOf(found.columns[k], found.unit, newestMs - spanMs, newestMs, spanMs / LEVEL_STEPS).map((runs, n) => ({ name: chosen[n], ...lookOf(n), runs })),
  );
  const { items, note } = wordsOf(channels, found, { chosen, atMs, zone });
  const legend = [{ text: `Levels over time${note === "" ? "" : `, ${note}`}:`, stroke: null, dash: null }, ...items.map(({ text, n }) => ({ text, ...lookOf(n) }))];
  const ends = scaleOfRuns(lines.flat().flatMap(({ runs }) => runs)) ?? { lo: NaN, hi: NaN };
  return { scale: { ...ends, text: `${chosen.length > 1 ? "" : `${nameText(chosen[0])}, `}${found.unit ?? ""}` }, lines, legend };
}

/** Of which time a figure is: that at the top of the waterfalls, which reach so far back. */
function timeText({ channels }, { t1, span }, [strip], zone) {
  const newestMs = t1 ?? strip?.newestMs ?? null;
  if (newestMs === null) return "no data";
  const texts = [newestMs - 1000 * span, newestMs].map((tMs) => formatTime(tMs, zone, decimalsOf(span) === 0 ? 0 : 1));
  const [from, to] = spanText(...texts);
  const isPaused = t1 !== null && channels.some((channel) => channel.isPausedAt(t1));
  return `${from} to ${to}${isPaused ? ", paused" : ""}`;
}

/** Two times without what both have: the date, and the zone. */
function spanText(from, to) {
  const [[dayFrom, ...timeFrom], [dayTo, ...timeTo]] = [from.split(" "), to.split(" ")];
  const isZoneSame = timeFrom.at(-1) === timeTo.at(-1);
  const begin = isZoneSame ? from.slice(0, from.lastIndexOf(" ")) : from;
  return [begin, dayFrom === dayTo ? timeTo.join(" ") : to];
}

/** What the cursors read, as in the table of cursors: a line each, or of several channels a line for each channel. */
function cursorTexts(panel, view, zone) {
  if (view.cursors.length === 0) return [];
  const isAlone = panel.channels.length === 1;
  return panel.channels.flatMap((channel, k) => {
    const readings = panel.readings(channel, view);
    const rows = cursorRows(readings, panel.unitOf(k), channel.description?.bin_hz ?? 0, { span: view.span, zone });
    const texts = rows.map(([name, ...read]) => `${name}: ${read.filter(Boolean).join(", ")}`);
    return isAlone ? texts : `${topicTitle(channel.info)}:  ${texts.join(";  ")}`;
  });
}

/** The newest events of the time that is shown, each once, in the order in which they happened. */
function eventTexts(strips, zone) {
  const marks = [...new Set(strips.flatMap(({ entries }) => entries))].sort((a, b) => b.t0 - a.t0);
  const texts = marks.slice(0, EVENTS_MAX).map(({ t0, source, channel, kind, text }) => `Event ${formatTime(t0, zone, 1).split(" ")[1]}, ${[source, channel].filter(Boolean).join(" ")}, ${kind}: ${text}`);
  const more = marks.length - texts.length;
  return [...(more > 0 ? [`${more} events before these`] : []), ...texts.reverse()];
}

function bandTexts(panel, view) {
  const shown = atShownTime(view);
  const moments = panel.moments(view).map((moment, k) => ({ channel: panel.channels[k], moment }));
  const isAlone = moments.length === 1;
  return bandRows(moments, shown).map(([title, band, level]) => `${isAlone ? "" : `${title}:  `}Band power ${band}: ${level}`);
}
