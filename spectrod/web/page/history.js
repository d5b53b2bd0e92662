/**
 * Tiles of the past: fetched from `api/history`, kept, and given as rows of a waterfall.
 *
 * A tile is 256 columns, each of one length of the ladder, so that all pages ask for the same ones. A
 * column is a row like those that are live, of 16 bits, whose values are equally wide bins or bands.
 */

import { decodeHistory, endOf, rowsOf } from "./answer.js";

/** Lengths of columns [ms]; those of the cells of a pyramid, see docs/long-term.md. */
export const LADDER_MS = Object.freeze([
  10, 50, 250, 1000, 5000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 86_400_000,
]);
export const TILE_COLUMNS = 256;
const VALUES = 2048;
const EXPORTED = 1024;
const TILES_MAX = 128;
const BYTES_MAX = 64 << 20;
const FETCHES_MAX = 3;
const FRESH_MS = 3000;
const FRESH_MAX_MS = 60_000;
const RETRY_MS = 5000;
const PARENTS = 3;
const EMPTY = Object.freeze({ isFinal: false, etag: null, endMs: -Infinity, bytes: 0, freshMs: RETRY_MS });

/** Return the length of the columns for a scale: the longest that is not longer than a pixel. */
export function columnFor(msPerPx) {
  return LADDER_MS.findLast((length) => length <= msPerPx) ?? LADDER_MS[0];
}

/**
 * Return frequencies to ask for: a part of the topic's, halved as often as the view allows.
 *
 * Few different parts, so that a little panning and zooming asks for nothing new.
 *
 * @param {{f0: number, f1: number}} view
 * @param {{f0: number, f1: number}} all that the topic has
 */
export function frequenciesFor(view, all) {
  const low = Math.max(view.f0, all.f0);
  const high = Math.min(view.f1, all.f1);
  let [f0, f1] = [all.f0, all.f1];
  for (let halvings = 0; halvings < 20; halvings += 1) {
    const width = (f1 - f0) / 2;
    // Parts overlap by half, so that the middle of the topic is in one, too.
    const place = Math.min(2, Math.max(0, Math.floor((low - f0) / (width / 2))));
    const begin = f0 + (place * width) / 2;
    if (!(low >= begin && high <= begin + width && high > low)) break;
    [f0, f1] = [begin, begin + width];
  }
  return { f0, f1 };
}

/**
 * @typedef {object} Past
 * @property {Array<object>} rows the newest first, each with its `description`
 * @property {boolean} isComplete whether nothing is still to come
 */

/** The past of topics: at most 128 tiles and 64 MiB are kept, three are fetched at once. */
export class History {
  #tiles = new Map();
  #bytes = 0;
  #wanted = new Map();
  #running = new Map();
  #fetch;
  #base;
  #now;

  /** Grows with each tile that brings something new. */
  version = 0;
  /** Called with a text for a person: what the server could not have, or why it refused. */
  onnotice = () => {};

  /**
   * @param {{fetch: Function, base: string, now?: () => number}} given `base`: address of the page
   */
  constructor({ fetch, base, now = () => performance.now() }) {
    this.#fetch = fetch;
    this.#base = base;
    this.#now = now;
  }

  /** Tiles that are kept. */
  get size() {
    return this.#tiles.size;
  }

  /** Tiles that are being fetched. */
  get running() {
    return this.#running.size;
  }

  /** Forget which tiles somebody wanted. */
  forget(owner) {
    this.#wanted.delete(owner);
  }

  /**
   * Return the rows of a span of time that are here, and want the tiles that are not.
   *
   * @param {object} owner who asks; its former wishes are forgotten
   * @param {{topic: {id: number, topic: string, endpoint: string}, f0: number, f1: number,
   *   statistic: string}} about frequencies as `frequenciesFor` gives them [Hz]; `max` or `mean`
   * @param {{t0: number, t1: number, msPerPx: number}} times [ms UTC]
   * @returns {Past}
   */
  rows(owner, about, { t0, t1, msPerPx }) {
    const columnMs = columnFor(msPerPx);
    const tileMs = columnMs * TILE_COLUMNS;
    const rows = [];
    const wanted = [];
    for (let index = Math.ceil(t1 / tileMs) - 1; (index + 1) * tileMs > t0 && wanted.length < TILES_MAX; index -= 1) {
      const key = keyOf(about, columnMs, index);
      const tile = this.#tile(key);
      if (tile === null || isBehind(tile, Math.min(t1, (index + 1) * tileMs), columnMs)) {
        wanted.push({ key, about, columnMs, index });
      }
      const found = tile?.rows ?? this.#coarser(about, columnMs, index);
      for (let n = found.length - 1; n >= 0; n -= 1) {
        if (found[n].tMs >= t0 && found[n].tMs < t1) rows.push(found[n]);
      }
    }
    this.#wanted.set(owner, wanted);
    return { rows, isComplete: wanted.length === 0 };
  }

  #tile(key) {
    const tile = this.#tiles.get(key) ?? null;
    if (tile !== null) {
      this.#tiles.delete(key); // the last used is at the end
      this.#tiles.set(key, tile);
    }
    return tile;
  }

  /** Return the rows of a tile's time from the next coarser tile that is here. */
  #coarser(about, columnMs, index) {
    const t0 = index * columnMs * TILE_COLUMNS;
    const t1 = t0 + columnMs * TILE_COLUMNS;
    const place = LADDER_MS.indexOf(columnMs);
    for (const longer of LADDER_MS.slice(place + 1, place + 1 + PARENTS)) {
      const tile = this.#tiles.get(keyOf(about, longer, Math.floor(t0 / (longer * TILE_COLUMNS))));
      if (tile?.bytes > 0) return tile.rows.filter(({ tMs }) => tMs >= t0 && tMs < t1);
    }
    return [];
  }

  /** Fetch what is wanted now, and end what is wanted no more; to be called now and then. */
  settle() {
    const wanted = [...this.#wanted.values()].flat();
    const keys = new Set(wanted.map(({ key }) => key));
    for (const [key, abort] of this.#running) {
      if (!keys.has(key)) {
        abort.abort();
        this.#running.delete(key);
      }
    }
    for (const one of wanted) {
      if (this.#running.size >= FETCHES_MAX) return;
      if (!this.#running.has(one.key) && this.#isDue(one.key)) this.#start(one);
    }
  }

  #isDue(key) {
    const tile = this.#tiles.get(key);
    return tile === undefined || (!tile.isFinal && this.#now() - tile.atMs >= tile.freshMs);
  }

  #start(one) {
    const abort = new AbortController();
    this.#running.set(one.key, abort);
    this.#load(one, abort.signal)
      .catch((error) => {
        if (!abort.signal.aborted) this.onnotice(`the past: ${error.message}`);
        return { ...EMPTY, rows: this.#tiles.get(one.key)?.rows ?? [] };
      })
      .then((tile) => {
        if (abort.signal.aborted) return;
        this.#running.delete(one.key);
        this.#keep(one.key, tile);
      });
  }

  async #load({ about, columnMs, index }, signal) {
    const response = await this.#fetch(addressOf(this.#base, about, columnMs, index), { signal });
    if (!response.ok) {
      const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
      throw new Error(error);
    }
    const buffer = await response.arrayBuffer();
    const answer = decodeHistory(buffer);
    const { headers } = response;
    const isFinal = (headers.get("cache-control") ?? "").includes("immutable");
    for (const text of answer.header.left_out ?? []) this.onnotice(`the past: ${text}`);
    const rows = rowsOf(answer);
    return { rows, isFinal, etag: headers.get("etag"), endMs: endOf(answer), bytes: buffer.byteLength, freshMs: FRESH_MS };
  }

  #keep(key, tile) {
    const before = this.#tiles.get(key);
    this.#bytes -= before?.bytes ?? 0;
    this.#tiles.delete(key);
    // What brings nothing new, as of a time that nobody recorded, is asked for less and less often.
    const isSame = before !== undefined && before.etag === tile.etag;
    const freshMs = isSame ? Math.min(FRESH_MAX_MS, 2 * before.freshMs) : tile.freshMs;
    this.#tiles.set(key, { ...tile, freshMs, atMs: this.#now() });
    this.#bytes += tile.bytes;
    if (!isSame) this.version += 1;
    while (this.#tiles.size > TILES_MAX || (this.#bytes > BYTES_MAX && this.#tiles.size > 1)) {
      const [oldest, { bytes }] = this.#tiles.entries().next().value;
      this.#tiles.delete(oldest);
      this.#bytes -= bytes;
    }
  }
}

/** Return whether a tile may have too little for a time: it was made before that was over. */
function isBehind(tile, untilMs, columnMs) {
  return !tile.isFinal && tile.endMs < untilMs - columnMs;
}

/**
 * Return the address of a file of what is shown, see docs/web-protocol.md.
 *
 * @param {string} base address of the page
 * @param {{id: number, topic: string, endpoint: string}} topic
 * @param {{t0: number, t1: number, f0: number, f1: number, statistic: string}} shown [ms UTC], [Hz]
 * @param {string} format `csv` or `spd`
 */
export function exportAddress(base, topic, { t0, t1, f0, f1, statistic }, format) {
  const address = new URL("api/export", base);
  const name = `${topic.endpoint} ${topic.topic}`;
  address.search = new URLSearchParams({
    format, topic: topic.id, name, t0, t1, f0, f1, w: EXPORTED, h: EXPORTED, layers: statistic,
  });
  return address;
}

function keyOf({ topic, f0, f1, statistic }, columnMs, index) {
  return [topic.endpoint, topic.topic, f0, f1, statistic, columnMs, index].join(" ");
}

function addressOf(base, { topic, f0, f1, statistic }, columnMs, index) {
  const address = new URL("api/history", base);
  const tileMs = columnMs * TILE_COLUMNS;
  address.search = new URLSearchParams({
    topic: topic.id,
    name: `${topic.endpoint} ${topic.topic}`,
    t0: index * tileMs,
    t1: (index + 1) * tileMs,
    f0,
    f1,
    w: TILE_COLUMNS,
    h: VALUES,
    layers: statistic,
  });
  return address;
}
