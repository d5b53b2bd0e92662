/** Scales beside the plots, below or at the left: frequency, level, and time with events on it. */

import { Orientation } from "./orientation.js";
import { frequencyTicks, levelTicks } from "./ticks.js";
import { isoOfLocal, timeTicks, zoneName } from "./time.js";

const FONT_PX = 12;
const TICK_PX = 5;
const GAP_PX = 4;
const MARK_PX = 4;
/** A time scale that is shorter has the date of its newest row [ms], on the page if it is at least so high, or so wide [px]. */
export const DATED_MS = 3 * 86_400_000;
const DATED_PX = 90;
const DATED_WIDE_PX = 240;
/** Labels of times beside each other need so many times the room of those above each other. */
const WIDE_RATIO = 1.75;

const widths = new Map();

/** Width of a text in a font; measured once for each, as asking the canvas is slow. */
function measurer(context) {
  const { font } = context;
  return (text) => {
    const key = `${font} ${text}`;
    if (!widths.has(key)) {
      if (widths.size > 2000) widths.clear();
      widths.set(key, context.measureText(text).width);
    }
    return widths.get(key);
  };
}

/** Clear a canvas and set it up for text and lines in device pixels. */
function begin(canvas, colours, ratio) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = `${Math.round(FONT_PX * ratio)}px system-ui, sans-serif`;
  context.fillStyle = colours.text;
  context.strokeStyle = colours.muted;
  context.lineWidth = Math.max(1, Math.round(ratio));
  return context;
}

/** Frequency scale as long as the plot: below it, or at its left with low frequencies at the bottom. */
export function drawFrequencyRuler(canvas, axis, colours, ratio, isUpright = false) {
  const context = begin(canvas, colours, ratio);
  if (!isUpright) {
    drawFoot(context, canvas, frequencyTicks(axis, measurer(context)), ratio);
    return;
  }
  const ticks = frequencyTicks(axis, () => FONT_PX * ratio);
  drawGutter(context, canvas, ticks.map((tick) => ({ ...tick, px: canvas.height - tick.px })).reverse(), ratio);
}

/** Ticks up, and labels below them; those that would reach beyond the ends are left out. */
function drawFoot(context, canvas, ticks, ratio, { from = 0, to = canvas.width } = {}) {
  const measure = measurer(context);
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const { px, major } of ticks) line(context, px, 0, px, (major ? 1 : 0.6) * TICK_PX * ratio);
  for (const { label, x } of placeLabels(ticks, measure, canvas.width, GAP_PX * ratio)) {
    if (x >= from && x + measure(label) <= to) context.fillText(label, x, footY(canvas, ratio));
  }
}

const footY = (canvas, ratio) => canvas.height / 2 + 2 * ratio;

/**
 * Where labels of a scale below a plot begin: centred at their ticks, moved to stay whole within the canvas; one
 * that would then touch the one before it is left out.
 *
 * @param {Array<{px: number, label: string}>} ticks in ascending order
 * @param {(text: string) => number} measure
 * @param {number} width of the canvas
 * @param {number} gap least distance of two labels
 * @returns {Array<{label: string, x: number}>}
 */
export function placeLabels(ticks, measure, width, gap) {
  const placed = [];
  let free = 0;
  for (const { px, label } of ticks) {
    if (label === "") continue;
    const length = measure(label);
    const x = Math.max(0, Math.min(width - length, px - length / 2));
    if (x < free) continue;
    placed.push({ label, x });
    free = x + length + gap;
  }
  return placed;
}

function line(context, x0, y0, x1, y1) {
  context.beginPath();
  context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  context.stroke();
}

/**
 * Labels at the right of a gutter, with ticks toward the plot; labels that would collide are left out, with others or
 * with what stands at the ends.
 */
function drawGutter(context, canvas, ticks, ratio, { from = -Infinity, to = Infinity } = {}) {
  const height = FONT_PX * ratio;
  let free = from;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const { px, label, major } of ticks) {
    line(context, canvas.width - (major ? 1 : 0.6) * TICK_PX * ratio, px, canvas.width, px);
    const y = Math.max(height / 2, Math.min(canvas.height - height / 2, px));
    if (label === "" || y - height / 2 < free || y + height / 2 > to) continue;
    // A label that is wider than the gutter is condensed: a cut one would be another date or number.
    const right = canvas.width - (TICK_PX + GAP_PX) * ratio;
    context.fillText(label, right, y, right);
    free = y + height / 2 + GAP_PX * ratio;
  }
}

/** Level scale. */
export function drawLevelRuler(canvas, levels, colours, ratio) {
  const context = begin(canvas, colours, ratio);
  drawGutter(context, canvas, levelTicks(levels.lo, levels.hi, canvas.height), ratio);
}

/**
 * Time scale at the left of a waterfall, or below it: the date at its newest end, the zone at the other one, a mark for
 * each event.
 *
 * @param {{t0Ms: number, t1Ms: number, direction: string, zone: string, entries: Array<{t0: number}>}} times
 */
export function drawTimeRuler(canvas, { t0Ms, t1Ms, direction, zone, entries }, colours, ratio) {
  const context = begin(canvas, colours, ratio);
  const places = new Orientation(direction, canvas);
  const { isUpright: isBelow, length } = places;
  const room = isBelow ? length / (WIDE_RATIO * ratio) : length;
  const ticks = timeTicks(t0Ms, t1Ms, room, zone).map(({ px, label }) => ({ px: places.along((px / room) * length), label, major: true }));
  const ends = drawEnds(context, canvas, places, { t0Ms, t1Ms, zone }, colours, ratio);
  context.fillStyle = colours.text;
  (isBelow ? drawFoot : drawGutter)(context, canvas, ticks.sort((a, b) => a.px - b.px), ratio, ends);
  context.fillStyle = colours.mark;
  const marks = entries.map(({ t0 }) => Math.round(places.along(((t1Ms - t0) / (t1Ms - t0Ms)) * length) * 2) / 2);
  const tip = isBelow ? 0 : canvas.width;
  for (const at of new Set(marks)) drawMark(context, isBelow ? [at, tip] : [tip, at], isBelow, MARK_PX * ratio);
}

/** Write date and zone at the ends of a time scale, where there is room; return where its labels may be. */
function drawEnds(context, canvas, places, { t0Ms, t1Ms, zone }, colours, ratio) {
  const { isUpright: isBelow, length } = places;
  const free = { from: -Infinity, to: Infinity };
  if (length < (isBelow ? DATED_WIDE_PX : DATED_PX) * ratio) return free;
  const texts = [[zoneName(t1Ms, zone), length]];
  // Where labels are dates, that of the newest row is none of the scale's.
  if (t1Ms - t0Ms < DATED_MS) texts.unshift([isoOfLocal(t1Ms, zone).slice(0, 10), 0]);
  context.fillStyle = colours.muted;
  context.textBaseline = "middle";
  for (const [text, age] of texts) {
    const isFirst = places.along(age) === 0;
    const size = GAP_PX * ratio + (isBelow ? measurer(context)(text) : FONT_PX * ratio);
    if (isFirst) free.from = size;
    else free.to = length - size;
    context.textAlign = isBelow && isFirst ? "left" : "right";
    // Beside a waterfall it is whole in any width.
    const right = canvas.width - (TICK_PX + GAP_PX) * ratio;
    if (isBelow) context.fillText(text, isFirst ? 0 : length, footY(canvas, ratio));
    else context.fillText(text, right, isFirst ? size / 2 : length - size / 2, right);
  }
  return free;
}

/** A triangle that points at the plot. */
function drawMark(context, [x, y], isBelow, size) {
  const far = 1.6 * size;
  context.beginPath();
  context.moveTo(x, y);
  for (const side of [-size, size]) context.lineTo(isBelow ? x + side : x - far, isBelow ? y + far : y + side);
  context.fill();
}

/** Grid behind the line spectrum: at the major ticks of both its scales. */
export function drawGrid(canvas, axis, levels, colours, ratio) {
  const context = begin(canvas, colours, ratio);
  context.fillStyle = colours.plot;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.strokeStyle = colours.grid;
  for (const { px, label } of frequencyTicks(axis, measurer(context))) {
    if (label !== "") line(context, px, 0, px, canvas.height);
  }
  for (const { px } of levelTicks(levels.lo, levels.hi, canvas.height)) line(context, 0, px, canvas.width, px);
}
