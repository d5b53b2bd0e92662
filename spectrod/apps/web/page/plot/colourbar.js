/** The colour bar: a scale of levels with the colours of a range on it, from which its ends are taken hold of. */

import { shadesOf } from "./palette.js";
import { levelTicks } from "./ticks.js";

/** Share of the range by which the scale goes beyond each of its ends. */
const BEYOND = 0.15;
/** The scale stays while the range takes up at least this share of it, and leaves at least this much at both ends. */
const LEAST_SHARE = 0.4;
const LEAST_BEYOND = 0.04;
const FONT_PX = 12;
const TICK_PX = 4;
const GAP_PX = 3;
/** Thickness of the colours, and their distance from the edge [CSS px]. */
const THICK_PX = 16;
const EDGE_PX = 2;

/**
 * Scale for a range: the one before while the range fits in it well, so that the bar stands still.
 *
 * @param {{lo: number, hi: number} | null} before
 * @param {{lo: number, hi: number}} range
 * @returns {{lo: number, hi: number}}
 */
export function scaleFor(before, { lo, hi }) {
  if (before !== null) {
    const length = before.hi - before.lo;
    const beyond = Math.min(lo - before.lo, before.hi - hi) / length;
    if ((hi - lo) / length >= LEAST_SHARE && beyond >= LEAST_BEYOND) return before;
  }
  const beyond = BEYOND * (hi - lo);
  return { lo: lo - beyond, hi: hi + beyond };
}

/** Share of the bar, from its lower end, at which a level is; beyond the scale it is 0 or 1. */
export function shareOf({ lo, hi }, level) {
  return Math.min(1, Math.max(0, (level - lo) / (hi - lo)));
}

/** Level at a share of the bar, also beyond its ends. */
export function levelAtShare({ lo, hi }, share) {
  return lo + share * (hi - lo);
}

/**
 * Draw the bar: upright with its greatest level at the top and ticks at the right, else lying, the greatest level at the
 * right and ticks below.
 *
 * @param {HTMLCanvasElement} canvas as large as it is shown [device px]
 * @param {{scale: {lo: number, hi: number}, range: {lo: number, hi: number}, map: string, isUpright: boolean}} shown
 * @param {Record<string, string>} colours of the style sheet
 * @param {number} ratio device pixels of a CSS pixel
 */
export function drawColourBar(canvas, { scale, range, map, isUpright }, colours, ratio) {
  const context = canvas.getContext("2d");
  const length = isUpright ? canvas.height : canvas.width;
  context.clearRect(0, 0, canvas.width, canvas.height);
  const edge = Math.round(EDGE_PX * ratio);
  const thick = Math.round(THICK_PX * ratio);
  const box = (from, size) => (isUpright ? [edge, length - from - size, thick, size] : [from, edge, size, thick]);
  drawShades(context, { scale, range, map, length, box });
  context.strokeStyle = colours.text;
  context.lineWidth = Math.max(1, Math.round(ratio));
  for (const level of [range.lo, range.hi]) {
    const px = Math.round(shareOf(scale, level) * length);
    if (isUpright) line(context, edge, length - px, edge + thick, length - px, true, ratio);
    else line(context, px, edge, px, edge + thick, false, ratio);
  }
  drawTicks(context, { scale, length, isUpright, edge, thick }, colours, ratio);
}

function drawShades(context, { scale, range, map, length, box }) {
  const shades = shadesOf(map);
  let from = 0;
  let before = null;
  for (let px = 0; px <= length; px += 1) {
    const level = levelAtShare(scale, (px + 0.5) / length);
    const k = Math.floor(((level - range.lo) / (range.hi - range.lo)) * shades.length);
    const shade = px === length ? null : shades[Math.min(shades.length - 1, Math.max(0, k))];
    if (shade === before) continue;
    if (before !== null) {
      context.fillStyle = `rgb(${before & 255} ${(before >> 8) & 255} ${(before >> 16) & 255})`;
      context.fillRect(...box(from, px - from));
    }
    [from, before] = [px, shade];
  }
}

function line(context, x0, y0, x1, y1, isUpright, ratio) {
  const off = (Math.max(1, Math.round(ratio)) % 2) / 2;
  context.beginPath();
  context.moveTo(x0 + (isUpright ? 0 : off), y0 + (isUpright ? off : 0));
  context.lineTo(x1 + (isUpright ? 0 : off), y1 + (isUpright ? off : 0));
  context.stroke();
}

/** Ticks, whole labels alone; lying, those are left out that would touch the one before. */
function drawTicks(context, { scale, length, isUpright, edge, thick }, colours, ratio) {
  context.font = `${Math.round(FONT_PX * ratio)}px system-ui, sans-serif`;
  context.strokeStyle = colours.muted;
  context.fillStyle = colours.text;
  context.textBaseline = isUpright ? "middle" : "top";
  const from = edge + thick;
  const to = from + TICK_PX * ratio;
  const at = to + GAP_PX * ratio;
  let free = -Infinity;
  const ticks = levelTicks(scale.lo, scale.hi, isUpright ? length : length * 0.6);
  for (const { value, label } of isUpright ? ticks : ticks.reverse()) {
    const place = shareOf(scale, value) * length;
    const px = Math.round(isUpright ? length - place : place);
    if (isUpright) line(context, from, px, to, px, true, ratio);
    else line(context, px, from, px, to, false, ratio);
    const half = isUpright ? (FONT_PX * ratio) / 2 : context.measureText(label).width / 2;
    const middle = Math.max(half, Math.min(length - half, px));
    if (!isUpright && middle - half < free) continue;
    if (isUpright) context.fillText(label, at, middle);
    else context.fillText(label, middle - half, to);
    free = middle + half + 2 * GAP_PX * ratio;
  }
}
