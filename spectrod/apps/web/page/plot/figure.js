/**
 * A figure of a panel for a report: title, time, readings, legend, line spectrum, waterfalls, scales with their units, and
 * the colours of levels, black on white. It is drawn by a pen (figurepens.js), so that picture and drawing are alike.
 *
 * @typedef {object} Figure
 * @property {string} title
 * @property {string} time
 * @property {string} zone
 * @property {import("./axis.js").Axis} axis as the screen shows it
 * @property {"down" | "up" | "right"} direction of time: in which rows move, or `right`: the newest at the right, frequency upright
 * @property {number} split share of the line spectrum in the height [%]
 * @property {{lo: number, hi: number, text: string}} levels of the line spectrum, and the name of its scale
 * @property {{map: string, lo: number, hi: number, text: string}} colour of the waterfalls, and the name of their scale
 * @property {import("./trace.js").Layer[]} layers the undermost first; widths and dashes [CSS px]
 * @property {Array<Array<{text: string, stroke: string | null, dash: number[] | null}>>} legends each begins with a line of text of its own
 * @property {string[]} readings lines of text: cursors and band
 * @property {string[]} events lines of text below the legend
 * @property {Array<{name: string, hz: number}>} cursors `A`, `B`, and harmonics of A by their numbers
 * @property {readonly [number, number] | null} band [Hz]
 * @property {{lo: number, hi: number, text: string} | null} over scale of levels over time and its name, with ends that are NaN where nothing has come;
 *   null without any
 * @property {Array<{title: string, rows: object, newestMs: number, spanMs: number, times: Array<{name: string, tMs: number}>,
 *   box: {t0: number, t1: number, f0: number, f1: number} | null, entries: import("../link/events.js").Mark[],
 *   lines: import("./figurelevels.js").LevelLine[]}>} strips waterfalls
 */

import { makeAxis } from "./axis.js";
import { shadesCanvas } from "./figureimage.js";
import { drawLevelsOver } from "./figurelevels.js";
import { layerLines } from "./figurelines.js";
import { drawGutter, drawStrip } from "./figurestrip.js";
import { ACCENT, BLACK, DASHES, frame, GRID, HARMONIC_DASHES, LINE_PX, TEXT, TICK_PX, wrapped } from "./figurelook.js";
import { placeLabels } from "./ruler.js";
import { frequencyTicks, levelTicks } from "./ticks.js";

/** Titles have 9 points [CSS px]. */
const TITLE = Object.freeze({ size: 12, isBold: true });
const MARGIN_PX = 8;
const LEFT_PX = 84;
const RIGHT_PX = 64;
const RULER_PX = 36;
const GAP_PX = 8;
const FOOT_PX = 6;
const SIGN_PX = 20;
const BAR_PX = 12;
/** Share of levels over time in the width, beside waterfalls, or in their height, below them. */
const OVER_WIDTH = 0.28;
const OVER_HEIGHT = 0.3;
/** A line spectrum and a waterfall have this height at least. */
const PLOT_PX_MIN = 40;
/** Of lines of text of a head at most; more are counted. */
const HEAD_LINES_MAX = 24;

/** Rows of a legend: entries beside each other as far as they fit, each with the place of its sign. */
function legendRows(entries, width, measure) {
  const rows = [];
  let x = Infinity;
  for (const { text, stroke, dash } of entries) {
    const indent = stroke === null ? 0 : SIGN_PX + 4;
    const [first, ...more] = wrapped(text, width - indent, measure);
    if (first === undefined) continue;
    const length = indent + measure(first);
    if (x + length > width) {
      rows.push([]);
      x = 0;
    }
    rows.at(-1).push({ x, text: first, stroke, dash, indent });
    x += length + 14;
    for (const line of more) rows.push([{ x: indent, text: line, stroke: null, dash: null, indent: 0 }]);
    if (more.length > 0) x = Infinity;
  }
  return rows;
}

/** The lines of text above the plots. */
function headOf({ title, time, readings, legends, events }, width, pen) {
  const measure = (text) => pen.measure(text, TEXT);
  const plain = (text, look) => [{ x: 0, text, stroke: null, dash: null, indent: 0, look }];
  const rows = [
    ...wrapped(title, width, (text) => pen.measure(text, TITLE)).map((text) => plain(text, TITLE)),
    ...[time, ...readings].flatMap((text) => wrapped(text, width, measure)).map((text) => plain(text)),
    ...legends.flatMap((legend) => legendRows(legend, width, measure)),
    ...events.flatMap((text) => wrapped(text, width, measure)).map((text) => plain(text)),
  ];
  const more = rows.length - HEAD_LINES_MAX;
  return more <= 0 ? rows : [...rows.slice(0, HEAD_LINES_MAX - 1), plain(`and ${more + 1} more lines`)];
}

/**
 * Where the parts of a figure are [CSS px]: beside each waterfall of `strips` are its levels over time, below it where time goes to the right; their
 * height is 0 without any.
 */
function layoutOf(figure, { width, plotsHeight }, pen) {
  const head = headOf(figure, width - 2 * MARGIN_PX, pen);
  const isUpright = figure.direction === "right";
  const hasOver = figure.over !== null;
  const room = Math.round(width - LEFT_PX - RIGHT_PX);
  const overWidth = hasOver && !isUpright ? Math.round(OVER_WIDTH * (room - GAP_PX)) : 0;
  const plotWidth = Math.max(PLOT_PX_MIN, room - (overWidth > 0 ? overWidth + GAP_PX : 0));
  const count = figure.strips.length;
  // The letters of cursors stand above the line spectrum.
  const top = MARGIN_PX + head.length * LINE_PX + (figure.cursors.length > 0 ? LINE_PX : GAP_PX);
  const traceHeight = Math.max(PLOT_PX_MIN, Math.round((plotsHeight * figure.split) / 100));
  const each = (plotsHeight - traceHeight - (count - 1) * GAP_PX) / Math.max(1, count);
  const below = hasOver && isUpright ? Math.max(PLOT_PX_MIN, Math.round(OVER_HEIGHT * each)) + GAP_PX : 0;
  const stripHeight = Math.max(PLOT_PX_MIN, Math.floor(each - below));
  const step = stripHeight + below + GAP_PX;
  const stripTop = top + traceHeight + RULER_PX;
  const strips = figure.strips.map((_, k) => {
    const strip = { left: LEFT_PX, top: stripTop + k * step, width: plotWidth, height: stripHeight };
    const beside = { ...strip, left: LEFT_PX + plotWidth + GAP_PX, width: overWidth };
    return { strip, over: isUpright ? { ...strip, top: strip.top + stripHeight + GAP_PX, height: below - GAP_PX } : beside };
  });
  const foot = isUpright && count > 0 ? RULER_PX : FOOT_PX;
  const height = Math.ceil(stripTop + count * step - GAP_PX + foot + MARGIN_PX);
  return { head, left: LEFT_PX, plotWidth, barLeft: LEFT_PX + room + GAP_PX, top, traceHeight, strips, height };
}

/** Height that a figure takes [CSS px]: that of its plots, and of the words above and beside them. */
export function figureHeight(figure, size, pen) {
  return layoutOf(figure, size, pen).height;
}

/**
 * Draw a figure.
 *
 * @param {object} pen see figurepens.js
 * @param {Figure} figure
 * @param {{width: number, plotsHeight: number, scale: number}} size of the figure and of its plots [CSS px]; `scale`:
 *   pixels of a waterfall's picture for each CSS px
 * @param {number} y0 where it begins [CSS px]
 * @returns {number} where it ends
 */
export function drawFigure(pen, figure, size, y0 = 0) {
  const layout = layoutOf(figure, size, pen);
  const { left, plotWidth } = layout;
  const { kind, f0, f1 } = figure.axis;
  const place = { left, top: y0 + layout.top, width: plotWidth, height: layout.traceHeight };
  const axis = makeAxis({ kind, f0, f1, width: plotWidth });
  drawHead(pen, layout.head, y0 + MARGIN_PX);
  drawSpectrum(pen, figure, axis, place);
  drawFrequencies(pen, axis, { ...place, top: place.top + place.height });
  const moved = (box) => ({ ...box, top: y0 + box.top });
  layout.strips.forEach(({ strip, over }, k) => {
    if (figure.over !== null) drawLevelsOver(pen, figure, k, moved(over));
    drawStrip(pen, figure, k, moved(strip), size.scale, figure.over === null ? moved(strip) : moved(over));
  });
  if (layout.strips.length > 0) {
    const [first, last] = [layout.strips[0].strip, layout.strips.at(-1).strip];
    drawColours(pen, figure.colour, { left: layout.barLeft, top: y0 + first.top, height: last.top + last.height - first.top });
  }
  return y0 + layout.height;
}

function drawHead(pen, rows, top) {
  rows.forEach((row, k) => {
    const y = top + (k + 0.8) * LINE_PX;
    for (const { x, text, stroke, dash, indent, look = TEXT } of row) {
      const at = MARGIN_PX + x;
      if (stroke !== null) pen.lines([[[at, y - 3.5], [at + SIGN_PX, y - 3.5]]], { stroke, width: 2, dash });
      pen.text(at + indent, y, text, { ...look, fill: BLACK });
    }
  });
}

function drawSpectrum(pen, figure, axis, place) {
  const { left, top, width, height } = place;
  const { lo, hi, text } = figure.levels;
  const toY = (level) => top + ((hi - level) / (hi - lo)) * height;
  const ticks = levelTicks(lo, hi, height);
  pen.lines(ticks.map(({ px }) => [[left, top + px], [left + width, top + px]]), { stroke: GRID, width: 0.5 });
  const columns = frequencyTicks(axis, (label) => pen.measure(label, TEXT)).filter(({ label }) => label !== "");
  pen.lines(columns.map(({ px }) => [[left + px, top], [left + px, top + height]]), { stroke: GRID, width: 0.5 });
  pen.clip(left, top, width, height, () => {
    drawBand(pen, figure.band, axis, place);
    for (const layer of figure.layers) {
      const { colour, width: thick, dash } = layer.style;
      const lines = layerLines(layer, axis, toY).map((points) => points.map(([x, y]) => [left + x, y]));
      // Differences go up and down from 0 dB.
      const base = layer.description?.isDifference ? toY(0) : top + height;
      if (layer.style.isFilled) for (const [[x0, y], [x1]] of lines) pen.rect(x0, Math.min(y, base), x1 - x0, Math.abs(base - y), { fill: colour, opacity: 0.2 });
      pen.lines(lines, { name: `line ${layer.style.name ?? ""}`.trim(), stroke: colour, width: 0.75 * thick, dash });
    }
  });
  drawCursors(pen, figure.cursors, axis, place);
  drawLevels(pen, ticks, place, text);
  frame(pen, place);
}

function drawLevels(pen, ticks, { left, top, height }, text) {
  drawGutter(pen, ticks, { left, top, height });
  pen.text(left - 52, top + height / 2, text, { ...TEXT, fill: BLACK, anchor: "middle", isUpright: true });
}

function drawFrequencies(pen, axis, { left, top, width }) {
  const measure = (label) => pen.measure(label, TEXT);
  const ticks = frequencyTicks(axis, measure);
  pen.lines(ticks.map(({ px, label }) => [[left + px, top], [left + px, top + (label === "" ? 0.6 : 1) * TICK_PX]]), { stroke: BLACK, width: 0.75 });
  // A label at an end is centred at its tick: there is room beside the plot.
  for (const { label, x } of placeLabels(ticks.map((tick) => ({ ...tick, px: tick.px + LEFT_PX })), measure, width + LEFT_PX + RIGHT_PX, 4)) {
    pen.text(left - LEFT_PX + x, top + TICK_PX + 11, label, { ...TEXT, fill: BLACK });
  }
  // Beside a narrow plot are levels over time, with their scale.
  const middle = Math.min(width / 2, width - measure("Frequency, Hz") / 2);
  pen.text(left + middle, top + TICK_PX + 24, "Frequency, Hz", { ...TEXT, fill: BLACK, anchor: "middle" });
}

function drawBand(pen, band, axis, { left, top, width, height }) {
  const [x0, x1] = (band ?? [NaN, NaN]).map((hz) => Math.max(0, Math.min(width, axis.toPixel(hz))));
  if (!(x1 > x0)) return;
  pen.rect(left + x0, top, x1 - x0, height, { fill: ACCENT, opacity: 0.15 });
  pen.lines([x0, x1].map((x) => [[left + x, top], [left + x, top + height]]), { stroke: ACCENT, width: 0.75 });
}

/** Lines of cursors over the line spectrum, with their letters above it. */
function drawCursors(pen, cursors, axis, { left, top, width, height }) {
  for (const { name, hz } of cursors) {
    const x = axis.toPixel(hz);
    if (!(x >= 0 && x <= width)) continue;
    pen.lines([[[left + x, top], [left + x, top + height]]], { name: `cursor ${name}`, stroke: ACCENT, width: 1, dash: Object.hasOwn(DASHES, name) ? DASHES[name] : HARMONIC_DASHES });
    pen.text(left + x, top - 2, name, { ...TEXT, fill: ACCENT, anchor: "middle", isBold: true });
  }
}

/** The scale of the waterfalls' colours. */
function drawColours(pen, { map, lo, hi, text }, { left, top, height }) {
  const length = Math.min(height, 240);
  pen.image(left + 2, top, BAR_PX, length, shadesCanvas(map));
  pen.rect(left + 2, top, BAR_PX, length, { fill: "none", stroke: BLACK, width: 0.75 });
  const edge = left + 2 + BAR_PX;
  let free = -Infinity;
  for (const { px, label } of levelTicks(lo, hi, length)) {
    pen.lines([[[edge, top + px], [edge + 3, top + px]]], { stroke: BLACK, width: 0.75 });
    const y = Math.max(TEXT.size / 2, Math.min(length - TEXT.size / 2, px));
    if (y - TEXT.size / 2 < free) continue;
    pen.text(edge + 5, top + y + 0.36 * TEXT.size, label, { ...TEXT, size: 9.5, fill: BLACK });
    free = y + TEXT.size / 2;
  }
  pen.text(edge + 40, top + length / 2, text, { ...TEXT, size: 9.5, fill: BLACK, anchor: "middle", isUpright: true });
}
