/** The list of events: all that is kept, filtered by kind, by what they are about, and by words; one click goes to one. */

import { aboutText, filtered } from "../link/events.js";
import { formatTime } from "../plot/time.js";
import { element, setAttribute, setText } from "./dom.js";

/** Rows of the list: of more, filters find the rest. */
const LISTED_MAX = 500;
const COLUMNS = ["time", "source", "kind", "event"];

/** Text of an event for a screen reader, which hears of several at once; empty without any. */
export function newsText(news, total, zone) {
  const mark = news.at(-1);
  if (mark === undefined) return "";
  const newest = `${mark.kind}, ${aboutText(mark)}: ${mark.text}`;
  return `${total === 1 ? "Event" : `${total} events so far, the newest`} at ${formatTime(mark.t0, zone).slice(11, 19)}: ${newest}`;
}

/** The list in the page. */
export class EventList {
  #kind = element("select", { "aria-label": "Kind of events" });
  #about = element("select", { "aria-label": "Source of events" });
  #text = element("input", { type: "search", maxlength: 100, placeholder: "words", "aria-label": "Words in events" });
  #body = element("tbody");
  #empty = element("p", { class: "empty" });
  #count = element("span", { class: "aside", role: "status" });
  #rows = new Map();
  #key = "";
  #open;

  /**
   * @param {HTMLElement} place
   * @param {(mark: import("../link/events.js").Mark) => void} open shows a mark
   */
  constructor(place, open) {
    this.#open = open;
    const head = element("tr", {}, ...COLUMNS.map((name) => element("th", { scope: "col" }, name)));
    place.append(
      element("form", { class: "event-filter", role: "search", "aria-label": "Events" }, this.#kind, this.#about, this.#text, this.#count),
      element("table", {}, element("caption", { class: "hidden" }, "Events"), element("thead", {}, head), this.#body),
      this.#empty,
    );
    place.firstElementChild.addEventListener("submit", (event) => event.preventDefault());
  }

  /** Bring the list up to date. */
  show({ entries, version, selected, hasMore }, zone) {
    const filter = { kind: this.#kind.value, about: this.#about.value, text: this.#text.value };
    const key = JSON.stringify([version, zone, filter]);
    if (key === this.#key) return;
    this.#key = key;
    fillChoice(this.#kind, "all kinds", entries.map(({ kind }) => kind));
    fillChoice(this.#about, "all sources", entries.map(aboutText));
    const found = filtered(entries, filter);
    this.#fill(listed(found, selected), zone, selected);
    setText(this.#count, countText(found.length, entries.length, hasMore));
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
      setText(button, formatTime(mark.t0, zone, 1));
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

/** The newest of the marks that were found, and those that are selected. */
function listed(found, selected) {
  if (found.length <= LISTED_MAX) return found;
  const chosen = new Set(selected);
  return found.filter((mark, k) => k < LISTED_MAX || chosen.has(mark)).slice(0, 2 * LISTED_MAX);
}

/** How many of the events the list has. */
export function countText(found, all, hasMore = false) {
  const parts = [
    found === all ? "" : `${found} of ${all}`,
    found > LISTED_MAX ? `the newest ${LISTED_MAX} are listed` : "",
    hasMore ? `older than the newest ${all} are left out` : "",
  ];
  return parts.filter(Boolean).join("; ");
}

/** Offer each of some texts once, with one for all of them; what is chosen stays. */
function fillChoice(select, all, texts) {
  const chosen = select.value;
  const offered = ["", ...new Set([...texts, chosen].filter(Boolean))].sort();
  if (offered.length === select.options.length && offered.every((text, k) => select.options[k].value === text)) return;
  select.replaceChildren(...offered.map((text) => element("option", { value: text }, text || all)));
  select.value = chosen;
}
