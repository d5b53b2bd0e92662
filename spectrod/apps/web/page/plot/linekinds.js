/** Kinds of lines of a spectrum: their names and shapes. A shape besides a colour tells them apart. */

/** By the name of their colour: text, width [CSS px], dashes and gaps [CSS px], and the style of CSS that looks alike. */
export const LINE_KINDS = Object.freeze({
  now: { text: "live", width: 1.5, dash: null, border: "solid" },
  max: { text: "max hold", width: 1, dash: null, border: "solid" },
  min: { text: "min hold", width: 1, dash: null, border: "solid" },
  mean: { text: "average", width: 1, dash: [6, 3], border: "dashed" },
  second: { text: "at cursor B", width: 1, dash: [6, 2, 2, 2], border: "dashed" },
  reference: { text: "reference", width: 1, dash: [2, 3], border: "dotted" },
});

/**
 * Name of a line, with what a view says of its ballistics.
 *
 * @param {string} name of `LINE_KINDS`
 * @param {{decay: number, holdTime: number, timeConstant: number}} view
 */
export function lineText(name, { decay, holdTime, timeConstant }) {
  const { text } = LINE_KINDS[name];
  if (name === "mean" && timeConstant > 0) return `${text}, τ ${timeConstant} s`;
  if ((name !== "max" && name !== "min") || decay === 0) return text;
  return `${text}, ${holdTime > 0 ? `${holdTime} s, then ` : ""}${decay} dB/s`;
}
