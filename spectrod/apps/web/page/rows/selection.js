/**
 * What is in a selection of time and frequency, as the server's rows say: the level of its band and its peak.
 *
 * The level is that of the mean power of all bins between the frequencies (Leq), which the server sums up in columns;
 * the peak is found in a coarse picture of maxima, then in the place that this names.
 */

import { decodeHistory, rowMsOf } from "./answer.js";
import { levelOf } from "./levels.js";

const LEVEL_COLUMNS = 1024;
const COARSE = Object.freeze({ w: 256, h: 512 });
const FINE = Object.freeze({ w: 1024, h: 1024 });
const CODES = Object.freeze({ bits: 16, lo: -327.67, step: 0.01 });

/**
 * @typedef {object} SelectionMeasured
 * @property {number} seconds of sound in it
 * @property {number} rows messages of the topic in that
 * @property {{level: number, unit: string, f0: number, f1: number} | null} band mean power of the whole bins that the
 *   selection touches, as a level; null without recordings
 * @property {{level: number, unit: string, hz: number, bandHz: number, tMs: number, columnMs: number} | null} peak
 *   greatest value of a bin, its frequency and time, and how far these tell places apart; null without data
 * @property {boolean} isOfCells whether some of it is from cells of a pyramid
 * @property {string[]} leftOut what could not be had, for a person
 */

/**
 * Measure a selection of one topic.
 *
 * @param {(address: URL, options: object) => Promise<Response>} fetch
 * @param {string} base address of the page
 * @param {{topic: {id: number, topic: string, endpoint: string}, rowMs: number,
 *   box: {t0: number, t1: number, f0: number, f1: number}, signal?: AbortSignal}} asked
 * @returns {Promise<SelectionMeasured>}
 * @throws {Error} with the server's reason
 */
export async function measureSelection(fetch, base, { topic, rowMs, box, signal }) {
  const ask = asking(fetch, base, { topic, box, signal });
  const { level, ownMs } = await askLevel(ask, box, rowMs);
  const { coarse, peak } = await findPeak(ask);
  const rows = Math.round(rowsIn(level, ownMs).reduce((sum, one) => sum + one, 0));
  const { f0, f1, unit } = level.header;
  const leq = meanLevel(level, ownMs);
  return {
    seconds: (rows * ownMs) / 1000,
    rows,
    band: Number.isNaN(leq) ? null : { level: leq, unit, f0, f1 },
    peak: peak && { level: peak.level, unit: coarse.header.unit, hz: peak.hz, bandHz: peak.bandHz, tMs: peak.tMs, columnMs: peak.columnMs },
    isOfCells: [level, coarse].some(({ header }) => header.sources.includes("pyramid")),
    leftOut: [...new Set([level, coarse].flatMap(({ header }) => header.left_out ?? []))],
  };
}

/**
 * Find the greatest value of a bin in a box of one topic.
 *
 * @param {(address: URL, options: object) => Promise<Response>} fetch
 * @param {string} base address of the page
 * @param {{topic: {id: number, topic: string, endpoint: string},
 *   box: {t0: number, t1: number, f0: number, f1: number}}} asked
 * @returns {Promise<{hz: number, tMs: number} | null>} null without data
 * @throws {Error} with the server's reason
 */
export async function findLoudest(fetch, base, asked) {
  const { peak } = await findPeak(asking(fetch, base, asked));
  return peak && { hz: peak.hz, tMs: peak.tMs };
}

/** A function that asks for a part of a box, of a size [columns, values]. */
function asking(fetch, base, { topic, box, signal }) {
  return (part, size, layers) => askHistory(fetch, addressOf(base, topic, { ...box, ...part }, size, layers), signal);
}

/** Levels of a box in columns that are no shorter than a row: of shorter ones some rows would count three times, others four times. */
async function askLevel(ask, { t0, t1 }, rowMs) {
  const askFor = (ms) => ask({}, { w: Math.max(1, Math.min(LEVEL_COLUMNS, Math.floor((t1 - t0) / ms))), h: 1 }, "level");
  const level = await askFor(rowMs);
  const ownMs = rowMsOf(level, rowMs);
  return { level: level.header.cell_ms < Math.min(ownMs, t1 - t0) ? await askFor(ownMs) : level, ownMs };
}

/** The coarse picture of a box, and its peak, or null without data. */
async function findPeak(ask) {
  const coarse = await ask({}, COARSE, "max");
  const near = peakOf(coarse);
  return { coarse, peak: near && peakOf(await ask(placeOf(coarse, near), FINE, "max")) };
}

/**
 * How many rows, also parts of one, are in each column of an answer. The server says how much sound is in a column, and
 * at most its length: one that is full has as many rows as can begin in it.
 */
export function rowsIn({ header: { cell_ms: columnMs }, effort }, rowMs) {
  const most = Math.ceil(columnMs / rowMs - 1e-3);
  return Array.from(effort, (seconds) => (columnMs >= rowMs && 1000 * seconds >= (1 - 1e-5) * columnMs ? most : (1000 * seconds) / rowMs));
}

/** Level of the mean power of an answer's columns, each by its rows; NaN without any. */
export function meanLevel(answer, rowMs) {
  const { layers: [codes] } = answer;
  let [power, count] = [0, 0];
  rowsIn(answer, rowMs).forEach((rows, n) => {
    const level = levelOf(CODES, codes[n]);
    if (Number.isNaN(level) || !(rows > 0)) return;
    power += rows * 10 ** (level / 10);
    count += rows;
  });
  return count > 0 ? 10 * Math.log10(power / count) : NaN;
}

/** Place of the greatest value of an answer, or null without one; of equal ones the first. */
export function peakOf({ header: { t0, cell_ms: columnMs, h, f0, f1, edges_hz: edges }, layers: [codes] }) {
  let best = -1;
  codes.forEach((code, n) => {
    if (code !== 65535 && (best < 0 || code > codes[best])) best = n;
  });
  if (best < 0) return null;
  const [column, value] = [Math.floor(best / h), best % h];
  const [low, high] = edges ? [edges[0][value], edges[1][value]] : [0, 1].map((k) => f0 + ((value + k) * (f1 - f0)) / h);
  const begin = t0 + column * columnMs;
  return { level: levelOf(CODES, codes[best]), low, high, hz: (low + high) / 2, bandHz: high - low, begin, columnMs, tMs: begin + columnMs / 2 };
}

/** Time and frequencies of a place, so far within its edges that no neighbour is touched. */
function placeOf({ header: { f0, f1 } }, { low, high, begin, columnMs }) {
  const margin = 1e-6 * (high - low);
  return { t0: begin, t1: begin + columnMs, f0: Math.max(f0, low + margin), f1: Math.min(f1, high - margin) };
}

function addressOf(base, topic, { t0, t1, f0, f1 }, { w, h }, layers) {
  const address = new URL("api/history", base);
  const name = `${topic.endpoint} ${topic.topic}`;
  address.search = new URLSearchParams({ topic: topic.id, name, t0, t1, f0, f1, w, h, layers });
  return address;
}

async function askHistory(fetch, address, signal) {
  const response = await fetch(address, { signal });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
    throw new Error(error);
  }
  return decodeHistory(await response.arrayBuffer());
}
