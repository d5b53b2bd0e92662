/**
 * The page's connection to its server, as docs/web-protocol.md describes it.
 *
 * It asks for a view, acknowledges what was drawn, and connects again after a loss. Nothing here
 * touches the document: sockets, requests and timers come in, so that Node's tests can make their own.
 */

import { decodeMessage } from "../rows/decode.js";

export const VERSION = 1;

/** Why there is no connection where nothing answers. */
export const NO_ANSWER = "the server does not answer";

const VIEW_INTERVAL_MS = 100;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15000;
const WAIT_GROWTH = 1.6;
const WAIT_SPREAD = 0.3;
const LASTED_MS = 5000;
const CLOSE_MALFORMED = 4002;

/** Wait before the next attempt [ms]; `random` in [0, 1) spreads the clients of a server that restarts. */
export function reconnectDelay(attempt, random) {
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * WAIT_GROWTH ** attempt);
  return wait * (1 + WAIT_SPREAD * (2 * random - 1));
}

/** Address of the WebSocket for a page at `base`, which a proxy may serve under any path. */
export function streamAddress(base) {
  const address = new URL("api/stream", base);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.hash = "";
  return address.href;
}

/**
 * One connection, kept up until `stop`.
 *
 * @param {object} options
 * @param {string} options.base address of the page
 * @param {object} options.handlers `text(message)`, `rows(blocks)`, and
 *   `phase({phase, wait_ms, why, needsToken})` with phase `connecting`, `open`, `waiting`, `stopped`;
 *   `needsToken` stays between attempts, as a person may be typing the token
 * @param {Function} [options.open] makes a WebSocket of an address
 * @param {Function} [options.fetch]
 * @param {object} [options.clock] `setTimeout`, `clearTimeout`, `now` [ms]
 * @param {Function} [options.random]
 */
export class Connection {
  #base;
  #handlers;
  #open;
  #fetch;
  #clock;
  #random;
  #socket = null;
  #attempt = 0;
  #openedAt = null;
  #retry = null;
  #view = null;
  #viewSent = "";
  #viewTimer = null;
  #viewSentAt = -Infinity;
  #generation = 0;
  #received = null;
  #acknowledged = null;
  #isWanted = false;
  #needsToken = false;

  constructor({ base, handlers, open, fetch, clock, random }) {
    this.#base = base;
    this.#handlers = handlers;
    this.#open = open ?? ((address) => new WebSocket(address));
    this.#fetch = fetch ?? ((...given) => globalThis.fetch(...given));
    this.#clock = clock ?? {
      setTimeout: (...given) => globalThis.setTimeout(...given),
      clearTimeout: (timer) => globalThis.clearTimeout(timer),
      now: () => performance.now(),
    };
    this.#random = random ?? Math.random;
  }

  /** Whether the server has said hello on the present socket. */
  get isOpen() {
    return this.#openedAt !== null;
  }

  /** Connect, and again after each loss; at once if it was waiting to. */
  start() {
    this.#isWanted = true;
    if (this.#socket !== null) return;
    this.#clock.clearTimeout(this.#retry);
    this.#tell("connecting");
    this.#connect();
  }

  /** Close, and stay so: a frozen tab would still swallow the stream. */
  stop() {
    this.#isWanted = false;
    this.#clock.clearTimeout(this.#retry);
    this.#drop(1000, "");
    this.#tell("stopped");
  }

  /** Ask for `{visible, streams, values}`; at most 10/s are sent, the last one always, none twice. */
  setView(view) {
    this.#view = view;
    this.#scheduleView();
  }

  /** Acknowledge all that came: the caller has drawn it, or never will. */
  drew() {
    if (this.#received === this.#acknowledged || !this.isOpen) return;
    this.#acknowledged = this.#received;
    this.#send({ op: "ack", message: this.#received });
  }

  /** Start the holds of a topic again. */
  reset(topicId) {
    if (this.isOpen) this.#send({ op: "reset", topic_id: topicId });
  }

  #connect() {
    let socket;
    try {
      socket = this.#open(streamAddress(this.#base));
    } catch (error) {
      this.#wait(error.message);
      return;
    }
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    socket.onmessage = (event) => this.#receive(socket, event.data);
    socket.onclose = (event) => this.#lost(socket, event);
  }

  #receive(socket, data) {
    if (socket !== this.#socket) return;
    try {
      if (typeof data === "string") this.#readText(JSON.parse(data));
      else this.#readRows(decodeMessage(data));
    } catch (error) {
      this.#drop(CLOSE_MALFORMED, "malformed");
      this.#wait(`the server sent a malformed message: ${error.message}`);
    }
  }

  #readText(message) {
    if (message === null || typeof message !== "object" || typeof message.op !== "string") {
      throw new Error("a text without op");
    }
    if (message.op === "hello") this.#greet(message);
    this.#handlers.text(message);
  }

  #greet(hello) {
    if (hello.version !== VERSION) {
      throw new Error(`version=${hello.version}: this page reads version ${VERSION}; reload it`);
    }
    this.#openedAt = this.#clock.now();
    this.#viewSentAt = -Infinity;
    this.#viewSent = "";
    this.#needsToken = false;
    this.#tell("open");
    this.#scheduleView();
  }

  #readRows(message) {
    this.#received = message.message;
    this.#handlers.rows(message.blocks);
  }

  #scheduleView() {
    if (this.#viewTimer !== null || this.#view === null || !this.isOpen) return;
    const wait = Math.max(0, this.#viewSentAt + VIEW_INTERVAL_MS - this.#clock.now());
    this.#viewTimer = this.#clock.setTimeout(() => this.#sendView(), wait);
  }

  #sendView() {
    this.#viewTimer = null;
    const text = JSON.stringify(this.#view);
    if (!this.isOpen || text === this.#viewSent) return;
    this.#viewSent = text;
    this.#viewSentAt = this.#clock.now();
    this.#generation += 1;
    this.#send({ op: "view", generation: this.#generation, ...this.#view });
  }

  #send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  async #lost(socket, event) {
    if (socket !== this.#socket) return;
    const wasOpen = this.isOpen;
    const lasted = wasOpen && this.#clock.now() - this.#openedAt >= LASTED_MS;
    if (lasted) this.#attempt = 0;
    this.#forget();
    if (wasOpen) this.#wait(closeText(event));
    else await this.#askWhy();
  }

  /** Close the present socket and forget it, so that nothing that it still says is heard. */
  #drop(code, reason) {
    const socket = this.#socket;
    this.#forget();
    socket?.close(code, reason);
  }

  #forget() {
    this.#clock.clearTimeout(this.#viewTimer);
    this.#viewTimer = null;
    this.#socket = null;
    this.#openedAt = null;
    this.#received = null;
    this.#acknowledged = null;
  }

  /** A refused WebSocket says nothing to a page (1006): ask over HTTP. */
  async #askWhy() {
    let why = NO_ANSWER;
    try {
      const answer = await this.#fetch(new URL("api/hello", this.#base).href, { cache: "no-store" });
      const hello = answer.ok ? await answer.json() : {};
      why = hello.refused || (answer.ok ? "the server closed the connection" : `HTTP status ${answer.status}`);
      this.#needsToken = hello.needs_token === true;
    } catch {
      // No answer is the usual reason: the server restarts.
    }
    if (this.#socket === null) this.#wait(why);
  }

  #wait(why) {
    if (!this.#isWanted) return;
    const wait = reconnectDelay(this.#attempt, this.#random());
    this.#attempt += 1;
    this.#clock.clearTimeout(this.#retry);
    this.#retry = this.#clock.setTimeout(() => this.start(), wait);
    this.#tell("waiting", wait, why);
  }

  #tell(phase, wait_ms = 0, why = "") {
    this.#handlers.phase({ phase, wait_ms, why, needsToken: this.#needsToken });
  }
}

const CLOSE_TEXTS = new Map([
  [1000, "the server closed the connection"],
  [1001, "the server is stopping"],
  [1006, "the connection was lost"],
  [1009, "the page's message was too long"],
  [1012, "the server is restarting"],
  [1013, "this page drew nothing for 60 s"],
]);

/** Why a socket closed, for a person. */
function closeText({ code, reason }) {
  return reason || (CLOSE_TEXTS.get(code) ?? `the connection was closed with code ${code}`);
}
