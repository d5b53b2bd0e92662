/**
 * Rows of the past of a recorder that sleeps between recordings, as long as the period of its schedule: else most of
 * a waterfall would be a gap. The rules are those of pictures, see `spectrod/dsp/duty_cycle.py`.
 */

import { FLAG_GAP } from "./decode.js";

/** Shortest pause of a schedule [ms]. */
const PAUSE_MIN_MS = 2000;
const PAUSES_MIN = 2;
/** Times between two begins that a schedule explains, and the largest deviation of those that make it [periods]. */
const PERIODS_MIN = 0.5;
const PERIODS_MAX = 1.5;
const SPREAD_MAX = 0.02;
/** A recording of fewer rows cannot be read by itself. */
const ON_ROWS_MAX = 8;
const NOTHING = 65535;
/** Where pauses are shorter, a row has a whole recording or none. */
const PAUSE_ROWS_MIN = 1.5;
/** Times of rows are rounded: a row that ends with the oldest live one must not seem to end after its begin [ms]. */
const ROUNDING_MS = 1;
/** Codes are of 0.01 dB. */
const CODES_A_BEL = 1000;

/**
 * @typedef {object} Recording rows without a pause between them
 * @property {Array<object>} rows the newest first
 * @property {number} beginMs
 * @property {number} endMs
 */

/**
 * Return rows of which those of a recording and the pause after it are one, if a schedule explains the pauses.
 *
 * Where a recording is missing, the gap stays; so does all without a schedule, and what has eight rows or more. Where
 * rows are hardly shorter than the period, most have a recording each: the row before a pause then lasts until its end,
 * and others stay.
 *
 * @param {Array<object>} rows of 16 bits with their descriptions, the newest first
 * @param {string} statistic `max` or `mean`: how rows of a recording become one
 * @param {number} [seamMs] begin of the oldest live row, which the newest recording does not reach
 * @returns {Array<object>} the newest first; `soundMs` of a row that is longer is the time that was recorded,
 *   `heardMs` its middle
 */
export function byPeriods(rows, statistic, seamMs = Infinity) {
  const recordings = recordingsOf(rows);
  const rowMs = rows.reduce((longest, row) => Math.max(longest, lengthMs(row)), 0);
  const schedule = scheduleOf(recordings, rowMs);
  if (schedule === null) return rows;
  const { periodMs, pauseMs } = schedule;
  const isJoined = pauseMs >= PAUSE_ROWS_MIN * rowMs;
  const liveMs = seamMs - ROUNDING_MS;
  return recordings.flatMap((recording, n) => {
    const { beginMs, endMs } = recording;
    const older = recordings[n + 1];
    const isAfterPause = older !== undefined && isScheduled(beginMs - older.beginMs, periodMs);
    const own = isAfterPause ? withoutGap(recording.rows) : recording.rows;
    if (endMs - beginMs > periodMs || endMs > liveMs) return own;
    const nextMs = n === 0 ? liveMs : recordings[n - 1].beginMs;
    const ownUntilMs = isJoined ? beginMs + periodMs : endMs + pauseMs;
    const untilMs = isScheduled(nextMs - beginMs, periodMs) ? nextMs : Math.max(endMs, Math.min(nextMs, ownUntilMs));
    if (isJoined) return [asOne(own, recording, untilMs, statistic)];
    const [newest, ...others] = own;
    return [asOne([newest], { beginMs: endMs - lengthMs(newest), endMs }, untilMs, statistic), ...others];
  });
}

const lengthMs = ({ merged, description }) => 1000 * merged * description.row_s;

function isScheduled(apartMs, periodMs) {
  return apartMs >= PERIODS_MIN * periodMs && apartMs <= PERIODS_MAX * periodMs;
}

/** @returns {Array<Recording>} the newest first */
function recordingsOf(rows) {
  const found = [];
  for (const row of rows) {
    const beginMs = row.tMs - lengthMs(row) / 2;
    const endMs = row.tMs + lengthMs(row) / 2;
    const newer = found.at(-1);
    if (newer !== undefined && newer.beginMs - endMs < PAUSE_MIN_MS) {
      newer.rows.push(row);
      newer.beginMs = beginMs;
    } else found.push({ rows: [row], beginMs, endMs });
  }
  return found;
}

/** Return a schedule of recordings that are narrower than eight rows, its `periodMs` and `pauseMs`; null without one. */
function scheduleOf(recordings, rowMs) {
  const apart = recordings.slice(1).map(({ beginMs }, n) => recordings[n].beginMs - beginMs);
  if (apart.length < PAUSES_MIN) return null;
  const periodMs = median(apart);
  const isAlike = (ms) => Math.abs(ms - periodMs) <= Math.max(rowMs, SPREAD_MAX * periodMs);
  if (2 * apart.filter(isAlike).length <= apart.length) return null;
  const onMs = median(recordings.map(({ beginMs, endMs }) => endMs - beginMs));
  const pauseMs = median(recordings.slice(1).map(({ endMs }, n) => recordings[n].beginMs - endMs));
  return onMs < ON_ROWS_MAX * rowMs ? { periodMs, pauseMs } : null;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** Return rows of which the oldest has no gap before it. */
function withoutGap(rows) {
  const oldest = rows.at(-1);
  return [...rows.slice(0, -1), { ...oldest, flags: oldest.flags & ~FLAG_GAP }];
}

function asOne(rows, { beginMs, endMs }, untilMs, statistic) {
  const { description } = rows.at(-1);
  const alike = rows.filter((row) => row.description.bits === description.bits && row.values.length === rows.at(-1).values.length);
  const values = alike.length === 1 ? alike[0].values : joined(alike.map((row) => row.values), statistic);
  const merged = (untilMs - beginMs) / (1000 * description.row_s);
  const soundMs = rows.reduce((sum, row) => sum + lengthMs(row), 0);
  return { ...rows.at(-1), merged, soundMs, heardMs: (beginMs + endMs) / 2, tMs: (beginMs + untilMs) / 2, values };
}

/** Return the greatest or the mean power of values of 16 bits. */
function joined(all, statistic) {
  const found = all[0].slice();
  for (let j = 0; j < found.length; j += 1) {
    const known = all.map((values) => values[j]).filter((value) => value !== NOTHING);
    if (known.length === 0) continue;
    const power = () => known.reduce((sum, code) => sum + 10 ** (code / CODES_A_BEL), 0) / known.length;
    found[j] = statistic === "mean" ? Math.round(CODES_A_BEL * Math.log10(power())) : Math.max(...known);
  }
  return found;
}
