/** Limits: a line of levels over frequency from a CSV file. */

/** Bounds of a file of limits; docs/web.md repeats the numbers. */
export const LIMITS_BYTES_MAX = 256 * 1024;
export const POINTS_MAX = 2000;
const LEVEL_MAX = 1000;
const HERTZ_MAX = 1e12;

/** Two numbers of a line; with a semicolon or tab between them a comma is a decimal one. */
function numbersOf(line) {
  const isContinental = /[;\t]/.test(line);
  const fields = line.split(isContinental ? /[;\t]/ : ",").map((field) => field.trim());
  return fields.slice(0, 2).map((field) => (field === "" ? NaN : Number(isContinental ? field.replace(",", ".") : field)));
}

/**
 * Read limits: a frequency [Hz] and a level [dB] a line; blank lines, those that begin with `#`, and one of names at the
 * head are left out.
 *
 * @param {string} text
 * @param {string} name of the file, for errors
 * @returns {Array<[number, number]>} ascending in frequency
 * @throws {Error} that names the line and the rule
 */
export function readLimits(text, name) {
  if (text.length > LIMITS_BYTES_MAX) throw new Error(`${name}: more than ${LIMITS_BYTES_MAX / 1024} KiB`);
  const points = [];
  let isHead = true;
  for (const [k, line] of text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [hz, level] = numbersOf(line);
    const isNames = isHead && Number.isNaN(hz) && Number.isNaN(level ?? NaN);
    isHead = false;
    if (isNames) continue;
    const isGood = hz > 0 && hz <= HERTZ_MAX && Math.abs(level) <= LEVEL_MAX;
    const at = `${name}, line ${k + 1}: ${line.slice(0, 40)}`;
    if (!isGood) throw new Error(`${at}: must be a frequency above 0 Hz and a level of -1000 to 1000 dB`);
    if (points.length > 0 && hz <= points.at(-1)[0]) throw new Error(`${at}: frequencies must ascend`);
    if (points.length === POINTS_MAX) throw new Error(`${name}: more than ${POINTS_MAX} lines`);
    points.push([hz, level]);
  }
  if (points.length < 2) throw new Error(`${name}: must have two lines of a frequency and a level at least`);
  return points;
}

/** Level of limits at a frequency, straight between points over the logarithm of frequency; NaN beyond them. */
export function limitAt(points, hz) {
  const k = points.findIndex(([at]) => at >= hz);
  if (k < 0) return NaN;
  const [f1, l1] = points[k];
  if (f1 === hz) return l1;
  if (k === 0) return NaN;
  const [f0, l0] = points[k - 1];
  return l0 + ((l1 - l0) * Math.log(hz / f0)) / Math.log(f1 / f0);
}
