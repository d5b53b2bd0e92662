/** What happened: events of the daemons, and breaks in the rows, as marks in time and frequency, for plots and a list. */

const KEPT = 500;
/** The same break of several channels is one mark. */
const SAME_MS = 50;
/** Heartbeats come once a second: clipping in two of them, so far apart at most, is one mark. */
const CLIPPING_MS = 2500;

/**
 * A mark on the plots and in the list, whoever made it.
 *
 * @typedef {object} Mark
 * @property {number} t0 begin [ms UTC]
 * @property {number} t1 end, equal to `t0` of what has no length [ms UTC]
 * @property {number | null} f0 lower end of its band [Hz]; null: of all frequencies
 * @property {number | null} f1 upper end [Hz]
 * @property {string} kind words with dots between
 * @property {string} source that it is about; an endpoint: of its daemon
 * @property {string} channel that it is about; empty: all of the source's
 * @property {string} text
 */

/** Make a mark; what is left out has no length, no band and all channels. */
export function makeMark({ t0, t1 = t0, f0 = null, f1 = null, kind, source, channel = "", text }) {
  return Object.freeze({ t0, t1, f0, f1, kind, source, channel, text });
}

/** Fields of a mark that an event's trigger knows better: when the condition was met, and in which band. */
function ofTrigger({ state, begin_utc_ns, end_utc_ns, f_min_hz, f_max_hz, channel }) {
  if (![begin_utc_ns, end_utc_ns].every(Number.isFinite)) return {};
  const [begin, end] = [begin_utc_ns / 1e6, end_utc_ns / 1e6];
  const t1 = state === "ended" ? Math.max(begin, end) : begin;
  const hasBand = Number.isFinite(f_min_hz) && Number.isFinite(f_max_hz);
  return { t0: begin, t1, channel, ...(hasBand ? { f0: f_min_hz, f1: f_max_hz } : {}) };
}

/** Whether a mark is about a channel, or about all of its source or daemon. */
export function concerns({ source, channel }, info) {
  if (info.less !== undefined && concerns({ source, channel }, info.less)) return true;
  return source === info.endpoint || (source === info.source && (channel === "" || channel === info.channel));
}

export class EventLog {
  #entries = [];
  #stored = [];
  #longestMs = 0;
  /** Whether what is stored has older events than these. */
  hasMore = false;
  #seen = new Set();
  #news = [];
  /** Marks that somebody has selected. */
  selected = [];
  /** Grows with each change, for whoever draws them. */
  version = 0;
  /** Number of marks that were added so far. */
  total = 0;

  /** Marks, the newest first; of an archive those of its files. */
  get entries() {
    return this.#stored.length > 0 ? this.#stored : this.#entries;
  }

  /**
   * Take the marks of an archive in place of those before.
   *
   * @param {Mark[]} marks
   * @param {boolean} hasMore
   */
  putStored(marks, hasMore) {
    this.#stored = [...marks].sort((a, b) => b.t0 - a.t0);
    this.#longestMs = marks.reduce((most, { t0, t1 }) => Math.max(most, t1 - t0), 0);
    this.hasMore = hasMore;
    this.selected = [];
    this.version += 1;
  }

  /** Take an `event` text of the server; one that came already, as after a reconnection, is left out. */
  take({ endpoint, source, t_ms, kind, text, number, trigger }) {
    const id = `${endpoint} ${number} ${t_ms}`;
    if (this.#seen.has(id)) return;
    this.#seen.add(id);
    if (this.#seen.size > 2 * KEPT) this.#seen.delete(this.#seen.values().next().value);
    this.#add(makeMark({ t0: t_ms, kind, source: source || endpoint, text, ...(trigger ? ofTrigger(trigger) : {}) }));
  }

  /** Note a break in the rows of a source. */
  note(kind, source, tMs, text) {
    const isSame = (mark) => mark.kind === kind && mark.source === source && Math.abs(mark.t0 - tMs) <= SAME_MS;
    if (!this.#entries.slice(0, 16).some(isSame)) this.#add(makeMark({ t0: tMs, kind, source, text }));
  }

  /**
   * Note that samples of a source were at full scale; what goes on is one mark, which grows.
   *
   * @param {string} source
   * @param {{t0: number, t1: number}} span of two heartbeats [ms UTC]
   * @param {{count: number, total: number}} samples `count`: of this span; `total`: since the source was opened
   */
  noteClipping(source, { t0, t1 }, { count, total }) {
    const before = this.#entries.find((mark) => mark.kind === "clipping" && mark.source === source);
    const isLonger = before !== undefined && t0 - before.t1 <= CLIPPING_MS;
    const text = `${count} samples at full scale, ${total} in all`;
    const mark = makeMark({ t0: isLonger ? before.t0 : t0, t1, kind: "clipping", source, text });
    if (isLonger) this.#replace(before, mark);
    else this.#add(mark);
  }

  #replace(before, mark) {
    this.#entries[this.#entries.indexOf(before)] = mark;
    this.selected = this.selected.map((one) => (one === before ? mark : one));
    this.version += 1;
  }

  #add(mark) {
    const at = this.#entries.findIndex(({ t0 }) => t0 <= mark.t0);
    this.#entries.splice(at < 0 ? this.#entries.length : at, 0, mark);
    this.#entries.length = Math.min(this.#entries.length, KEPT);
    this.#news.push(mark);
    if (this.#news.length > KEPT) this.#news.shift();
    this.total += 1;
    this.version += 1;
  }

  /** Select marks, or none. */
  select(marks) {
    this.selected = [...marks];
    this.version += 1;
  }

  /** Marks that were added since the last call, in the order in which they came. */
  takeNews() {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  /** Marks of which something is within a span of time, the newest first. */
  between(t0Ms, t1Ms) {
    if (this.#stored.length === 0) return this.#entries.filter(({ t0, t1 }) => t1 >= t0Ms && t0 <= t1Ms);
    const first = firstUntil(this.#stored, t1Ms);
    const end = firstUntil(this.#stored, t0Ms - this.#longestMs - 1);
    return this.#stored.slice(first, end).filter(({ t1 }) => t1 >= t0Ms);
  }
}

/** Place of the first mark that begins at a time or before it, of marks that are sorted, the newest first. */
function firstUntil(marks, tMs) {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].t0 > tMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

const BREAK_TEXTS = {
  gap: (row) => `${Math.round(row.gapSamples)} samples lost`,
  epoch: () => "daemon restarted",
  dropped: () => "rows dropped: this page or its connection was too slow",
};

/** Text of a break before a row. */
export const breakText = (kind, row) => BREAK_TEXTS[kind](row);

/** Which marks a filter lets through; empty fields let all. */
export function filtered(entries, { kind = "", about = "", text = "" }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const isFound = (mark) => words.every((word) => `${mark.kind} ${aboutText(mark)} ${mark.text}`.toLowerCase().includes(word));
  return entries.filter((mark) => (kind === "" || mark.kind === kind) && (about === "" || aboutText(mark) === about) && isFound(mark));
}

/** Orders of lists of events; of equal ones the newest first. */
export const ORDERS = Object.freeze(["newest", "oldest", "source", "kind"]);

const byText = (textOf) => (a, b) => (textOf(a) < textOf(b) ? -1 : textOf(a) > textOf(b) ? 1 : 0);

/** Marks in an order of `ORDERS`, of such as are sorted, the newest first. */
export function ordered(marks, order) {
  if (order === "oldest") return [...marks].reverse();
  if (order === "newest") return marks;
  return [...marks].sort(byText(order === "source" ? aboutText : ({ kind }) => kind));
}

/** What a mark is about, for a person. */
export const aboutText = ({ source, channel }) => (channel === "" ? source : `${source} · ${channel}`);
