/**
 * Codes (levels.js) of the pixels of a line.
 */

import { CODE_NONE } from "../rows/levels.js";

/**
 * Make the greatest code of each pixel's values.
 *
 * @param {Uint8Array|Uint16Array} values of a row
 * @param {Uint16Array} codeOfValue see `codeTable`
 * @param {{first: Int32Array, last: Int32Array}} ranges of each pixel, see `binRanges`
 * @param {Uint16Array} pooled (width,) the result
 */
export function poolCodes(values, codeOfValue, { first, last }, pooled) {
  for (let px = 0; px < pooled.length; px += 1) {
    let greatest = CODE_NONE;
    for (let j = first[px]; j <= last[px]; j += 1) {
      const code = codeOfValue[values[j]];
      if (code > greatest) greatest = code;
    }
    pooled[px] = greatest;
  }
}

/**
 * Move the codes of lines from their places on one axis to those on another of the same width; what the
 * first one did not show is no data.
 *
 * @param {Uint16Array} codes (lines * width,) changed in place
 * @param {import("./axis.js").Axis} before
 * @param {import("./axis.js").Axis} after
 */
export function stretchCodes(codes, before, after) {
  const { width } = after;
  const places = Int32Array.from({ length: width }, (_, px) =>
    Math.floor(before.toPixel(after.toHertz(px + 0.5))),
  );
  const line = new Uint16Array(width);
  for (let begin = 0; begin < codes.length; begin += width) {
    line.set(codes.subarray(begin, begin + width));
    for (let px = 0; px < width; px += 1) codes[begin + px] = line[places[px]] ?? CODE_NONE;
  }
}
