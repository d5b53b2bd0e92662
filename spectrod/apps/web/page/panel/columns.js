/** How panels share the room for plots. */

/** Width of a panel for each of its height: frequencies take more room than times. */
const ASPECT = 1.2;
/** A narrower panel has no room beside its scales: then some stand below each other, and the plots scroll [CSS px]. */
const WIDTH_MIN = 240;

/**
 * Columns that leave some panels the most room, of equal ones the fewest.
 *
 * @param {number} count of panels
 * @param {{width: number, height: number}} room [CSS px]
 * @returns {number} at least 1
 */
export function columnsOf(count, { width, height }) {
  const sizeIn = (columns) => Math.min(width / columns / ASPECT, height / Math.ceil(count / columns));
  const most = Math.max(1, Math.min(count, Math.floor(width / WIDTH_MIN)));
  const all = Array.from({ length: most }, (_, k) => k + 1);
  return all.reduce((best, columns) => (sizeIn(columns) > sizeIn(best) ? columns : best));
}
