/** What all parts of a figure share: sizes, colours, frames, and how texts are wrapped. */

/** Sizes [CSS px]: texts have 8 points. */
export const TEXT = Object.freeze({ size: 10.67 });
export const LINE_PX = 14;
export const TICK_PX = 4;

export const BLACK = "#000000";
export const GRID = "#d9d9d9";
export const GREY = "#555555";
export const ACCENT = "#0b57a4";
export const EVENT = "#b3261e";

/** Lines over a waterfall are thin: a tone below one must not be hidden. */
export const THIN_PX = 0.5;
export const EDGE = Object.freeze({ stroke: "#ffffff", width: 1.25 });
export const DASHES = Object.freeze({ A: null, B: [4, 3] });
export const HARMONIC_DASHES = Object.freeze([1, 3]);

export function frame(pen, { left, top, width, height }) {
  pen.rect(left, top, width, height, { fill: "none", stroke: BLACK, width: 0.75 });
}

/**
 * Lines of words that are no wider than a figure; a word that is wider is cut into several lines, never left out.
 *
 * @param {string} text
 * @param {number} width
 * @param {(text: string) => number} measure
 */
export function wrapped(text, width, measure) {
  const lines = [""];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const joined = lines.at(-1) === "" ? word : `${lines.at(-1)} ${word}`;
    if (measure(joined) <= width) lines[lines.length - 1] = joined;
    else lines.push(...pieces(word, width, measure));
  }
  return lines.filter(Boolean);
}

function pieces(word, width, measure) {
  const found = [""];
  for (const sign of word) {
    if (found.at(-1) !== "" && measure(found.at(-1) + sign) > width) found.push("");
    found[found.length - 1] += sign;
  }
  return found;
}
