/** Draws all that is stored of a topic on one strip: levels over time, what is not there, events, and dates. */

import { levelsRange, storedIn } from "../rows/overview.js";
import { timeTicks } from "./time.js";

const FONT_PX = 11;
const HATCH_PX = 6;
/** Height that dates take at the foot of the strip [CSS px]. */
export const DATES_PX = 15;
const LEVEL_ALPHA = 0.6;

/** Ticks of the strip from the oldest on: as those of a time axis, with room for twice as long texts. */
export function overviewTicks({ t0, t1 }, width, zone) {
  return timeTicks(t0, t1, width / 2, zone)
    .map(({ px, ...tick }) => ({ ...tick, px: width - 2 * px }))
    .reverse();
}

/** Span from the date before a place to the one after it, within what is stored; of a short time from tick to tick. */
export function tickSpan(span, width, zone, px) {
  const all = overviewTicks(span, width, zone);
  const dates = all.filter(({ label }) => label.includes("-"));
  const ticks = dates.length > 1 ? dates : all;
  const before = ticks.findLast((tick) => tick.px <= px)?.tMs ?? span.t0;
  const after = ticks.find((tick) => tick.px > px)?.tMs ?? span.t1;
  return { t0: before, t1: after };
}

/**
 * Draw the strip.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {{stored: import("../rows/overview.js").Stored, span: {t0: number, t1: number}, zone: string,
 *   entries: Array<{t0: number}>}} shown `span`: what the strip covers
 * @param {Record<string, string>} colours of the style sheet
 * @param {number} ratio device pixels of a CSS pixel
 */
export function drawOverview(canvas, { stored, span, zone, entries }, colours, ratio) {
  const context = canvas.getContext("2d");
  const { width } = canvas;
  const height = canvas.height - DATES_PX * ratio;
  context.clearRect(0, 0, width, canvas.height);
  context.fillStyle = colours.plot;
  context.fillRect(0, 0, width, height);
  hatch(context, width, height, colours.grid, ratio);
  const range = levelsRange(stored);
  const msPerPx = (span.t1 - span.t0) / width;
  for (let x = 0; x < width; x += 1) {
    const t0 = span.t0 + x * msPerPx;
    const { isStored, level } = storedIn(stored, t0, t0 + msPerPx);
    // What came since the answer is not known to be missing.
    if (!isStored && t0 < stored.t1) continue;
    context.fillStyle = colours.plot;
    context.fillRect(x, 0, 1, height);
    if (!isStored) continue;
    // Where no level is known what is stored is a low bar.
    const share = range === null || Number.isNaN(level) ? 0.12 : Math.max(0.04, Math.min(1, (level - range.lo) / (range.hi - range.lo)));
    context.fillStyle = colours.now;
    context.globalAlpha = LEVEL_ALPHA;
    context.fillRect(x, height * (1 - share), 1, height * share);
    context.globalAlpha = 1;
  }
  drawDates(context, canvas, overviewTicks(span, width / ratio, zone), colours, ratio);
  context.fillStyle = colours.mark;
  const places = new Set(entries.map(({ t0 }) => Math.round((t0 - span.t0) / msPerPx)));
  for (const x of places) context.fillRect(x - ratio, 0, 2 * ratio, 5 * ratio);
}

function hatch(context, width, height, colour, ratio) {
  context.strokeStyle = colour;
  context.lineWidth = ratio;
  context.beginPath();
  for (let x = -height; x < width; x += HATCH_PX * ratio) {
    context.moveTo(x, height);
    context.lineTo(x + height, 0);
  }
  context.stroke();
}

function drawDates(context, canvas, ticks, colours, ratio) {
  context.clearRect(0, canvas.height - DATES_PX * ratio, canvas.width, DATES_PX * ratio);
  context.font = `${FONT_PX * ratio}px system-ui, sans-serif`;
  context.fillStyle = colours.muted;
  context.textBaseline = "bottom";
  const free = ticks.map(({ px }, k) => (ticks[k + 1]?.px ?? canvas.width / ratio) - px - 6);
  ticks.forEach(({ px, label }, k) => {
    context.fillRect(Math.round(px * ratio), canvas.height - DATES_PX * ratio, Math.max(1, Math.round(ratio)), DATES_PX * ratio);
    if (context.measureText(label).width <= free[k] * ratio) context.fillText(label, (px + 3) * ratio, canvas.height - ratio);
  });
}
