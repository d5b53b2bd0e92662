/**
 * What the page shows, and its text in the fragment of the URL.
 *
 * A view is a frozen object. Every number is clamped when it comes in, so that no fragment, form or
 * gesture can ask the page for something that it cannot draw. `null` means "all" for frequencies,
 * "automatic" for levels and "live" for times. `lo` and `hi` are the range of levels of all panels that have none of
 * their own in `ranges` (ranges.js), `isLinked` whether panels of one unit share one. `times` are those of the cursors of
 * the same places, null of one that is at no time; `selection` is a box, `{t0, t1, f0, f1}`. `decay` [dB/s] 0 holds until
 * a reset, after `holdTime` [s];
 * `harmonics`: multiples of the first cursor's frequency are marked; `lines` are columns of measurements that are drawn over time, as `PRODUCT/NAME`;
 * `bands` are those that somebody named (rows/namedbands.js); `eventKind`, `eventSource`, `eventWords` filter the list of events, empty lets all through; `eventOrder` is one of `ORDERS` (link/events.js);
 * `direction` of time in the waterfalls, see plot/orientation.js; `smoothing` 3: line spectra are smoothed by a third of an octave; 0: not. `timeConstant` [s] 0 is the mean since the reset.
 */

import { ORDERS } from "../link/events.js";
import { DIRECTIONS } from "../plot/orientation.js";
import { isPalette } from "../plot/palette.js";
import { namedBands } from "../rows/namedbands.js";
import { BARS, FRACTIONS } from "../rows/spectrumsum.js";

export const AXES = Object.freeze(["log", "linear", "mel", "octave"]);
export const LAYOUTS = Object.freeze(["side", "over"]);
export const STATISTICS = Object.freeze(["max", "mean"]);
export const HOLDS = Object.freeze(["max", "min", "mean"]);
const SELECTION_MS_MIN = 1;
/** Characters of a stranger's text that a report repeats. */
const SHOWN_MAX = 20;

/** Bounds of what a view may say; docs/web.md repeats the numbers. */
export const BOUNDS = Object.freeze({
  hertz: 1e12,
  level: 1000,
  levelSpan: 1,
  spanSeconds: [1, 366 * 86400],
  split: [10, 90],
  topics: 8,
  topicLength: 512,
  wordsLength: 100,
  ranges: 8,
  fragment: 8192,
  cursors: 2,
  lines: 8,
  decay: [0, 1000],
  ballisticsSeconds: [0, 3600],
  timeMs: 8.64e15,
});

export const DEFAULTS = Object.freeze({
  topics: Object.freeze([]),
  layout: "side",
  direction: "down",
  axis: "log",
  f0: null,
  f1: null,
  t1: null,
  lo: null,
  hi: null,
  ranges: Object.freeze([]),
  isLinked: true,
  map: "viridis",
  statistic: "max",
  smoothing: 0,
  bars: "none",
  span: 30,
  split: 40,
  holds: Object.freeze([]),
  decay: 0,
  holdTime: 0,
  timeConstant: 0,
  peaks: true,
  cursors: Object.freeze([]),
  times: Object.freeze([]),
  harmonics: false,
  band: null,
  selection: null,
  days: false,
  less: "",
  lines: Object.freeze([]),
  bands: Object.freeze([]),
  eventKind: "",
  eventSource: "",
  eventWords: "",
  eventOrder: "newest",
});

const clamp = (value, lowest, highest) => Math.min(highest, Math.max(lowest, value));

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function oneOf(value, allowed, otherwise) {
  return allowed.includes(value) ? value : otherwise;
}

function numberOr(value, lowest, highest, otherwise) {
  return isNumber(value) ? clamp(value, lowest, highest) : otherwise;
}

/** Two numbers in ascending order and at least `least` apart, or two nulls. */
function range(low, high, limit, least) {
  if (!isNumber(low) || !isNumber(high)) return [null, null];
  const a = clamp(Math.min(low, high), -limit, limit);
  const b = clamp(Math.max(low, high), -limit, limit);
  return b - a >= least ? [a, b] : [null, null];
}

/** Ranges of levels by what they are of, each once. */
function namedRanges(values) {
  const found = new Map();
  for (const { of, lo, hi } of Array.from(values ?? [], (one) => one ?? {})) {
    const [a, b] = range(lo, hi, BOUNDS.level, BOUNDS.levelSpan);
    const isGood = typeof of === "string" && of !== "" && of.length <= BOUNDS.topicLength && a !== null;
    if (isGood && !found.has(of) && found.size < BOUNDS.ranges) found.set(of, Object.freeze({ of, lo: a, hi: b }));
  }
  return Object.freeze([...found.values()]);
}

function texts(values, countMax, lengthMax) {
  const good = (value) => typeof value === "string" && value !== "" && value.length <= lengthMax;
  return Object.freeze([...new Set(Array.from(values ?? []).filter(good))].slice(0, countMax));
}

/** Times of the cursors, one for each at most; the last is not null. */
function timesOf(given, count) {
  const times = Array.from(given ?? []).slice(0, count).map((tMs) => numberOr(tMs, 0, BOUNDS.timeMs, null));
  return Object.freeze(times.slice(0, 1 + times.findLastIndex((tMs) => tMs !== null)));
}

/** A box in time [ms] and frequency [Hz], or null: both its sides have a length. */
function selectionOf({ t0, t1, f0, f1 }) {
  const [low, high] = range(f0, f1, BOUNDS.hertz, Number.MIN_VALUE);
  const [begin, end] = range(t0, t1, BOUNDS.timeMs, SELECTION_MS_MIN);
  return low === null || begin === null || begin < 0 ? null : Object.freeze({ t0: begin, t1: end, f0: low, f1: high });
}

/** The time whose spectrum is shown: that of a cursor, else that at the top of the waterfalls; null: live. */
export function shownMs({ times, t1 }) {
  return times.find((tMs) => tMs !== null) ?? t1;
}

/** A view as of the time whose spectrum is shown, for whoever shows spectra and what is measured of them. */
export const atShownTime = (view) => ({ ...view, t1: shownMs(view) });

/**
 * Make a view of anything: unknown names are dropped, bad values become the default's.
 *
 * @param {object} given names and values of `DEFAULTS`
 * @returns {Readonly<typeof DEFAULTS>}
 */
export function makeView(given = {}) {
  const wanted = { ...DEFAULTS, ...given };
  const [f0, f1] = range(wanted.f0, wanted.f1, BOUNDS.hertz, Number.MIN_VALUE);
  const [lo, hi] = range(wanted.lo, wanted.hi, BOUNDS.level, BOUNDS.levelSpan);
  const smoothing = oneOf(wanted.smoothing, FRACTIONS, 0);
  const bars = oneOf(wanted.bars, BARS, DEFAULTS.bars);
  const band = Array.isArray(wanted.band)
    ? range(wanted.band[0], wanted.band[1], BOUNDS.hertz, 0)
    : [null, null];
  const cursors = Array.from(wanted.cursors ?? []).filter(isNumber).slice(0, BOUNDS.cursors);
  return Object.freeze({
    topics: texts(wanted.topics, BOUNDS.topics, BOUNDS.topicLength),
    layout: oneOf(wanted.layout, LAYOUTS, DEFAULTS.layout),
    direction: oneOf(wanted.direction, DIRECTIONS, DEFAULTS.direction),
    axis: oneOf(wanted.axis, AXES, DEFAULTS.axis),
    f0,
    f1,
    t1: numberOr(wanted.t1, 0, BOUNDS.timeMs, null),
    lo,
    hi,
    ranges: namedRanges(wanted.ranges),
    isLinked: wanted.isLinked !== false,
    map: isPalette(wanted.map) ? wanted.map : DEFAULTS.map,
    // Smoothing and bars are sums of power: of the greatest bins they would be too high.
    statistic: smoothing === 0 && bars === "none" ? oneOf(wanted.statistic, STATISTICS, DEFAULTS.statistic) : "mean",
    smoothing,
    bars,
    span: numberOr(wanted.span, ...BOUNDS.spanSeconds, DEFAULTS.span),
    split: Math.round(numberOr(wanted.split, ...BOUNDS.split, DEFAULTS.split)),
    holds: Object.freeze(HOLDS.filter((name) => Array.from(wanted.holds ?? []).includes(name))),
    decay: numberOr(wanted.decay, ...BOUNDS.decay, DEFAULTS.decay),
    holdTime: numberOr(wanted.holdTime, ...BOUNDS.ballisticsSeconds, DEFAULTS.holdTime),
    timeConstant: numberOr(wanted.timeConstant, ...BOUNDS.ballisticsSeconds, DEFAULTS.timeConstant),
    peaks: wanted.peaks !== false,
    cursors: Object.freeze(cursors.map((hz) => clamp(hz, -BOUNDS.hertz, BOUNDS.hertz))),
    times: timesOf(wanted.times, cursors.length),
    harmonics: wanted.harmonics === true,
    band: band[0] === null ? null : Object.freeze(band),
    selection: wanted.selection ? selectionOf(wanted.selection) : null,
    days: wanted.days === true,
    less: texts([wanted.less], 1, BOUNDS.topicLength)[0] ?? "",
    lines: texts(wanted.lines, BOUNDS.lines, BOUNDS.topicLength),
    bands: namedBands(wanted.bands, BOUNDS.hertz),
    eventKind: texts([wanted.eventKind], 1, BOUNDS.topicLength)[0] ?? "",
    eventSource: texts([wanted.eventSource], 1, BOUNDS.topicLength)[0] ?? "",
    eventWords: texts([wanted.eventWords], 1, BOUNDS.wordsLength)[0] ?? "",
    eventOrder: oneOf(wanted.eventOrder, ORDERS, DEFAULTS.eventOrder),
  });
}

/** Text of a number with twelve digits: 1 Hz in 1 THz, and no 0.30000000000000004. */
const short = (value) => String(Number(value.toPrecision(12)));

/** Times are whole milliseconds. */
const whole = (value) => String(Math.round(value));

const list = (text) => (text === "" ? [] : text.split(","));

function pair(text) {
  const parts = text.split(":");
  return parts.length === 2 ? parts.map(toNumber) : [null, null];
}

function box(text) {
  const [t0, t1, f0, f1, more] = text.split(":").map(toNumber);
  return more === undefined ? { t0, t1, f0, f1 } : null;
}

/** A range of levels with what it is of, which may have colons itself. */
function namedRange(text) {
  const [lo, hi, ...of] = text.split(":");
  return { of: of.join(":"), lo: toNumber(lo), hi: toNumber(hi ?? "") };
}

/** A band with its name, which may have colons itself. */
function namedBand(text) {
  const { of, lo, hi } = namedRange(text);
  return { name: of, f0: lo, f1: hi };
}

/** Number of a text; Number("") is 0, which no one meant. */
function toNumber(text) {
  return text.trim() === "" ? null : Number(text);
}

const reads = {
  topic: (text, all) => ({ topics: all }),
  layout: (text) => ({ layout: text }),
  rows: (text) => ({ direction: text }),
  axis: (text) => ({ axis: text }),
  f: (text) => ({ f0: pair(text)[0], f1: pair(text)[1] }),
  t: (text) => ({ t1: text === "live" ? null : toNumber(text) }),
  db: (text) => ({ lo: pair(text)[0], hi: pair(text)[1] }),
  range: (text, all) => ({ ranges: all.map(namedRange) }),
  levels: (text) => ({ isLinked: text !== "own" }),
  map: (text) => ({ map: text }),
  stat: (text) => ({ statistic: text }),
  smooth: (text) => ({ smoothing: toNumber(text) }),
  bars: (text) => ({ bars: text }),
  span: (text) => ({ span: toNumber(text) }),
  split: (text) => ({ split: toNumber(text) }),
  hold: (text) => ({ holds: list(text) }),
  decay: (text) => ({ decay: toNumber(text) }),
  holdtime: (text) => ({ holdTime: toNumber(text) }),
  tau: (text) => ({ timeConstant: toNumber(text) }),
  peaks: (text) => ({ peaks: text !== "0" }),
  c: (text) => ({ cursors: list(text).map(toNumber) }),
  ct: (text) => ({ times: list(text).map(toNumber) }),
  harm: (text) => ({ harmonics: text === "1" }),
  band: (text) => ({ band: pair(text) }),
  sel: (text) => ({ selection: box(text) }),
  days: (text) => ({ days: text === "1" }),
  less: (text) => ({ less: text }),
  line: (text, all) => ({ lines: all }),
  named: (text, all) => ({ bands: all.map(namedBand) }),
  evkind: (text) => ({ eventKind: text }),
  evsource: (text) => ({ eventSource: text }),
  evwords: (text) => ({ eventWords: text }),
  evorder: (text) => ({ eventOrder: text }),
};

const fieldsOf = (fragment) => new URLSearchParams(fragment.replace(/^#/, ""));

/** Why a fragment is not read at all, for a person; empty if it is. */
export function fragmentFault(fragment) {
  const { length } = fragment.replace(/^#/, "");
  if (length > BOUNDS.fragment) return `The link is not read: it has ${length} characters, more than ${BOUNDS.fragment}`;
  const fields = fieldsOf(fragment);
  if (!fields.has("v") || fields.get("v") === "1") return "";
  return `The link is not read: it is of version ${JSON.stringify(fields.get("v").slice(0, SHOWN_MAX))}, this page knows 1`;
}

/**
 * Read a view from a fragment, with or without its `#`.
 *
 * Never throws: a fragment comes from whoever made the link. One of another version, or longer than
 * `BOUNDS.fragment`, is the default view.
 */
export function parseFragment(fragment) {
  if (fragmentFault(fragment) !== "") return makeView();
  const fields = fieldsOf(fragment);
  const given = {};
  for (const [name, read] of Object.entries(reads)) {
    if (fields.has(name)) Object.assign(given, read(fields.get(name), fields.getAll(name)));
  }
  return makeView(given);
}

const writes = {
  layout: (view) => view.layout,
  rows: (view) => view.direction,
  axis: (view) => view.axis,
  f: (view) => (view.f0 === null ? null : `${short(view.f0)}:${short(view.f1)}`),
  t: (view) => (view.t1 === null ? "live" : whole(view.t1)),
  db: (view) => (view.lo === null ? null : `${short(view.lo)}:${short(view.hi)}`),
  levels: (view) => (view.isLinked ? "linked" : "own"),
  map: (view) => view.map,
  stat: (view) => view.statistic,
  smooth: (view) => String(view.smoothing),
  bars: (view) => view.bars,
  span: (view) => short(view.span),
  split: (view) => short(view.split),
  hold: (view) => view.holds.join(","),
  decay: (view) => short(view.decay),
  holdtime: (view) => short(view.holdTime),
  tau: (view) => short(view.timeConstant),
  days: (view) => (view.days ? "1" : "0"),
  less: (view) => view.less,
  evkind: (view) => view.eventKind,
  evsource: (view) => view.eventSource,
  evwords: (view) => view.eventWords,
  evorder: (view) => view.eventOrder,
  peaks: (view) => (view.peaks ? "1" : "0"),
  c: (view) => view.cursors.map(short).join(","),
  ct: (view) => view.times.map((tMs) => (tMs === null ? "" : whole(tMs))).join(","),
  harm: (view) => (view.harmonics ? "1" : "0"),
  band: (view) => (view.band === null ? null : view.band.map(short).join(":")),
  sel: ({ selection }) => selection && [whole(selection.t0), whole(selection.t1), short(selection.f0), short(selection.f1)].join(":"),
};

/** Text of a view for the fragment, without `#`; only what differs from the default. */
export function formatFragment(view) {
  const usual = makeView();
  const ranges = view.ranges.map(({ of, lo, hi }) => ["range", `${short(lo)}:${short(hi)}:${of}`]);
  const fields = [["v", "1"], ...view.topics.map((topic) => ["topic", topic]), ...ranges, ...view.lines.map((line) => ["line", line]), ...bandsOf(view)];
  for (const [name, write] of Object.entries(writes)) {
    const text = write(view);
    if (text !== null && text !== write(usual)) fields.push([name, text]);
  }
  return fields.map(([name, text]) => `${name}=${readable(text)}`).join("&");
}

const bandsOf = ({ bands }) => bands.map(({ name, f0, f1 }) => ["named", `${short(f0)}:${short(f1)}:${name}`]);

/** Escape a value for a fragment, less the signs that are legal there and that people want to read. */
function readable(text) {
  return encodeURIComponent(text).replace(/%(2F|3A|2C|40)/g, (code) => decodeURIComponent(code));
}

/**
 * Write views to the fragment at most twice a second: Safari refuses more than 100 in 30 s.
 *
 * @param {(fragment: string) => void} replace writes it
 * @param {{setTimeout: Function}} clock
 */
export function fragmentWriter(replace, clock = globalThis, interval_ms = 500) {
  let waiting = null;
  let last = null;
  let isTimed = false;
  const write = () => {
    isTimed = false;
    if (waiting === null) return;
    const text = waiting;
    waiting = null;
    if (text !== last) replace(text);
    last = text;
    isTimed = true;
    clock.setTimeout(write, interval_ms);
  };
  return (view) => {
    waiting = formatFragment(view);
    if (!isTimed) write();
  };
}
