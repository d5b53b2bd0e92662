/**
 * Tiles of the past: fetched from `api/history`, kept, and given as rows of a waterfall.
 *
 * A tile is 64 columns, each as long as a pixel of the waterfall at most, and of a few cells of a pyramid. A column
 * is a row like those that are live: it has the values of a stream for the same axis and pixels.
 */

import { decodeHistory, rowsOf } from "./answer.js";

/** Lengths of the cells of a pyramid [ms], see docs/long-term.md. */
const CELLS_MS = Object.freeze([
  10, 50, 250, 1000, 5000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000, 86_400_000,
]);
/** Lengths of columns [ms]: one to four cells, as long as they are shorter than the next cell. */
export const LADDER_MS = Object.freeze(
  CELLS_MS.flatMap((cell, n) => [1, 2, 3, 4].map((count) => count * cell).filter((ms) => ms < (CELLS_MS[n + 1] ?? Infinity))),
);
export const TILE_COLUMNS = 64;
const EXPORTED = 1024;
/** Step of levels: what a person reads, and half as many bytes on the line as of 0.01 dB. */
const STEP_DB = "0.1";
const TILES_MAX = 512;
const BYTES_MAX = 64 << 20;
const FETCHES_MAX = 3;
/** A tile that takes longer comes over a slow line, which live rows need as well: then one is fetched at a time. */
const FAST_MS = 500;
const FRESH_MS = 3000;
const FRESH_MAX_MS = 60_000;
/** What is before live rows the server has: it is asked for again once, so soon. */
const SOON_MS = 250;
const ROUNDING_MS = 1;
/** What an archive answered stays so until it says that more is stored; where files fill a hole of it, it does not. */
const STORED_MS = 300_000;
const RETRY_MS = 5000;
const PARENTS = 8;
/** Time for which an axis must stay before anything is asked for it: zooming passes through many. */
const SETTLED_MS = 200;
const EMPTY = Object.freeze({ isFinal: false, etag: null, endMs: -Infinity, bytes: 0, freshMs: RETRY_MS, stored: "" });

/** Return the length of the columns for a scale: the longest that is not longer than a pixel. */
export function columnFor(msPerPx) {
  return LADDER_MS.findLast((length) => length <= msPerPx) ?? LADDER_MS[0];
}

/**
 * @typedef {object} About what is asked for, as of a stream
 * @property {{id: number, topic: string, endpoint: string, less?: object}} topic `less`: the one whose levels are subtracted
 * @property {number} f0 ends of the axis [Hz]
 * @property {number} f1
 * @property {string} axis kind of the axis
 * @property {number} px pixels of the axis
 * @property {string} statistic `max` or `mean`
 */

/**
 * @typedef {object} Past
 * @property {Array<object>} rows the newest first, each with its `description`
 * @property {boolean} isComplete whether nothing is still to come
 */

/** The past of topics: at most 512 tiles and 64 MiB are kept, three are fetched at once. */
export class History {
  #tiles = new Map();
  #bytes = 0;
  #wanted = new Map();
  /** What each owner asks for: `{about, sinceMs, before}`, the latter what it asked for until then. */
  #asked = new Map();
  #running = new Map();
  #atOnce = FETCHES_MAX;
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
    this.#asked.delete(owner);
  }

  /**
   * Return the rows of a span of time that are here, and want the tiles that are not.
   *
   * @param {object} owner who asks; its former wishes are forgotten
   * @param {About} about
   * @param {{t0: number, t1: number, msPerPx: number, isBeforeLive?: boolean}} times [ms UTC]; `isBeforeLive`: whether live
   *   rows begin at `t1`, which the last column may reach into
   * @returns {Past}
   */
  rows(owner, about, { t0, t1, msPerPx, isBeforeLive = false }) {
    const columnMs = columnFor(msPerPx);
    const tileMs = columnMs * TILE_COLUMNS;
    const rows = [];
    const wanted = [];
    const { sinceMs, before } = this.#ask(owner, about);
    for (let index = Math.ceil(t1 / tileMs) - 1; (index + 1) * tileMs > t0 && wanted.length < TILES_MAX; index -= 1) {
      const key = keyOf(about, columnMs, index);
      const tile = this.#tile(key);
      if (tile === null || isBehind(tile, Math.min(t1, (index + 1) * tileMs))) {
        wanted.push({ key, about, columnMs, index, sinceMs, isBeforeLive });
      }
      const found = tile?.rows ?? this.#coarser([about, ...before], columnMs, index);
      for (let n = found.length - 1; n >= 0; n -= 1) {
        if (found[n].tMs >= t0 && found[n].tMs - 500 * found[n].description.row_s < t1) rows.push(found[n]);
      }
    }
    this.#wanted.set(owner, wanted);
    return { rows, isComplete: wanted.length === 0 };
  }

  /** Note what an owner asks for; of another axis, what it asked for before shows until there is more. */
  #ask(owner, about) {
    const asked = this.#asked.get(owner);
    if (asked !== undefined && keyOf(asked.about) === keyOf(about)) return asked;
    const isSame = asked?.about.topic === about.topic && asked?.about.statistic === about.statistic;
    // Of the axes that were passed through the first has tiles: nothing was asked for the others.
    const wasSettled = isSame && this.#isSettled(asked);
    const before = wasSettled ? [asked.about] : isSame ? asked.before : [];
    const made = { about, before, sinceMs: isSame ? this.#now() : -Infinity };
    this.#asked.set(owner, made);
    return made;
  }

  #isSettled({ sinceMs }) {
    return this.#now() - sinceMs >= SETTLED_MS;
  }

  #tile(key) {
    const tile = this.#tiles.get(key) ?? null;
    if (tile !== null) {
      this.#tiles.delete(key); // the last used is at the end
      this.#tiles.set(key, tile);
    }
    return tile;
  }

  /** Return the rows of a tile's time from tiles that are here: of an earlier axis, or of longer columns. */
  #coarser(abouts, columnMs, index) {
    const t0 = index * columnMs * TILE_COLUMNS;
    const t1 = t0 + columnMs * TILE_COLUMNS;
    const place = LADDER_MS.indexOf(columnMs);
    for (const longer of LADDER_MS.slice(place, place + 1 + PARENTS)) {
      const tileMs = longer * TILE_COLUMNS;
      for (const about of abouts) {
        const tiles = [Math.floor(t0 / tileMs), Math.floor((t1 - 1) / tileMs)].map((n) => this.#tiles.get(keyOf(about, longer, n)));
        if (tiles.every((tile) => tile?.bytes > 0)) return rowsBetween(new Set(tiles), t0, t1);
      }
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
      if (this.#running.size >= this.#atOnce) return;
      if (!this.#isSettled(one)) continue;
      if (!this.#running.has(one.key) && this.#isDue(one)) this.#start(one);
    }
  }

  #isDue({ key, about, isBeforeLive }) {
    const tile = this.#tiles.get(key);
    if (tile === undefined) return true;
    const isAllStored = tile.stored !== "" && tile.stored === storedOf(about);
    const freshMs = isBeforeLive && tile.freshMs === FRESH_MS ? SOON_MS : tile.freshMs;
    return !tile.isFinal && this.#now() - tile.atMs >= (isAllStored ? STORED_MS : freshMs);
  }

  #start(one) {
    const abort = new AbortController();
    const startedMs = this.#now();
    this.#running.set(one.key, abort);
    this.#load(one, abort.signal)
      .catch((error) => {
        if (!abort.signal.aborted) this.onnotice(`the past: ${error.message}`);
        return { ...EMPTY, rows: this.#tiles.get(one.key)?.rows ?? [] };
      })
      .then((tile) => {
        if (abort.signal.aborted) return;
        this.#running.delete(one.key);
        this.#atOnce = this.#now() - startedMs > FAST_MS ? 1 : Math.min(FETCHES_MAX, this.#atOnce + 1);
        this.#keep(one.key, tile);
        this.settle(); // not with the next frame, which a busy machine draws late
      });
  }

  async #load({ key, about, columnMs, index }, signal) {
    const before = this.#tiles.get(key);
    const headers = before?.etag ? { "If-None-Match": before.etag } : {};
    const stored = storedOf(about);
    const response = await this.#fetch(addressOf(this.#base, about, columnMs, index), { signal, headers });
    if (response.status === 304 && before !== undefined) return { ...before, stored: before.isWhole ? stored : "" };
    if (!response.ok) {
      const { error } = await response.json().catch(() => ({ error: `status ${response.status}` }));
      throw new Error(error);
    }
    const buffer = await response.arrayBuffer();
    const answer = decodeHistory(buffer);
    const isFinal = (response.headers.get("cache-control") ?? "").includes("immutable");
    const leftOut = answer.header.left_out ?? [];
    for (const text of leftOut) this.onnotice(`the past: ${text}`);
    const isWhole = leftOut.length === 0;
    const kept = { etag: response.headers.get("etag"), endMs: answer.header.until, bytes: buffer.byteLength, freshMs: FRESH_MS };
    return { ...kept, rows: rowsOf(answer), isFinal, isWhole, stored: isWhole ? stored : "" };
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

/** Times that an archive says are stored of what is asked for; empty of a daemon's topic, which grows. */
const storedOf = ({ topic: { stored = [], less } }) => [...stored, ...(less?.stored ?? [])].join(" ");

/** Return whether a tile may have too little for a time: it was made before that was over. */
function isBehind(tile, untilMs) {
  return !tile.isFinal && tile.endMs < untilMs - ROUNDING_MS;
}

/**
 * Return the address of a file of what is shown, see docs/web-protocol.md.
 *
 * @param {string} base address of the page
 * @param {{id: number, topic: string, endpoint: string}} topic
 * @param {{t0: number, t1: number, f0: number, f1: number, axis: string, px: number, statistic: string}} shown
 *   [ms UTC], [Hz], kind and pixels of the axis
 * @param {string} format `csv` or `spd`
 */
export function exportAddress(base, topic, { t0, t1, f0, f1, axis, px, statistic }, format) {
  const address = new URL("api/export", base);
  const name = `${topic.endpoint} ${topic.topic}`;
  address.search = new URLSearchParams({
    format, topic: topic.id, name, t0, t1, f0, f1, axis, w: EXPORTED, h: px, layers: statistic, ...lessOf(topic),
  });
  return address;
}

/** Endpoint and topic, and those of the one whose levels are subtracted. */
const namesOf = ({ endpoint, topic, less }) => [endpoint, topic, ...(less === undefined ? [] : ["less", less.endpoint, less.topic])];

/** What an address says of the topic whose levels are subtracted, if any are. */
const lessOf = ({ less }) => (less === undefined ? {} : { less: less.id, less_name: `${less.endpoint} ${less.topic}` });

/** Rows of tiles in a span of time, the oldest first. */
function rowsBetween(tiles, t0, t1) {
  return [...tiles].flatMap(({ rows }) => rows.filter(({ tMs }) => tMs >= t0 && tMs < t1));
}

/** Key of a tile, or of what is asked for. */
export function keyOf({ topic, f0, f1, axis, px, statistic }, columnMs = 0, index = 0) {
  return [...namesOf(topic), f0, f1, axis, px, statistic, columnMs, index].join(" ");
}

function addressOf(base, about, columnMs, index) {
  const tileMs = columnMs * TILE_COLUMNS;
  return historyAddress(base, about, { t0: index * tileMs, t1: (index + 1) * tileMs, w: TILE_COLUMNS, step: STEP_DB });
}

/**
 * Return the address of a piece of the past, see docs/web-protocol.md.
 *
 * @param {string} base address of the page
 * @param {About} about
 * @param {{t0: number, t1: number, w: number, step: string}} piece [ms UTC], columns, step of levels [dB]
 */
export function historyAddress(base, { topic, f0, f1, axis, px, statistic }, { t0, t1, w, step }) {
  const address = new URL("api/history", base);
  const name = `${topic.endpoint} ${topic.topic}`;
  address.search = new URLSearchParams({ topic: topic.id, name, t0, t1, f0, f1, w, h: px, axis, step, layers: statistic, ...lessOf(topic) });
  return address;
}
