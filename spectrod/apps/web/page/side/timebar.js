/** The bar of times: steps back, a date and time to go to, and the zone in which times are read and typed. */

import { formatTime, isoOfLocal, localOfIso, zoneName } from "../plot/time.js";
import { setText } from "./dom.js";

/**
 * Part of a view that ends at a time; later than the newest row is live. Cursors whose times are no longer on the
 * screen lose them, so that the spectrum is one that the waterfall shows.
 *
 * @param {{span: number, times: readonly (number | null)[]}} view
 * @param {number} t1 [ms UTC]
 * @param {number | null} newestMs
 */
export function goTo({ span, times }, t1, newestMs) {
  const isLive = newestMs !== null && t1 >= newestMs;
  const end = isLive ? newestMs : Math.max(0, t1);
  const isShown = (tMs) => tMs !== null && tMs <= end && tMs >= end - 1000 * span;
  return { t1: isLive ? null : end, times: times.map((tMs) => (isShown(tMs) ? tMs : null)) };
}

/** What to say of a time that was typed, where its zone has it twice, or not at all; empty usually. */
export function typedNote({ tMs, count }, zone) {
  if (count === 1) return "";
  const shown = formatTime(tMs, zone);
  return count > 1 ? `This time comes twice on that day: the first one is shown, ${shown}` : `There is no such time on that day, as clocks are put forward: shown is ${shown}`;
}

/** The bar in the page. */
export class TimeBar {
  #field;
  #zone;
  #ofSource;

  /**
   * @param {HTMLElement} place with buttons `data-back` [ms], an `input` of date and time and a `select` of zones
   * @param {{go: (t1: number) => void, back: (ms: number) => void, changeZone: (name: string) => void,
   *   zone: () => string, local: string, notice: (text: string) => void}} given `local`: name of the browser's zone
   */
  constructor(place, { go, back, changeZone, zone, local, notice }) {
    this.#field = place.querySelector("input");
    this.#zone = place.querySelector("select");
    this.#ofSource = this.#zone.querySelector('[value="source"]');
    setText(this.#zone.querySelector('[value="local"]'), `local: ${local}`);
    for (const button of place.querySelectorAll("[data-back]")) {
      button.addEventListener("click", () => back(Number(button.dataset.back)));
    }
    this.#field.addEventListener("change", () => {
      if (!this.#field.validity.valid || this.#field.value === "") return;
      const found = localOfIso(this.#field.value, zone());
      const note = typedNote(found, zone());
      if (note !== "") notice(note);
      go(found.tMs);
    });
    this.#zone.addEventListener("change", () => changeZone(this.#zone.value));
  }

  /**
   * Show the time at the top of the waterfalls; while somebody types, theirs stays.
   *
   * @param {{tMs: number | null, zone: string, chosen: string, ofSource: string}} state `chosen`: `local`, `UTC` or `source`;
   *   `ofSource`: name of the source's zone, empty where none is known
   */
  show({ tMs, zone, chosen, ofSource }) {
    setText(this.#ofSource, `source: ${ofSource}`);
    this.#ofSource.hidden = ofSource === "";
    this.#zone.value = chosen === "source" && ofSource === "" ? "local" : chosen;
    if (this.#zone.title !== zone) this.#zone.title = zone;
    if (tMs === null || document.activeElement === this.#field) return;
    const text = isoOfLocal(tMs, zone).slice(0, 19);
    if (this.#field.value !== text) this.#field.value = text;
    this.#field.title = `time of the newest row in the waterfalls, ${zoneName(tMs, zone)}; type one to go there`;
  }
}

