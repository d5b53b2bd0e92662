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
 * @param {import("./orientation.js").Orientation} places of the picture [px]
 * @returns {Uint32Array} lines of the picture
 */
export function turnedPixels(pixels, places) {
  const { breadth, length, width } = places;
  const indexOf = (tone, age) => {
    const { x, y } = places.toScreen({ tone: tone + 0.5, age: age + 0.5 });
    return Math.floor(y) * width + Math.floor(x);
  };
  const first = indexOf(0, 0);
  const [step, stepOfLine] = [indexOf(1, 0) - first, indexOf(0, 1) - first];
  const turned = new Uint32Array(pixels.length);
  for (let line = 0; line < length; line += 1) {
    const begin = line * breadth;
    const place = first + line * stepOfLine;
    for (let px = 0; px < breadth; px += 1) turned[place + px * step] = pixels[begin + px];
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
