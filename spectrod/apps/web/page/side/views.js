/**
 * Views with names: all that the page shows, kept in this browser or handed over as a file; without a document.
 *
 * A view with a name is `{name, view, zone, traces, difference}`: the view (panel/view.js), the zone of times, and the
 * stored spectra and limits with the one that is subtracted. A file comes from anybody: it is read strictly, as it never
 * has anything that this page would not write, and never says what the page is to load.
 */

import { palettes } from "../plot/palette.js";
import { BOUNDS, DEFAULTS, makeView } from "../panel/view.js";
import { ZONES } from "./prefs.js";
import { makeEntry, plain, STORED_MAX } from "./storedtraces.js";

const KEY = "spectrod-views";
const FORMAT = "spectrod-view";
const VERSION = 1;
/** Bounds of what is kept and read; docs/limits.md repeats the numbers. */
export const VIEWS_MAX = 32;
export const VIEW_NAME_MAX = 60;
export const VIEW_CHARS_MAX = 2 * 1024 * 1024;
const LIST_MAX = 64;
const SAID_MAX = 4;
const SHOWN_MAX = 40;

const FIELDS = Object.freeze(["format", "version", "name", "view", "zone", "traces", "difference"]);

/** Rules of fields of a view, for a person; of others that they are none that a view has. */
const RULES = Object.freeze({
  topics: `must be names of channels, ${BOUNDS.topics} at most`,
  span: `must be ${BOUNDS.spanSeconds.join(" to ")} s`,
  split: `must be ${BOUNDS.split.join(" to ")} %`,
  cursors: `must be frequencies in Hz, ${BOUNDS.cursors} at most`,
  times: "must be times in ms since 1970, of as many cursors",
  map: `must be one of ${Object.keys(palettes).join(", ")}, or one followed by _r`,
  t1: "must be a time in ms since 1970, or null: live",
});

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isName = (value) => typeof value === "string" && value.trim() === value && value !== "" && value.length <= VIEW_NAME_MAX;

/** A value as a short text. */
function shown(value) {
  const text = JSON.stringify(value) ?? "none";
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/** Whether a value has the kind of a usual one, and lists that are not longer than any of a view. */
function isAlike(value, usual) {
  if (Array.isArray(value)) return (usual === null || Array.isArray(usual)) && value.length <= LIST_MAX;
  return usual === null ? value === null || typeof value === "number" || isObject(value) : typeof value === typeof usual && isObject(value) === isObject(usual);
}

const isMap = (name) => Object.hasOwn(palettes, name.replace(/_r$/, ""));

/** Fields of a view that are wrong, and names that no view has. */
function checkView(given) {
  const names = Object.keys(given);
  const known = names.filter((name) => Object.hasOwn(DEFAULTS, name));
  const unlike = known.filter((name) => !isAlike(given[name], DEFAULTS[name]));
  const alike = Object.fromEntries(known.filter((name) => !unlike.includes(name)).map((name) => [name, given[name]]));
  const view = makeView(alike);
  const changed = Object.keys(alike).filter((name) => JSON.stringify(view[name]) !== JSON.stringify(alike[name]) || (name === "map" && !isMap(alike.map)));
  const wrong = [...unlike, ...changed].map((name) => `view.${name}: ${shown(given[name])}: ${RULES[name] ?? "no value that a view has"}`);
  return { view, wrong, unknown: names.filter((name) => !known.includes(name)).map((name) => `view.${name}`) };
}

function checkTraces(given) {
  if (!Array.isArray(given) || given.length > STORED_MAX) return { traces: [], wrong: [`traces: must be a list of ${STORED_MAX} spectra and limits at most`] };
  const traces = given.map((one) => makeEntry(one));
  const names = traces.map((one) => one?.name);
  const isWrong = (one, k) => one === null || names.indexOf(one.name) !== k;
  return { traces, wrong: traces.flatMap((one, k) => (isWrong(one, k) ? [`traces: number ${k + 1} is no stored spectrum, or has the name of another`] : [])) };
}

/**
 * A view with a name of anything.
 *
 * @param {unknown} given
 * @returns {{made: object, wrong: string[], unknown: string[]}} `made` is of use where nothing is wrong; `unknown`: names
 *   of fields of a later page, which are left out
 */
function checked(given) {
  const { name, view, zone, traces = [], difference = null } = given;
  const ofView = isObject(view) ? checkView(view) : { view: null, wrong: [`view: ${shown(view)}: must be an object`], unknown: [] };
  const ofTraces = checkTraces(traces);
  const wrong = [...ofView.wrong, ...ofTraces.wrong];
  if (!isName(name)) wrong.push(`name: ${shown(name)}: must have 1 to ${VIEW_NAME_MAX} signs`);
  if (!ZONES.includes(zone)) wrong.push(`zone: ${shown(zone)}: must be one of ${ZONES.join(", ")}`);
  if (difference !== null && !ofTraces.traces.some((one) => one?.row && one.name === difference)) wrong.push(`difference: ${shown(difference)}: must be the name of a spectrum in traces, or null`);
  const unknown = [...Object.keys(given).filter((key) => !FIELDS.includes(key)), ...ofView.unknown];
  const made = { name, view: ofView.view, zone, traces: ofTraces.traces.filter(Boolean).map(plain), difference };
  return { made: Object.freeze(made), wrong, unknown };
}

function listed(texts) {
  const more = texts.length - SAID_MAX;
  return texts.slice(0, SAID_MAX).map((text) => text.slice(0, 300)).join("; ") + (more > 0 ? `; and ${more} more` : "");
}

/** Text of a file with a view. */
export function viewText({ name, view, zone, traces, difference }) {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, name, zone, view, traces, difference })}\n`;
}

/**
 * Read a file with a view.
 *
 * @param {string} text
 * @param {string} from name of the file
 * @returns {{made: object, note: string}} `note`: what was left out, empty if nothing
 * @throws {Error} one line with the file, each value that is wrong, and its rule
 */
export function readView(text, from) {
  if (text.length > VIEW_CHARS_MAX) throw new Error(`${from}: more than ${VIEW_CHARS_MAX / 1024 / 1024} MiB`);
  const given = parsed(text, from);
  if (!isObject(given) || given.format !== FORMAT) throw new Error(`${from}: not a view that this page has saved`);
  if (given.version !== VERSION) throw new Error(`${from}: version ${shown(given.version)}: this page reads version ${VERSION}`);
  const { made, wrong, unknown } = checked(given);
  if (wrong.length > 0) throw new Error(`${from}: ${listed(wrong)}`);
  return { made, note: unknown.length === 0 ? "" : `${from}: ${listed(unknown)}: not known to this page, left out` };
}

function parsed(text, from) {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`${from}: not JSON`);
    throw error;
  }
}

/** Views that this browser keeps, in the order in which they were saved. */
export class Views {
  #storage;

  /** @param {() => Storage} storage */
  constructor(storage) {
    this.#storage = storage;
  }

  /** What is kept now, also by other tabs; what is no view is none. */
  get entries() {
    let given;
    try {
      given = JSON.parse(this.#storage().getItem(KEY));
    } catch {
      // A browser that keeps nothing, or nonsense, has none.
      return [];
    }
    const found = (Array.isArray(given) ? given.slice(0, VIEWS_MAX) : []).filter(isObject).map(checked);
    const good = found.filter(({ wrong }) => wrong.length === 0).map(({ made }) => made);
    return good.filter(({ name }, k) => good.findIndex((one) => one.name === name) === k);
  }

  find(name) {
    return this.entries.find((one) => one.name === name) ?? null;
  }

  #write(entries, name) {
    try {
      this.#storage().setItem(KEY, JSON.stringify(entries));
    } catch (error) {
      const why = error.name === "QuotaExceededError" ? "the storage of this browser is full; remove views or stored spectra" : "this browser keeps nothing";
      throw new Error(`${name}: not saved: ${why}, or save it as a file`);
    }
  }

  /**
   * Save a view, as the last, with a name that no other has.
   *
   * @returns {string} its name
   * @throws {Error} if there are as many as can be, or the browser does not keep it
   */
  add(state) {
    const { entries } = this;
    if (entries.length >= VIEWS_MAX) throw new Error(`${state.name}: ${VIEWS_MAX} views are saved; remove one first`);
    const name = freeName(state.name, entries);
    this.#write([...entries, { ...state, name }], name);
    return name;
  }

  /** Replace what a view shows, and keep its name and place; as `add`. */
  replace(name, state) {
    this.#write(this.entries.map((one) => (one.name === name ? { ...state, name } : one)), name);
  }

  /**
   * Give a view another name.
   *
   * @throws {Error} if it is none, or that of another
   */
  rename(name, wanted) {
    const { entries } = this;
    if (!isName(wanted)) throw new Error(`name: ${shown(wanted)}: must have 1 to ${VIEW_NAME_MAX} signs`);
    if (wanted !== name && entries.some((one) => one.name === wanted)) throw new Error(`${wanted}: another view has this name`);
    this.#write(entries.map((one) => (one.name === name ? { ...one, name: wanted } : one)), wanted);
  }

  remove(name) {
    this.#write(this.entries.filter((one) => one.name !== name), name);
  }
}

/** A name like one that is wanted which none of some views has. */
function freeName(wanted, entries) {
  const plain = wanted.trim().slice(0, VIEW_NAME_MAX - 4).trim() || "view";
  const names = new Set(entries.map(({ name }) => name));
  if (!names.has(plain)) return plain;
  let k = 2;
  while (names.has(`${plain} ${k}`)) k += 1;
  return `${plain} ${k}`;
}

/** The zone that a link asks for, or null: that of who opens it. */
export function zoneOfLink(fragment) {
  const zone = new URLSearchParams(fragment.replace(/^#/, "")).get("zone");
  return ZONES.includes(zone) ? zone : null;
}
