/** Cursors, harmonics, band and pointer on top of plots: elements, so that moving one draws no canvas. */

import { element, setText, shift } from "../side/dom.js";

const CURSORS = ["A", "B"];
const LABEL_GAP_PX = 6;
/** Harmonics that are closer together would hide the spectrum, and their numbers each other [CSS px]. */
const LINES_APART_PX = 4;
const NUMBERS_APART_PX = 22;

/**
 * Place of a cursor's label [CSS px from the cursor]: beside it, on the side with more room, and whole where
 * the plot is wide enough for it.
 */
export function labelOffset(px, width, labelWidth) {
  const beside = px > width / 2 ? px - LABEL_GAP_PX - labelWidth : px + LABEL_GAP_PX;
  return Math.max(0, Math.min(width - labelWidth, beside)) - px;
}

/** Lines of frequencies over plots that lie alike. */
export class Overlay {
  #cursors;
  #band = element("div", { class: "band", hidden: true });
  #pointer = element("div", { class: "pointer", hidden: true });
  #harmonics = [];
  #toTone = null;
  #places = null;
  #labelWidths = new Map(); // by number of characters: asking the browser lays the page out

  /** What the lines are in, for whoever has the plots. */
  root = element("div", { class: "overlay" }, this.#band, this.#pointer);

  constructor() {
    this.#cursors = CURSORS.map((name) => {
      const label = element("span", { class: "cursor-label" });
      const line = element("div", { class: "cursor", hidden: true, "data-cursor": name }, label);
      return { name, line, label };
    });
    this.root.append(...this.#cursors.map(({ line }) => line));
  }

  /**
   * Put the lines in their places.
   *
   * @param {{places: import("../plot/orientation.js").Orientation, toTone: (hz: number) => number}} scale of the
   *   plots [CSS px]
   * @param {{readings: Array<{hz: number, text: string}>, band: readonly [number, number] | null,
   *   harmonics: Array<{n: number, hz: number}>}} shown `readings` of the cursors, `harmonics` within the plots
   */
  place({ places, toTone }, { readings, band, harmonics }) {
    this.#places = places;
    this.#toTone = toTone;
    this.#cursors.forEach(({ name, line, label }, k) => {
      const reading = readings[k];
      this.#put(line, reading?.hz);
      if (line.hidden) return;
      // Where frequencies are above each other the letter is enough: the line spectrum has the reading.
      const text = places.isUpright ? name : `${name} ${reading.text}`;
      setText(label, text);
      if (!this.#labelWidths.has(text.length)) this.#labelWidths.set(text.length, label.offsetWidth);
      shift(label, places.isUpright ? 0 : labelOffset(toTone(reading.hz), places.width, this.#labelWidths.get(text.length)), 0);
    });
    this.#placeBand(band);
    this.#placeHarmonics(harmonics);
  }

  /** Put a line at a frequency, if the plots have it. */
  #put(line, hz) {
    const tone = hz === undefined ? NaN : this.#toTone(hz);
    line.hidden = !(tone >= 0 && tone <= this.#places.breadth);
    if (line.hidden) return;
    const { left, top } = this.#places.tone(tone);
    shift(line, left, top);
  }

  #placeHarmonics(harmonics) {
    while (this.#harmonics.length < harmonics.length) {
      const line = element("div", { class: "harmonic", "aria-hidden": "true" }, element("span"));
      this.#harmonics.push(line);
      this.root.append(line);
    }
    let [lineAt, numberAt] = [-Infinity, -Infinity];
    this.#harmonics.forEach((line, k) => {
      const { n, hz } = harmonics[k] ?? {};
      const tone = this.#toTone(hz);
      this.#put(line, tone - lineAt >= LINES_APART_PX ? hz : undefined);
      if (line.hidden) return;
      lineAt = tone;
      const [number] = line.children;
      number.hidden = tone - numberAt < NUMBERS_APART_PX;
      if (number.hidden) return;
      numberAt = tone;
      setText(number, String(n));
    });
  }

  #placeBand(band) {
    const { breadth, length, isUpright } = this.#places;
    const tones = (band ?? [NaN, NaN]).map((hz) => Math.max(0, Math.min(breadth, this.#toTone(hz))));
    this.#band.hidden = !(tones[1] > tones[0]);
    if (this.#band.hidden) return;
    const { left, top, width, height } = this.#places.boxOf(tones, [0, length]);
    shift(this.#band, left, top);
    this.#band.style.width = isUpright ? "100%" : `${width}px`;
    this.#band.style.height = isUpright ? `${height}px` : "100%";
  }

  /** Show the frequency of the pointer, or null. */
  point(hz) {
    if (this.#places !== null) this.#put(this.#pointer, hz ?? undefined);
  }
}
