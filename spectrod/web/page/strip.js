/** One topic's waterfall and its time scale. */

import { element, setText } from "./dom.js";
import { chooseRenderer } from "./renderer.js";
import { drawTimeRuler } from "./ruler.js";
import { topicTitle } from "./topics.js";

/** A waterfall in a panel. */
export class Strip {
  #ring = null;
  #drawnTimes = "";
  #canvasHome = element("div", { class: "waterfall" });
  #times = element("canvas", { class: "times", "aria-hidden": "true" });
  #caption = element("p", { class: "caption" });
  #waterfall;
  #heightPx = 1;

  /**
   * @param {import("./channel.js").Channel} channel
   * @param {{hasCaption: boolean, forced: string | null}} how `hasCaption`: several topics share a panel
   */
  constructor(channel, { hasCaption, forced }) {
    this.channel = channel;
    const canvas = element("canvas", { role: "img", "aria-label": "Waterfall" });
    this.#canvasHome.append(canvas);
    if (hasCaption) this.#canvasHome.append(this.#caption);
    setText(this.#caption, topicTitle(channel.info));
    this.#waterfall = chooseRenderer(canvas, forced);
    this.elements = [this.#times, this.#canvasHome];
  }

  /** Element that the waterfall fills. */
  get box() {
    return this.#canvasHome;
  }

  get heightPx() {
    return this.#heightPx;
  }

  /** The canvas that is drawn now: a lost context gets another one. */
  get canvas() {
    return this.#waterfall.canvas;
  }

  get times() {
    return this.#times;
  }

  /** Set the sizes [device px]. */
  resize(widthPx, heightPx, gutterPx) {
    this.#heightPx = heightPx;
    this.#waterfall.resize(widthPx, heightPx);
    this.#times.width = gutterPx;
    this.#times.height = heightPx;
    this.#drawnTimes = "";
  }

  setAxis(axis) {
    this.#waterfall.setAxis(axis);
  }

  setLevels({ lo, hi }) {
    this.#waterfall.setLevels(lo, hi);
  }

  setPalette(name) {
    this.#waterfall.setPalette(name);
  }

  setLabel(text) {
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${topicTitle(this.channel.info)}, waterfall. ${text}`);
  }

  /** Take a row that is already in the channel's ring. */
  append(row, description) {
    if (this.#ring === this.channel.ring) this.#waterfall.append(row, description);
  }

  /**
   * Draw what has changed.
   *
   * @param {{newestMs: number | null, spanMs: number, isPaused: boolean, zone: string,
   *   events: import("./events.js").EventLog, colours: object, ratio: number}} scene
   */
  draw(scene) {
    if (this.channel.ring !== null && this.#ring !== this.channel.ring) {
      this.#ring = this.channel.ring;
      this.#waterfall.rebuild(this.#ring);
    }
    if (scene.newestMs === null) return;
    const msPerPx = scene.spanMs / this.#heightPx;
    this.#waterfall.setScroll({ newestMs: scene.newestMs, msPerPx, paused: scene.isPaused });
    this.#waterfall.draw();
    this.#drawTimes(scene);
  }

  #drawTimes({ newestMs, spanMs, zone, events, colours, ratio }) {
    const key = [newestMs, spanMs, zone, events.version, colours.text, ratio].join();
    if (key === this.#drawnTimes) return;
    this.#drawnTimes = key;
    const t0Ms = newestMs - spanMs;
    const entries = events.between(t0Ms, newestMs).filter(({ source }) => this.#concerns(source));
    drawTimeRuler(this.#times, { t0Ms, t1Ms: newestMs, zone, entries }, colours, ratio);
  }

  #concerns(source) {
    return source === this.channel.info.source || source === this.channel.info.endpoint;
  }

  destroy() {
    this.#waterfall.destroy();
  }
}
