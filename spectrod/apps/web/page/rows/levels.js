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

const tables = new WeakMap();

/**
 * Return the codes of all values of a stream; made once a description.
 *
 * @param {{bits: number, lo: number, step: number}} description
 * @returns {Uint16Array} (256,) or (65536,)
 */
export function codeTable(description) {
  let table = tables.get(description);
  if (table === undefined) {
    table = Uint16Array.from({ length: 2 ** description.bits }, (_, value) =>
      codeOf(levelOf(description, value)),
    );
    tables.set(description, table);
  }
  return table;
}

const levelTables = new WeakMap();

/**
 * Return the levels of all values of a stream; made once a description.
 *
 * @param {{bits: number, lo: number, step: number}} description
 * @returns {Float32Array} (256,) or (65536,) [dB], NaN for no data
 */
export function levelTable(description) {
  let table = levelTables.get(description);
  if (table === undefined) {
    table = Float32Array.from({ length: 2 ** description.bits }, (_, value) =>
      levelOf(description, value),
    );
    levelTables.set(description, table);
  }
  return table;
}
