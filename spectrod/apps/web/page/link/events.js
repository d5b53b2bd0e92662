/** What happened: events of the daemons, and breaks in the rows, on the time axis and in a list. */

const KEPT = 500;
/** The same break of several channels is one entry. */
const SAME_MS = 50;

/** @typedef {{tMs: number, kind: string, source: string, text: string}} Entry */

export class EventLog {
  #entries = [];
  #seen = new Set();
  /** Grows with each entry, for whoever draws them. */
  version = 0;

  /** Entries, the newest first. */
  get entries() {
    return this.#entries;
  }

  /** Take an `event` text of the server; one that came already, as after a reconnection, is left out. */
  take({ endpoint, source, t_ms, kind, text, number }) {
    const id = `${endpoint} ${number} ${t_ms}`;
    if (this.#seen.has(id)) return;
    this.#seen.add(id);
    if (this.#seen.size > 2 * KEPT) this.#seen.delete(this.#seen.values().next().value);
    this.#add({ tMs: t_ms, kind, source: source || endpoint, text });
  }

  /** Note a break in the rows of a source. */
  note(kind, source, tMs, text) {
    const isSame = (entry) =>
      entry.kind === kind && entry.source === source && Math.abs(entry.tMs - tMs) <= SAME_MS;
    if (!this.#entries.slice(0, 16).some(isSame)) this.#add({ tMs, kind, source, text });
  }

  #add(entry) {
    const at = this.#entries.findIndex(({ tMs }) => tMs <= entry.tMs);
    this.#entries.splice(at < 0 ? this.#entries.length : at, 0, Object.freeze(entry));
    this.#entries.length = Math.min(this.#entries.length, KEPT);
    this.version += 1;
  }

  /** Entries of a span of time, the newest first. */
  between(t0Ms, t1Ms) {
    return this.#entries.filter(({ tMs }) => tMs >= t0Ms && tMs <= t1Ms);
  }
}

const BREAK_TEXTS = {
  gap: (row) => `${Math.round(row.gapSamples)} samples lost`,
  epoch: () => "daemon restarted",
  dropped: () => "rows dropped: this page or its connection was too slow",
};

/** Text of a break before a row. */
export const breakText = (kind, row) => BREAK_TEXTS[kind](row);
