/** Multiples of cursor A's frequency: where they are, and what is there. */

import { readCursor } from "./cursor.js";

/** Harmonics that are shown at once: more lines would hide the spectrum. */
export const HARMONICS_MAX = 20;

/**
 * Harmonics of the first cursor within an axis, from the second on, the lowest that show.
 *
 * @param {{cursors: readonly number[], harmonics: boolean}} view
 * @param {{f0: number, f1: number}} axis
 * @returns {Array<{n: number, hz: number}>} none of a cursor at or below 0 Hz
 */
export function harmonicsOf({ cursors, harmonics }, { f0, f1 }) {
  const [hz] = cursors;
  if (!harmonics || !(hz > 0)) return [];
  const first = Math.max(2, Math.ceil(f0 / hz));
  const count = Math.max(0, Math.min(HARMONICS_MAX, Math.floor(f1 / hz) - first + 1));
  return Array.from({ length: count }, (_, k) => ({ n: first + k, hz: (first + k) * hz }));
}

/** Readings of harmonics in a row; their frequencies are exact multiples, their levels those that a cursor there reads. */
export function harmonicReadings(harmonics, moment) {
  return harmonics.map(({ n, hz }) => ({ ...readCursor(hz, moment), n, hz }));
}
