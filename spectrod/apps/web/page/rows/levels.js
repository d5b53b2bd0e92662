/**
 * Levels as numbers of rows, and the page's own code for them.
 *
 * The page keeps levels as codes of 16 bits, whatever a row was sent as: 0 and 1 no data (and its
 * hatching), n from 2 on `CODE_LO + (n - 2) CODE_STEP`. So the greater code is the greater level, no
 * data is below all of them, and the maximum of codes is the code of the maximum. The two highest
 * codes are marks.
 */

export const CODE_LO = -327.67;
export const CODE_STEP = 0.01;
export const CODE_NONE = 0;
export const CODE_STRIPE = 1;
export const CODE_LEVEL_MIN = 2;
export const CODE_LEVEL_MAX = 65533;
export const CODE_GAP = 65534;
export const CODE_DROPPED = 65535;

const NO_DATA_8 = 0;
const NO_DATA_16 = 65535;

/**
 * Return the level of a row's value, NaN for no data.
 *
 * @param {{bits: number, lo: number, step: number}} description of the stream
 * @param {number} value as sent
 * @returns {number} [the unit of the stream, decibels]
 */
export function levelOf(description, value) {
  if (description.bits === 8) {
    return value === NO_DATA_8 ? NaN : description.lo + (value - 1) * description.step;
  }
  return value === NO_DATA_16 ? NaN : description.lo + value * description.step;
}

/**
 * Return the code of a level; levels beyond the codes are at their ends, NaN is no data.
 *
 * @param {number} level [dB]
 * @returns {number} `CODE_NONE`, or `CODE_LEVEL_MIN` to `CODE_LEVEL_MAX`
 */
export function codeOf(level) {
  if (Number.isNaN(level)) return CODE_NONE;
  const code = CODE_LEVEL_MIN + Math.round((level - CODE_LO) / CODE_STEP);
  return Math.min(Math.max(code, CODE_LEVEL_MIN), CODE_LEVEL_MAX);
}

/** Return the level of a code from `CODE_LEVEL_MIN` to `CODE_LEVEL_MAX` [dB]. */
export function levelOfCode(code) {
  return CODE_LO + (code - CODE_LEVEL_MIN) * CODE_STEP;
}

const TABLES_MAX = 32;

/**
 * Return a function that makes a table of all values of a stream, once for all descriptions of one scale: each piece
 * of the past has a description, and a table of 16 bits takes 128 KiB or more. The last 32 scales are kept.
 *
 * @template T
 * @param {(description: {bits: number, lo: number, step: number}) => T} make
 * @returns {(description: {bits: number, lo: number, step: number}) => T}
 */
export function onceAScale(make) {
  const ofDescription = new WeakMap();
  const ofScale = new Map();
  return (description) => {
    let table = ofDescription.get(description);
    if (table === undefined) {
      const { bits, lo, step } = description;
      const scale = `${bits} ${lo} ${step}`;
      table = ofScale.get(scale) ?? make(description);
      ofScale.delete(scale); // the last used is at the end
      ofScale.set(scale, table);
      if (ofScale.size > TABLES_MAX) ofScale.delete(ofScale.keys().next().value);
      ofDescription.set(description, table);
    }
    return table;
  };
}

/**
 * Return the codes of all values of a stream, a Uint16Array of 256 or 65536.
 *
 * @type {(description: {bits: number, lo: number, step: number}) => Uint16Array}
 */
export const codeTable = onceAScale((description) =>
  Uint16Array.from({ length: 2 ** description.bits }, (_, value) => codeOf(levelOf(description, value))),
);

/**
 * Return the levels of all values of a stream [dB], a Float32Array of 256 or 65536; NaN for no data.
 *
 * @type {(description: {bits: number, lo: number, step: number}) => Float32Array}
 */
export const levelTable = onceAScale((description) =>
  Float32Array.from({ length: 2 ** description.bits }, (_, value) => levelOf(description, value)),
);
