/** The difference of two channels as a channel of its own: its rows are those of one less those of the other. */

import { Channel } from "./channel.js";
import { FLAG_GAP } from "./decode.js";
import { describeDifference, differenceOf, differenceWith, whyNoDifference } from "./difference.js";
import { nearestIndex } from "./rowat.js";

/** Longest time that one call subtracts rows, of those that were there before the difference was asked for [ms]. */
const SLICE_MS = 8;
const EXTREMES = Object.freeze(["max", "min"]);

const lengthMs = ({ merged, description }) => 1000 * merged * description.row_s;

/** Whether two rows are of one time: at most half a row apart, so that each time has a pair wherever rows begin. */
const isPair = (a, b) => Math.abs(a.tMs - b.tMs) <= Math.max(lengthMs(a), lengthMs(b)) / 2;

/** Levels of one channel less those of another one [dB]; both go on to be channels of the session. */
export class DifferenceChannel extends Channel {
  #minuend;
  #subtrahend;
  #rows = null; // ring of the minuend that was read last
  #next = 0; // number of its row that is looked at next, as `RowRing.total` counts
  #lastMs = -Infinity;
  #isAfterHole = false;

  /**
   * @param {Channel} minuend
   * @param {Channel} subtrahend of the same bins, unit and reference; else there is no row, and `gone` says why
   * @param {number} rows kept for the waterfall
   */
  constructor(minuend, subtrahend, rows) {
    super(infoOf(minuend, subtrahend), minuend.place, rows);
    this.#minuend = minuend;
    this.#subtrahend = subtrahend;
    this.setUnsent(EXTREMES, "the extremes of both are not those of their difference");
    // Of rows in steps of 0.5 dB the difference is 0.5 dB off.
    minuend.isFine = subtrahend.isFine = true;
  }

  /** Whether it is that of two channels. */
  isOf(minuend, subtrahend) {
    return minuend === this.#minuend && subtrahend === this.#subtrahend;
  }

  /** Whether a channel is one of both. */
  has(channel) {
    return channel === this.#minuend || channel === this.#subtrahend;
  }

  get description() {
    const [a, b] = [this.#minuend.description, this.#subtrahend.description];
    return a === null || b === null || whyNoDifference(a, b) !== "" ? null : describeDifference(a, b);
  }

  /** Take over what both channels are now. */
  follow() {
    const [a, b] = [this.#minuend, this.#subtrahend];
    if (this.info.id !== a.info.id || this.info.less !== b.info) this.info = infoOf(a, b);
    const why = a.description === null || b.description === null ? "" : whyNoDifference(a.description, b.description);
    const gone = [a.gone, b.gone, why === "" ? "" : `no difference: the channels have ${why}`];
    this.gone = gone.filter(Boolean).join(". ");
  }

  /**
   * Subtract the rows of which both have come, for a few milliseconds; the next call goes on.
   *
   * A row that one of both lacks is none here, and the row after it has a gap before it.
   *
   * @param {() => number} now [ms]
   * @returns {object[]} the new rows, each with its `description`, the oldest first
   */
  subtract(now = () => performance.now()) {
    const [ring, other] = [this.#minuend.ring, this.#subtrahend.ring];
    if (ring === null || other === null || other.length === 0) return [];
    if (ring !== this.#rows) this.#beginWith(ring);
    const until = now() + SLICE_MS;
    const made = [];
    this.#next = Math.max(this.#next, ring.total - ring.length);
    while (this.#next < ring.total && now() <= until) {
      const row = ring.at(ring.total - 1 - this.#next);
      const pair = pairOf(row, other);
      if (pair === null && other.timeAt(0) <= row.tMs) break; // it may still come
      this.#next += 1;
      this.#lastMs = row.tMs;
      if (pair === null) this.#isAfterHole = this.ring !== null && this.ring.length > 0;
      else this.#push(row, pair, made);
    }
    return made;
  }

  /** Go on where the rows of another ring are newer than what was seen: a ring is copied to get longer. */
  #beginWith(ring) {
    let newer = 0;
    while (newer < ring.length && ring.timeAt(newer) > this.#lastMs) newer += 1;
    this.#rows = ring;
    this.#next = ring.total - newer;
  }

  #push(row, pair, made) {
    const found = differenceOf(row, pair);
    if (found === null) return;
    const [missed, gapSamples] = ["missed", "gapSamples"].map((name) => Math.max(row[name], pair[name]));
    const flags = row.flags | pair.flags | (this.#isAfterHole ? FLAG_GAP : 0);
    this.#isAfterHole = false;
    const one = { ...found, missed, gapSamples, flags };
    this.#takeRow("waterfall", one);
    made.push(one);
  }

  /** Subtract the newest rows of a role, `trace` or `mean`, if they are of one time; return whether they are. */
  subtractNewest(role) {
    const [a, b] = [this.#minuend, this.#subtrahend].map((channel) => (role === "trace" ? channel.trace : channel.holds[role]));
    const found = a && b && isPair(a, b) ? differenceWith(a, b) : null;
    if (found !== null) this.#takeRow(role, found);
    return found !== null;
  }

  #takeRow(role, row) {
    this.describe(role, row.description);
    // What is lost is counted where it was lost.
    this.take(role, row, row.description, Math.min(this.#minuend.receivedAt, this.#subtrahend.receivedAt), () => {});
  }
}

const infoOf = (minuend, subtrahend) => Object.freeze({ ...minuend.info, less: subtrahend.info });

/** The row of a ring that is of the time of another row, or null. */
function pairOf(row, rows) {
  const i = nearestIndex(rows, row.tMs);
  const found = i < 0 ? null : rows.at(i);
  return found !== null && isPair(row, found) ? found : null;
}

/**
 * Channels to show: each less the subtracted one, and that one itself where somebody chose it.
 *
 * @param {{channels: Channel[], subtracted: Channel | null, isSubtractedShown: boolean}} session
 * @param {(minuend: Channel, subtrahend: Channel) => DifferenceChannel} differenceWith
 * @returns {Channel[][]} differences, then levels: one panel cannot have both
 */
export function shownChannels({ channels, subtracted, isSubtractedShown }, differenceWith) {
  const others = channels.filter((channel) => channel !== subtracted);
  // A channel less itself says nothing.
  if (subtracted === null || others.length === 0) return [channels];
  return [others.map((channel) => differenceWith(channel, subtracted)), isSubtractedShown ? [subtracted] : []];
}
