/**
 * From levels to colours.
 */

import { COLORMAPS } from "./colormaps.js";
import { divergingColours } from "./diverging.js";
import {
  CODE_DROPPED,
  CODE_GAP,
  CODE_LEVEL_MAX,
  CODE_NONE,
  CODE_STRIPE,
  codeOf,
  codeTable,
  levelOfCode,
} from "../rows/levels.js";

const REVERSED = "_r";
const SHADES = 256;

/**
 * Colours of what is no level, by the page's theme [red, green, blue]: `none` no data, hatched with
 * `stripe`; `gap` hatches where samples are missing, `dropped` where rows are. No map contains the
 * latter two, and none is hatched.
 */
export const MARKS = Object.freeze({
  light: Object.freeze({ none: [236, 237, 240], stripe: [190, 193, 200], gap: [48, 48, 240], dropped: [220, 0, 150] }),
  dark: Object.freeze({ none: [34, 36, 42], stripe: [68, 72, 82], gap: [170, 170, 255], dropped: [255, 64, 200] }),
});

/** Return a colour of `MARKS` as CSS has it. */
export function cssColour(rgb) {
  return `rgb(${rgb.join(" ")})`;
}

/** Each map by name: (256 * 3,) red, green, blue, the lowest level first. */
export const palettes = Object.freeze(
  Object.fromEntries(Object.entries(COLORMAPS).map(([name, digits]) => [name, bytesOf(digits)])),
);

function bytesOf(digits) {
  return Uint8Array.from({ length: digits.length / 2 }, (_, i) =>
    Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16),
  );
}

/** Return a colour as a pixel of ImageData seen as 32 bits: red is its lowest byte. */
function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Map of differences in a theme: for `shadesOf` alone, nobody chooses it. */
export const differenceMap = (theme) => (theme === "dark" ? "difference-dark" : "difference-light");

const DIFFERENCES = Object.freeze(
  Object.fromEntries(["light", "dark"].map((theme) => [differenceMap(theme), Uint8Array.from(divergingColours(theme).flat())])),
);

/** Whether a name is one of `palettes`, or one followed by `_r`. */
export const isPalette = (name) => typeof name === "string" && Object.hasOwn(palettes, name.endsWith(REVERSED) ? name.slice(0, -REVERSED.length) : name);

/**
 * Return the colours of a map.
 *
 * @param {string} name one of `palettes`, or one followed by `_r` to reverse it, or a `differenceMap`
 * @returns {Uint32Array} (256,) pixels, lowest level first
 * @throws {Error} if there is no such map
 */
export function shadesOf(name) {
  const isReversed = name.endsWith(REVERSED);
  const map = isReversed ? name.slice(0, -REVERSED.length) : name;
  if (!Object.hasOwn(palettes, map) && !Object.hasOwn(DIFFERENCES, map)) {
    const names = Object.keys(palettes).join(", ");
    throw new Error(`palette=${name}: must be one of ${names}, or one followed by _r`);
  }
  const table = palettes[map] ?? DIFFERENCES[map];
  const shades = Uint32Array.from({ length: SHADES }, (_, i) => pixel(table.subarray(3 * i, 3 * i + 3)));
  return isReversed ? shades.reverse() : shades;
}

/**
 * Return the colour of every code (levels.js): levels at and below `lo` have the first, those at and
 * above `hi` the last of the map.
 *
 * @param {string} name of the map
 * @param {number} lo
 * @param {number} hi above lo
 * @param {{none: number[], stripe: number[], gap: number[], dropped: number[]}} marks see `MARKS`
 * @returns {Uint32Array} (65536,) pixels
 */
export function codeColors(name, lo, hi, marks = MARKS.dark) {
  if (!(Number.isFinite(lo) && Number.isFinite(hi) && lo < hi)) {
    throw new Error(`levels from ${lo} to ${hi}: must be finite and ascending`);
  }
  const shades = shadesOf(name);
  const scale = SHADES / (hi - lo);
  const colors = new Uint32Array(65536).fill(shades[0]);
  const top = codeOf(hi);
  for (let code = codeOf(lo); code < top; code += 1) {
    const shade = Math.floor((levelOfCode(code) - lo) * scale);
    colors[code] = shades[Math.min(Math.max(shade, 0), SHADES - 1)];
  }
  colors.fill(shades[SHADES - 1], top, CODE_LEVEL_MAX + 1);
  colors[CODE_NONE] = pixel(marks.none);
  colors[CODE_STRIPE] = pixel(marks.stripe);
  colors[CODE_GAP] = pixel(marks.gap);
  colors[CODE_DROPPED] = pixel(marks.dropped);
  return colors;
}

/**
 * Return the colour of each value of a stream of 8 bits; entry 0 is no data.
 *
 * @param {string} name of the map
 * @param {number} lo
 * @param {number} hi above lo
 * @param {{bits: number, lo: number, step: number}} description of the stream
 * @returns {Uint32Array} (256,) pixels
 */
export function makeLookup(name, lo, hi, description) {
  if (description.bits !== 8) throw new Error(`stream of ${description.bits} bits: must be 8`);
  const colors = codeColors(name, lo, hi);
  return Uint32Array.from(codeTable(description), (code) => colors[code]);
}
