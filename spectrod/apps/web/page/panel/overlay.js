/** Cursors, harmonics, band and pointer on top of a panel's plots: elements, so that moving one draws no canvas. */

import { element, setText } from "../side/dom.js";

const CURSORS = ["A", "B"];
const LABEL_GAP_PX = 6;

/**
 * Place of a cursor's label [CSS px from the cursor]: beside it, on the side with more room, and whole where
 * the plot is wide enough for it.
 */
export function labelOffset(px, width, labelWidth) {
  const beside = px > width / 2 ? px - LABEL_GAP_PX - labelWidth : px + LABEL_GAP_PX;
  return Math.max(0, Math.min(width - labelWidth, beside)) - px;
}

/** The lines over a panel. */
export class Overlay {
  #cursors;
  #band = element("div", { class: "band", hidden: true });
  #pointer = element("div", { class: "pointer", hidden: true });
  #harmonics = [];
  #surface;
  #labelWidths = new Map(); // by number of characters: asking the browser lays the page out

  /** @param {HTMLElement} surface covers the plots of a panel */
  constructor(surface) {
    this.#surface = surface;
    this.#cursors = CURSORS.map((name) => {
      const label = element("span", { class: "cursor-label" });
      const line = element("div", { class: "cursor", hidden: true, "data-cursor": name }, label);
      return { name, line, label };
    });
    surface.append(this.#band, this.#pointer, ...this.#cursors.map(({ line }) => line));
  }

  /**
   * Put the lines in their places.
   *
   * @param {(hz: number) => number} toCssPx
   * @param {number} width [CSS px]
   * @param {Array<{hz: number, text: string}>} readings of the cursors
   * @param {readonly [number, number] | null} band [Hz]
   * @param {Array<{n: number, hz: number}>} harmonics within the plot
   */
  place(toCssPx, width, readings, band, harmonics) {
    this.#cursors.forEach(({ name, line, label }, k) => {
      const reading = readings[k];
      const px = reading === undefined ? NaN : toCssPx(reading.hz);
      line.hidden = !(px >= 0 && px <= width);
      if (line.hidden) return;
      line.style.transform = `translateX(${px}px)`;
      const text = `${name} ${reading.text}`;
      setText(label, text);
      if (!this.#labelWidths.has(text.length)) this.#labelWidths.set(text.length, label.offsetWidth);
      label.style.transform = `translateX(${labelOffset(px, width, this.#labelWidths.get(text.length))}px)`;
    });
    this.#placeBand(toCssPx, width, band);
    this.#placeHarmonics(toCssPx, harmonics);
  }

  #placeHarmonics(toCssPx, harmonics) {
    while (this.#harmonics.length < harmonics.length) {
      const line = element("div", { class: "harmonic", "aria-hidden": "true" }, element("span"));
      this.#harmonics.push(line);
      this.#surface.append(line);
    }
    this.#harmonics.forEach((line, k) => {
      line.hidden = k >= harmonics.length;
      if (line.hidden) return;
      const { n, hz } = harmonics[k];
      line.style.transform = `translateX(${toCssPx(hz)}px)`;
      setText(line.firstElementChild, String(n));
    });
  }

  #placeBand(toCssPx, width, band) {
    const [from, to] = (band ?? [NaN, NaN]).map((hz) => Math.max(0, Math.min(width, toCssPx(hz))));
    this.#band.hidden = !(to > from);
    if (this.#band.hidden) return;
    this.#band.style.transform = `translateX(${from}px)`;
    this.#band.style.width = `${to - from}px`;
  }

  /** Show where the pointer is, or null. */
  point(px) {
    this.#pointer.hidden = px === null;
    if (px !== null) this.#pointer.style.transform = `translateX(${px}px)`;
  }
}
