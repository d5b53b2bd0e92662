/** Lines of a figure's spectrum: every value of a row is a point of its own, at its frequency and level. */

import { valueEdges } from "./axis.js";
import { bandBars } from "./band.js";
import { isNear, placeOf } from "./points.js";
import { levelOf } from "../rows/levels.js";
import { limitLine } from "./trace.js";

/**
 * Lines of a layer of a spectrum (trace.js).
 *
 * @param {import("./trace.js").Layer} layer
 * @param {import("./axis.js").Axis} axis
 * @param {(level: number) => number} toY height of a level
 * @returns {Array<Array<[number, number]>>} parts of the line, each its points; no data parts it
 */
export function layerLines({ values, description, points }, axis, toY) {
  if (points !== undefined) return partsOf(limitLine(axis, points).map(({ x, level }) => [x, toY(level)]));
  if (description.edges_hz) return barLines(values, description, axis, toY);
  const { lower, upper } = valueEdges(description);
  const found = [];
  for (let j = 0; j < lower.length; j += 1) {
    if (isNear(axis, lower, upper, j)) found.push([placeOf(axis, lower[j], upper[j]).x, toY(levelOf(description, values[j]))]);
  }
  return partsOf(found);
}

/** Tops of bars. */
function barLines(values, description, axis, toY) {
  const bars = bandBars(axis, description).map(({ index, x0, x1 }) => ({ x0, x1, y: toY(levelOf(description, values[index])) }));
  return bars.filter(({ y }) => !Number.isNaN(y)).map(({ x0, x1, y }) => [[x0, y], [x1, y]]);
}

/** Parts of a line between points that have no level; a point alone is a short line, so that it is seen. */
function partsOf(points) {
  const parts = [];
  let part = [];
  for (const point of [...points, [NaN, NaN]]) {
    if (!Number.isNaN(point[1])) part.push(point);
    else if (part.length > 0) {
      parts.push(part.length > 1 ? part : [[part[0][0] - 0.5, part[0][1]], part[0]]);
      part = [];
    }
  }
  return parts;
}
