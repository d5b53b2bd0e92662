/**
 * Levels over time in a figure, on the time axis of a waterfall: beside it with their scale above, or below it where time goes to the right.
 *
 * @typedef {object} LevelLine
 * @property {string} name of its column
 * @property {string} stroke
 * @property {number[]} dash
 * @property {Array<Array<{t0: number, t1: number, lo: number, hi: number, last: number}>>} runs see `Column.runs`
 */

import { ACCENT, BLACK, DASHES, frame, GRID, TEXT, TICK_PX } from "./figurelook.js";
import { drawGutter, shareOf } from "./figurestrip.js";
import { Orientation } from "./orientation.js";
import { placeLabels } from "./ruler.js";
import { cornersOf } from "../rows/levelseries.js";
import { levelTicks } from "./ticks.js";

/**
 * Draw the levels over time of the k-th waterfall of a figure.
 *
 * @param {object} pen see figurepens.js
 * @param {import("./figure.js").Figure} figure
 * @param {number} k
 * @param {{left: number, top: number, width: number, height: number}} place
 */
export function drawLevelsOver(pen, { over, strips, direction }, k, place) {
  const { left, top, width, height } = place;
  const { lo, hi, text } = over;
  const strip = strips[k];
  const places = new Orientation(direction, place);
  const placeOf = ([tMs, value]) => {
    const { x, y } = places.toScreen({ tone: ((value - lo) / (hi - lo)) * places.breadth, age: shareOf(strip, tMs) * places.length });
    return [left + x, top + y];
  };
  // The ends of a scale without a value are NaN.
  const ticks = lo < hi ? levelTicks(lo, hi, places.breadth) : [];
  const lineAt = (box) => [[left + box.left, top + box.top], [left + box.left + box.width, top + box.top + box.height]];
  pen.lines(ticks.map(({ px }) => lineAt(places.tone(places.breadth - px))), { stroke: GRID, width: 0.5 });
  pen.clip(left, top, width, height, () => {
    for (const { name, runs, stroke, dash } of strip.lines) {
      pen.lines(runs.map((run) => cornersOf(run).map(placeOf)), { name: `level ${name}`, stroke, width: 1.25, dash });
    }
    for (const { name, tMs } of strip.times) {
      pen.lines([lineAt(places.moment(shareOf(strip, tMs) * places.length))], { name: `level cursor ${name}`, stroke: ACCENT, width: 0.75, dash: DASHES[name] });
    }
  });
  if (places.isUpright) {
    drawGutter(pen, ticks, place);
    pen.text(left - 66, top + height / 2, text, { ...TEXT, fill: BLACK, anchor: "middle", isUpright: true });
  } else if (k === 0) drawScaleAbove(pen, ticks.map((tick) => ({ ...tick, px: width - tick.px })).reverse(), place, text);
  frame(pen, place);
}

function drawScaleAbove(pen, ticks, { left, top, width }, text) {
  pen.lines(ticks.map(({ px }) => [[left + px, top - TICK_PX], [left + px, top]]), { stroke: BLACK, width: 0.75 });
  for (const { label, x } of placeLabels(ticks, (one) => pen.measure(one, TEXT), width, 4)) {
    pen.text(left + x, top - TICK_PX - 3, label, { ...TEXT, fill: BLACK });
  }
  pen.text(left + width / 2, top - TICK_PX - 16, text, { ...TEXT, fill: BLACK, anchor: "middle" });
}
