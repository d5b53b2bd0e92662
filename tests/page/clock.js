// A clock with timers for tests: those of Node's mock differ between its versions.

/** Timers that fire when the test says so. */
export class Clock {
  time = 0;
  timers = new Map();
  #next = 1;
  now = () => this.time;
  setTimeout = (call, wait_ms) => {
    this.timers.set(this.#next, { call, at: this.time + wait_ms });
    return this.#next++;
  };
  clearTimeout = (id) => this.timers.delete(id);
  advance(ms) {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (due === undefined) break;
      this.timers.delete(due[0]);
      this.time = Math.max(this.time, due[1].at);
      due[1].call();
    }
    this.time = end;
  }
}
