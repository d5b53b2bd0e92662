/** Buttons that change the daemon; there only if the server was started with --control. */

import { element, setText } from "./dom.js";

const ACTIONS = Object.freeze([
  { label: "Pause the analysis", method: "pause", done: "the analysis is paused" },
  { label: "Resume the analysis", method: "resume", done: "the analysis goes on" },
  { label: "Start a recording", method: "record.start", done: "a recording has started" },
  { label: "Stop recordings", method: "record.stop", done: "the recordings have stopped" },
]);

/**
 * Ask a daemon for something.
 *
 * @param {{method: string, params: object, endpoint: string}} request `endpoint` as in the list of topics
 * @returns {Promise<any>} its result
 * @throws {Error} with the daemon's or the server's reason, for a person
 */
export async function askDaemon({ method, params, endpoint }, base, fetch = globalThis.fetch) {
  const answer = await fetch(new URL("api/control", base).href, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ method, params, endpoint }),
  });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error ?? `HTTP status ${answer.status}`);
  return found;
}

/** The panel of control. */
export class Control {
  #answer;
  #buttons;

  /**
   * @param {{buttons: HTMLElement, answer: HTMLElement}} places
   * @param {{base: string, topic: () => object | null}} given `topic`: the one in the first panel
   */
  constructor({ buttons, answer }, { base, topic }) {
    this.#answer = answer;
    this.#buttons = ACTIONS.map((action) => {
      const button = element("button", { type: "button" }, action.label);
      button.addEventListener("click", () => this.#ask(action, base, topic()));
      return button;
    });
    buttons.append(...this.#buttons);
  }

  async #ask({ method, done }, base, topic) {
    if (topic === null) return;
    this.#busy(true);
    const params = method === "record.stop" ? {} : { source: topic.source };
    try {
      await askDaemon({ method, params, endpoint: topic.endpoint }, base);
      setText(this.#answer, done);
    } catch (error) {
      setText(this.#answer, `not done: ${error.message}`);
    }
    this.#busy(false);
  }

  #busy(isBusy) {
    for (const button of this.#buttons) button.disabled = isBusy;
  }
}
