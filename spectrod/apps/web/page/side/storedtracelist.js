/** The list of stored spectra and limits, and the buttons that store. */

import { element, setAttribute } from "./dom.js";
import { NAME_MAX } from "./storedtraces.js";

/** The list in a place of the page. */
export class StoredTraceList {
  #traces;
  #given;
  #list = element("ul", { class: "stored" });
  #empty = element("p", { class: "empty" }, "None yet. They stay in this browser.");

  /**
   * @param {HTMLElement} place
   * @param {import("./storedtraces.js").StoredTraces} traces
   * @param {{store: () => void, limits: (file: File) => void, changed: () => void}} given `store` the spectrum that is
   *   shown, `limits` of a file
   */
  constructor(place, traces, given) {
    this.#traces = traces;
    this.#given = given;
    const store = element("button", { type: "button", id: "store-spectrum" }, "Store spectrum");
    store.addEventListener("click", () => given.store());
    const file = element("input", { type: "file", accept: ".csv,.txt,text/csv,text/plain", id: "limits-file" });
    file.addEventListener("change", () => {
      if (file.files.length > 0) given.limits(file.files[0]);
      file.value = "";
    });
    const limits = element("label", { class: "limits" }, "Limits, CSV of Hz and dB", file);
    place.append(element("div", { class: "fields" }, store), limits, this.#empty, this.#list);
    this.show();
  }

  /** Show what is stored. */
  show() {
    const { entries, difference } = this.#traces;
    this.#empty.hidden = entries.length > 0;
    this.#list.replaceChildren(...entries.map((entry) => this.#item(entry, difference)));
  }

  #item({ name, isShown, unit, row }, difference) {
    const shown = element("input", { type: "checkbox", "aria-label": `Show ${name}` });
    shown.checked = isShown;
    shown.addEventListener("change", () => this.#do(() => this.#traces.change(name, { isShown: shown.checked })));
    const title = element("input", { type: "text", maxlength: NAME_MAX, "aria-label": `Name of ${name}`, title: unit });
    title.value = name;
    title.addEventListener("change", () => this.#do(() => this.#traces.change(name, { name: title.value.trim() })));
    const subtract = element("button", { type: "button", "aria-label": `Difference to ${name}`, title: "Show the difference to it" }, "Δ");
    setAttribute(subtract, "aria-pressed", String(difference === name));
    subtract.hidden = row === undefined;
    subtract.addEventListener("click", () => this.#do(() => this.#traces.subtract(difference === name ? null : name)));
    const remove = element("button", { type: "button", "aria-label": `Remove ${name}`, title: "Remove" }, "×");
    remove.addEventListener("click", () => this.#do(() => this.#traces.remove(name)));
    return element("li", {}, shown, title, subtract, remove);
  }

  /** Change something, and keep the focus at its place in the new list. */
  #do(change) {
    const item = document.activeElement?.closest("li");
    const places = item === null || item === undefined ? null : [[...this.#list.children].indexOf(item), [...item.children].indexOf(document.activeElement)];
    change();
    this.show();
    if (places !== null) this.#list.children[Math.min(places[0], this.#list.children.length - 1)]?.children[places[1]]?.focus();
    this.#given.changed();
  }
}
