/** The strip of all that is stored: a window on it is what the waterfalls show, to drag, to resize, to jump with. */

import { DATES_PX, drawOverview, tickSpan } from "../plot/overviewplot.js";
import { formatLevel, formatTime } from "../plot/time.js";
import { storedIn } from "../rows/overview.js";
import { BOUNDS } from "../panel/view.js";
import { element, setAttribute } from "./dom.js";
import { goTo } from "./timebar.js";

const WINDOW_PX_MIN = 8;
const GRIP_PX = 7;

/** Part of a view that shows a span of time; what reaches to the newest row is live. */
export function showSpan(view, { t0, t1 }, newestMs) {
  const [least, most] = BOUNDS.spanSeconds;
  const span = Math.max(least, Math.min(most, (t1 - t0) / 1000));
  return { span, ...goTo({ ...view, span }, t1, newestMs) };
}

/** Span of a window after its begin, its end or all of it was moved by a time [ms]; it keeps a second at least. */
export function movedWindow({ t0, t1 }, part, byMs) {
  const leastMs = 1000 * BOUNDS.spanSeconds[0];
  if (part === "begin") return { t0: Math.min(t0 + byMs, t1 - leastMs), t1 };
  if (part === "end") return { t0, t1: Math.max(t1 + byMs, t0 + leastMs) };
  return { t0: t0 + byMs, t1: t1 + byMs };
}

/** What is done to the window by a key of its slider: a new span, or null. */
export function keyedWindow({ t0, t1 }, key, whole) {
  const length = t1 - t0;
  const by = (ms) => movedWindow({ t0, t1 }, "all", ms);
  const found = {
    ArrowLeft: () => by(-length / 2),
    ArrowDown: () => by(-length / 2),
    ArrowRight: () => by(length / 2),
    ArrowUp: () => by(length / 2),
    PageDown: () => by(-10 * length),
    PageUp: () => by(10 * length),
    Home: () => ({ t0: whole.t0, t1: whole.t0 + length }),
    End: () => ({ t0: whole.t1 - length, t1: whole.t1 }),
  }[key];
  return found?.() ?? null;
}

/** The strip in the page. */
export class OverviewStrip {
  #place;
  #canvas = element("canvas", { "aria-hidden": "true" });
  #window = element("div", { class: "overview-window", role: "slider", tabindex: 0, "aria-label": "Time shown, of all that is stored" });
  #given;
  #shown = null;
  #drawn = "";
  #drag = null;

  /**
   * @param {HTMLElement} place
   * @param {{overview: import("../rows/overview.js").Overview, change: (part: object) => void, view: () => object}} given
   */
  constructor(place, given) {
    this.#place = place;
    this.#given = given;
    place.append(this.#canvas, this.#window);
    place.addEventListener("pointerdown", (event) => this.#down(event));
    place.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) place.addEventListener(name, () => (this.#drag = null));
    this.#window.addEventListener("keydown", (event) => this.#key(event));
  }

  /**
   * Show what is stored, and the window on it.
   *
   * @param {{newestMs: number | null, zone: string, colours: object, events: import("../link/events.js").EventLog}} state
   */
  show({ newestMs, zone, colours, events }) {
    const { stored, version } = this.#given.overview;
    const isEmpty = stored === null || colours === null;
    // It keeps its place: what comes later moves no plots.
    setAttribute(this.#place, "data-empty", isEmpty);
    if (isEmpty) {
      this.#shown = null;
      return;
    }
    const whole = { t0: stored.t0, t1: Math.max(stored.t1, newestMs ?? 0) };
    this.#shown = { whole, newestMs, zone, stored };
    this.#draw({ version, events, colours });
    this.#placeWindow();
  }

  /** Span that the waterfalls show. */
  get #span() {
    const { t1, span } = this.#given.view();
    const end = t1 ?? this.#shown.newestMs ?? this.#shown.whole.t1;
    return { t0: end - 1000 * span, t1: end };
  }

  #draw({ version, events, colours }) {
    const { whole, zone, stored } = this.#shown;
    const ratio = devicePixelRatio;
    const [width, height] = [this.#place.clientWidth, this.#place.clientHeight].map((px) => Math.max(1, Math.round(px * ratio)));
    // The newest moves by less than a pixel from one time to the next.
    const stepMs = Math.max(1000, (whole.t1 - whole.t0) / width);
    const key = [version, width, height, zone, events.version, colours.now, colours.plot, Math.floor(whole.t1 / stepMs)].join();
    if (key === this.#drawn) return;
    this.#drawn = key;
    Object.assign(this.#canvas, { width, height });
    const entries = events.between(whole.t0, whole.t1);
    drawOverview(this.#canvas, { stored, span: whole, zone, entries }, colours, ratio);
  }

  #placeWindow() {
    const { whole, zone } = this.#shown;
    const width = this.#place.clientWidth;
    const toPx = (tMs) => ((tMs - whole.t0) / (whole.t1 - whole.t0)) * width;
    const { t0, t1 } = this.#span;
    const right = Math.max(WINDOW_PX_MIN, Math.min(width, toPx(t1)));
    const left = Math.max(0, Math.min(right - WINDOW_PX_MIN, toPx(t0)));
    this.#window.style.transform = `translateX(${left.toFixed(1)}px)`;
    this.#window.style.width = `${(right - left).toFixed(1)}px`;
    setAttribute(this.#window, "aria-valuemin", Math.round(whole.t0 / 1000));
    setAttribute(this.#window, "aria-valuemax", Math.round(whole.t1 / 1000));
    setAttribute(this.#window, "aria-valuenow", Math.round(Math.max(whole.t0, Math.min(whole.t1, t1)) / 1000));
    setAttribute(this.#window, "aria-valuetext", `${formatTime(t0, zone)} to ${formatTime(t1, zone)}`);
  }

  #timeAt(x) {
    const { t0, t1 } = this.#shown.whole;
    return t0 + (x / this.#place.clientWidth) * (t1 - t0);
  }

  #go(span) {
    this.#given.change(showSpan(this.#given.view(), span, this.#shown.newestMs));
  }

  #down(event) {
    if (event.button !== 0 || this.#shown === null) return;
    const { left, top, height } = this.#place.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const { whole, zone } = this.#shown;
    if (y > height - DATES_PX) {
      this.#go(tickSpan(whole, this.#place.clientWidth, zone, x));
      return;
    }
    this.#place.setPointerCapture(event.pointerId);
    const box = this.#window.getBoundingClientRect();
    const [from, to] = [event.clientX - box.left, box.right - event.clientX];
    const isOn = from >= -GRIP_PX && to >= -GRIP_PX;
    const hasGrips = box.width > 4 * GRIP_PX;
    let part = "all";
    if (isOn && (hasGrips ? from < GRIP_PX : from < 0)) part = "begin";
    else if (isOn && (hasGrips ? to < GRIP_PX : to < 0)) part = "end";
    if (!isOn) {
      const half = 500 * this.#given.view().span;
      const tMs = this.#timeAt(x);
      this.#go({ t0: tMs - half, t1: tMs + half });
    }
    this.#drag = { part, x, span: this.#span };
  }

  #move(event) {
    if (this.#shown === null) return;
    const x = event.clientX - this.#place.getBoundingClientRect().left;
    if (this.#drag === null) {
      this.#name(x);
      return;
    }
    const { part, x: begin, span } = this.#drag;
    this.#go(movedWindow(span, part, this.#timeAt(x) - this.#timeAt(begin)));
  }

  /** Say what is under the pointer. */
  #name(x) {
    const { stored, zone } = this.#shown;
    const [t0, t1] = [this.#timeAt(x), this.#timeAt(x + 1)];
    const { isStored, level } = storedIn(stored, t0, t1);
    const known = Number.isNaN(level) ? "stored" : `Leq ${formatLevel(level, stored.columns.unit)}`;
    const missing = t0 < stored.t1 ? "nothing is stored" : "shown here soon";
    this.#place.title = `${formatTime(t0, zone)}: ${isStored ? known : missing}`;
  }

  #key(event) {
    const span = this.#shown && keyedWindow(this.#span, event.key, this.#shown.whole);
    if (span === null || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.#go(span);
  }
}
