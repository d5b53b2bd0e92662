/**
 * Gestures on a panel's plots: wheel, drag, pinch, tap, long press, and keys.
 *
 * Every gesture has a key or a control that does the same. Pointer events alone, so mouse, pen and
 * touch are one; `touch-action: none` is on the plots only, and the page around them scrolls.
 */

import { actionOf } from "../side/keys.js";

const WHEEL_LINE_PX = 16;
const ZOOM_PER_PX = 1.0025;
const PINCH_ZOOM_PER_PX = 1.01;
/** Fingers that are nearer to each other in one direction do not zoom it, but move it. */
const PINCH_PX = 40;
/** Fingers that meet zoom as if they were so far apart. */
const PINCH_PX_MIN = 20;
const TAP_PX = 6;
const DOUBLE_TAP_MS = 350;
const DOUBLE_TAP_PX = 24;
const LONG_PRESS_MS = 500;

/** Factor of a wheel's turn; trackpad pinches come as a wheel with the control key, in smaller steps. */
export function wheelFactor({ deltaY, deltaMode, ctrlKey }) {
  const px = deltaY * (deltaMode === 0 ? 1 : WHEEL_LINE_PX);
  const base = ctrlKey ? PINCH_ZOOM_PER_PX : ZOOM_PER_PX;
  return base ** -Math.max(-300, Math.min(300, px));
}

const ratioOf = (now, before) => Math.max(PINCH_PX_MIN, now) / Math.max(PINCH_PX_MIN, before);

/** Whether keys belong to a form's field, which needs them itself. */
export function isTyping(target) {
  return target?.closest?.("input, select, textarea, [contenteditable]") !== null && target?.closest !== undefined;
}

/**
 * @typedef {object} Gestures what a surface reports; places are CSS pixels within it
 * @property {(factor: number, at: {x: number, y: number}) => void} zoom frequencies
 * @property {(factor: number, at: {x: number, y: number}) => void} zoomTime
 * @property {(factors: {x: number | null, y: number | null}, at: {x: number, y: number}) => void} stretch what is
 *   across and what is along; null: not at all
 * @property {(way: {x: number, y: number}, at: {x: number, y: number}) => void} drag `at`: what is taken hold of
 * @property {(at: {x: number, y: number}, isNew: boolean) => void} tap
 * @property {() => void} doubleTap
 * @property {(from: {x: number, y: number}, to: {x: number, y: number}) => void} select
 * @property {() => void} selected
 * @property {() => boolean} isSelecting whether a drag selects without Shift, too
 * @property {(at: {x: number, y: number} | null) => void} point
 * @property {(action: string) => void} act
 */

/** Listens to one surface. */
export class SurfaceInput {
  #surface;
  #gestures;
  #pointers = new Map();
  #start = null;
  #pinch = null;
  #longPress = null;
  #lastTap = null;

  /**
   * @param {HTMLElement} surface
   * @param {Gestures} gestures
   */
  constructor(surface, gestures) {
    this.#surface = surface;
    this.#gestures = gestures;
    surface.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    surface.addEventListener("pointerdown", (event) => this.#down(event));
    surface.addEventListener("pointermove", (event) => this.#move(event));
    surface.addEventListener("pointerup", (event) => this.#up(event));
    surface.addEventListener("pointercancel", (event) => this.#forget(event));
    surface.addEventListener("pointerleave", () => gestures.point(null));
    surface.addEventListener("contextmenu", (event) => event.preventDefault());
    surface.addEventListener("keydown", (event) => pressKey(event, gestures.act));
  }

  #place(event) {
    const { left, top } = this.#surface.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #wheel(event) {
    event.preventDefault();
    const { deltaX, deltaY, deltaMode, ctrlKey } = event;
    const sideways = Math.abs(deltaX) > Math.abs(deltaY);
    // Some browsers and systems turn a wheel sideways with Shift.
    if (event.shiftKey) this.#gestures.zoomTime(wheelFactor({ deltaY: sideways ? deltaX : deltaY, deltaMode, ctrlKey }), this.#place(event));
    else if (sideways) this.#gestures.drag({ x: -deltaX, y: 0 }, this.#place(event));
    else this.#gestures.zoom(wheelFactor(event), this.#place(event));
  }

  #down(event) {
    if (event.button !== 0) return;
    this.#surface.setPointerCapture(event.pointerId);
    const at = this.#place(event);
    this.#pointers.set(event.pointerId, at);
    clearTimeout(this.#longPress);
    if (this.#pointers.size === 2) {
      this.#start = null;
      const apart = this.#spread();
      this.#pinch = { ...apart, isWide: apart.across >= PINCH_PX, isHigh: apart.along >= PINCH_PX };
      return;
    }
    this.#start = { ...at, last: at, isSelecting: event.shiftKey || this.#gestures.isSelecting(), isMoved: false, isNew: event.altKey || event.shiftKey };
    if (event.pointerType === "touch") this.#longPress = setTimeout(() => this.#press(), LONG_PRESS_MS);
  }

  /** A long press sets another cursor, as a click with the Shift or Alt key does. */
  #press() {
    if (this.#start === null || this.#start.isMoved) return;
    const { x, y } = this.#start;
    this.#start = null;
    this.#gestures.tap({ x, y }, true);
  }

  #move(event) {
    const at = this.#place(event);
    if (!this.#pointers.has(event.pointerId)) {
      this.#gestures.point(at);
      return;
    }
    this.#pointers.set(event.pointerId, at);
    if (this.#pinch !== null) this.#movePinch();
    else if (this.#start !== null) this.#moveDrag(at);
  }

  #moveDrag(at) {
    const start = this.#start;
    start.isMoved ||= Math.hypot(at.x - start.x, at.y - start.y) > TAP_PX;
    if (!start.isMoved) return;
    if (start.isSelecting) this.#gestures.select({ x: start.x, y: start.y }, at);
    else this.#gestures.drag({ x: at.x - start.last.x, y: at.y - start.last.y }, { x: start.x, y: start.y });
    start.last = at;
    this.#gestures.point(at);
  }

  /** Middle of two fingers, and how far they are apart in each direction. */
  #spread() {
    const [a, b] = [...this.#pointers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, across: Math.abs(a.x - b.x), along: Math.abs(a.y - b.y) };
  }

  /** As on a map, what is under two fingers stays there, of frequencies and of times. */
  #movePinch() {
    const [before, now] = [this.#pinch, this.#spread()];
    // In this order what is between the fingers stays there, also at the full span, which cannot be moved.
    const at = { x: before.x, y: before.y };
    this.#gestures.stretch({ x: before.isWide ? ratioOf(now.across, before.across) : null, y: before.isHigh ? ratioOf(now.along, before.along) : null }, at);
    this.#gestures.drag({ x: now.x - before.x, y: now.y - before.y }, at);
    this.#pinch = { ...before, ...now };
  }

  #up(event) {
    const start = this.#start;
    this.#forget(event);
    if (start?.isMoved && start.isSelecting) this.#gestures.selected();
    if (start === null || start.isMoved) return;
    const { x, y } = start;
    const last = this.#lastTap;
    const isNear = last !== null && Math.hypot(x - last.x, y - last.y) < DOUBLE_TAP_PX;
    const isDouble = isNear && event.timeStamp - last.at < DOUBLE_TAP_MS;
    this.#lastTap = isDouble ? null : { x, y, at: event.timeStamp };
    if (isDouble) this.#gestures.doubleTap();
    else this.#gestures.tap({ x, y }, start.isNew);
  }

  #forget(event) {
    clearTimeout(this.#longPress);
    this.#pointers.delete(event.pointerId);
    this.#start = null;
    if (this.#pointers.size < 2) this.#pinch = null;
  }
}

/** What a click on it does, the space bar and Enter do as well; what scrolls or slides needs the arrows. */
const PRESSED = "button, summary, a[href], [role='button']";
const MOVED = "[role='slider'], [role='separator'], [tabindex]:not(.surface, .plots)";
/** A page that is so many screens long is read by scrolling it. */
const LONG_PAGE = 1.5;
const KEYS_OF_PRESSED = Object.freeze([" ", "Enter"]);
const KEYS_OF_MOVED = Object.freeze([" ", "Home", "End", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);

/** Whether what has the focus, or the page that scrolls, needs a key itself. */
function isOwnKey({ key, target }) {
  if (isTyping(target)) return true;
  if (target?.closest === undefined) return false;
  if (target.closest("dialog") !== null) return true;
  if (target.closest(PRESSED) !== null && KEYS_OF_PRESSED.includes(key)) return true;
  if (target.closest(".surface") !== null) return false;
  if (target.closest(MOVED) !== null && KEYS_OF_MOVED.includes(key)) return true;
  const { scrollHeight, clientHeight } = document.scrollingElement;
  return scrollHeight > LONG_PAGE * clientHeight && KEYS_OF_MOVED.includes(key);
}

/** Do what a key means, and keep the browser from doing its own; keys without a meaning are left alone. */
export function pressKey(event, act) {
  if (event.defaultPrevented || isOwnKey(event)) return;
  const action = actionOf(event);
  if (action === null) return;
  event.preventDefault();
  act(action);
}
