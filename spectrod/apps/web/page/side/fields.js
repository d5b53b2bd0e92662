/** The forms of the side: each field shows a part of the view and changes it. */

import { element } from "./dom.js";
import { palettes } from "../plot/palette.js";
import { THEMES, ZONES } from "./prefs.js";
import { BOUNDS } from "../panel/view.js";
import { FRACTIONS } from "../rows/spectrumsum.js";

/** @typedef {{name: string, label: string, input: HTMLElement, show: (state: object) => void}} Field */

function field(label, input) {
  return element("label", {}, label, input);
}

function select(label, options, read, write) {
  const input = element("select", {}, ...options.map(([value, text]) => element("option", { value }, text)));
  input.addEventListener("change", () => write(input.value));
  const show = (state) => {
    const value = read(state);
    if (input.value !== value) input.value = value;
  };
  return { root: field(label, input), show };
}

/** A number that a person types; empty is automatic. While it has the focus nobody else writes it. */
function number(label, attributes, read, write) {
  const input = element("input", { type: "number", step: "any", ...attributes });
  input.addEventListener("change", () => {
    if (input.validity.valid) write(input.value === "" ? null : input.valueAsNumber);
  });
  const show = (state) => {
    if (document.activeElement === input) return;
    const value = read(state);
    const text = value === null || value === undefined ? "" : String(Number(value.toPrecision(8)));
    if (input.value !== text) input.value = text;
  };
  return { root: field(label, input), show };
}

function slider(label, attributes, read, write) {
  const input = element("input", { type: "range", ...attributes });
  input.addEventListener("input", () => write(input.valueAsNumber));
  return { root: field(label, input), show: (state) => (input.value = String(read(state))) };
}

function checkbox(label, read, write) {
  const input = element("input", { type: "checkbox" });
  input.addEventListener("change", () => write(input.checked));
  return { root: field(label, input), show: (state) => (input.checked = read(state)) };
}

const AXIS_TEXTS = [["log", "logarithmic"], ["linear", "linear"], ["mel", "mel"], ["octave", "octave"]];
const SMOOTHING_TEXTS = FRACTIONS.map((n) => [String(n), n === 0 ? "none" : `1/${n} octave`]);
const BARS_TEXTS = [["none", "as measured"], ["third", "third octaves"], ["third-a", "third octaves, A"]];
const DIRECTION_TEXTS = [["down", "at the top, rows move down"], ["up", "at the bottom, rows move up"], ["right", "at the right, frequency upwards"]];
const STATISTIC_TEXTS = [["max", "max"], ["mean", "mean (power)"]];

/** Palettes for the list: viridis and cividis first, which everybody can read. */
function paletteOptions() {
  const first = ["viridis", "cividis"];
  const names = Object.keys(palettes);
  return [...first.filter((name) => names.includes(name)), ...names.filter((name) => !first.includes(name))].map(
    (name) => [name, name.replace(/_r$/, ", reversed")],
  );
}

/** One end of a range, the other end kept; both must be there. */
const withEnd = (range, end, value) => {
  if (value === null) return [null, null];
  const ends = [...range];
  ends[end] = value;
  return ends;
};

/** Fields of frequency, level, time and colour map; `scene` gives what is on the screen where the view says "all". */
function displayFields({ change, changeRange, link, scene }) {
  const hertz = (end) => (value) => {
    const { axis } = scene();
    const [f0, f1] = withEnd([axis.f0, axis.f1], end, value);
    change({ f0, f1 });
  };
  const level = (end) => (value) => {
    const { levels } = scene();
    const [lo, hi] = withEnd([levels.lo, levels.hi], end, value);
    changeRange(lo === null ? null : { lo: Math.min(lo, hi), hi: Math.max(lo, hi) });
  };
  return [
    select("Frequency axis", AXIS_TEXTS, (state) => state.view.axis, (axis) => change({ axis })),
    number("Min frequency, Hz", {}, ({ view }) => view.f0, hertz(0)),
    number("Max frequency, Hz", {}, ({ view }) => view.f1, hertz(1)),
    number("Min level, dB", { min: -1000, max: 1000 }, ({ range }) => range?.lo, level(0)),
    number("Max level, dB", { min: -1000, max: 1000 }, ({ range }) => range?.hi, level(1)),
    checkbox("Automatic range", ({ range }) => range === null, (isAuto) => {
      const { lo, hi } = scene().levels;
      changeRange(isAuto ? null : { lo: Math.round(lo), hi: Math.round(hi) });
    }),
    checkbox("One range for panels of one unit", ({ view }) => view.isLinked, link),
    select("Bins in a pixel", STATISTIC_TEXTS, ({ view }) => view.statistic, (statistic) => change({ statistic, ...(statistic === "mean" ? {} : { smoothing: 0, bars: "none" }) })),
    select("Smoothing", SMOOTHING_TEXTS, ({ view }) => String(view.smoothing), (n) => change({ smoothing: Number(n), bars: "none" })),
    select("Spectrum", BARS_TEXTS, ({ view }) => view.bars, (bars) => change({ bars, smoothing: 0 })),
    select("Colour map", paletteOptions(), ({ view }) => view.map, (map) => change({ map })),
    select("Newest row", DIRECTION_TEXTS, ({ view }) => view.direction, (direction) => change({ direction })),
    number("Time span, s", { min: 1, max: 366 * 86400, required: true }, ({ view }) => view.span, (span) => change({ span })),
    slider("Spectrum height", { min: 10, max: 90, "aria-label": "Spectrum height, percent" }, ({ view }) => view.split, (split) => change({ split })),
    checkbox("Peak list", ({ view }) => view.peaks, (peaks) => change({ peaks })),
  ];
}

function cursorFields({ change, scene }) {
  const cursor = (k) => (value) => {
    const cursors = [...scene().view.cursors];
    if (value === null) cursors.splice(k, 1);
    else cursors[Math.min(k, cursors.length)] = value;
    change({ cursors });
  };
  const band = (end) => (value) => {
    const { axis, view } = scene();
    const [f0, f1] = withEnd(view.band ?? [axis.f0, axis.f1], end, value);
    change({ band: f0 === null ? null : [f0, f1] });
  };
  return [
    number("Cursor A, Hz", {}, ({ view }) => view.cursors[0], cursor(0)),
    number("Cursor B, Hz", {}, ({ view }) => view.cursors[1], cursor(1)),
    checkbox("Harmonics of A", ({ view }) => view.harmonics, (harmonics) => change({ harmonics })),
    number("Band min, Hz", {}, ({ view }) => view.band?.[0], band(0)),
    number("Band max, Hz", {}, ({ view }) => view.band?.[1], band(1)),
  ];
}

function holdFields({ change }) {
  const seconds = { min: 0, max: BOUNDS.ballisticsSeconds[1], required: true };
  return [
    number("Decay, dB/s", { min: 0, max: BOUNDS.decay[1], required: true }, ({ view }) => view.decay, (decay) => change({ decay })),
    number("Hold time, s", seconds, ({ view }) => view.holdTime, (holdTime) => change({ holdTime })),
    number("Average τ, s", seconds, ({ view }) => view.timeConstant, (timeConstant) => change({ timeConstant })),
  ];
}

const THEME_TEXTS = { auto: "system", light: "light", dark: "dark" };
const ZONE_TEXTS = { local: "local", UTC: "UTC", source: "the source's, if known" };

function prefsFields({ changePrefs }) {
  const options = (names, texts) => names.map((name) => [name, texts[name]]);
  return [
    select("Theme", options(THEMES, THEME_TEXTS), ({ prefs }) => prefs.theme, (theme) => changePrefs({ theme })),
    select("Time zone", options(ZONES, ZONE_TEXTS), ({ prefs }) => prefs.zone, (zone) => changePrefs({ zone })),
    checkbox("Keys work everywhere", ({ prefs }) => prefs.keysEverywhere, (keysEverywhere) => changePrefs({ keysEverywhere })),
  ];
}

/** All fields. */
export class Fields {
  #fields;

  /**
   * @param {{display: HTMLElement, holds: HTMLElement, cursors: HTMLElement, prefs: HTMLElement}} places
   * @param {{change: (part: object) => void, changeRange: (range: {lo: number, hi: number} | null) => void,
   *   link: (isLinked: boolean) => void, changePrefs: (part: object) => void, scene: () => object}} given
   */
  constructor(places, given) {
    const groups = [
      [places.display, displayFields(given)],
      [places.holds, holdFields(given)],
      [places.cursors, cursorFields(given)],
      [places.prefs, prefsFields(given)],
    ];
    for (const [form, fields] of groups) {
      form.append(...fields.map(({ root }) => root));
      form.addEventListener("submit", (event) => event.preventDefault());
    }
    this.#fields = groups.flatMap(([, fields]) => fields);
  }

  /** @param {{view: object, range: object | null, prefs: object}} state `range` of levels, null: automatic */
  show(state) {
    for (const { show } of this.#fields) show(state);
  }
}
