/** The choice of what is drawn over time: a box for each measurement that there is. */

import { BOUNDS } from "../panel/view.js";
import { element, setText } from "./dom.js";

export class LineChoice {
  #place;
  #boxes = [];
  #change;

  /**
   * @param {HTMLElement} place
   * @param {(names: string[]) => void} change is given the names that are chosen
   */
  constructor(place, change) {
    this.#place = place;
    this.#change = change;
  }

  /** @param {Array<{name: string, title: string, isShown: boolean}>} lines */
  show(lines) {
    const isSame = this.#boxes.length === lines.length && lines.every(({ name }, k) => this.#boxes[k].name === name);
    if (!isSame) this.#make(lines);
    const isFull = lines.filter(({ isShown }) => isShown).length >= BOUNDS.lines;
    lines.forEach(({ title, isShown }, k) => {
      const { input, text } = this.#boxes[k];
      setText(text, title);
      input.checked = isShown;
      input.disabled = isFull && !isShown;
    });
  }

  #make(lines) {
    for (const { root } of this.#boxes) root.remove();
    this.#boxes = lines.map(({ name }) => {
      const [input, text] = [element("input", { type: "checkbox" }), element("span")];
      input.addEventListener("change", () => this.#tell());
      return { name, input, text, root: element("label", {}, input, text) };
    });
    this.#place.append(...this.#boxes.map(({ root }) => root));
  }

  #tell() {
    this.#change(this.#boxes.filter(({ input }) => input.checked).map(({ name }) => name));
  }
}
