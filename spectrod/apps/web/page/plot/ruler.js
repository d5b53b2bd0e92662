/** Scales beside the plots: frequency below, level and time at the left, with events on the time. */

import { frequencyTicks, levelTicks } from "./ticks.js";
import { isoOfLocal, timeTicks, zoneName } from "./time.js";

const FONT_PX = 12;
const TICK_PX = 5;
const GAP_PX = 4;
const MARK_PX = 4;
/** A time scale that is shorter has the date of its newest row [ms], on the page if it is at least so high [px]. */
export const DATED_MS = 3 * 86_400_000;
const DATED_PX = 90;

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

/** Frequency scale: ticks up and labels, as wide as the plot. */
export function drawFrequencyRuler(canvas, axis, colours, ratio) {
  const context = begin(canvas, colours, ratio);
  const measure = measurer(context);
  context.textBaseline = "middle";
  const ticks = frequencyTicks(axis, measure);
  for (const { px, major } of ticks) line(context, px, 0, px, (major ? 1 : 0.6) * TICK_PX * ratio);
  for (const { label, x } of placeLabels(ticks, measure, canvas.width, GAP_PX * ratio)) {
    context.fillText(label, x, canvas.height / 2 + 2 * ratio);
  }
}

/**
 * Where labels of a frequency scale begin: centred at their ticks, moved to stay whole within the canvas; one
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
function drawGutter(context, canvas, ticks, ratio, { top = -Infinity, bottom = Infinity } = {}) {
  const height = FONT_PX * ratio;
  let free = top;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const { px, label } of ticks) {
    line(context, canvas.width - TICK_PX * ratio, px, canvas.width, px);
    const y = Math.max(height / 2, Math.min(canvas.height - height / 2, px));
    if (label === "" || y - height / 2 < free || y + height / 2 > bottom) continue;
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
 * Time scale: the newest at the top, or at the bottom where rows move up, with its date, and the zone at the other end; a
 * mark for each event.
 *
 * @param {{t0Ms: number, t1Ms: number, isUp: boolean, zone: string, entries: Array<{t0: number}>}} times
 */
export function drawTimeRuler(canvas, { t0Ms, t1Ms, isUp, zone, entries }, colours, ratio) {
  const context = begin(canvas, colours, ratio);
  const toY = (px) => (isUp ? canvas.height - px : px);
  const ticks = timeTicks(t0Ms, t1Ms, canvas.height, zone).map((tick) => ({ ...tick, px: toY(tick.px) })).sort((a, b) => a.px - b.px);
  const line = (FONT_PX + GAP_PX) * ratio;
  // Where labels are dates, or there is hardly any room, the date of the newest row is none of the scale's.
  const hasDate = t1Ms - t0Ms < DATED_MS && canvas.height >= DATED_PX * ratio;
  const hasZone = canvas.height >= DATED_PX * ratio;
  context.fillStyle = colours.muted;
  if (hasDate) drawEnd(context, canvas, isoOfLocal(t1Ms, zone).slice(0, 10), toY(line / 2), ratio);
  if (hasZone) drawEnd(context, canvas, zoneName(t1Ms, zone), toY(canvas.height - line / 2), ratio);
  context.fillStyle = colours.text;
  const [hasTop, hasBottom] = isUp ? [hasZone, hasDate] : [hasDate, hasZone];
  drawGutter(context, canvas, ticks, ratio, { top: hasTop ? line : -Infinity, bottom: hasBottom ? canvas.height - line : Infinity });
  context.fillStyle = colours.mark;
  const heights = entries.map(({ t0 }) => Math.round(toY(((t1Ms - t0) / (t1Ms - t0Ms)) * canvas.height) * 2) / 2);
  for (const y of new Set(heights)) drawMark(context, canvas, y, ratio);
}

/** A text at an end of a gutter, whole in any width. */
function drawEnd(context, canvas, text, y, ratio) {
  const right = canvas.width - (TICK_PX + GAP_PX) * ratio;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(text, right, y, right);
}

/** A triangle that points at the plot. */
function drawMark(context, canvas, y, ratio) {
  const size = MARK_PX * ratio;
  context.beginPath();
  context.moveTo(canvas.width, y);
  context.lineTo(canvas.width - 1.6 * size, y - size);
  context.lineTo(canvas.width - 1.6 * size, y + size);
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
