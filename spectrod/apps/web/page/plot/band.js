/**
 * Bands as bars: where on the axis the values of a row of bands are drawn.
 */

import { valueEdges } from "./axis.js";

const GAP_FROM_PX = 4;

/**
 * Return the bar of each value that the axis shows a part of.
 *
 * Bars of 4 px and more keep a pixel between them; narrower ones touch. Ends beyond the axis are cut.
 *
 * @param {import("./axis.js").Axis} axis
 * @param {object} description text `stream` of the server
 * @returns {{index: number, x0: number, x1: number}[]} index into the row's values, ends [px]
 */
export function bandBars(axis, description) {
  const { lower, upper } = valueEdges(description);
  const bars = [];
  for (let index = 0; index < lower.length; index += 1) {
    if (upper[index] > axis.f0 && lower[index] < axis.f1) {
      bars.push({ index, ...barOf(axis, lower[index], upper[index]) });
    }
  }
  return bars;
}

function barOf(axis, lowerHz, upperHz) {
  const x0 = lowerHz <= axis.f0 ? 0 : axis.toPixel(lowerHz);
  const x1 = upperHz >= axis.f1 ? axis.width : axis.toPixel(upperHz);
  return { x0, x1: x1 - x0 >= GAP_FROM_PX ? x1 - 1 : x1 };
}
