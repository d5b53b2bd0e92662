/** Marks of events over a waterfall, at their time and band, and what is clicked for them in the time axis beside it. */

import { element, setAttribute, setText } from "../side/dom.js";

/** Least height of what is clicked, so least distance of two of them [CSS px]. */
const TARGET_PX = 24;
/** More marks than that are a texture: of those in each of so many parts of the height the newest is drawn. */
const DRAWN_MAX = 100;

/**
 * Marks that are so near to each other that one click is for all of them.
 *
 * @param {Array<{mark: import("../link/events.js").Mark, y: number}>} places heights [CSS px]
 * @returns {Array<{marks: object[], y: number}>} from the top; `y`: the middle of each group
 */
export function grouped(places) {
  const groups = [];
  for (const { mark, y } of [...places].sort((a, b) => a.y - b.y)) {
    const last = groups.at(-1);
    if (last !== undefined && y - last.top < TARGET_PX) {
      last.marks.push(mark);
      last.y = (last.top + y) / 2;
    } else groups.push({ marks: [mark], top: y, y });
  }
  return groups.map(({ marks, y }) => ({ marks, y }));
}

/**
 * Marks to draw: all, or of too many one of each part of the height, and those that are selected.
 *
 * @param {object[]} marks the newest first
 * @param {object[]} selected
 * @param {(mark: object) => number} shareOf place in the height, 0 to 1
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
   * @param {{marksOf: () => object[], selected: object[], version: number}} shown
   * @param {{toY: (tMs: number) => number, toX: (hz: number) => number, height: number, width: number, key: string}} scale
   *   places [CSS px]; `key` changes with them
   */
  place({ marksOf, selected, version }, { toY, toX, height, width, key }) {
    const all = [version, height, width, key].join();
    if (all === this.#key) return;
    this.#key = all;
    const marks = marksOf();
    const yOf = ({ t0, t1 }) => Math.max(0, Math.min(height, toY((t0 + t1) / 2)));
    const drawn = drawnOf(marks, selected, (mark) => yOf(mark) / height);
    const isSelected = new Set(selected);
    fit(this.#over, drawn.length, () => element("div", {}, element("span")));
    // Names of marks that are selected together would lie on each other.
    const named = drawn.find((mark) => isSelected.has(mark));
    drawn.forEach((mark, k) => placeMark(this.#over.children[k], mark, { isSelected: isSelected.has(mark), hasName: mark === named, toY, toX, height, width }));
    this.#groups = grouped(marks.map((mark) => ({ mark, y: yOf(mark) })));
    // The list of events has them for keys: hundreds of stops of Tab here would be in the way.
    fit(this.targets, this.#groups.length, () => element("button", { type: "button", tabindex: -1 }));
    this.#groups.forEach((group, k) => {
      const target = this.targets.children[k];
      target.style.transform = `translateY(${(group.y - TARGET_PX / 2).toFixed(2)}px)`;
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

function placeMark(box, { t0, t1, f0, f1, kind }, { isSelected, hasName, toY, toX, height, width }) {
  const [top, bottom] = [toY(t1), toY(t0)].sort((a, b) => a - b).map((y) => Math.max(-4, Math.min(height + 4, y)));
  const [left, right] = f0 === null ? [0, width] : [toX(f0), toX(f1)].map((x) => Math.max(-4, Math.min(width + 4, x)));
  const [hasBand, hasLength] = [f0 !== null, bottom - top >= 3];
  box.style.transform = `translate(${left.toFixed(2)}px, ${top.toFixed(2)}px)`;
  box.style.width = `${Math.max(0, right - left).toFixed(2)}px`;
  box.style.height = `${hasLength ? (bottom - top).toFixed(2) : 0}px`;
  setAttribute(box, "data-band", hasBand);
  setAttribute(box, "data-length", hasLength);
  setAttribute(box, "data-selected", isSelected);
  setText(box.firstElementChild, hasName ? kind : "");
  setAttribute(box, "data-below", top < TARGET_PX);
}
