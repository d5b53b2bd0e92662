/** What lies over a waterfall at some times: the cursors' lines, and the box of a selection. Elements, as in `Overlay`. */

import { element, setText } from "../side/dom.js";

const CURSORS = ["A", "B"];

/** The marks over one waterfall. */
export class TimeMarks {
  #cursors;
  #box = element("div", { class: "selection", hidden: true });

  /** @param {HTMLElement} place covers the waterfall */
  constructor(place) {
    this.#cursors = CURSORS.map((name) => {
      const label = element("span", { class: "time-label" });
      return { name, label, line: element("div", { class: "time-cursor", hidden: true, "data-cursor": name }, label) };
    });
    place.append(this.#box, ...this.#cursors.map(({ line }) => line));
  }

  /**
   * Put the marks in their places.
   *
   * @param {{cursors: Array<{tMs: number, text: string} | null>,
   *   box: {t0: number, t1: number, left: number, right: number} | null}} marks times [ms], ends of the box [CSS px]
   * @param {(tMs: number) => number} toCssPx height of a time from the top
   * @param {number} height of the waterfall [CSS px]
   */
  place({ cursors, box }, toCssPx, height) {
    this.#cursors.forEach(({ name, line, label }, k) => {
      const cursor = cursors[k] ?? null;
      const y = cursor === null ? NaN : toCssPx(cursor.tMs);
      line.hidden = !(y >= 0 && y <= height);
      if (line.hidden) return;
      line.style.transform = `translateY(${y.toFixed(2)}px)`;
      // Below the line at the top of the waterfall, where there is no room above it.
      line.dataset.side = y < 24 ? "below" : "above";
      setText(label, `${name} ${cursor.text}`);
    });
    this.#placeBox(box, toCssPx, height);
  }

  #placeBox(box, toCssPx, height) {
    const [top, bottom] = box === null ? [NaN, NaN] : [toCssPx(box.t1), toCssPx(box.t0)].sort((a, b) => a - b);
    this.#box.hidden = !(bottom > 0 && top < height && box.right > 0);
    if (this.#box.hidden) return;
    const left = Math.max(-2, box.left);
    this.#box.style.transform = `translate(${left.toFixed(2)}px, ${top.toFixed(2)}px)`;
    this.#box.style.width = `${Math.max(1, box.right - left).toFixed(2)}px`;
    this.#box.style.height = `${Math.max(1, bottom - top).toFixed(2)}px`;
  }
}
