/**
 * The bar of a panel's levels: colours, ticks, and two ends that are sliders. It lies where it is wider than high.
 *
 * Pointer: an end is dragged by its grip, both by what is between, the wheel zooms about the level under the pointer, a
 * double click makes the range automatic. Keys on an end: arrows 1 dB, page keys 10 dB, with Shift both ends, Delete
 * automatic; each other key does what it does in a plot. The level axis of the line spectrum can be dragged, too.
 */

import { pressKey, wheelFactor } from "./input.js";
import { moved, withEnd, zoomedRange } from "./ranges.js";
import { drawColourBar, levelAtShare, scaleFor, shareOf } from "../plot/colourbar.js";
import { element, setAttribute, setText } from "../side/dom.js";
import { formatLevel } from "../plot/time.js";

const STEPS_DB = Object.freeze({ ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 });
const NAMES = Object.freeze({ hi: "Max level", lo: "Min level" });

/** Which grip a pointer has: `hi`, `lo`, or `both`. */
const gripOf = (target) => target.closest?.("[data-end]")?.dataset.end ?? "both";

/** The bar. `show` brings it up to date. */
export class LevelBar {
  #canvas = element("canvas", { "aria-hidden": "true" });
  #ends;
  #middle = element("div", { class: "level-middle" });
  #range = { lo: -120, hi: 0 };
  #scale = null;
  #held = null;
  #drawn = "";
  #given;
  #unit = "dB";

  /**
   * @param {string} title of the panel
   * @param {{setRange: (range: {lo: number, hi: number} | null) => void, act: (name: string) => void,
   *   link: () => void}} given `setRange(null)`: automatic
   */
  constructor(title, given) {
    this.#given = given;
    this.#ends = Object.keys(NAMES).map((end) => this.#makeEnd(end, title));
    this.box = element("div", { class: "level-bar", role: "group", "aria-label": `Levels of ${title}` });
    this.box.append(this.#canvas, this.#middle, ...this.#ends.map(({ grip }) => grip));
    this.#middle.title = "Levels and their colours. Drag: both ends; wheel: zoom; double click: automatic.";
    this.auto = element("button", { type: "button", title: "Automatic level range (A)" }, "Auto");
    this.linked = element("button", { type: "button", title: "One level range for all panels of this unit" }, "Linked");
    this.buttons = element("div", { class: "level-buttons" }, this.auto, this.linked);
    for (const one of this.#ends) this.#sayEnd(one, true);
    this.#listen();
  }

  #makeEnd(end, title) {
    const value = element("span", { class: "level-value", "aria-hidden": "true" });
    const grip = element("div", { class: "level-end", role: "slider", tabindex: 0, "data-end": end, "aria-label": `${NAMES[end]} of ${title}` }, value);
    return { end, grip, value };
  }

  #listen() {
    const { box } = this;
    box.addEventListener("pointerdown", (event) => this.#down(event));
    box.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) box.addEventListener(name, () => this.#release());
    box.addEventListener("dblclick", () => this.#given.setRange(null));
    box.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    box.addEventListener("keydown", (event) => this.#key(event));
    this.auto.addEventListener("click", () => this.#given.setRange(this.auto.getAttribute("aria-pressed") === "true" ? this.#range : null));
    this.linked.addEventListener("click", () => this.#given.link());
  }

  get #isUpright() {
    return this.box.clientHeight >= this.box.clientWidth;
  }

  /** Level at a pointer, also beyond the bar. */
  #levelAt({ clientX, clientY }) {
    const { left, bottom, width, height } = this.box.getBoundingClientRect();
    return levelAtShare(this.#scale, this.#isUpright ? (bottom - clientY) / height : (clientX - left) / width);
  }

  #down(event) {
    if (event.button !== 0 || this.#held !== null || this.#scale === null) return;
    this.box.setPointerCapture(event.pointerId);
    const end = gripOf(event.target);
    const level = this.#levelAt(event);
    this.#held = { end, range: this.#range, level, pointer: event.pointerId };
    setAttribute(this.box, "data-held", end);
    if (end !== "both") this.#ends.find((one) => one.end === end).grip.focus();
    event.preventDefault();
  }

  #move(event) {
    const held = this.#held;
    if (held === null || event.pointerId !== held.pointer) return;
    const by = this.#levelAt(event) - held.level;
    if (by === 0) return;
    const { end, range } = held;
    this.#given.setRange(end === "both" ? moved(range, by) : withEnd(range, end, range[end] + by));
  }

  #release() {
    this.#held = null;
    setAttribute(this.box, "data-held", null);
  }

  #wheel(event) {
    event.preventDefault();
    if (this.#scale === null || this.#held !== null) return;
    this.#choose(zoomedRange(this.#range, wheelFactor(event), this.#levelAt(event)));
  }

  /** Keys and the wheel go on from what was chosen, also where several come before the next frame shows it. */
  #choose(range) {
    this.#range = range;
    this.#given.setRange(range);
  }

  /**
   * Let the level axis of the line spectrum, which has the same range, be taken hold of as what is between the ends is.
   *
   * @param {HTMLElement} axis upright, from the range's lower end to its upper one
   */
  holdAxis(axis) {
    const levelAt = ({ lo, hi }, { clientY }) => {
      const { top, height } = axis.getBoundingClientRect();
      return levelAtShare({ lo, hi }, 1 - (clientY - top) / height);
    };
    let held = null;
    axis.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || held !== null) return;
      axis.setPointerCapture(event.pointerId);
      held = { range: this.#range, level: levelAt(this.#range, event), pointer: event.pointerId };
      event.preventDefault();
    });
    axis.addEventListener("pointermove", (event) => {
      // What is under the pointer stays there: levels go down as it goes up.
      const by = held?.pointer === event.pointerId ? held.level - levelAt(held.range, event) : 0;
      if (by !== 0) this.#given.setRange(moved(held.range, by));
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) axis.addEventListener(name, () => (held = null));
    axis.addEventListener("dblclick", () => this.#given.setRange(null));
    const zoom = (event) => {
      event.preventDefault();
      this.#choose(zoomedRange(this.#range, wheelFactor(event), levelAt(this.#range, event)));
    };
    axis.addEventListener("wheel", zoom, { passive: false });
  }

  #key(event) {
    const end = gripOf(event.target);
    const by = STEPS_DB[event.key];
    const isPlain = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (end === "both" || !isPlain || (by === undefined && event.key !== "Delete")) {
      pressKey(event, this.#given.act);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const range = this.#range;
    if (by === undefined) this.#given.setRange(null);
    else this.#choose(event.shiftKey ? moved(range, by) : withEnd(range, end, Math.round(range[end]) + by));
  }

  /**
   * Show a range.
   *
   * @param {{range: {lo: number, hi: number}, isAuto: boolean, isLinked: boolean, hasOthers: boolean, unit: string,
   *   map: string}} shown `hasOthers`: whether there are other panels
   * @param {Record<string, string>} colours of the style sheet
   * @param {number} ratio device pixels of a CSS pixel
   */
  show({ range, isAuto, isLinked, hasOthers, unit, map }, colours, ratio) {
    this.#range = range;
    this.#unit = unit;
    // The scale rests in the hand of who drags.
    if (this.#held === null || this.#scale === null) this.#scale = scaleFor(this.#scale, range);
    setAttribute(this.auto, "aria-pressed", String(isAuto));
    setAttribute(this.linked, "aria-pressed", String(isLinked));
    this.linked.hidden = !hasOthers;
    const { clientWidth, clientHeight } = this.box;
    const size = [clientWidth, clientHeight].map((px) => Math.max(1, Math.round(px * ratio)));
    const key = [...size, ...Object.values(range), ...Object.values(this.#scale), map, unit, isAuto, Object.values(colours).join()].join();
    if (key === this.#drawn) return;
    this.#drawn = key;
    [this.#canvas.width, this.#canvas.height] = size;
    drawColourBar(this.#canvas, { scale: this.#scale, range, map, isUpright: this.#isUpright }, colours, ratio);
    for (const one of this.#ends) {
      this.#placeEnd(one);
      this.#sayEnd(one, isAuto);
    }
    this.#placeMiddle();
  }

  #placeEnd({ end, grip }) {
    const share = shareOf(this.#scale, this.#range[end]);
    const { clientWidth, clientHeight } = this.box;
    const isUpright = this.#isUpright;
    grip.style.transform = isUpright ? `translateY(${(1 - share) * clientHeight}px)` : `translateX(${share * clientWidth}px)`;
    setAttribute(grip, "aria-orientation", isUpright ? "vertical" : "horizontal");
  }

  #sayEnd({ end, grip, value }, isAuto) {
    const { lo, hi } = this.#range;
    const [lowest, highest] = end === "lo" ? [-1000, hi] : [lo, 1000];
    setAttribute(grip, "aria-valuemin", lowest.toFixed(0));
    setAttribute(grip, "aria-valuemax", highest.toFixed(0));
    setAttribute(grip, "aria-valuenow", this.#range[end].toFixed(1));
    const text = formatLevel(this.#range[end], this.#unit, 0);
    setAttribute(grip, "aria-valuetext", `${text}${isAuto ? ", automatic" : ""}`);
    setText(value, text);
  }

  #placeMiddle() {
    const [lo, hi] = [this.#range.lo, this.#range.hi].map((level) => 100 * shareOf(this.#scale, level));
    const { style } = this.#middle;
    Object.assign(style, this.#isUpright ? { top: `${100 - hi}%`, bottom: `${lo}%`, left: "0", right: "0" } : { left: `${lo}%`, right: `${100 - hi}%`, top: "0", bottom: "0" });
  }
}
