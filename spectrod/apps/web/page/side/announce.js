/**
 * What a screen reader is told: changes only, politely, and never more often than each 5 s.
 */

const INTERVAL_MS = 5000;
const WAITING_MAX = 4;

/**
 * @param {(text: string) => void} show writes into the live region
 * @param {{setTimeout: Function, now: Function}} clock
 */
export class Announcer {
  #show;
  #clock;
  #waiting = new Map();
  #said = new Map();
  #lastAt = -Infinity;
  #timer = null;

  constructor(show, clock) {
    this.#show = show;
    this.#clock = clock;
  }

  /**
   * Say a text about a subject. A newer text about the same subject replaces one that still waits;
   * the same text again is not said.
   */
  say(subject, text) {
    if (this.#said.get(subject) === text) {
      this.#waiting.delete(subject);
      return;
    }
    this.#waiting.delete(subject);
    this.#waiting.set(subject, text);
    if (this.#waiting.size > WAITING_MAX) this.#waiting.delete(this.#waiting.keys().next().value);
    this.#schedule();
  }

  #schedule() {
    if (this.#timer !== null) return;
    const wait = Math.max(0, this.#lastAt + INTERVAL_MS - this.#clock.now());
    this.#timer = this.#clock.setTimeout(() => this.#flush(), wait);
  }

  #flush() {
    this.#timer = null;
    if (this.#waiting.size === 0) return;
    this.#lastAt = this.#clock.now();
    for (const [subject, text] of this.#waiting) this.#said.set(subject, text);
    this.#show([...this.#waiting.values()].join(". "));
    this.#waiting.clear();
  }
}
