/** Marks of events over a waterfall, at their time and band, and what is clicked for them in its time axis. */

import { element, setAttribute, setText, shift } from "../side/dom.js";

/** Least length of what is clicked, so least distance of two of them [CSS px]. */
const TARGET_PX = 24;
/** More marks than that are a texture: of those in each of so many parts of the time axis the newest is drawn. */
const DRAWN_MAX = 100;

/**
 * Marks that are so near to each other that one click is for all of them.
 *
 * @param {Array<{mark: import("../link/events.js").Mark, at: number}>} places on the time axis [CSS px]
 * @returns {Array<{marks: object[], at: number}>} in the order of their places; `at`: the middle of each group
 */
export function grouped(places) {
  const groups = [];
  for (const { mark, at } of [...places].sort((a, b) => a.at - b.at)) {
    const last = groups.at(-1);
    if (last !== undefined && at - last.begin < TARGET_PX) {
      last.marks.push(mark);
      last.at = (last.begin + at) / 2;
    } else groups.push({ marks: [mark], begin: at, at });
  }
  return groups.map(({ marks, at }) => ({ marks, at }));
}

/**
 * Marks to draw: all, or of too many one of each part of the time axis, and those that are selected.
 *
 * @param {object[]} marks the newest first
 * @param {object[]} selected
 * @param {(mark: object) => number} shareOf place on the time axis, 0 to 1
 */
export function drawnOf(marks, selected, shareOf) {
  if (marks.length <= DRAWN_MAX) return marks;
  const parts = new Map();
  for (const mark of marks) {
    const part = Math.floor(shareOf(mark) * (DRAWN_MAX - 1));
    if (!parts.has(part)) parts.set(part, mark);
  }
  const few = new Set(selected.slice(0, DRAWN_MAX));
  return [...new Set([...parts.values(), ...marks.filter((mark) => few.has(mark))])];
}

/** Name of a group for its tooltip, and for screen readers. */
export function groupText(marks) {
  const [{ kind, text }] = marks;
  return marks.length === 1 ? `${kind}: ${text}` : `${marks.length} events: ${[...new Set(marks.map((mark) => mark.kind))].join(", ")}`;
}

/** The marks of one waterfall. */
export class EventMarks {
  #over = element("div", { class: "event-marks", "aria-hidden": "true" });
  /** What is clicked; it lies in the time axis. A click says `marks` with the marks as `detail`. */
  targets = element("div", { class: "event-targets" });
  #groups = [];
  #key = "";

  /** @param {HTMLElement} place covers the waterfall */
  constructor(place) {
    place.append(this.#over);
    this.targets.addEventListener("click", ({ target }) => {
      const found = this.#groups[[...this.targets.children].indexOf(target)];
      if (found !== undefined) this.targets.dispatchEvent(new CustomEvent("marks", { bubbles: true, detail: found.marks }));
    });
  }

  /**
   * Put marks in their places.
   *
   * @param {{marksOf: () => object[], timedOf: () => object[], selected: object[], key: string}} shown marks over the
   *   waterfall, and those in its time axis; `key` changes with them
   * @param {import("./strip.js").Strip} strip
   */
  place({ marksOf, timedOf, selected, key }, strip) {
    const { places } = strip;
    const all = [places.width, places.height, key].join();
    if (all === this.#key) return;
    this.#key = all;
    const ageOf = ({ t0, t1 }) => Math.max(0, Math.min(places.length, strip.ageOf((t0 + t1) / 2)));
    const drawn = drawnOf(marksOf(), selected, (mark) => ageOf(mark) / places.length);
    const isSelected = new Set(selected);
    fit(this.#over, drawn.length, () => element("div", {}, element("span")));
    // Names of marks that are selected together would lie on each other.
    const named = drawn.find((mark) => isSelected.has(mark));
    drawn.forEach((mark, k) => placeMark(this.#over.children[k], mark, { isSelected: isSelected.has(mark), hasName: mark === named, strip }));
    this.#groups = grouped(timedOf().map((mark) => ({ mark, at: places.along(ageOf(mark)) })));
    // The list of events has them for keys: hundreds of stops of Tab here would be in the way.
    fit(this.targets, this.#groups.length, () => element("button", { type: "button", tabindex: -1 }));
    this.#groups.forEach((group, k) => {
      const target = this.targets.children[k];
      const begin = group.at - TARGET_PX / 2;
      shift(target, places.isUpright ? begin : 0, places.isUpright ? 0 : begin);
      for (const name of ["title", "aria-label"]) setAttribute(target, name, groupText(group.marks));
      setAttribute(target, "data-selected", group.marks.some((mark) => isSelected.has(mark)));
    });
  }
}

/** Make the number of children what it is to be. */
function fit(place, count, make) {
  while (place.children.length > count) place.lastElementChild.remove();
  while (place.children.length < count) place.append(make());
}

function placeMark(box, { t0, t1, f0, f1, kind }, { isSelected, hasName, strip }) {
  const { places } = strip;
  const within = (values, most) => values.map((value) => Math.max(-4, Math.min(most + 4, value)));
  const ages = within([strip.ageOf(t0), strip.ageOf(t1)], places.length);
  const tones = f0 === null ? [0, places.breadth] : within([strip.toneOf(f0), strip.toneOf(f1)], places.breadth);
  const [hasBand, hasLength] = [f0 !== null, Math.abs(ages[0] - ages[1]) >= 3];
  const { left, top, width, height } = places.boxOf(tones, hasLength ? ages : [ages[1], ages[1]]);
  shift(box, left, top);
  box.style.width = `${width.toFixed(2)}px`;
  box.style.height = `${height.toFixed(2)}px`;
  setAttribute(box, "data-band", hasBand);
  setAttribute(box, "data-length", hasLength);
  setAttribute(box, "data-selected", isSelected);
  setText(box.firstElementChild, hasName ? kind : "");
  setAttribute(box, "data-beyond", places.isUpright ? left < places.width / 2 : top < TARGET_PX);
}
