/**
 * Points of a line spectrum: which values of a row each of them stands for.
 */

import { valueEdges } from "./axis.js";

const WIDE_PX = 2;

/**
 * Return the points of a line along an axis, from left to right.
 *
 * A value that is two pixels wide or more is a point at its middle; narrower ones whose middles are in
 * one pixel are one point, to be drawn at the greatest of them. One point more lies beyond each end
 * where there are values, so that the line leaves the axis on its way to it.
 *
 * @param {import("./axis.js").Axis} axis
 * @param {object} description text `stream` of the server
 * @returns {{x: Float32Array, first: Int32Array, last: Int32Array}} place [px], first and last value
 */
export function linePoints(axis, description) {
  const { lower, upper } = valueEdges(description);
  const points = [];
  let pixel = NaN;
  for (let j = 0; j < lower.length; j += 1) {
    if (!isNear(axis, lower, upper, j)) continue;
    const { x, width } = placeOf(axis, lower[j], upper[j]);
    if (width < WIDE_PX && Math.floor(x) === pixel) {
      points.at(-1).last = j;
    } else {
      pixel = width < WIDE_PX ? Math.floor(x) : NaN;
      points.push({ x: width < WIDE_PX ? pixel + 0.5 : x, first: j, last: j });
    }
  }
  return {
    x: Float32Array.from(points, (point) => point.x),
    first: Int32Array.from(points, (point) => point.first),
    last: Int32Array.from(points, (point) => point.last),
  };
}

/** Return whether a value is on the axis, or next to one that is. */
export function isNear(axis, lower, upper, j) {
  const below = j + 1 < upper.length ? upper[j + 1] : upper[j];
  const above = j > 0 ? lower[j - 1] : lower[j];
  const isDrawable = axis.kind === "linear" || axis.kind === "mel" || upper[j] > 0;
  return isDrawable && below >= axis.f0 && above <= axis.f1;
}

/** Return the middle of a value on the axis, as on a linear scale, and its width [px]. */
export function placeOf(axis, lowerHz, upperHz) {
  const x1 = axis.toPixel(upperHz);
  const x0 = axis.toPixel(lowerHz);
  const middle = axis.toPixel((lowerHz + upperHz) / 2);
  // The bin at 0 Hz has no place on a logarithmic axis: its upper edge is the nearest that has.
  return Number.isFinite(middle) ? { x: middle, width: x1 - x0 } : { x: x1, width: WIDE_PX };
}
