/** The list of peaks: what the server measured, held steady enough to be read. */

const STEADY_MS = 1000;
const TRACKS_MAX = 64;

/**
 * Follows peaks from one measurement to the next.
 *
 * A peak is listed once it has been there for a second, and leaves the list when it has been gone
 * for one: noise comes and goes faster. Its frequency and level are always the newest ones.
 */
export class PeakList {
  #tracks = [];

  /** Forget everything, for another topic or a restarted daemon. */
  clear() {
    this.#tracks = [];
  }

  /**
   * Take the peaks of a measurement.
   *
   * @param {Array<{hz: number, level: number, hz_error: number}>} peaks
   * @param {number} tMs time of the measurement
   * @param {number} tolerance_hz two peaks nearer than this are one; a bin is a good one
   */
  update(peaks, tMs, tolerance_hz) {
    if (this.#tracks.some((track) => track.lastMs > tMs)) this.clear();
    for (const peak of peaks) this.#take(peak, tMs, tolerance_hz);
    this.#tracks = this.#tracks.filter((track) => tMs - track.lastMs < STEADY_MS).slice(-TRACKS_MAX);
  }

  /** Steady peaks, the strongest first. */
  list() {
    return this.#tracks
      .filter((track) => track.lastMs - track.firstMs >= STEADY_MS)
      .map(({ hz, level, hz_error }) => ({ hz, level, hz_error }))
      .sort((a, b) => b.level - a.level);
  }

  #take({ hz, level, hz_error }, tMs, tolerance_hz) {
    const reach = Math.max(tolerance_hz, hz_error ?? 0);
    const isSame = (track) => Math.abs(track.hz - hz) <= reach && track.lastMs < tMs;
    const track = this.#tracks.find(isSame);
    if (track) Object.assign(track, { hz, level, hz_error, lastMs: tMs });
    else this.#tracks.push({ hz, level, hz_error, firstMs: tMs, lastMs: tMs });
  }
}
