/** The waterfall of a figure: drawn again at the figure's resolution, in light colours, whatever the screen shows it with. */

import { LineStore } from "./lines.js";
import { codeColors, MARKS, shadesOf } from "./palette.js";

/**
 * Pixels of a waterfall.
 *
 * @param {{rows: object, newestMs: number, spanMs: number}} strip rows as `Waterfall.rebuild` takes them
 * @param {import("./axis.js").Axis} axis as wide as the picture
 * @param {number} height [px]
 * @param {{map: string, lo: number, hi: number}} colour
 * @returns {Uint32Array} (height * axis.width,) pixels of ImageData, the newest line first
 */
export function waterfallPixels({ rows, newestMs, spanMs }, axis, height, { map, lo, hi }) {
  const lines = new LineStore();
  lines.resize(axis.width, height);
  lines.setAxis(axis);
  lines.setScroll({ newestMs, msPerPx: spanMs / height, paused: true });
  lines.rebuild(rows);
  lines.work(Infinity, () => 0);
  const colors = codeColors(map, lo, hi, MARKS.light);
  const { width, slots, codes, topSlot } = lines;
  const pixels = new Uint32Array(width * height);
  for (let y = 0; y < height; y += 1) {
    const begin = ((topSlot + y) % slots) * width;
    for (let px = 0; px < width; px += 1) pixels[y * width + px] = colors[codes[begin + px]];
  }
  return pixels;
}

/**
 * Pixels of a waterfall in another direction.
 *
 * @param {Uint32Array} pixels of `waterfallPixels`
 * @param {{across: number, along: number}} size pixels of the frequency axis, and lines
 * @param {"down" | "up" | "right"} direction see `Figure`
 * @returns {Uint32Array} lines of `across` pixels, or `right`: `across` lines of `along` pixels, the highest frequency first
 */
export function turnedPixels(pixels, { across, along }, direction) {
  if (direction === "down") return pixels;
  const turned = new Uint32Array(pixels.length);
  for (let line = 0; line < along; line += 1) {
    const begin = line * across;
    const last = along - 1 - line;
    if (direction === "up") turned.set(pixels.subarray(begin, begin + across), last * across);
    else for (let px = 0; px < across; px += 1) turned[(across - 1 - px) * along + last] = pixels[begin + px];
  }
  return turned;
}

/** A canvas with pixels of ImageData. */
export function canvasOf(pixels, width, height) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const data = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.byteLength);
  canvas.getContext("2d").putImageData(new ImageData(data, width, height), 0, 0);
  return canvas;
}

/** Colours of a map as a column, the greatest level at the top. */
export function shadesCanvas(map) {
  const shades = shadesOf(map).slice().reverse();
  return canvasOf(shades, 1, shades.length);
}
