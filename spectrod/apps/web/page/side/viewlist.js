/** The list of views with names, their files, and the buttons that save and open them. */

import { element, setAttribute, setText } from "./dom.js";
import { fileName, save } from "./export.js";
import { formatTime } from "../plot/time.js";
import { zoneOf } from "./prefs.js";
import { readView, VIEW_CHARS_MAX, VIEW_NAME_MAX, viewText } from "./views.js";

/** The list in a place of the page. */
export class ViewList {
  #views;
  #given;
  #list = element("ul", { class: "stored views" });
  #empty = element("p", { class: "empty" }, "None yet. They stay in this browser; a file is for a colleague.");
  #name = element("input", { type: "text", maxlength: VIEW_NAME_MAX, placeholder: "name", "aria-label": "Name of a new view" });
  #note = element("p", { class: "empty", role: "status" });
  #undo = this.#button("Undo", () => this.#do(() => `${this.#views.add(this.#removed)} is back, as the last`));
  #removed = null;
  #link = element("input", { type: "text", readonly: true, hidden: true, "aria-label": "Link to this view" });

  /**
   * @param {HTMLElement} place
   * @param {import("./views.js").Views} views
   * @param {{state: (name: string) => object, open: (state: object) => string, link: () => string,
   *   usualName: () => string}} given `state`: what the page shows, with a name; `open` shows one, and returns what it
   *   cannot show
   */
  constructor(place, views, given) {
    this.#views = views;
    this.#given = given;
    const file = element("input", { type: "file", accept: ".json,application/json", id: "view-file" });
    file.addEventListener("change", () => {
      if (file.files.length > 0) this.openFile(file.files[0]);
      file.value = "";
    });
    const adding = element("form", { class: "view-adding" }, this.#name, element("button", { id: "save-view" }, "Save view"));
    adding.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#do(() => {
        const name = this.#views.add(given.state(this.#name.value.trim() || given.usualName()));
        this.#name.value = "";
        return `${name} is saved`;
      });
    });
    const buttons = element("div", { class: "fields" }, this.#button("Copy link", () => this.#copyLink()), this.#button("Save as file", () => this.#saveFile(given.state(this.#name.value.trim() || given.usualName()))));
    place.append(adding, buttons, element("label", { class: "limits" }, "Open a view's file, or drop it on the page", file), this.#link, this.#note, this.#undo, this.#empty, this.#list);
    this.show();
  }

  #button(text, act, label = null) {
    const made = element("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", act);
    return made;
  }

  /** Show what is saved. */
  show() {
    const { entries } = this.#views;
    this.#empty.hidden = entries.length > 0;
    this.#undo.hidden = this.#removed === null;
    this.#list.replaceChildren(...entries.map((entry) => this.#item(entry)));
  }

  #item({ name, view, zone }) {
    const time = view.t1 === null ? "live" : formatTime(view.t1, zoneOf({ zone }));
    const channels = view.topics.length > 0 ? view.topics.join(", ") : "channels that are there";
    const title = element("input", { type: "text", maxlength: VIEW_NAME_MAX, "aria-label": `Name of view ${name}`, title: `${channels}; ${time}` });
    title.value = name;
    title.addEventListener("change", () => this.#do(() => this.#views.rename(name, title.value.trim())));
    const found = () => this.#views.find(name);
    return element(
      "li",
      {},
      title,
      this.#button("Open", () => this.#do(() => this.#open(found(), name)), `Open view ${name}`),
      this.#button("Replace", () => this.#do(() => this.#replace(name)), `Replace view ${name} by what is shown`),
      this.#button("File", () => this.#saveFile(found()), `Save view ${name} as a file`),
      this.#button("×", () => this.#do(() => this.#remove(found())), `Remove view ${name}`),
    );
  }

  #replace(name) {
    this.#views.replace(name, this.#given.state(name));
    return `${name} is what is shown now`;
  }

  #remove(state) {
    if (state === null) return "";
    this.#views.remove(state.name);
    this.#removed = state;
    return `${state.name} is removed`;
  }

  #open(state, name) {
    if (state === null) return `${name}: another tab has removed it`;
    return [`${name} is open`, this.#given.open(state)].filter(Boolean).join("; ");
  }

  #saveFile(state) {
    if (state !== null) save(new Blob([viewText(state)], { type: "application/json" }), fileName(state.name, "spectrod-view.json"));
  }

  /** Do something that may fail, say what came of it, and keep the focus at its place in the new list. */
  #do(act) {
    const item = document.activeElement?.closest(".views > li");
    const before = this.#removed;
    const places = item ? [[...this.#list.children].indexOf(item), [...item.children].indexOf(document.activeElement)] : null;
    const isDone = this.#say(act);
    // What was removed may be taken back until something else is done.
    if (isDone && this.#removed === before) this.#removed = null;
    this.show();
    if (places !== null) this.#list.children[Math.min(places[0], this.#list.children.length - 1)]?.children[places[1]]?.focus();
  }

  /** Say what came of something; return whether it did not fail. */
  #say(act) {
    let grade = null;
    try {
      setText(this.#note, act() ?? "");
    } catch (error) {
      setText(this.#note, error.message);
      grade = "bad";
    }
    setAttribute(this.#note, "data-grade", grade);
    return grade === null;
  }

  /** Show the view of a file; what is wrong with it is said, and nothing changes. */
  async openFile(file) {
    const isLong = file.size > 4 * VIEW_CHARS_MAX; // a sign has at most four bytes
    const text = isLong ? null : await file.text().catch(() => null);
    this.#say(() => {
      if (text === null) throw new Error(`${file.name}: ${isLong ? `more than ${VIEW_CHARS_MAX / 1024 / 1024} MiB` : "cannot be read"}`);
      const { made, note } = readView(text, file.name);
      return [this.#open(made, made.name), note].filter(Boolean).join("; ");
    });
    return this.#note.textContent;
  }

  /** Copy the link, or show it where the browser does not let the page. */
  async #copyLink() {
    const link = this.#given.link();
    try {
      await navigator.clipboard.writeText(link);
      setText(this.#note, "the link is copied; it has no stored spectra, a file has them");
    } catch {
      this.#link.hidden = false;
      this.#link.value = link;
      this.#link.select();
    }
  }
}

/**
 * Take files that are dropped anywhere on the page, which a browser would show in its place.
 *
 * @param {(file: File) => void} take
 */
export function takeDropped(take) {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (isOver) => setAttribute(document.body, "data-dropping", isOver);
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && mark(false));
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files.length > 0) take(event.dataTransfer.files[0]);
  });
}
