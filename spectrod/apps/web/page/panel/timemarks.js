/** What lies over a waterfall at some times: the cursors' lines, and the box of a selection. Elements, as in `Overlay`. */

import { element, setText, shift } from "../side/dom.js";

const CURSORS = ["A", "B"];
/** A label needs so much room above its line. */
const LABEL_PX = 24;

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
   *   box: {t0: number, t1: number, f0: number, f1: number} | null}} marks
   * @param {import("./strip.js").Strip} strip
   */
  place({ cursors, box }, strip) {
    const { places } = strip;
    this.#cursors.forEach(({ name, line, label }, k) => {
      const cursor = cursors[k] ?? null;
      const age = cursor === null ? NaN : strip.ageOf(cursor.tMs);
      line.hidden = !(age >= 0 && age <= places.length);
      if (line.hidden) return;
      const { left, top } = places.moment(age);
      shift(line, left, top);
      // Beyond the line where there is no room before it.
      line.dataset.side = (places.isUpright ? left < places.width / 2 : top < LABEL_PX) ? "beyond" : "before";
      setText(label, `${name} ${cursor.text}`);
    });
    this.#placeBox(box, strip);
  }

  #placeBox(box, strip) {
    const [ages, tones] = box === null ? [[NaN], []] : [[box.t0, box.t1].map((tMs) => strip.ageOf(tMs)), [box.f0, box.f1].map((hz) => Math.max(-2, strip.toneOf(hz)))];
    this.#box.hidden = !(Math.max(...ages) > 0 && Math.min(...ages) < strip.places.length && tones[1] > 0);
    if (this.#box.hidden) return;
    const { left, top, width, height } = strip.places.boxOf(tones, ages);
    shift(this.#box, left, top);
    this.#box.style.width = `${Math.max(1, width).toFixed(2)}px`;
    this.#box.style.height = `${Math.max(1, height).toFixed(2)}px`;
  }
}
