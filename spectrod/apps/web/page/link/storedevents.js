/** Events of what an archive has: fetched when the server has others than before. */

import { makeMark } from "./events.js";

/** Time from an answer that failed to the next question [ms]. */
const AGAIN_MS = 5000;

/** Marks of the answer of `api/events`; what is no event is left out. */
export function marksOf({ events }) {
  if (!Array.isArray(events)) return [];
  const isTimed = (one) => Number.isFinite(one?.t0) && Number.isFinite(one.t1) && one.t0 <= one.t1;
  return events.filter(isTimed).map(({ t0, t1, f0, f1, kind, source, channel, text }) => {
    const band = Number.isFinite(f0) && Number.isFinite(f1) ? { f0, f1 } : {};
    return makeMark({ t0, t1, ...band, kind: String(kind), source: String(source), channel: String(channel), text: String(text) });
  });
}

export class StoredEvents {
  #fetch;
  #base;
  #now;
  #version = 0;
  #isAsking = false;
  #againMs = -Infinity;

  /** @param {{fetch: (address: URL) => Promise<Response>, base: string, now?: () => number}} given */
  constructor({ fetch, base, now = () => performance.now() }) {
    this.#fetch = fetch;
    this.#base = base;
    this.#now = now;
  }

  /**
   * Fetch the events if the server has another version of them.
   *
   * @param {number} version that the server has; 0: of no events
   * @param {(marks: object[], hasMore: boolean) => void} take
   */
  async follow(version, take) {
    if (version === this.#version || this.#isAsking || this.#now() < this.#againMs) return;
    this.#isAsking = true;
    try {
      const answer = version === 0 ? null : await this.#fetch(new URL("api/events", this.#base));
      if (answer !== null && !answer.ok) throw new Error(`status ${answer.status}`);
      const found = answer === null ? { version, events: [] } : await answer.json();
      this.#version = found.version;
      take(marksOf(found), found.has_more === true);
    } catch {
      this.#againMs = this.#now() + AGAIN_MS; // the server may be busy, or restart
    } finally {
      this.#isAsking = false;
    }
  }
}
