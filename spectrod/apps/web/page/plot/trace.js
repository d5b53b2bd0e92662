/**
 * The line spectrum: layers of levels over the frequency axis of the waterfall.
 */

import { bandBars } from "./band.js";
import { levelTable } from "../rows/levels.js";
import { limitAt } from "../rows/limits.js";
import { linePoints } from "./points.js";

const FILL_ALPHA = 0.2;
const LIMIT_STEP_PX = 3;
const BEYOND_PX = 8; // how far a line is drawn outside of the canvas, which hides its joints

/**
 * @typedef {object} Layer a row, or limits
 * @property {Array<[number, number]>} [points] of limits: frequency [Hz] and level [dB], instead of `values` and `description`
 * @property {Uint8Array|Uint16Array} values of a row
 * @property {object} description text `stream` of the row
 * @property {{colour: string, width: number, dash: number[]|null, isFilled: boolean}} style CSS colour,
 *   width of the line [px], lengths of dashes and gaps [px], whether the area below is tinted
 */

/** A line spectrum on a canvas that is transparent where nothing is drawn; bands are bars. */
export class Trace {
  #context;
  #axis = null;
  #levels = [-120, 0];
  #layers = [];
  #isDrawn = false;
  #shapes = new WeakMap();

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.#context = canvas.getContext("2d");
    if (this.#context === null) throw new Error("no 2D canvas: the browser refuses one");
  }

  /** Take another size [canvas px]. */
  resize(widthPx, heightPx) {
    if (widthPx === this.canvas.width && heightPx === this.canvas.height) return;
    this.canvas.width = widthPx;
    this.canvas.height = heightPx;
    this.#isDrawn = false;
  }

  /** @param {import("./axis.js").Axis} axis */
  setAxis(axis) {
    if (axis === this.#axis) return;
    this.#axis = axis;
    this.#shapes = new WeakMap();
    this.#isDrawn = false;
  }

  /** Show levels from `lo` at the bottom to `hi` at the top [dB]. */
  setLevels(lo, hi) {
    if (!(Number.isFinite(lo) && Number.isFinite(hi) && lo < hi)) {
      throw new Error(`levels from ${lo} to ${hi}: must be finite and ascending`);
    }
    if (lo === this.#levels[0] && hi === this.#levels[1]) return;
    this.#levels = [lo, hi];
    this.#isDrawn = false;
  }

  /** @param {Layer[]} layers the undermost first; values that change afterwards are to be set again */
  setLayers(layers) {
    this.#layers = layers;
    this.#isDrawn = false;
  }

  /**
   * Bring the canvas up to date.
   *
   * @returns {boolean} whether it has changed
   */
  draw() {
    if (this.#isDrawn || this.#axis === null) return false;
    const context = this.#context;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const layer of this.#layers) this.#drawLayer(layer);
    this.#isDrawn = true;
    return true;
  }

  #drawLayer({ values, description, points, style }) {
    const context = this.#context;
    context.strokeStyle = style.colour;
    context.fillStyle = style.colour;
    context.setLineDash(style.dash ?? []);
    if (points !== undefined) {
      this.#stroke(this.#limits(points), lineOffsets(style.width));
      return;
    }
    const isBars = Boolean(description.edges_hz);
    const area = style.isFilled ? new Path2D() : null;
    const line = isBars ? this.#bars(values, description, area) : this.#line(values, description, area);
    if (area !== null) this.#tint(area);
    this.#stroke(line, isBars ? barOffsets(style.width) : lineOffsets(style.width));
  }

  /**
   * Stroke a path. Wide lines are several of one pixel, side by side: without a GPU a browser draws those of
   * one pixel, which have no joints, many times faster than any other.
   */
  #stroke(line, offsets) {
    const context = this.#context;
    context.lineWidth = 1;
    for (const { x, y } of offsets) {
      context.setTransform(1, 0, 0, 1, x, y);
      context.stroke(line);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
  }

  /** Return the bars or points of a description, made once an axis. */
  #shapeOf(description, make) {
    let shape = this.#shapes.get(description);
    if (shape === undefined) {
      shape = make(this.#axis, description);
      this.#shapes.set(description, shape);
    }
    return shape;
  }

  #y(level) {
    const [lo, hi] = this.#levels;
    const { height } = this.canvas;
    const y = ((hi - level) / (hi - lo)) * height;
    return Math.min(Math.max(y, -BEYOND_PX), height + BEYOND_PX);
  }

  #limits(points) {
    const line = new Path2D();
    let isBegun = false;
    for (const { x, level } of limitLine(this.#axis, points)) {
      if (Number.isNaN(level)) continue;
      if (isBegun) line.lineTo(x, this.#y(level));
      else line.moveTo(x, this.#y(level));
      isBegun = true;
    }
    return line;
  }

  /** Return the line through the points; its area goes into `area`, if there is one. */
  #line(values, description, area) {
    const { x, first, last } = this.#shapeOf(description, linePoints);
    const levels = levelTable(description);
    const line = new Path2D();
    const bottom = this.canvas.height + BEYOND_PX;
    let begin = -1; // first point of the part that is being drawn: no data parts the line
    for (let i = 0; i <= x.length; i += 1) {
      const level = i < x.length ? greatest(values, levels, first[i], last[i]) : NaN;
      if (Number.isNaN(level)) {
        if (begin >= 0) area?.lineTo(x[i - 1], bottom);
        begin = -1;
        continue;
      }
      const y = this.#y(level);
      if (begin < 0) {
        begin = i;
        line.moveTo(x[i] - 0.5, y); // a point alone is seen as well
        area?.moveTo(x[i], bottom);
      }
      line.lineTo(x[i], y);
      area?.lineTo(x[i], y);
    }
    return line;
  }

  /** Return the tops of bars; their areas go into `area`, if there is one. */
  #bars(values, description, area) {
    const levels = levelTable(description);
    // Differences go up and down from 0 dB.
    const base = description.isDifference ? this.#y(0) : this.canvas.height;
    const line = new Path2D();
    for (const { index, x0, x1 } of this.#shapeOf(description, bandBars)) {
      const level = levels[values[index]];
      if (Number.isNaN(level)) continue;
      const y = this.#y(level);
      area?.rect(x0, y, x1 - x0, base - y);
      line.moveTo(x0, y);
      line.lineTo(x1, y);
    }
    return line;
  }

  #tint(area) {
    const context = this.#context;
    context.globalAlpha = FILL_ALPHA;
    context.fill(area);
    context.globalAlpha = 1;
  }
}

/**
 * Return the line of limits: through their points, and as they are straight over the logarithm of frequency.
 *
 * @param {import("./axis.js").Axis} axis
 * @param {Array<[number, number]>} points frequency [Hz] and level [dB]
 * @returns {Array<{x: number, level: number}>} from left to right; NaN beyond the limits
 */
export function limitLine(axis, points) {
  const between = Array.from({ length: Math.ceil(axis.width / LIMIT_STEP_PX) + 1 }, (_, k) => axis.toHertz(Math.min(axis.width, k * LIMIT_STEP_PX)));
  const places = [...points.map(([hz]) => hz), ...between].filter((hz) => hz > 0 && hz >= axis.f0 && hz <= axis.f1);
  return places.sort((a, b) => a - b).map((hz) => ({ x: axis.toPixel(hz), level: limitAt(points, hz) }));
}

/** Places of lines of one pixel that make a wide one: on a circle, so that no slope is thinner than another. */
export function lineOffsets(width) {
  if (width <= 1) return [{ x: 0, y: 0 }];
  const count = Math.ceil(width) + 1;
  const radius = (width - 1) / 2;
  return Array.from({ length: count }, (_, k) => {
    const angle = (2 * Math.PI * (k + 0.25)) / count;
    return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
}

/** Places of level lines of one pixel that make a wide one: above each other. */
function barOffsets(width) {
  const count = Math.max(1, Math.ceil(width));
  return Array.from({ length: count }, (_, k) => ({ x: 0, y: count === 1 ? 0 : (k / (count - 1) - 0.5) * (width - 1) }));
}

/** Return the greatest level of the values first to last, NaN if they are all no data. */
function greatest(values, levels, first, last) {
  let found = NaN;
  for (let j = first; j <= last; j += 1) {
    const level = levels[values[j]];
    if (!(level <= found) && !Number.isNaN(level)) found = level;
  }
  return found;
}
