/**
 * Tiles of days: pieces of `api/history` of a month, or of a day where nothing is pooled on the disk, fetched when they
 * are seen and kept. At most 24 MiB are kept, and two tiles are fetched at once.
 */

import { decodeHistory, rowsOf } from "../rows/answer.js";
import { sampleOf } from "./dayscale.js";

export const BYTES_MAX = 24 << 20;
const FETCHES_MAX = 2;
const RETRY_MS = 10_000;
const HOUR_MS = 3_600_000;
/** Of so few days columns of a quarter of an hour are shown, of more those of an hour. */
const FINE_DAYS = 14;
const VALUES = 48;
const COLUMNS_MAX = 2048;
/** Columns of the level of a span: at most one a pixel of a wide screen. */
const LEVEL_STEPS_MS = Object.freeze([1, 4, 24, 168].map((hours) => hours * HOUR_MS));

/** Length of the columns of days, of so many [ms]. */
export const columnOf = (days) => (days <= FINE_DAYS ? HOUR_MS / 4 : HOUR_MS);

/** Length of the columns of a level over a span [ms]. */
export const levelColumnOf = (spanMs) => LEVEL_STEPS_MS.find((ms) => spanMs / ms <= COLUMNS_MAX - 1) ?? LEVEL_STEPS_MS.at(-1);

/**
 * @typedef {object} DayTile
 * @property {string} why why there is nothing; empty if there is something, or may be
 * @property {object[]} rows columns with sound, the oldest first, as rows of a waterfall
 * @property {Float32Array} sample some levels, ascending [dB]
 * @property {string} unit
 * @property {number} cellMs length of a column
 */

/** Fetches and keeps tiles. */
export class DayTiles {
  #tiles = new Map();
  #bytes = 0;
  #wanted = [];
  #running = new Map();
  #fetch;
  #base;
  #now;

  /** Grows with each tile that comes. */
  version = 0;
  /** Called with a text for a person. */
  onnotice = () => {};

  /** @param {{fetch: Function, base: string, now?: () => number}} given `base`: address of the page */
  constructor({ fetch, base, now = () => performance.now() }) {
    this.#fetch = fetch;
    this.#base = base;
    this.#now = now;
  }

  /** Bytes that are kept. */
  get bytes() {
    return this.#bytes;
  }

  /** Return a tile that is here, or null. */
  get(asked) {
    const key = keyOf(asked);
    const tile = this.#tiles.get(key) ?? null;
    if (tile !== null) {
      this.#tiles.delete(key); // the last used is at the end
      this.#tiles.set(key, tile);
    }
    return tile;
  }

  /** Want these tiles and no others, the first ones first. */
  want(asked) {
    this.#wanted = asked;
    const keys = new Set(asked.map(keyOf));
    for (const [key, abort] of this.#running) {
      if (keys.has(key)) continue;
      abort.abort();
      this.#running.delete(key);
    }
    this.#startSome();
  }

  #startSome() {
    for (const asked of this.#wanted) {
      if (this.#running.size >= FETCHES_MAX) return;
      const key = keyOf(asked);
      const tile = this.#tiles.get(key);
      const isDue = tile === undefined || (tile.why !== "" && this.#now() - tile.atMs >= RETRY_MS);
      if (isDue && !this.#running.has(key)) this.#start(key, asked);
    }
  }

  #start(key, asked) {
    const abort = new AbortController();
    this.#running.set(key, abort);
    this.#load(asked, abort.signal)
      .catch((error) => ({ why: error.message, rows: [], sample: new Float32Array(), unit: "", cellMs: 0, bytes: 0 }))
      .then((tile) => {
        if (abort.signal.aborted) return;
        this.#running.delete(key);
        this.#keep(key, tile);
        this.#startSome();
      });
  }

  async #load(asked, signal) {
    const response = await this.#fetch(addressOf(this.#base, asked), { signal });
    if (!response.ok) {
      const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
      throw new Error(error);
    }
    const buffer = await response.arrayBuffer();
    const answer = decodeHistory(buffer);
    for (const text of answer.header.left_out ?? []) this.onnotice(text);
    const rows = rowsOf(answer);
    const sample = rows.length === 0 ? new Float32Array() : sampleOf(answer.layers[0], rows[0].description);
    return { why: "", rows, sample, unit: answer.header.unit, cellMs: answer.header.cell_ms, bytes: buffer.byteLength };
  }

  #keep(key, tile) {
    this.#bytes -= this.#tiles.get(key)?.bytes ?? 0;
    this.#tiles.delete(key);
    this.#tiles.set(key, { ...tile, atMs: this.#now() });
    this.#bytes += tile.bytes;
    this.version += 1;
    while (this.#bytes > BYTES_MAX && this.#tiles.size > 1) {
      const [oldest, { bytes }] = this.#tiles.entries().next().value;
      this.#tiles.delete(oldest);
      this.#bytes -= bytes;
    }
  }
}

/**
 * @typedef {object} Asked
 * @property {{id: number, topic: string, endpoint: string}} topic
 * @property {{id: number, topic: string, endpoint: string} | null} less whose levels are subtracted
 * @property {string} layer `max`, `mean` or `level`
 * @property {{t0: number, t1: number, columnMs: number}} times
 * @property {{f0: number, f1: number, kind: string}} axis
 */

const nameOf = ({ endpoint, topic }) => `${endpoint} ${topic}`;

function keyOf({ topic, less, layer, times, axis }) {
  const names = [topic, less].map((one) => (one === null ? "" : nameOf(one)));
  return JSON.stringify([names, layer, times, axis.f0, axis.f1, axis.kind]);
}

function addressOf(base, { topic, less, layer, times: { t0, t1, columnMs }, axis: { f0, f1, kind } }) {
  const address = new URL("api/history", base);
  // A column more: the server's begin at multiples of a cell of UTC, before the local midnight.
  const w = Math.min(COLUMNS_MAX, Math.ceil((t1 - t0) / columnMs) + 1);
  const query = { topic: topic.id, name: nameOf(topic), t0, t1, f0, f1, w, h: VALUES, layers: layer, step: "0.1" };
  if (layer !== "level") query.axis = kind;
  if (less !== null) Object.assign(query, { less: less.id, less_name: nameOf(less) });
  address.search = new URLSearchParams(query);
  return address;
}
