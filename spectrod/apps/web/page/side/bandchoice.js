/** The choice of a band of frequencies by its name, and the names that somebody gave. */

import { BAND_NAME_MAX, BANDS_MAX, bandOfEnds, COMMON_BANDS } from "../rows/namedbands.js";
import { formatHertz } from "../plot/time.js";
import { element, setAttribute } from "./dom.js";

const ALL = "all";
const OTHER = "other";

const textOf = ({ name, f0, f1 }) => `${name}: ${formatHertz(f0)} to ${formatHertz(f1)}`;

/** A list of bands, with a field that names what is shown. */
export class BandChoice {
  #select = element("select");
  #name = element("input", { maxlength: BAND_NAME_MAX, placeholder: "name of the band", "aria-label": "Name of the band that is shown" });
  #keep = element("button", { type: "submit" }, "Name band");
  #remove = element("button", { type: "button" }, "Remove band");
  #bands = [];
  #own = [];
  #given;
  #key = "";

  /**
   * @param {HTMLFormElement} form
   * @param {{change: (part: object) => void, keep: (bands: object[]) => void, shown: () => {f0: number, f1: number}, notice: (text: string) => void}} given
   *   `keep` keeps all of the own bands, `shown` are the ends of the axis [Hz]
   */
  constructor(form, given) {
    this.#given = given;
    form.append(element("label", {}, "Band", this.#select), this.#name, element("div", { class: "tools" }, this.#keep, this.#remove));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#add();
    });
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
    this.#remove.addEventListener("click", () => given.keep(this.#own.filter(({ name }) => name !== this.#chosenOwn?.name)));
  }

  get #chosenOwn() {
    return this.#own.find(({ name }) => this.#select.value === `own ${name}`) ?? null;
  }

  #choose(value) {
    if (value === ALL) this.#given.change({ f0: null, f1: null });
    const found = this.#bands.find((one) => one.value === value);
    if (found !== undefined) this.#given.change({ f0: found.band.f0, f1: found.band.f1 });
  }

  #add() {
    const name = this.#name.value.trim();
    const others = this.#own.filter((one) => one.name !== name);
    if (name === "") this.#given.notice("Name band: it needs a name");
    else if (others.length >= BANDS_MAX) this.#given.notice(`Name band: ${BANDS_MAX} bands have names: remove one first`);
    else {
      const { f0, f1 } = this.#given.shown();
      this.#name.value = "";
      this.#given.keep([...others, { name, f0, f1 }]);
      this.#given.change({ f0, f1 });
    }
  }

  /**
   * Bring it up to date.
   *
   * @param {{view: object, own: object[], highest: number}} state `highest`: greatest frequency of what is shown [Hz]; higher bands are not offered
   */
  show({ view, own, highest }) {
    this.#own = own;
    const common = COMMON_BANDS.filter(({ f1 }) => f1 <= highest);
    this.#bands = [...own.map((band) => ({ band, value: `own ${band.name}` })), ...common.map((band) => ({ band, value: band.name }))];
    const key = JSON.stringify(this.#bands);
    if (key !== this.#key) {
      this.#key = key;
      const options = this.#bands.map(({ band, value }) => element("option", { value }, textOf(band)));
      this.#select.replaceChildren(element("option", { value: ALL }, "all frequencies"), ...options, element("option", { value: OTHER, disabled: "" }, "as zoomed"));
    }
    const found = bandOfEnds(this.#bands.map(({ band }) => band), view.f0, view.f1);
    const chosen = this.#bands.find(({ band }) => band === found)?.value;
    this.#select.value = chosen ?? (view.f0 === null ? ALL : OTHER);
    setAttribute(this.#remove, "hidden", this.#chosenOwn === null);
  }
}
