/** The size of figures, and the page on paper. */

import { element, themeColours } from "./dom.js";
import { FIGURE_BOUNDS } from "./prefs.js";

const FIELDS = Object.freeze([
  ["widthMm", "Width of a figure, mm"],
  ["plotsMm", "Height of its plots, mm"],
  ["dpi", "Resolution, dpi"],
]);
/** Fields for the size of a figure, whether all panels are in it, and where its time goes. */
export class FigureForm {
  #inputs;
  #direction = element("select", {}, element("option", { value: "" }, "as on the page"), element("option", { value: "right" }, "to the right"));
  #panels = element("select", {}, element("option", { value: "all" }, "all"), element("option", { value: "active" }, "that of the keys"));

  /**
   * @param {HTMLFormElement} form
   * @param {{size: object, change: (size: {widthMm: number, plotsMm: number, dpi: number}) => void}} given the size at first
   */
  constructor(form, { size, change }) {
    this.#inputs = FIELDS.map(([name, label]) => {
      const [min, max] = FIGURE_BOUNDS[name];
      const input = element("input", { type: "number", min, max, step: 1, required: true });
      input.valueAsNumber = size[name];
      input.addEventListener("change", () => input.validity.valid && change(this.size));
      return { name, label, input };
    });
    form.append(element("label", {}, "Panels in a figure", this.#panels), element("label", {}, "Time in a figure", this.#direction), ...this.#inputs.map(({ label, input }) => element("label", {}, label, input)));
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  /**
   * The size that is asked for.
   *
   * @throws {Error} if a field has no number that is possible
   */
  get size() {
    for (const { name, label, input } of this.#inputs) {
      const [min, max] = FIGURE_BOUNDS[name];
      if (!input.validity.valid) throw new Error(`${label}: ${input.value || "empty"}: must be a whole number, ${min} to ${max}`);
    }
    return Object.fromEntries(this.#inputs.map(({ name, input }) => [name, input.valueAsNumber]));
  }

  /** A view as figures show it. */
  viewOf(view) {
    return { ...view, direction: this.#direction.value || view.direction };
  }

  get hasActiveOnly() {
    return this.#panels.value === "active";
  }
}

/** Colours of figures: those of the light theme, whatever the page has. */
export const paperColours = () => themeColours(document.getElementById("print"));

let figures = null;

/**
 * Load what makes figures: a page that opens does not wait for it, and one that is printed cannot.
 *
 * @returns {Promise<typeof import("./figures.js")>}
 * @throws {Error} if the server does not send it
 */
export function loadFigures() {
  return import("./figures.js").then(
    (made) => (figures = made),
    () => {
      throw new Error("Figures: the server does not send what makes them; reload the page");
    },
  );
}

/**
 * Put figures on paper in place of the page.
 *
 * @param {HTMLElement} place what is printed
 * @param {() => object[]} shown what `figureOf` takes
 */
export function printFigures(place, shown) {
  window.addEventListener("beforeprint", () => {
    place.replaceChildren(...(figures?.printedFigures(shown()) ?? ["What makes figures has not come yet: print again in a moment."]));
  });
  window.addEventListener("afterprint", () => place.replaceChildren());
}
