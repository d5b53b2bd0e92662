/** A waterfall of a figure with its scales and what lies over it, in each direction of time. */

import { makeAxis } from "./axis.js";
import { canvasOf, turnedPixels, waterfallPixels } from "./figureimage.js";
import { Orientation } from "./orientation.js";
import { DATED_MS, placeLabels } from "./ruler.js";
import { frequencyTicks } from "./ticks.js";
import { isoOfLocal, timeTicks, zoneName } from "./time.js";
import { ACCENT, BLACK, DASHES, EDGE, EVENT, frame, GREY, HARMONIC_DASHES, LINE_PX, TEXT, THIN_PX, TICK_PX, wrapped } from "./figurelook.js";

/** More events than that are a texture: the newest are drawn. */
const MARKS_MAX = 100;
/** Labels of times beside each other need so many times the room of those above each other. */
const LABEL_RATIO = 2.5;

/**
 * Where times and frequencies are in a waterfall [CSS px].
 *
 * @typedef {object} Places
 * @property {(tMs: number) => Array<[number, number]>} moment line of a time
 * @property {(hz: number) => Array<[number, number]>} tone line of a frequency
 * @property {(box: {t0: number, t1: number, f0: number | null, f1: number | null}) => [number, number, number, number]} box
 *   left, top, width and height; of all frequencies where `f0` is null
 */

/** @returns {Places} */
function placesOf(strip, axis, { left, top, width, height }, direction) {
  const places = new Orientation(direction, { width, height });
  const ageOf = (tMs) => shareOf(strip, tMs) * places.length;
  const inFigure = (box) => [left + box.left, top + box.top, box.width, box.height];
  const lineOf = (box) => [[left + box.left, top + box.top], [left + box.left + box.width, top + box.top + box.height]];
  return {
    moment: (tMs) => lineOf(places.moment(ageOf(tMs))),
    tone: (hz) => lineOf(places.tone(axis.toPlace(hz))),
    box: ({ t0, t1, f0, f1 }) => inFigure(places.boxOf(f0 === null ? [-2, axis.width + 2] : [axis.toPlace(f0), axis.toPlace(f1)], [ageOf(t0), ageOf(t1)])),
  };
}

/** Age of a time as a share of the time that a waterfall shows. */
export const shareOf = ({ newestMs, spanMs }, tMs) => (newestMs - tMs) / spanMs;

/**
 * Draw the k-th waterfall of a figure.
 *
 * @param {object} pen see figurepens.js
 * @param {import("./figure.js").Figure} figure
 * @param {number} k
 * @param {{left: number, top: number, width: number, height: number}} place
 * @param {number} scale pixels of its picture for each CSS px
 * @param {{left: number, top: number, width: number, height: number}} lowest what its times are below, where they are beside each other
 */
export function drawStrip(pen, figure, k, place, scale, lowest) {
  const { direction } = figure;
  const strip = figure.strips[k];
  const { kind, f0, f1 } = figure.axis;
  const { isUpright, breadth } = new Orientation(direction, place);
  const axis = makeAxis({ kind, f0, f1, width: breadth });
  const places = placesOf(strip, axis, place, direction);
  drawWaterfall(pen, strip, figure, place, scale);
  pen.clip(place.left, place.top, place.width, place.height, () => {
    drawBand(pen, figure.band, strip, places);
    for (const mark of strip.entries.slice(0, MARKS_MAX)) drawMark(pen, mark, places, isUpright);
    drawBox(pen, strip.box, places);
  });
  drawCursors(pen, figure.cursors, axis, places);
  drawTimes(pen, strip, place, places, isUpright);
  if (isUpright) {
    drawFrequenciesUpright(pen, axis, place);
    if (k === figure.strips.length - 1) drawTimesBelow(pen, strip, figure.zone, lowest);
  } else drawTimesBeside(pen, strip, figure.zone, place, direction === "up");
  drawEventSigns(pen, strip, place, places, isUpright);
  if (strip.title !== "") drawCaption(pen, strip.title, place);
  frame(pen, place);
}

/** The picture of a waterfall, from pixel to pixel of a figure of this resolution: between two it would be blurred. */
function drawWaterfall(pen, strip, { axis: { kind, f0, f1 }, colour, direction }, { left, top, width, height }, scale) {
  const [x0, y0, x1, y1] = [left, top, left + width, top + height].map((at) => Math.round(at * scale));
  const [widthPx, heightPx] = [x1 - x0, y1 - y0];
  const places = new Orientation(direction, { width: widthPx, height: heightPx });
  const pixels = waterfallPixels(strip, makeAxis({ kind, f0, f1, width: places.breadth }), places.length, colour);
  const turned = turnedPixels(pixels, places);
  pen.image(x0 / scale, y0 / scale, widthPx / scale, heightPx / scale, canvasOf(turned, widthPx, heightPx));
}

function drawBand(pen, band, { newestMs, spanMs }, { box, tone }) {
  if (band === null) return;
  const [f0, f1] = band;
  pen.rect(...box({ t0: newestMs - spanMs, t1: newestMs, f0, f1 }), { fill: ACCENT, opacity: 0.15 });
  pen.lines([tone(f0), tone(f1)], { stroke: ACCENT, width: 0.75 });
}

/** Lines of cursors and harmonics; a white edge keeps them in sight over any colour. */
function drawCursors(pen, cursors, axis, { tone }) {
  for (const { name, hz } of cursors) {
    const px = axis.toPixel(hz);
    if (!(px >= 0 && px <= axis.width)) continue;
    pen.lines([tone(hz)], EDGE);
    pen.lines([tone(hz)], { name: `cursor ${name}`, stroke: ACCENT, width: THIN_PX, dash: Object.hasOwn(DASHES, name) ? DASHES[name] : HARMONIC_DASHES });
  }
}

/** An event at its time and band: a line, or a box of one that has a length. */
function drawMark(pen, mark, { box }, isUpright) {
  const [x, y, width, height] = box(mark);
  if ((isUpright ? width : height) >= 1) pen.rect(x, y, width, height, { fill: EVENT, opacity: 0.1, stroke: EVENT, width: THIN_PX });
  else pen.lines([[[x, y], isUpright ? [x, y + height] : [x + width, y]]], { name: "event", stroke: EVENT, width: THIN_PX });
}

function drawBox(pen, box, places) {
  if (box === null) return;
  pen.rect(...places.box(box), { fill: "none", stroke: "#ffffff", width: 3 });
  pen.rect(...places.box(box), { fill: "none", stroke: ACCENT, width: 1.5 });
}

/** Lines of the cursors' times, with their letters at the right, or at the foot of the plot where times are beside each other. */
function drawTimes(pen, { times, newestMs, spanMs }, { left, top, width, height }, { moment }, isUpright) {
  for (const { name, tMs } of times) {
    if (!(tMs <= newestMs && tMs >= newestMs - spanMs)) continue;
    const line = moment(tMs);
    pen.lines([line], EDGE);
    pen.lines([line], { stroke: ACCENT, width: THIN_PX, dash: DASHES[name] });
    const [x, y] = isUpright ? [Math.min(line[0][0] + 3, left + width - 10), top + height - 4] : [left + width + 1, line[0][1] - 2];
    if (isUpright) pen.rect(x - 1.5, y - 8.5, 10, 10.5, { fill: "#ffffff", opacity: 0.85 });
    pen.text(x, y, name, { ...TEXT, size: 9, fill: ACCENT, isBold: true });
  }
}

/** Ticks and labels at the left of a plot, the uppermost first; one that would touch the one above it, or a reserved end, is left out. */
export function drawGutter(pen, ticks, { left, top, height }, { above = -Infinity, below = Infinity } = {}) {
  pen.lines(ticks.map(({ px }) => [[left - TICK_PX, top + px], [left, top + px]]), { stroke: BLACK, width: 0.75 });
  let free = above;
  for (const { px, label } of ticks) {
    const y = Math.max(TEXT.size / 2, Math.min(height - TEXT.size / 2, px));
    if (label === "" || y - TEXT.size / 2 < free || y + TEXT.size / 2 > below) continue;
    pen.text(left - TICK_PX - 3, top + y + 0.36 * TEXT.size, label, { ...TEXT, fill: BLACK, anchor: "end" });
    free = y + TEXT.size / 2 + 2;
  }
}

function drawTimesBeside(pen, { newestMs, spanMs }, zone, { left, top, height }, isUp) {
  const hasDate = spanMs < DATED_MS;
  const date = isoOfLocal(newestMs, zone).slice(0, 10);
  if (hasDate) pen.text(left - TICK_PX - 3, isUp ? top + height - 2 : top + 9, date, { ...TEXT, size: 9.5, fill: GREY, anchor: "end" });
  const ticks = timeTicks(newestMs - spanMs, newestMs, height, zone);
  const shown = isUp ? ticks.map((tick) => ({ ...tick, px: height - tick.px })).reverse() : ticks;
  drawGutter(pen, shown, { left, top, height }, hasDate ? { above: isUp ? -Infinity : 12, below: isUp ? height - 12 : Infinity } : {});
  pen.text(left - 66, top + height / 2, `Time, ${zoneName(newestMs, zone)}`, { ...TEXT, fill: BLACK, anchor: "middle", isUpright: true });
}

function drawTimesBelow(pen, { newestMs, spanMs }, zone, { left, top, width, height }) {
  const bottom = top + height;
  const ticks = timeTicks(newestMs - spanMs, newestMs, width / LABEL_RATIO, zone).map((tick) => ({ ...tick, px: width - tick.px * LABEL_RATIO })).reverse();
  pen.lines(ticks.map(({ px }) => [[left + px, bottom], [left + px, bottom + TICK_PX]]), { stroke: BLACK, width: 0.75 });
  for (const { label, x } of placeLabels(ticks, (text) => pen.measure(text, TEXT), width, 4)) {
    pen.text(left + x, bottom + TICK_PX + 11, label, { ...TEXT, fill: BLACK });
  }
  const date = spanMs < DATED_MS ? `, ${isoOfLocal(newestMs, zone).slice(0, 10)}` : "";
  pen.text(left + width / 2, bottom + TICK_PX + 24, `Time, ${zoneName(newestMs, zone)}${date}`, { ...TEXT, fill: BLACK, anchor: "middle" });
}

function drawFrequenciesUpright(pen, axis, { left, top, height }) {
  // Labels above each other take the room of their height.
  const ticks = frequencyTicks(axis, () => 2 * TEXT.size);
  drawGutter(pen, ticks.map((tick) => ({ ...tick, px: height - tick.px })).reverse(), { left, top, height });
  pen.text(left - 66, top + height / 2, "Frequency, Hz", { ...TEXT, fill: BLACK, anchor: "middle", isUpright: true });
}

/** Triangles of events in the time scale, which point at the plot. */
function drawEventSigns(pen, { entries, newestMs, spanMs }, { left, top, height }, { moment }, isUpright) {
  for (const { t0 } of entries.slice(0, MARKS_MAX)) {
    if (t0 < newestMs - spanMs) continue;
    const [[x, y]] = moment(t0);
    const bottom = top + height;
    const sign = isUpright ? [[x, bottom], [x - 3.5, bottom + 6], [x + 3.5, bottom + 6], [x, bottom]] : [[left, y], [left - 6, y - 3.5], [left - 6, y + 3.5], [left, y]];
    pen.lines([sign], { name: "event", fill: EVENT });
  }
}

function drawCaption(pen, text, { left, top, width }) {
  const [first = ""] = wrapped(text, width - 12, (part) => pen.measure(part, TEXT));
  pen.rect(left + 3, top + 3, pen.measure(first, TEXT) + 6, LINE_PX, { fill: "#ffffff", opacity: 0.85 });
  pen.text(left + 6, top + 3 + 0.78 * LINE_PX, first, { ...TEXT, fill: BLACK });
}
