/**
 * What both kinds of waterfall share: settings, lines, and when to paint them.
 */

import { LineStore } from "./lines.js";
import { Orientation } from "./orientation.js";
import { codeColors, MARKS } from "./palette.js";

/** Longest time that one `draw` spends on what can wait, for each of redrawing and painting [ms]. */
const SLICE_MS = 8;

/**
 * A waterfall on a canvas, with time in any direction; colours and older rows may come some frames later.
 *
 * Subclasses paint: `paintSize()` after another size, `paintColors(colors)`, `paintSlot(slot)` with the
 * codes of one line, and `compose(topSlot)` puts all lines onto the canvas.
 */
export class Waterfall {
  #levels = [-120, 0];
  #palette = "viridis";
  #marks = MARKS.dark;
  #colors = null;
  #unpainted = false; // whether slots may have changed since all were painted
  #isComposed = false;
  #composedTop = -1;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Waterfall|null} previous one whose settings and lines are taken over
   */
  constructor(canvas, previous = null) {
    this.canvas = canvas;
    this.lines = previous?.lines ?? new LineStore();
    this.places = previous?.places ?? new Orientation("down", { width: 0, height: 0 });
    if (previous !== null) {
      this.#levels = previous.#levels;
      this.#palette = previous.#palette;
      this.#marks = previous.#marks;
    }
  }

  /** Take another size [canvas px] or direction of time; rows of another size come again from the ring. */
  resize(width, height, direction = "down") {
    const { places } = this;
    if (width === places.width && height === places.height && direction === places.direction) return;
    this.places = new Orientation(direction, { width, height });
    this.lines.resize(this.places.breadth, this.places.length);
    this.refit();
  }

  /** Make the canvas as large as the lines are, and paint all of them. */
  refit() {
    this.canvas.width = this.places.width;
    this.canvas.height = this.places.height;
    this.paintSize();
    this.repaint();
  }

  /** @param {import("./axis.js").Axis} axis as long as the canvas is in its direction, else nothing is drawn */
  setAxis(axis) {
    this.lines.setAxis(axis);
    this.#unpainted = true;
  }

  /** Show levels from `lo` to `hi` [dB] in the colours of the map. */
  setLevels(lo, hi) {
    if (lo === this.#levels[0] && hi === this.#levels[1]) return;
    const colors = codeColors(this.#palette, lo, hi, this.#marks);
    this.#levels = [lo, hi];
    this.#recolor(colors);
  }

  /** @param {string} name of a map, see palette.js */
  setPalette(name) {
    if (name === this.#palette) return;
    const colors = codeColors(name, ...this.#levels, this.#marks);
    this.#palette = name;
    this.#recolor(colors);
  }

  /** @param {object} marks colours of what is no level: one of `MARKS` in palette.js */
  setMarks(marks) {
    if (marks === this.#marks) return;
    this.#marks = marks;
    this.#recolor(codeColors(this.#palette, ...this.#levels, marks));
  }

  #recolor(colors) {
    this.#colors = colors;
    this.paintColors(colors);
    if (this.needsRecoloring) this.repaint();
    this.#isComposed = false;
  }

  /** Whether painted lines keep their colours when others are set. */
  get needsRecoloring() {
    return true;
  }

  /**
   * Move to a time: `newestMs` (UTC) is at the newer end, and a pixel is `msPerPx` [ms].
   *
   * @param {{newestMs: number, msPerPx: number, paused?: boolean}} scroll when paused, rows are still
   *   appended, and seen once the time at that end goes on
   */
  setScroll(scroll) {
    this.lines.setScroll(scroll);
    this.#unpainted = true;
  }

  /** Draw the newest row; it must be in the ring of `rebuild` already, if there is one. */
  append(row, description) {
    this.lines.append(row, description);
    this.#unpainted = true;
  }

  /** Draw from this ring, now and whenever another axis, size or time needs it. */
  rebuild(ring) {
    this.lines.rebuild(ring);
    this.#unpainted = true;
  }

  /** Paint all lines again, from the codes that are there. */
  repaint() {
    this.lines.changed.fill(1);
    this.#unpainted = true;
    this.#isComposed = false;
  }

  /**
   * Bring the canvas up to date, for a few milliseconds at most; to be called once an animation frame.
   *
   * @returns {boolean} whether the canvas has changed
   */
  draw() {
    const { lines } = this;
    if (!lines.isReady) return false;
    if (this.#colors === null) {
      this.#colors = codeColors(this.#palette, ...this.#levels, this.#marks);
      this.paintColors(this.#colors);
    }
    lines.work(performance.now() + SLICE_MS, () => performance.now());
    const top = lines.topSlot;
    const isPainted = this.#unpainted && this.#paint(top);
    if (!isPainted && this.#isComposed && top === this.#composedTop) return false;
    this.compose(top);
    this.#isComposed = true;
    this.#composedTop = top;
    return true;
  }

  /** Paint changed lines from the newest on while there is time; return whether there were any. */
  #paint(top) {
    const { changed, slots } = this.lines;
    const until = performance.now() + SLICE_MS;
    let count = 0;
    for (let n = 0; n < slots; n += 1) {
      const slot = (top + n) % slots;
      if (changed[slot] === 0) continue;
      if (performance.now() >= until) return count > 0;
      this.paintSlot(slot);
      changed[slot] = 0;
      count += 1;
    }
    this.#unpainted = this.lines.isBehind;
    return count > 0;
  }

  /** Give back what the canvas holds. */
  destroy() {
    this.canvas.width = 0;
    this.canvas.height = 0;
  }
}
