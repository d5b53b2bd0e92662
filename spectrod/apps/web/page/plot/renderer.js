/**
 * Which waterfall draws: WebGL2 where there is a GPU that is fast enough, else 2D.
 */

import { Waterfall2D } from "./waterfall2d.js";
import { WaterfallGL } from "./waterfallgl.js";

const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;
const FRAMES_MEASURED = 30;
const FRAME_MS_MAX = 25;

let hardware = null;

/** Return whether WebGL2 exists and is not computed by the processor; found out once. */
export function hasGpu() {
  hardware ??= findGpu();
  return hardware;
}

function findGpu() {
  const gl = new OffscreenCanvas(1, 1).getContext("webgl2");
  if (gl === null) return false;
  const unmasked = gl.getExtension("WEBGL_debug_renderer_info")?.UNMASKED_RENDERER_WEBGL;
  const name = gl.getParameter(unmasked ?? gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !SOFTWARE.test(name);
}

/**
 * Return a waterfall for a canvas that has had no context yet.
 *
 * It has the methods of `Waterfall`, and goes over from WebGL2 to 2D by itself: when the context was
 * lost for the third time, or when 30 frames take more than 25 ms (the median). As a canvas keeps its
 * kind for life, it is then replaced by another one in the document: `canvas` is the present one.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {"webgl"|"2d"|""|null} forced kind that is drawn with whatever the GPU is
 * @returns {ChosenWaterfall}
 */
export function chooseRenderer(canvas, forced = null) {
  return new ChosenWaterfall(canvas, forced);
}

/** A waterfall that chooses how it draws; made by `chooseRenderer`. */
export class ChosenWaterfall {
  #drawn;
  #isMeasured;
  #times = [];
  #before = NaN;

  constructor(canvas, forced) {
    const isTried = forced === "webgl" || (forced !== "2d" && hasGpu());
    this.#drawn = isTried ? this.#tryGl(canvas) : new Waterfall2D(canvas);
    this.#isMeasured = isTried && forced !== "webgl";
  }

  #tryGl(canvas) {
    try {
      return new WaterfallGL(canvas);
    } catch (error) {
      console.info(`waterfall in 2D: ${error.message}`);
      return new Waterfall2D(replaced(canvas));
    }
  }

  /** The canvas in the document. */
  get canvas() {
    return this.#drawn.canvas;
  }

  /** `webgl` or `2d`. */
  get kind() {
    return this.#drawn instanceof WaterfallGL ? "webgl" : "2d";
  }

  resize(widthPx, heightPx, direction) {
    try {
      this.#drawn.resize(widthPx, heightPx, direction);
    } catch (error) {
      if (this.kind === "2d") throw error;
      this.#fallBack(error.message);
    }
  }

  setAxis(axis) {
    this.#drawn.setAxis(axis);
  }

  setLevels(lo, hi) {
    this.#drawn.setLevels(lo, hi);
  }

  setPalette(name) {
    this.#drawn.setPalette(name);
  }

  setMarks(marks) {
    this.#drawn.setMarks(marks);
  }

  setScroll(scroll) {
    this.#drawn.setScroll(scroll);
  }

  append(row, description) {
    this.#drawn.append(row, description);
  }

  rebuild(ring) {
    this.#drawn.rebuild(ring);
  }

  draw() {
    if (this.#drawn.hasFailed) this.#fallBack("the context was lost three times");
    if (this.#isMeasured) this.#measure(performance.now());
    const isChanged = this.#drawn.draw();
    if (!isChanged) this.#before = NaN;
    return isChanged;
  }

  /** Note the time since the last frame if that one changed the canvas. */
  #measure(now) {
    if (now - this.#before > 0) this.#times.push(now - this.#before);
    this.#before = now;
    if (this.#times.length < FRAMES_MEASURED) return;
    const median = this.#times.sort((a, b) => a - b)[FRAMES_MEASURED >> 1];
    this.#times = [];
    if (median > FRAME_MS_MAX) this.#fallBack(`a frame takes ${median.toFixed(0)} ms`);
  }

  #fallBack(why) {
    console.info(`waterfall in 2D: ${why}`);
    const old = this.#drawn;
    this.#drawn = new Waterfall2D(replaced(old.canvas), old);
    this.#isMeasured = false;
    old.destroy();
  }

  destroy() {
    this.#drawn.destroy();
  }
}

/** Put a canvas in the place of another one, with its attributes, and return it. */
function replaced(canvas) {
  const other = canvas.cloneNode();
  canvas.replaceWith(other);
  return other;
}
