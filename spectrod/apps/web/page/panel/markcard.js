/** The card of selected marks: their whole texts, and what can be done with their time and band. */

import { aboutText } from "../link/events.js";
import { decimalsOf, formatHertz, formatTime } from "../plot/time.js";
import { element, setText } from "../side/dom.js";
import { secondsText } from "../side/tables.js";
import { showClips } from "./soundclips.js";
import { goTo } from "../side/timebar.js";

const LISTED_MAX = 8;
/** What is shown around a mark: at least so much of its length, and of one without so much time. */
const AROUND = 1.5;
const INSTANT_MS = 1000;

/** Of the days of an archive one is opened. */
const DAY_S = 86_400;

/** Part of a view that has a mark in the middle of the waterfalls, whole. */
export function viewOfMark({ t0, t1 }, view, newestMs) {
  const span = Math.max(view.days ? DAY_S : view.span, (AROUND * (t1 - t0)) / 1000);
  return { span, ...goTo({ ...view, span }, (t0 + t1) / 2 + 500 * span, newestMs) };
}

/** Box of a mark in time and frequency: of one without a length a second about it, without a band all that is shown. */
export function boxOfMark({ t0, t1, f0, f1 }, axis) {
  const pad = Math.max(0, INSTANT_MS - (t1 - t0)) / 2;
  return { t0: t0 - pad, t1: t1 + pad, f0: f0 ?? axis.f0, f1: f1 ?? axis.f1 };
}

/** When and where a mark is, for a person. */
export function placeText({ t0, t1, f0, f1 }, zone) {
  const decimals = decimalsOf((t1 - t0) / 1000);
  const length = t1 > t0 ? `, ${secondsText((t1 - t0) / 1000)}` : "";
  const band = f0 === null ? "" : `, ${formatHertz(f0)} to ${formatHertz(f1)}`;
  return `${formatTime(t0, zone, Math.min(decimals, 1))}${length}${band}`;
}

/** The card in the page. */
export class MarkCard {
  root;
  #list = element("ul", {});
  #note = element("p", { class: "empty", role: "status" });
  #title = element("p", {});
  #given;
  #marks = [];

  /**
   * @param {{change: (part: object) => void, scene: () => object, select: (marks: object[]) => void, zone: () => string,
   *   hasHistory: () => boolean, hasSound: () => boolean, clips: (mark: object) => Promise<object[]>, save: (format: string, mark: object, box: object) => Promise<void>}} given `scene`: of the active panel; `clips`: sound of a mark; `save`:
   *   files of a box
   */
  constructor(given) {
    this.#given = given;
    this.root = element(
      "section",
      { id: "mark-card", class: "selection-card", "aria-label": "Selected events", hidden: true },
      this.#title,
      this.#list,
      this.#note,
      element("div", { class: "fields" }, button("Close", () => given.select([]))),
    );
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      given.select([]);
    });
  }

  /** Show the marks that are selected, if they are others than before. */
  show(marks) {
    if (marks.length === this.#marks.length && marks.every((mark, k) => mark === this.#marks[k])) return;
    this.#marks = [...marks];
    this.root.hidden = marks.length === 0;
    const more = marks.length - LISTED_MAX;
    setText(this.#title, marks.length === 1 ? "Event" : `${marks.length} events${more > 0 ? `, the first ${LISTED_MAX}` : ""}`);
    setText(this.#note, "");
    this.#list.replaceChildren(...marks.slice(0, LISTED_MAX).map((mark) => this.#item(mark)));
  }

  async #listen(mark, place) {
    const { clips, zone } = this.#given;
    setText(this.#note, "looking for sound");
    try {
      const found = await clips(mark);
      setText(this.#note, found.length > 0 ? "" : "no sound was recorded at this time, or its file is not finished");
      showClips(place, found, { t0: mark.t0, zone: zone() });
    } catch (error) {
      setText(this.#note, `Sound: ${error.message}`);
    }
  }

  #item(mark) {
    const { change, scene, select, zone, hasHistory, hasSound, save } = this.#given;
    const place = () => boxOfMark(mark, scene().axis);
    const saving = (format) => () => {
      setText(this.#note, "");
      save(format, mark, place()).catch((error) => setText(this.#note, error.message));
    };
    const show = () => {
      change({ ...viewOfMark(mark, scene().view, scene().newestMs), selection: place() });
      select([]);
    };
    const clips = element("div", { class: "clips" });
    const listen = () => this.#listen(mark, clips);
    const sound = hasSound() && mark.source !== "" ? [button("Sound", listen, "play or save the sound that was recorded at its time")] : [];
    const files = hasHistory() ? [button("PNG", saving("png"), "a picture of its time and band"), button("Rows (.spd)", saving("spd"), "the recorded rows of its time")] : [];
    return element(
      "li",
      {},
      element("strong", {}, mark.kind),
      ` ${aboutText(mark)}, ${placeText(mark, zone())}`,
      element("div", { class: "mark-text" }, mark.text),
      element("div", { class: "fields" }, button("Go there", () => change(viewOfMark(mark, scene().view, scene().newestMs))), button("Select and measure", show), ...files, ...sound),
      clips,
    );
  }
}

function button(text, act, title = null) {
  const made = element("button", { type: "button", title }, text);
  made.addEventListener("click", act);
  return made;
}
