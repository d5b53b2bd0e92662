/**
 * The parts of the page that a button each opens: beside the plots where there is room, which the browser remembers;
 * over them, one at a time, where there is not.
 */

import { setAttribute } from "./dom.js";

/** Panes of a page. */
export class Panes {
  #parts;
  #narrow;
  #remember;
  #open;
  #sheet = null;

  /**
   * @param {Record<string, {button: HTMLElement, root: HTMLElement}>} parts by their names
   * @param {{narrow: MediaQueryList, open: readonly string[], remember: (names: string[]) => void}} given `narrow`:
   *   whether panes lie over the plots; `open`: those that are open beside them
   */
  constructor(parts, { narrow, open, remember }) {
    this.#parts = new Map(Object.entries(parts));
    this.#narrow = narrow;
    this.#open = new Set(open);
    this.#remember = remember;
    for (const [name, { button }] of this.#parts) button.addEventListener("click", () => this.toggle(name));
    narrow.addEventListener("change", () => {
      this.#sheet = null;
      this.#show();
    });
    this.#show();
  }

  isOpen(name) {
    return this.#narrow.matches ? this.#sheet === name : this.#open.has(name);
  }

  toggle(name) {
    if (this.isOpen(name)) this.#close(name);
    else this.open(name);
  }

  /** Open a pane; one that is open stays so. */
  open(name) {
    if (this.isOpen(name)) return;
    if (this.#narrow.matches) this.#sheet = name;
    else this.#open.add(name);
    this.#changed();
  }

  #close(name) {
    if (this.#narrow.matches) this.#sheet = null;
    else this.#open.delete(name);
    this.#changed();
  }

  /** Close the pane that lies over the plots; return whether there was one, whose button has the focus then. */
  closeSheet() {
    if (!this.#narrow.matches || this.#sheet === null) return false;
    const { button } = this.#parts.get(this.#sheet);
    this.#close(this.#sheet);
    button.focus();
    return true;
  }

  #changed() {
    if (!this.#narrow.matches) this.#remember([...this.#open]);
    this.#show();
  }

  #show() {
    for (const [name, { button, root }] of this.#parts) {
      root.hidden = !this.isOpen(name);
      setAttribute(button, "aria-expanded", String(!root.hidden));
    }
  }
}
