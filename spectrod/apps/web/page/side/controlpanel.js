/** The panel with which a page changes daemons; shown only if the server was started with --control. */

import { askDaemon, RECORDING_KINDS, REQUESTS, settingsOf, sourcesOf } from "../link/control.js";
import { element, setText } from "./dom.js";

const AVERAGES = Object.freeze(["none", "mean", "max", "min", "exponential", "floor"]);

function select(options = []) {
  return element("select", {}, ...options.map(([value, text]) => element("option", { value }, text)));
}

/** Give a list of choices other options; what is chosen stays, if it is still there. */
function offer(list, options) {
  const before = list.value;
  const said = JSON.stringify(options);
  if (list.dataset.said === said) return;
  list.dataset.said = said;
  list.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  if (options.some(([value]) => value === before)) list.value = before;
}

const seconds = (input) => (input.value === "" ? null : input.valueAsNumber);

/** The panel of control. */
export class ControlPanel {
  #answer;
  #ask;
  #buttons = [];
  #fields;
  #settings = [];
  /** The source and product whose settings are offered. */
  #settingsOf = "";
  #sources = [];
  #isBusy = false;
  /** Whether a person has chosen a source or a product. */
  #isChosen = false;
  /** Whether a person has typed a value that was not applied yet: the settings that come do not replace it. */
  #isTyped = false;

  /**
   * @param {{box: HTMLElement, form: HTMLElement, answer: HTMLElement}} places
   * @param {{base: string, ask?: typeof askDaemon}} given
   */
  constructor({ box, form, answer }, { base, ask = askDaemon }) {
    this.#answer = answer;
    this.#ask = (request) => ask(request, base);
    this.#fields = {
      source: select(),
      product: select(),
      setting: select(),
      value: element("input", { type: "text", maxlength: 256, list: "control-values", autocomplete: "off" }),
      kind: select(RECORDING_KINDS),
      duration: element("input", { type: "number", min: 1, step: "any", placeholder: "until stopped" }),
      mask: element("input", { type: "text", maxlength: 64, value: "quiet", autocomplete: "off" }),
      maskDuration: element("input", { type: "number", min: 1, step: "any", value: 600 }),
    };
    form.append(...this.#rows());
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const name of ["source", "product"]) this.#fields[name].addEventListener("change", () => (this.#isChosen = true));
    this.#fields.source.addEventListener("change", () => this.#showProducts());
    this.#fields.product.addEventListener("change", () => this.#readSettings());
    this.#fields.setting.addEventListener("change", () => this.#showValue());
    this.#fields.value.addEventListener("input", () => (this.#isTyped = true));
    // A page that may not control anything has the panel hidden, but what opens all details opens it, too.
    box.addEventListener("toggle", () => box.open && !box.hidden && this.#readSettings());
  }

  /** Offer the sources and products of a list of topics; the one that is shown is chosen until a person chooses. */
  showTopics(topics, shown) {
    this.#sources = sourcesOf(topics);
    offer(this.#fields.source, this.#sources.map(({ key, title }) => [key, title]));
    const found = this.#sources.find(({ endpoint, source }) => endpoint === shown?.endpoint && source === shown?.source);
    if (found !== undefined && !this.#isChosen) this.#fields.source.value = found.key;
    this.#showProducts();
    if (found === undefined || this.#isChosen || !found.products.includes(shown.product)) return;
    if (this.#fields.product.value === shown.product) return;
    this.#fields.product.value = shown.product;
    this.#readSettings();
  }

  #rows() {
    const { source, product, setting, value, kind, duration, mask, maskDuration } = this.#fields;
    const field = (label, input) => element("label", {}, label, input);
    const values = element("datalist", { id: "control-values" }, ...AVERAGES.map((name) => element("option", { value: name })));
    return [
      field("source", source),
      field("product", product),
      this.#row(["pause", "Pause analysis"], ["resume", "Resume analysis"], ["reset", "Reset averaging"]),
      field("setting", setting),
      field("value", value),
      values,
      this.#row(["set", "Apply"]),
      field("record", kind),
      field("duration, s", duration),
      this.#row(["record", "Start recording"], ["stop", "Stop recordings"], ["trigger", "Trigger recordings"]),
      field("mask", mask),
      field("learning time, s", maskDuration),
      this.#row(["learn", "Learn mask"], ["abort", "Abort learning"]),
    ];
  }

  #row(...buttons) {
    const made = buttons.map(([name, text]) => {
      const button = element("button", { type: "button", "data-control": name }, text);
      button.addEventListener("click", () => this.#press(name));
      return button;
    });
    this.#buttons.push(...made);
    return element("div", { class: "fields" }, ...made);
  }

  get #chosen() {
    return this.#sources.find(({ key }) => key === this.#fields.source.value);
  }

  #showProducts() {
    const { product } = this.#fields;
    const before = `${product.dataset.of} ${product.value}`;
    product.dataset.of = this.#fields.source.value;
    offer(product, (this.#chosen?.products ?? []).map((name) => [name, name]));
    if (before !== `${product.dataset.of} ${product.value}`) this.#readSettings();
  }

  #showValue() {
    this.#isTyped = false;
    const found = this.#settings.find(({ key }) => key === this.#fields.setting.value);
    this.#fields.value.value = found?.value ?? "";
  }

  /** Ask what the settings are; only while the panel is open, and once if it changes. */
  async #readSettings() {
    const chosen = this.#chosen;
    if (chosen === undefined || !this.#fields.setting.closest("details")?.open) return;
    const product = this.#fields.product.value;
    const whose = JSON.stringify([chosen.key, product]);
    // Until the daemon has answered, nothing may change the settings of what was chosen before.
    if (whose !== this.#settingsOf) this.#offerSettings([]);
    try {
      const config = await this.#ask({ method: "get", params: { key: "" }, endpoint: chosen.endpoint });
      if (chosen.key !== this.#chosen?.key || product !== this.#fields.product.value) return;
      this.#offerSettings(settingsOf(config, { source: chosen.source, product }));
      this.#settingsOf = whose;
    } catch (error) {
      this.#offerSettings([]);
      setText(this.#answer, `the settings cannot be read: ${error.message}`);
    }
  }

  #offerSettings(settings) {
    this.#settings = settings;
    const { setting } = this.#fields;
    const before = setting.value;
    offer(setting, settings.map(({ key, name }) => [key, name]));
    if (!this.#isTyped || setting.value !== before) this.#showValue();
  }

  async #press(name) {
    const chosen = this.#chosen;
    if (chosen === undefined || this.#isBusy) return;
    const { product, setting, value, kind, duration, mask, maskDuration } = this.#fields;
    const { method, params, done } = REQUESTS[name]({
      source: chosen.source,
      product: product.value,
      key: setting.value,
      value: value.value,
      kind: kind.value,
      duration_s: seconds(duration),
      mask: mask.value,
      mask_s: seconds(maskDuration),
      date: new Date(),
    });
    this.#busy(true);
    if (name === "set") this.#isTyped = false;
    try {
      setText(this.#answer, done(await this.#ask({ method, params, endpoint: chosen.endpoint })));
      if (name === "set") await this.#readSettings();
    } catch (error) {
      setText(this.#answer, `not done: ${error.message}`);
    }
    this.#busy(false);
  }

  #busy(isBusy) {
    this.#isBusy = isBusy;
    for (const button of this.#buttons) button.disabled = isBusy;
  }
}
