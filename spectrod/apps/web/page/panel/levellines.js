/** Levels over time beside or below a panel's waterfalls, on their time axis: lines, a scale with its unit, and names with values. */

import { cornersOf } from "../rows/levelseries.js";
import { element, setAttribute, setText } from "../side/dom.js";
import { nameText, valueText } from "../side/meter.js";
import { Orientation } from "../plot/orientation.js";
import { drawLevelRuler, placeLabels } from "../plot/ruler.js";
import { levelTicks } from "../plot/ticks.js";
import { formatTime } from "../plot/time.js";
import { topicTitle } from "../link/topics.js";

const FONT_PX = 11;
const TICK_PX = 5;
/** The scale covers at least so much, and its ends are multiples of a quarter of that. */
const SPAN_LEAST = 20;
const LINE_PX = 2;
/** Lines of the same place differ in their dashes as well as in colour [px]. */
export const DASHES = Object.freeze([[], [6, 3], [2, 2], [8, 2, 2, 2], [12, 4], [4, 4], [10, 2, 4, 2], [3, 5]]);

/**
 * Range of a scale that has all values.
 *
 * @param {number[]} values
 * @returns {{lo: number, hi: number} | null} null without values
 */
export function scaleOf(values) {
  if (values.length === 0) return null;
  const [least, most] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  // Of numbers that are no decibels a step is a power of ten: 3 kHz are not shown to 1 Hz.
  const size = Math.max(Math.abs(least), Math.abs(most), most - least);
  const step = (SPAN_LEAST / 4) * (size > 400 ? 10 ** Math.floor(Math.log10(size / 40)) : size < 2 ? 10 ** Math.floor(Math.log10(Math.max(size, 1e-9) / 2) - 1) : 1);
  const [lo, hi] = [Math.floor(least / step) * step, Math.ceil(most / step) * step];
  const missing = Math.max(0, Math.ceil((4 * step - (hi - lo)) / step));
  return { lo: lo - Math.ceil(missing / 2) * step, hi: hi + Math.floor(missing / 2) * step };
}

/**
 * Columns that are chosen, of each channel, null where nothing has come; and their unit, that of the first one.
 *
 * @param {import("../rows/channel.js").Channel[]} channels
 * @param {{chosen: readonly string[], series: import("../rows/levelseries.js").LevelSeries, topics: object[]}} shown
 */
export function columnsOf(channels, { chosen, series, topics }) {
  const columns = channels.map(({ info }) => chosen.map((name) => series.column(name, info, topics)));
  return { columns, unit: columns.flat().find(Boolean)?.unit ?? null };
}

/** Runs of the columns of a channel in a span of time; those of another unit have none. */
export const runsOf = (columns, unit, t0, t1, stepMs) => columns.map((column) => (column === null || column.unit !== unit ? [] : column.runs(t0, t1, stepMs)));

/** Scale of the runs of some lines. */
export const scaleOfRuns = (runs) => scaleOf(runs.flatMap((run) => run.flatMap(({ lo, hi }) => [lo, hi])));

/**
 * Names of the lines with their values at a time, or the newest; and a note of their unit, that time, and since when there are any.
 * Without `atMs` there are no values.
 *
 * @param {import("../rows/channel.js").Channel[]} channels
 * @param {{columns: object[][], unit: string | null}} found see `columnsOf`
 * @param {{chosen: readonly string[], atMs?: number | null, zone: string}} shown
 * @returns {{items: Array<{text: string, n: number}>, note: string}}
 */
export function wordsOf(channels, { columns, unit }, { chosen, atMs, zone }) {
  const hasMany = channels.length > 1;
  const items = columns.flatMap((some, k) => some.map((column, n) => ({ text: lineText(column, chosen[n], { unit, atMs, channel: hasMany ? channels[k] : null }), n })));
  const since = columns.flat().map((column) => column?.since ?? null).filter((tMs) => tMs !== null);
  const begin = since.length > 0 ? `; seen since ${formatTime(Math.min(...since), zone).slice(11, 19)}, not stored` : "";
  const time = atMs === undefined ? "" : atMs === null ? ", newest" : `, ${formatTime(atMs, zone, 1).slice(11, 21)}`;
  const note = `${unit ?? ""}${time}${begin}`;
  return { items, note: note.replace(/^, /, "") };
}

function lineText(column, name, { unit, atMs, channel }) {
  const title = `${channel === null ? "" : `${topicTitle(channel.info)} `}${nameText(name)}`;
  if (column === null) return `${title}: no value yet`;
  if (column.unit !== unit) return `${title}: ${valueText(column.newest, column.unit)}, another unit: not drawn`;
  return atMs === undefined ? title : `${title}: ${valueText(atMs === null ? column.newest : column.at(atMs), unit)}`;
}

/** A canvas in a box that fills a place of the plot's grid. */
function canvasBox(name) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  return { canvas, box: element("div", { class: name }, canvas) };
}

/** The lines of one panel. */
export class LevelLines {
  #head = element("div", { class: "lines-head" });
  #list = element("ul");
  #note = element("p");
  #scale = canvasBox("lines-scale");
  #boxes;
  /** Scales at the left of lines below waterfalls. */
  #rulers;
  #channels;
  #pointed = null;
  #key = "";
  #values = "";

  /** @param {import("../rows/channel.js").Channel[]} channels of the waterfalls, from the top */
  constructor(channels) {
    this.#channels = channels;
    this.#head.append(this.#list, this.#note);
    this.#boxes = channels.map(() => canvasBox("lines"));
    this.#rulers = channels.map(() => canvasBox("lines-ruler"));
    for (const [k, { box }] of this.#boxes.entries()) {
      box.addEventListener("pointermove", ({ offsetX: x, offsetY: y }) => (this.#pointed = { k, at: { x, y } }));
      box.addEventListener("pointerleave", () => (this.#pointed = null));
    }
  }

  get elements() {
    return [this.#head, this.#scale.box, ...this.#channels.flatMap((_, k) => this.elementsOf(k))];
  }

  /** Those of a channel. */
  elementsOf(k) {
    return [this.#boxes[k].box, this.#rulers[k].box];
  }

  /** Fit the canvases to their places. */
  resize(ratio) {
    for (const { canvas, box } of [this.#scale, ...this.#boxes, ...this.#rulers]) {
      canvas.width = Math.max(1, Math.round(box.clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(box.clientHeight * ratio));
    }
    this.#key = "";
  }

  /**
   * Draw the lines.
   *
   * @param {{chosen: readonly string[], series: import("../rows/levelseries.js").LevelSeries, topics: object[],
   *   times: readonly (number | null)[], shownMs: number | null, pointedMs: number | null}} shown `chosen`: columns; `times`: of the cursors;
   *   `shownMs`: time of the line spectrum, null: live; `pointedMs`: time under the pointer in a waterfall, or null
   * @param {import("./strip.js").Strip[]} strips
   * @param {{colours: object, zone: string, ratio: number}} look
   */
  draw(shown, strips, { colours, zone, ratio }) {
    const { chosen, series, times } = shown;
    if (chosen.length === 0) return;
    const spans = strips.map((strip) => strip.ends);
    const [{ places }] = strips;
    const pointed = this.#pointed === null ? shown.pointedMs : strips[this.#pointed.k].timeOf(places.fromScreen(this.#pointed.at).age);
    const key = [series.version, chosen, spans, places.direction, times, colours.text, ratio, zone].join();
    const found = columnsOf(this.#channels, shown);
    this.#say(wordsOf(this.#channels, found, { chosen, atMs: pointed ?? shown.shownMs, zone }), colours);
    // Before its first row a waterfall has no times.
    if (key === this.#key || spans.flat().includes(null)) return;
    this.#key = key;
    const runs = found.columns.map((some, k) => {
      const [t0, t1] = spans[k];
      return runsOf(some, found.unit, t0, t1, (t1 - t0) / strips[k].lengthPx);
    });
    const scale = scaleOfRuns(runs.flat(2));
    drawScale(this.#scale.canvas, scale, colours, ratio);
    strips.forEach((strip, k) => {
      const { canvas } = this.#boxes[k];
      drawLines(canvas, runs[k], { scale, times, places: new Orientation(places.direction, canvas), ageOf: (tMs) => strip.ageOf(tMs) * ratio }, colours, ratio);
      if (places.isUpright && scale !== null) drawLevelRuler(this.#rulers[k].canvas, scale, colours, ratio);
    });
  }

  #say({ items, note }, colours) {
    const all = JSON.stringify([items, note, colours.text]);
    if (all === this.#values) return;
    this.#values = all;
    while (this.#list.children.length > items.length) this.#list.lastElementChild.remove();
    items.forEach(({ text, n }, k) => {
      const item = this.#list.children[k] ?? this.#list.appendChild(element("li"));
      setText(item, text);
      item.style.setProperty("--line", colours[`series${n % 8}`]);
      setAttribute(item, "data-dash", DASHES[n % DASHES.length].length > 0);
    });
    setText(this.#note, note);
  }
}

function drawScale(canvas, scale, colours, ratio) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  if (scale === null) return;
  context.font = `${Math.round(FONT_PX * ratio)}px system-ui, sans-serif`;
  context.fillStyle = colours.text;
  context.textBaseline = "middle";
  const ticks = ticksOf(scale, canvas.width);
  for (const { px } of ticks) context.fillRect(Math.min(canvas.width - ratio, Math.round(px)), canvas.height - TICK_PX * ratio, Math.max(1, Math.round(ratio)), TICK_PX * ratio);
  const measure = (text) => context.measureText(text).width;
  for (const { label, x } of placeLabels(ticks, measure, canvas.width, 6 * ratio)) context.fillText(label, x, (canvas.height - TICK_PX * ratio) / 2);
}

/** Ticks from left to right. */
const ticksOf = ({ lo, hi }, width) => levelTicks(lo, hi, width).map((tick) => ({ ...tick, px: width - tick.px })).reverse();

function drawLines(canvas, lines, { scale, times, places, ageOf }, colours, ratio) {
  const context = canvas.getContext("2d");
  const thin = Math.max(1, Math.round(ratio));
  context.setLineDash([]);
  context.fillStyle = colours.plot;
  context.fillRect(0, 0, canvas.width, canvas.height);
  if (scale !== null) {
    const { lo, hi } = scale;
    context.fillStyle = colours.grid;
    for (const { px } of ticksOf(scale, places.breadth)) {
      const { left, top, width, height } = places.tone(px);
      context.fillRect(Math.round(left), Math.round(top), width || thin, height || thin);
    }
    context.lineWidth = LINE_PX * ratio;
    const placeOf = (tMs, value) => {
      const { x, y } = places.toScreen({ tone: ((value - lo) / (hi - lo)) * places.breadth, age: ageOf(tMs) });
      return [x, y];
    };
    lines.forEach((runs, n) => {
      context.strokeStyle = colours[`series${n % 8}`];
      context.setLineDash(DASHES[n % DASHES.length].map((px) => px * ratio));
      for (const run of runs) drawRun(context, run, placeOf);
    });
  }
  context.strokeStyle = colours.text;
  context.lineWidth = thin;
  times.forEach((tMs, k) => {
    if (tMs === null) return;
    const { left, top, width, height } = places.moment(ageOf(tMs));
    const [x, y] = [Math.round(left) + 0.5, Math.round(top) + 0.5];
    context.setLineDash(k === 0 ? [] : [4 * ratio, 3 * ratio]);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + width, y + height);
    context.stroke();
  });
}

function drawRun(context, run, placeOf) {
  context.beginPath();
  for (const corner of cornersOf(run)) context.lineTo(...placeOf(...corner));
  context.stroke();
}
