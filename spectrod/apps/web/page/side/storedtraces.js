/** Spectra and limits that this browser keeps, each with a name; without a document. */

import { levelOf } from "../rows/levels.js";
import { POINTS_MAX } from "../rows/limits.js";
import { rowLength } from "../plot/axis.js";

const KEY = "spectrod-stored";
/** Bounds of what is kept; docs/web.md repeats the numbers. */
export const STORED_MAX = 8;
export const NAME_MAX = 60;
const VALUES_MAX = 16384;
const SLICES_MAX = 64;
const TEXT_MAX = 4 * 1024 * 1024;
const BINS_MAX = 2 ** 24;
const NO_DATA = 65535;

const isFinite = (value) => typeof value === "number" && Number.isFinite(value);
const isCount = (value, most) => Number.isInteger(value) && value >= 0 && value <= most;
const isText = (value, most) => typeof value === "string" && value.length <= most;

function isDescription({ first_hz, bin_hz, n_bins, edges_hz, slices, statistic, unit, enbw_hz, weighting }) {
  const isEdges = (ends) => Array.isArray(ends) && ends.length === n_bins && ends.every((hz, k) => isFinite(hz) && (k === 0 || hz >= ends[k - 1]));
  const isSlice = (one) => isCount(one?.first, BINS_MAX) && isCount(one.per_value, BINS_MAX) && one.per_value > 0 && isCount(one.values, VALUES_MAX);
  const isInBins = (one) => one.first + (one.values - 1) * one.per_value < n_bins;
  return (
    [first_hz, bin_hz].every(isFinite) && isCount(n_bins, BINS_MAX) && isText(unit, 80) && (statistic === "max" || statistic === "mean") &&
    (edges_hz === null || (Array.isArray(edges_hz) && edges_hz.length === 2 && n_bins <= VALUES_MAX && edges_hz.every(isEdges))) &&
    (edges_hz !== null || bin_hz > 0) &&
    (enbw_hz === null || (isFinite(enbw_hz) && enbw_hz > 0)) && (weighting === null || isText(weighting, 80)) &&
    Array.isArray(slices) && slices.length <= SLICES_MAX && slices.every((one, k) => isSlice(one) && isInBins(one) && (k === 0 || one.first >= slices[k - 1].first + slices[k - 1].per_value * slices[k - 1].values))
  );
}

/** Make an entry of anything, or null. */
export function makeEntry(given) {
  const { name, unit, ref, isShown, values, description, points } = given !== null && typeof given === "object" ? given : {};
  if (!(isText(name, NAME_MAX) && name !== "" && isText(unit, 80) && isText(ref, 200))) return null;
  const head = { name, unit, ref, isShown: isShown === true };
  if (Array.isArray(points)) {
    const isPoint = (one, k) => Array.isArray(one) && one.length === 2 && one.every(isFinite) && one[0] > 0 && (k === 0 || one[0] > points[k - 1][0]);
    return points.length >= 2 && points.length <= POINTS_MAX && points.every(isPoint) ? Object.freeze({ ...head, points }) : null;
  }
  if (description === null || typeof description !== "object" || !Array.isArray(values)) return null;
  const about = kept(description);
  if (!isDescription(about) || values.length !== rowLength(about) || values.length === 0 || !values.every((value) => isCount(value, NO_DATA))) return null;
  const row = { values: Uint16Array.from(values), description: Object.freeze({ ...about, bits: 16, lo: -327.67, step: 0.01 }) };
  return Object.freeze({ ...head, row });
}

/** What is written of an entry. */
export function plain({ row, ...head }) {
  return row === undefined ? head : { ...head, values: [...row.values], description: row.description };
}

/** Fields of a description that a stored spectrum needs. */
function kept({ first_hz, bin_hz, n_bins, edges_hz = null, slices, statistic = "max", unit, enbw_hz = null, weighting = null }) {
  return { first_hz, bin_hz, n_bins, edges_hz, slices, statistic, unit, enbw_hz, weighting };
}

/** What is kept, the newest last. */
export class StoredTraces {
  #storage;
  #entries = [];
  #difference = null;

  /** @param {() => Storage} storage */
  constructor(storage) {
    this.#storage = storage;
    this.#read();
  }

  #read() {
    try {
      const text = this.#storage().getItem(KEY);
      const given = text !== null && text.length <= TEXT_MAX ? JSON.parse(text) : [];
      for (const one of Array.isArray(given) ? given.slice(0, STORED_MAX) : []) this.#take(makeEntry(one));
    } catch {
      // A browser that keeps nothing, or nonsense, has none.
    }
  }

  #take(entry) {
    if (entry !== null && !this.#entries.some(({ name }) => name === entry.name)) this.#entries.push(entry);
  }

  /** Write what is there; return whether the browser keeps it: else it lasts as long as the page. */
  #write() {
    try {
      this.#storage().setItem(KEY, JSON.stringify(this.#entries.map(plain)));
      return true;
    } catch {
      return false;
    }
  }

  get entries() {
    return this.#entries;
  }

  /** Those that are shown over levels of a unit and a reference. */
  shownOver({ unit, ref = "" }) {
    return this.#entries.filter((one) => one.isShown && one.unit === unit && one.ref === ref);
  }

  /** The spectrum whose difference is shown, over levels of its unit and reference; else null. */
  subtractedFrom({ unit, ref = "" }) {
    const found = this.#entries.find(({ name }) => name === this.#difference);
    return found !== undefined && found.unit === unit && found.ref === ref ? found : null;
  }

  get difference() {
    return this.#difference;
  }

  /** Show the difference to a spectrum, or with null none. */
  subtract(name) {
    this.#difference = this.#entries.some((one) => one.name === name && one.row) ? name : null;
  }

  /**
   * Store a row.
   *
   * @returns {boolean} whether the browser keeps it
   * @throws {Error} if there are as many as can be
   */
  addRow(name, { values, description }) {
    const codes = Array.from(values, (value) => {
      const level = levelOf(description, value);
      return Number.isNaN(level) ? NO_DATA : Math.max(0, Math.min(NO_DATA - 1, Math.round((level + 327.67) * 100)));
    });
    const { unit, ref = "" } = description;
    return this.#add({ name, unit, ref, isShown: true, values: codes, description: kept(description) });
  }

  /** Store limits over levels of a unit and a reference; as `addRow`. */
  addLimits(name, points, { unit, ref = "" }) {
    return this.#add({ name, unit, ref, isShown: true, points });
  }

  #add(given) {
    if (this.#entries.length >= STORED_MAX) throw new Error(`${given.name}: ${STORED_MAX} spectra and limits are stored; remove one first`);
    const entry = makeEntry({ ...given, name: this.#freeName(given.name) });
    if (entry === null) throw new Error(`${given.name}: cannot be stored`);
    this.#take(entry);
    return this.#write();
  }

  /** A name that no entry has. */
  #freeName(wanted) {
    const short = wanted.trim().slice(0, NAME_MAX - 4) || "spectrum";
    const names = new Set(this.#entries.map(({ name }) => name));
    const numbered = Array.from({ length: STORED_MAX + 1 }, (_, k) => (k === 0 ? short : `${short} ${k + 1}`));
    return numbered.find((name) => !names.has(name));
  }

  /** Change `name` or `isShown` of an entry; a name that is empty or taken changes nothing. */
  change(name, part) {
    const k = this.#entries.findIndex((one) => one.name === name);
    const next = makeEntry(plain({ ...this.#entries[k], ...part }));
    const isTaken = next !== null && this.#entries.some((one, n) => n !== k && one.name === next.name);
    if (k < 0 || next === null || isTaken) return;
    if (this.#difference === name) this.#difference = next.name;
    this.#entries[k] = next;
    this.#write();
  }

  /** What is stored and shown, for a view with a name; a difference is of what is there. */
  get state() {
    return { traces: this.#entries.map(plain), difference: this.#difference };
  }

  /**
   * Show what a view has: what is not there yet is stored, what the view does not have is hidden.
   *
   * @param {{traces: object[], difference: string | null}} state as `state`
   * @returns {string[]} names of those for which there is no room
   */
  showState({ traces, difference }) {
    const wanted = traces.map(makeEntry);
    const nameOf = new Map();
    const without = ({ name, isShown, ...rest }) => JSON.stringify(plain(rest));
    const kept = this.#entries.map((entry) => {
      const found = wanted.find((one) => !nameOf.has(one.name) && without(one) === without(entry));
      if (found !== undefined) nameOf.set(found.name, entry.name);
      return Object.freeze({ ...entry, isShown: found?.isShown ?? false });
    });
    this.#entries = kept;
    const left = [];
    for (const one of wanted.filter(({ name }) => !nameOf.has(name))) {
      if (this.#entries.length >= STORED_MAX) {
        left.push(one.name);
        continue;
      }
      const name = this.#freeName(one.name);
      nameOf.set(one.name, name);
      this.#entries.push(Object.freeze({ ...one, name }));
    }
    this.#write();
    this.subtract(nameOf.get(difference) ?? null);
    return left;
  }

  remove(name) {
    this.#entries = this.#entries.filter((one) => one.name !== name);
    if (this.#difference === name) this.#difference = null;
    this.#write();
  }
}
