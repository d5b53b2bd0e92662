/** The trend of a season: the level of all power over time, a line a channel, hatched where no channel has data. */

import { drawLevelRuler } from "../plot/ruler.js";
import { timeTicks } from "../plot/time.js";

const MARGIN_DB = 2;
const LEAST_DB = 10;
const HATCH_PX = 6;

/** Levels of a tile of a level: a list of {tMs, level}. */
export function pointsOf({ rows }) {
  return rows.map(({ tMs, values, description: { lo, step } }) => ({ tMs, level: lo + step * values[0] }));
}

/** Ends of the axis for some lines [dB]. */
export function rangeOfLines(lines) {
  const levels = lines.flatMap(({ points }) => points.map(({ level }) => level));
  if (levels.length === 0) return null;
  const [least, most] = levels.reduce(([a, b], level) => [Math.min(a, level), Math.max(b, level)], [Infinity, -Infinity]);
  const lo = least - MARGIN_DB;
  return { lo, hi: Math.max(lo + LEAST_DB, most + MARGIN_DB) };
}

/** Spans of time in which no line has a point [ms]. */
export function gapsOf(lines, { t0, t1 }, cellMs) {
  const times = [...new Set(lines.flatMap(({ points }) => points.map(({ tMs }) => tMs)))].sort((a, b) => a - b);
  const gaps = [];
  let at = t0;
  for (const tMs of times) {
    if (tMs - cellMs / 2 - at > cellMs / 2) gaps.push([at, tMs - cellMs / 2]);
    at = tMs + cellMs / 2;
  }
  if (t1 - at > cellMs) gaps.push([at, t1]);
  return gaps;
}

/**
 * Draw the trend.
 *
 * @param {HTMLCanvasElement} canvas of the plot
 * @param {HTMLCanvasElement} ruler left of it
 * @param {{lines: Array<{points: object[], colour: string}>, span: {t0: number, t1: number}, cellMs: number,
 *   zone: string, range: {lo: number, hi: number}, colours: object, ratio: number, marks: {stripe: number[]}}} what
 */
export function drawTrend(canvas, ruler, { lines, span, cellMs, zone, range, colours, ratio, marks }) {
  const { width, height } = canvas;
  const context = canvas.getContext("2d");
  const x = (tMs) => ((tMs - span.t0) / (span.t1 - span.t0)) * width;
  const y = (level) => ((range.hi - level) / (range.hi - range.lo)) * height;
  context.fillStyle = colours.plot;
  context.fillRect(0, 0, width, height);
  for (const [begin, end] of gapsOf(lines, span, cellMs)) hatch(context, x(begin), x(end), height, `rgb(${marks.stripe.join(" ")})`, ratio);
  drawTimes(context, span, zone, x, { width, height, colours, ratio });
  for (const { points, colour } of lines) {
    context.strokeStyle = colour;
    context.lineWidth = 1.5 * ratio;
    context.beginPath();
    points.forEach(({ tMs, level }, k) => {
      const isNext = k > 0 && tMs - points[k - 1].tMs < 1.5 * cellMs;
      if (isNext) context.lineTo(x(tMs), y(level));
      else context.moveTo(x(tMs), y(level));
      if (!isNext && !(points[k + 1]?.tMs - tMs < 1.5 * cellMs)) context.lineTo(x(tMs) + ratio, y(level));
    });
    context.stroke();
  }
  drawLevelRuler(ruler, range, colours, ratio);
}

function hatch(context, left, right, height, colour, ratio) {
  context.save();
  context.beginPath();
  context.rect(left, 0, Math.max(1, right - left), height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = ratio;
  context.beginPath();
  for (let at = left - height; at < right; at += HATCH_PX * ratio) {
    context.moveTo(at, height);
    context.lineTo(at + height, 0);
  }
  context.stroke();
  context.restore();
}

function drawTimes(context, { t0, t1 }, zone, x, { width, height, colours, ratio }) {
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  context.textBaseline = "bottom";
  // Ticks are made for a downward axis of labels; these need three times the room.
  for (const { tMs, label } of timeTicks(t0, t1, width / (2.5 * ratio), zone)) {
    context.strokeStyle = colours.grid;
    context.lineWidth = ratio;
    context.beginPath();
    context.moveTo(x(tMs), 0);
    context.lineTo(x(tMs), height);
    context.stroke();
    context.fillStyle = colours.muted;
    const half = context.measureText(label).width / 2;
    if (x(tMs) - half > 0 && x(tMs) + half < width) {
      context.textAlign = "center";
      context.fillText(label, x(tMs), height - 2 * ratio);
    }
  }
}
