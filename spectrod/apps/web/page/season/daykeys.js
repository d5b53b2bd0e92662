/**
 * Keys among the days of a channel: one stop of the Tab key for all of them, and arrows from day to day.
 *
 * As in a calendar of dates (ARIA Authoring Practices, date grid): arrows go by a day or a week, Home and End to the ends
 * of the week, Page Up and Down by a month, with Control Home and End to the ends of all days.
 */

const WEEK = 7;

/** Place of the day of a neighbouring month, at that date or at its last; of a month that is not whole at the nearest. */
function inMonth(days, place, step) {
  const [year, month, date] = days[place].date.split("-").map(Number);
  const name = new Date(Date.UTC(year, month - 1 + step, 1)).toISOString().slice(0, 7);
  const places = [...days.keys()].filter((k) => days[k].date.startsWith(name));
  if (places.length === 0) return step < 0 ? 0 : days.length - 1;
  return places.findLast((k) => Number(days[k].date.slice(8)) <= date) ?? places[0];
}

const MOVES = Object.freeze({
  ArrowLeft: (days, place) => place - 1,
  ArrowRight: (days, place) => place + 1,
  ArrowUp: (days, place) => (place >= WEEK ? place - WEEK : place),
  ArrowDown: (days, place) => (place + WEEK < days.length ? place + WEEK : place),
  Home: (days, place, isFar) => (isFar ? 0 : place - days[place].weekday),
  End: (days, place, isFar) => (isFar ? days.length - 1 : place + WEEK - 1 - days[place].weekday),
  PageUp: (days, place) => inMonth(days, place, -1),
  PageDown: (days, place) => inMonth(days, place, 1),
});

/**
 * Place of the day to which a key goes, or null if it is none of these keys.
 *
 * @param {{key: string, ctrlKey: boolean, shiftKey: boolean, altKey: boolean, metaKey: boolean}} event
 * @param {import("./calendar.js").Day[]} days without a hole, the oldest first
 * @param {number} place of the day that has the focus
 */
export function dayOfKey({ key, ctrlKey, shiftKey, altKey, metaKey }, days, place) {
  const isFar = ctrlKey && (key === "Home" || key === "End");
  if (shiftKey || altKey || metaKey || (ctrlKey && !isFar) || !Object.hasOwn(MOVES, key)) return null;
  return Math.max(0, Math.min(days.length - 1, MOVES[key](days, place, isFar)));
}

/** The buttons of the days of one channel, of which Tab stops at one: at first the newest, then the last that had the focus. */
export class DayKeys {
  #buttons;
  #days;
  #stop;

  /** @param {Array<{day: import("./calendar.js").Day, button: HTMLButtonElement}>} all of the channel, the oldest first */
  constructor(all) {
    this.#buttons = all.map(({ button }) => button);
    this.#days = all.map(({ day }) => day);
    for (const button of this.#buttons) {
      button.tabIndex = -1;
      button.addEventListener("focus", () => this.#stopAt(button));
      button.addEventListener("keydown", (event) => this.#press(event));
    }
    this.#stopAt(this.#buttons.at(-1));
  }

  #stopAt(button) {
    if (this.#stop) this.#stop.tabIndex = -1;
    this.#stop = button;
    button.tabIndex = 0;
  }

  #press(event) {
    const place = dayOfKey(event, this.#days, this.#buttons.indexOf(event.currentTarget));
    if (place === null) return;
    // The same keys scroll the page, and pan plots.
    event.preventDefault();
    event.stopPropagation();
    this.#buttons[place].focus();
  }
}
