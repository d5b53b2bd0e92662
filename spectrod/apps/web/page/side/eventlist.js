/** The list of events: all that is kept, filtered by kind, by what they are about, and by words; one click goes to one. */

import { aboutText, filtered, ORDERS, ordered } from "../link/events.js";
import { formatSpan, formatTime } from "../plot/time.js";
import { element, setAttribute, setText } from "./dom.js";

/** Rows of the list: of more, filters find the rest. */
const LISTED_MAX = 500;
const ORDER_TEXTS = Object.freeze({ newest: "newest first", oldest: "oldest first", source: "by source", kind: "by kind" });
const COLUMNS = ["time", "source", "kind", "event"];

/** Text of an event for a screen reader, which hears of several at once; empty without any. */
export function newsText(news, total, zone) {
  const mark = news.at(-1);
  if (mark === undefined) return "";
  const newest = `${mark.kind}, ${aboutText(mark)}: ${mark.text}`;
  return `${total === 1 ? "Event" : `${total} events so far, the newest`} at ${formatTime(mark.t1, zone).slice(11, 19)}: ${newest}`;
}

/** The list in the page. */
export class EventList {
  #kind = element("select", { "aria-label": "Kind of events" });
  #about = element("select", { "aria-label": "Source of events" });
  #text = element("input", { type: "search", maxlength: 100, placeholder: "words", "aria-label": "Words in events" });
  #order = element("select", { "aria-label": "Order of events" }, ...ORDERS.map((order) => element("option", { value: order }, ORDER_TEXTS[order])));
  #body = element("tbody");
  #empty = element("p", { class: "empty" });
  #count = element("span", { class: "aside", role: "status" });
  #rows = new Map();
  #key = "";
  #open;

  /**
   * @param {HTMLElement} place
   * @param {{open: (mark: import("../link/events.js").Mark) => void, change: (part: object) => void}} given `open` shows a
   *   mark, `change` changes the view
   */
  constructor(place, { open, change }) {
    this.#open = open;
    const fields = { eventKind: this.#kind, eventSource: this.#about, eventWords: this.#text, eventOrder: this.#order };
    for (const [name, field] of Object.entries(fields)) field.addEventListener("input", () => change({ [name]: field.value }));
    const head = element("tr", {}, ...COLUMNS.map((name) => element("th", { scope: "col" }, name)));
    place.append(
      element("form", { class: "event-filter", role: "search", "aria-label": "Events" }, this.#kind, this.#about, this.#text, this.#order, this.#count),
      element("table", {}, element("caption", { class: "hidden" }, "Events"), element("thead", {}, head), this.#body),
      this.#empty,
    );
    place.firstElementChild.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Bring the list up to date: what of the events the view lets through, in its order. */
  show({ entries, version, selected, hasMore }, view, zone) {
    const filter = { kind: view.eventKind, about: view.eventSource, text: view.eventWords };
    const key = JSON.stringify([version, zone, filter, view.eventOrder]);
    if (key === this.#key) return;
    this.#key = key;
    fillChoice(this.#kind, "all kinds", entries.map(({ kind }) => kind), filter.kind);
    fillChoice(this.#about, "all sources", entries.map(aboutText), filter.about);
    if (this.#text.value !== filter.text) this.#text.value = filter.text;
    this.#order.value = view.eventOrder;
    const found = ordered(filtered(entries, filter), view.eventOrder);
    this.#fill(listed(found, selected), zone, selected);
    setText(this.#count, countText(found.length, entries.length, hasMore, view.eventOrder));
    setText(this.#empty, entries.length === 0 ? "none" : "none of this kind");
    this.#empty.hidden = found.length > 0;
  }

  /** Rows stay those of their marks, so that what has the focus keeps it when others come. */
  #fill(marks, zone, selected) {
    const kept = new Set(marks);
    for (const [mark, row] of this.#rows) {
      if (kept.has(mark)) continue;
      row.remove();
      this.#rows.delete(mark);
    }
    marks.forEach((mark, k) => {
      const row = this.#rows.get(mark) ?? this.#makeRow(mark);
      if (this.#body.rows[k] !== row) this.#body.insertBefore(row, this.#body.rows[k] ?? null);
      const button = row.querySelector("button");
      setText(button, formatSpan(mark.t0, mark.t1, zone, 1));
      setAttribute(button, "aria-pressed", String(selected.includes(mark)));
    });
  }

  #makeRow(mark) {
    const button = element("button", { type: "button", title: "show it in the plots" });
    button.addEventListener("click", () => this.#open(mark));
    const row = element("tr", {}, element("td", {}, button), ...[aboutText(mark), mark.kind, mark.text].map((text) => element("td", {}, text)));
    this.#rows.set(mark, row);
    return row;
  }
}

/** The first of the marks that were found, and those that are selected. */
function listed(found, selected) {
  if (found.length <= LISTED_MAX) return found;
  const chosen = new Set(selected);
  return found.filter((mark, k) => k < LISTED_MAX || chosen.has(mark)).slice(0, 2 * LISTED_MAX);
}

/** How many of the events the list has. */
export function countText(found, all, hasMore = false, order = "newest") {
  const parts = [
    found === all ? "" : `${found} of ${all}`,
    found > LISTED_MAX ? `the ${order === "newest" || order === "oldest" ? order : "first"} ${LISTED_MAX} are listed` : "",
    hasMore ? `older than the newest ${all} are left out` : "",
  ];
  return parts.filter(Boolean).join("; ");
}

/** Offer each of some texts once, what is chosen as well, and one for all of them. */
function fillChoice(select, all, texts, chosen) {
  const offered = ["", ...new Set([...texts, chosen].filter(Boolean))].sort();
  const isSame = offered.length === select.options.length && offered.every((text, k) => select.options[k].value === text);
  if (!isSame) select.replaceChildren(...offered.map((text) => element("option", { value: text }, text || all)));
  select.value = chosen;
}
