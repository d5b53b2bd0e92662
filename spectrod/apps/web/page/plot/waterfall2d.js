/**
 * The waterfall on a 2D canvas: lines in an offscreen canvas as a ring, put on the screen in two parts.
 */

import { CODE_NONE } from "../rows/levels.js";
import { Waterfall } from "./waterfall.js";

/** A waterfall that needs no GPU. */
export class Waterfall2D extends Waterfall {
  #context;
  #ring = null;
  #ringContext = null;
  #line = null;
  #pixels = null;
  #colors = null;

  constructor(canvas, previous = null) {
    super(canvas, previous);
    this.#context = canvas.getContext("2d", { alpha: false });
    if (this.#context === null) throw new Error("no 2D canvas: the browser refuses one");
    if (previous !== null && this.lines.height > 0) this.refit();
  }

  paintSize() {
    const { width, slots } = this.lines;
    this.#ring = new OffscreenCanvas(Math.max(width, 1), slots);
    this.#ringContext = this.#ring.getContext("2d", { alpha: false });
    this.#line = new ImageData(Math.max(width, 1), 1);
    this.#pixels = new Uint32Array(this.#line.data.buffer);
    this.#context.imageSmoothingEnabled = false;
    this.#context.setTransform(...this.places.matrix);
    this.#fill();
  }

  paintColors(colors) {
    const isFirst = this.#colors === null;
    this.#colors = colors;
    if (isFirst) this.#fill();
  }

  /** Lines of a large canvas are painted over some frames: until then they have no data. */
  #fill() {
    if (this.#ring === null || this.#colors === null) return;
    const colour = this.#colors[CODE_NONE];
    this.#ringContext.fillStyle = `rgb(${[0, 8, 16].map((shift) => (colour >> shift) & 255).join(" ")})`;
    this.#ringContext.fillRect(0, 0, this.#ring.width, this.#ring.height);
  }

  paintSlot(slot) {
    const { codes, width } = this.lines;
    const colors = this.#colors;
    const pixels = this.#pixels;
    const begin = slot * width;
    for (let px = 0; px < width; px += 1) pixels[px] = colors[codes[begin + px]];
    this.#ringContext.putImageData(this.#line, 0, slot);
  }

  compose(top) {
    const { width, height, slots } = this.lines;
    const upper = Math.min(height, slots - top);
    this.#context.drawImage(this.#ring, 0, top, width, upper, 0, 0, width, upper);
    if (upper < height) {
      const lower = height - upper;
      this.#context.drawImage(this.#ring, 0, 0, width, lower, 0, upper, width, lower);
    }
  }

  destroy() {
    this.#ring = this.#ringContext = this.#line = this.#pixels = null;
    super.destroy();
  }
}
