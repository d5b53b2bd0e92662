/** One scale of levels for all days and channels that are shown. */

const LOW_SHARE = 0.05;
const HIGH_SHARE = 0.998;
const STEP_DB = 5;
const LEAST_DB = 20;
const LEAST_DIFFERENCE_DB = 3;
/** Levels that are taken of a tile, evenly spread: the scale needs no more. */
const TAKEN = 2000;

const GAP = 65535;

/** Return some levels of codes of 16 bits, ascending; codes without data are left out. */
export function sampleOf(values, { lo, step }) {
  const every = Math.max(1, Math.floor(values.length / TAKEN));
  const found = [];
  for (let k = 0; k < values.length; k += every) if (values[k] !== GAP) found.push(lo + step * values[k]);
  return Float32Array.from(found).sort();
}

/**
 * Return the ends of the scale, or null without levels.
 *
 * @param {Float32Array[]} samples of tiles
 * @param {boolean} isDifference whether 0 is in the middle
 * @returns {{lo: number, hi: number} | null} [dB]
 */
export function scaleOf(samples, isDifference) {
  const length = samples.reduce((sum, one) => sum + one.length, 0);
  if (length === 0) return null;
  const all = new Float32Array(length);
  let at = 0;
  for (const one of samples) {
    all.set(one, at);
    at += one.length;
  }
  all.sort();
  const quantile = (share) => all[Math.min(length - 1, Math.floor(share * length))];
  if (isDifference) {
    const end = Math.max(LEAST_DIFFERENCE_DB, Math.ceil(Math.max(-quantile(1 - HIGH_SHARE), quantile(HIGH_SHARE))));
    return { lo: -end, hi: end };
  }
  const lo = Math.floor(quantile(LOW_SHARE) / STEP_DB) * STEP_DB;
  return { lo, hi: Math.max(lo + LEAST_DB, Math.ceil(quantile(HIGH_SHARE) / STEP_DB) * STEP_DB) };
}
