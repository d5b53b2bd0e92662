/** All that is stored of a topic: which times, and its level over them, for the strip above the plots. */

import { decodeHistory } from "./answer.js";
import { levelOf } from "./levels.js";

const COLUMNS = 1024;
const REFRESH_MS = 60_000;
/** What came since the last answer takes at most this share of the strip, unless a minute is more. */
const NEW_SHARE = 0.05;
/** At first the server may not have looked at all files yet: so often it is asked again soon. */
const SOON_MS = 5000;
const SOON_COUNT = 3;
/** What an archive answered stays so until it says that more is stored; where files fill a hole of it, it does not. */
const STORED_MS = 300_000;
/** Without a pyramid levels of a longer time would take the server long [ms]. */
const READ_MS_MAX = 2 * 3_600_000;
const CODES = Object.freeze({ bits: 16, lo: -327.67, step: 0.01 });

/**
 * @typedef {object} Stored
 * @property {number} t0 begin of the oldest row [ms UTC]
 * @property {number} t1 end of the newest
 * @property {Array<[number, number]>} spans of files and memory, ascending
 * @property {{t0: number, columnMs: number, effort: Float32Array, levels: Float32Array, unit: string, isWhole: boolean} | null} columns
 *   levels of all power in equal times, NaN where nothing is known; null where they were not asked for. Whether the
 *   server has read all that is stored: else a time without sound may only not have been read
 */

/**
 * Asks the server for what is stored of one topic: when it is shown, soon after, and once a minute, of short times more
 * often; of an archive when that says that more is stored, and now and then.
 */
export class Overview {
  #fetch;
  #base;
  #now;
  #key = "";
  #askedMs = -Infinity;
  #count = 0;
  /** Times that an archive said are stored when it was asked last; empty of a daemon's topic, which grows. */
  #said = "";

  /** @type {Stored | null} null until there is an answer, and where nothing is stored */
  stored = null;
  /** Grows with each answer. */
  version = 0;

  /** @param {{fetch: Function, base: string, now?: () => number}} given `base`: address of the page */
  constructor({ fetch, base, now = () => performance.now() }) {
    this.#fetch = fetch;
    this.#base = base;
    this.#now = now;
  }

  /** Ask about a topic, if it is another one or it is time to ask again; its frequencies are `f0` to `f1` [Hz]. */
  ask(topic, { f0, f1 }) {
    const key = `${topic.endpoint} ${topic.topic} ${topic.id}`;
    const isOther = key !== this.#key;
    const said = (topic.stored ?? []).join(" ");
    const restMs = said === this.#said ? this.#restMs : SOON_MS;
    if (!isOther && this.#now() - this.#askedMs < restMs) return;
    if (isOther) this.#take(null);
    this.#count = isOther ? 1 : this.#count + 1;
    this.#key = key;
    this.#said = said;
    this.#askedMs = this.#now();
    this.#load(topic, { f0, f1 })
      .catch(() => this.stored) // the next minute may bring it
      .then((stored) => key === this.#key && this.#take(stored));
  }

  /** Time from one question about a topic to the next [ms]. */
  get #restMs() {
    if (this.#said !== "" && this.stored !== null && this.stored.columns?.isWhole !== false) return STORED_MS;
    if (this.#count <= SOON_COUNT) return SOON_MS;
    const lengthMs = this.stored === null ? Infinity : this.stored.t1 - this.stored.t0;
    return Math.max(SOON_MS, Math.min(REFRESH_MS, NEW_SHARE * lengthMs));
  }

  #take(stored) {
    this.stored = stored;
    this.version += 1;
  }

  async #load(topic, range) {
    const about = { topic: topic.id, name: `${topic.endpoint} ${topic.topic}` };
    const answer = await this.#get("api/stored", about);
    const { t0, t1, spans, has_pyramid: hasPyramid } = await answer.json();
    if (!(t0 < t1) || !Array.isArray(spans)) return null;
    const isRead = hasPyramid || t1 - t0 <= READ_MS_MAX;
    const columns = isRead ? await this.#columns({ ...about, ...range, t0, t1 }) : null;
    return { t0, t1, spans, columns };
  }

  async #columns(about) {
    const answer = await this.#get("api/history", { ...about, w: COLUMNS, h: 1, layers: "level" });
    const { header, effort, layers: [codes] } = decodeHistory(await answer.arrayBuffer());
    const levels = Float32Array.from(codes, (code) => levelOf(CODES, code));
    return { t0: header.t0, columnMs: header.cell_ms, effort, levels, unit: header.unit, isWhole: header.left_out.length === 0 };
  }

  async #get(path, query) {
    const address = new URL(path, this.#base);
    address.search = new URLSearchParams(query);
    const answer = await this.#fetch(address);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer;
  }
}

/**
 * What is known of a span of time: whether anything is stored, and the greatest level of its columns, NaN if it is not
 * known.
 *
 * @param {Stored} stored
 * @param {number} t0 [ms UTC]
 * @param {number} t1
 * @returns {{isStored: boolean, level: number}}
 */
export function storedIn({ spans, columns }, t0, t1) {
  const isCovered = spans.some(([begin, end]) => begin < t1 && end > t0);
  if (columns === null) return { isStored: isCovered, level: NaN };
  const { t0: begin, columnMs, effort, levels, isWhole } = columns;
  const first = Math.max(0, Math.floor((t0 - begin) / columnMs));
  const last = Math.min(effort.length - 1, Math.max(first, Math.ceil((t1 - begin) / columnMs) - 1));
  // What came after the answer is known to be there alone.
  if (t0 >= begin + columnMs * effort.length) return { isStored: isCovered, level: NaN };
  let [isStored, level] = [!isWhole && isCovered, NaN];
  for (let n = first; n <= last; n += 1) {
    isStored ||= effort[n] > 0;
    if (!(levels[n] <= level) && !Number.isNaN(levels[n])) level = levels[n];
  }
  return { isStored, level };
}

/** Range of levels that shows most of them: from the quietest twentieth to the greatest; null without any. */
export function levelsRange({ columns }) {
  const levels = columns === null ? [] : Array.from(columns.levels).filter((level) => !Number.isNaN(level)).sort((a, b) => a - b);
  if (levels.length === 0) return null;
  const [lo, hi] = [levels[Math.floor(levels.length / 20)], levels.at(-1)];
  return { lo: lo - 0.15 * Math.max(3, hi - lo), hi: Math.max(hi, lo + 3) };
}
