/** What keys, buttons and gestures do: each makes a part of a new view from the present one. */

import { frequencyOfBin, binAt } from "../rows/bins.js";
import { nearestPeak } from "./cursor.js";
import { boxOf } from "./selectioncard.js";
import { BOUNDS } from "./view.js";
import { toggleHold } from "../rows/hold.js";
import { axisLimits, rangeOfAxis } from "../rows/range.js";
import { wayIn } from "../plot/orientation.js";

const PAN_SHARE = 0.1;
const ZOOM_STEP = 1.5;
const LEVEL_STEP_DB = 5;
const LEAST_SPAN_DB = 10;
const TIME_SHARE = 0.25;
const SPAN_STEP = 1.5;
const DAY_MS = 86_400_000;
/** A row a day earlier is not cut off at the foot of the waterfall. */
const DAY_MARGIN = 1.02;
/** Zooming about the newest part of a live waterfall leaves it live. */
const TOP_SHARE = 0.05;

/**
 * @typedef {object} Scene what an action may look at
 * @property {object} view
 * @property {import("../plot/axis.js").Axis} axis of the plot
 * @property {{f0: number, f1: number, binHz: number}} limits of the axis
 * @property {{lo: number, hi: number}} levels on the screen
 * @property {number | null} newestMs time of the newest row
 * @property {{values: ArrayLike<number>, description: object} | null} row newest row of the panel
 * @property {Array<{hz: number}>} peaks steady ones, the strongest first
 * @property {(tMs: number, direction: number) => number} stepInTime the next later (1) or earlier (-1) row's time
 */

/** The view's frequencies after zooming about a place; `factor` above 1 shows less. */
export function zoomed({ axis, limits }, factor, px) {
  return rangeOfAxis(axis.zoom(factor, px, axisLimits(limits, axis.width)), limits);
}

/** The view's frequencies after moving by some pixels to higher ones. */
export function panned({ axis, limits }, px) {
  return rangeOfAxis(axis.pan(px, axisLimits(limits, axis.width)), limits);
}

/** The view's time after moving by seconds: later than the newest row is live. */
export function movedInTime({ view, newestMs }, seconds) {
  const top = view.t1 ?? newestMs;
  if (top === null) return {};
  const t1 = top + 1000 * seconds;
  return { t1: t1 >= (newestMs ?? Infinity) && seconds > 0 ? null : t1 };
}

/**
 * The view's time and span after zooming about a time, which stays where it is on the screen; `factor` above 1
 * shows less. What reaches to the newest row is live.
 *
 * @param {{view: object, newestMs: number | null}} scene
 * @param {number} factor
 * @param {number} share of the waterfall's time axis from its newest row to that time
 */
export function zoomedInTime({ view, newestMs }, factor, share) {
  const [least, most] = BOUNDS.spanSeconds;
  const span = Math.min(most, Math.max(least, view.span / factor));
  const top = view.t1 ?? newestMs;
  if (top === null) return { span };
  const t1 = top - 1000 * share * (view.span - span);
  const isLive = t1 >= (newestMs ?? Infinity) || (view.t1 === null && share < TOP_SHARE);
  return { span, t1: isLive ? null : t1 };
}

/** Put a cursor at a place of a waterfall: A, or B with `isSecond`; a time that is null is that of a line spectrum. */
export function cursorAt({ view }, { hz, tMs, isSecond }) {
  const k = isSecond && view.cursors.length > 0 ? 1 : 0;
  const [cursors, times] = [[...view.cursors], [...view.times]];
  cursors[k] = hz;
  times[k] = tMs;
  return { cursors, times: Array.from({ length: cursors.length }, (_, n) => times[n] ?? null) };
}

function levelsMoved({ levels }, lowBy, highBy) {
  const lo = Math.round(levels.lo) + lowBy;
  const hi = Math.round(levels.hi) + highBy;
  return hi - lo < LEAST_SPAN_DB ? {} : { lo, hi };
}

/** Where a new cursor goes: the strongest steady peak that shows, else the middle of the plot. */
function freshCursor({ axis, peaks, view }) {
  const free = peaks.find(({ hz }) => hz >= axis.f0 && hz <= axis.f1 && !view.cursors.includes(hz));
  return free?.hz ?? axis.toHertz(axis.width / 2);
}

function nextCursor(scene) {
  const { cursors } = scene.view;
  return { cursors: cursors.length >= 2 ? [] : [...cursors, freshCursor(scene)] };
}

/** Move the last cursor by bins, or by a hundredth of the plot where bins are finer than that. */
function stepCursor({ view, axis, row }, direction) {
  if (view.cursors.length === 0) return {};
  const hz = view.cursors.at(-1);
  const far = axis.toHertz(axis.toPixel(hz) + direction * Math.max(1, axis.width / 400));
  return { cursors: [...view.cursors.slice(0, -1), stepBin(row?.description, hz, far, direction)] };
}

/** Move the time of the last cursor that has one by a row; the waterfall follows one that would leave it. */
function stepTime({ view, newestMs, stepInTime }, direction) {
  const k = view.times.findLastIndex((tMs) => tMs !== null);
  if (k < 0 || newestMs === null) return {};
  const tMs = Math.min(newestMs, stepInTime(view.times[k], direction));
  const times = view.times.map((other, n) => (n === k ? tMs : other));
  const top = view.t1 ?? newestMs;
  const bottom = top - 1000 * view.span;
  if (tMs > top) return { times, ...movedInTime({ view, newestMs }, (tMs - top) / 1000 + TIME_SHARE * view.span) };
  if (tMs < bottom) return { times, t1: top - (bottom - tMs) - 1000 * TIME_SHARE * view.span };
  return { times };
}

/** Put cursor B 24 hours before cursor A, which gets a time if it has none; the span gets long enough for both. */
function dayEarlier(scene) {
  const { view, newestMs } = scene;
  const top = view.t1 ?? newestMs;
  const tMs = view.times[0] ?? top;
  if (tMs === null) return {};
  const hz = view.cursors[0] ?? freshCursor(scene);
  const span = Math.max(view.span, (DAY_MARGIN * (top - tMs + DAY_MS)) / 1000);
  return { cursors: [hz, hz], times: [tMs, tMs - DAY_MS], span };
}

/** Give up what was chosen last: the selection, then the cursors' times, then a time of the past. */
function escape({ view }) {
  if (view.selection !== null) return { selection: null };
  return view.times.length > 0 ? { times: [] } : { t1: null };
}

/** Actions of arrow keys, as ways on the screen: while a cursor has a time they move it by bins and rows. */
const ARROWS = Object.freeze({ panLower: { x: -1, y: 0 }, panHigher: { x: 1, y: 0 }, levelsUp: { x: 0, y: -1 }, levelsDown: { x: 0, y: 1 } });
/** Scrolling is upwards and downwards. */
const SCROLLS = Object.freeze({ later: { x: 0, y: -1 }, earlier: { x: 0, y: 1 } });

/** The action that the name of a key's means in a view. */
export function actionIn(name, { times, direction }) {
  if (times.length > 0 && name in ARROWS) {
    const { tone, age } = wayIn(direction, ARROWS[name]);
    if (tone !== 0) return tone > 0 ? "cursorHigher" : "cursorLower";
    return age > 0 ? "timeEarlier" : "timeLater";
  }
  if (!(name in SCROLLS)) return name;
  const { age } = wayIn(direction, SCROLLS[name]);
  if (age === 0) return name;
  return age > 0 ? "earlier" : "later";
}

function stepBin(description, hz, far, direction) {
  const bin = description ? binAt(description, hz) : -1;
  if (bin < 0) return far;
  const next = Math.max(0, Math.min(description.n_bins - 1, bin + direction));
  const at = frequencyOfBin(description, next);
  return direction * (at - far) > 0 ? at : far;
}

function cursorToPeak(scene) {
  const { view, axis, row, peaks } = scene;
  if (view.cursors.length === 0) return { cursors: [freshCursor(scene)] };
  const found = peaks[0]?.hz ?? (row && nearestPeak(view.cursors.at(-1), axis.f1 - axis.f0, row.values, row.description));
  return found === null || found === undefined ? {} : { cursors: [...view.cursors.slice(0, -1), found] };
}

/** Mark the harmonics of cursor A, which is made where there is none. */
function harmonicsOfCursor(scene) {
  const { view } = scene;
  return view.cursors.length === 0 ? { cursors: [freshCursor(scene)], harmonics: true } : { harmonics: !view.harmonics };
}

function bandOfCursors({ view, axis }) {
  if (view.band !== null) return { band: null };
  const [a, b] = view.cursors;
  if (b !== undefined && a !== b) return { band: [Math.min(a, b), Math.max(a, b)] };
  return { band: [axis.toHertz(axis.width * 0.4), axis.toHertz(axis.width * 0.6)] };
}

const spanTimes = (factor) => ({ view }) => ({ span: view.span * factor });

/** Actions by name: scene to part of a view. */
export const ACTIONS = Object.freeze({
  panLower: (scene) => panned(scene, -PAN_SHARE * scene.axis.width),
  panHigher: (scene) => panned(scene, PAN_SHARE * scene.axis.width),
  zoomIn: (scene) => zoomed(scene, ZOOM_STEP, scene.axis.width / 2),
  zoomOut: (scene) => zoomed(scene, 1 / ZOOM_STEP, scene.axis.width / 2),
  showAll: () => ({ f0: null, f1: null }),
  levelsUp: (scene) => levelsMoved(scene, LEVEL_STEP_DB, LEVEL_STEP_DB),
  levelsDown: (scene) => levelsMoved(scene, -LEVEL_STEP_DB, -LEVEL_STEP_DB),
  floorDown: (scene) => levelsMoved(scene, -LEVEL_STEP_DB, 0),
  floorUp: (scene) => levelsMoved(scene, LEVEL_STEP_DB, 0),
  topDown: (scene) => levelsMoved(scene, 0, -LEVEL_STEP_DB),
  topUp: (scene) => levelsMoved(scene, 0, LEVEL_STEP_DB),
  autoLevels: () => ({ lo: null, hi: null }),
  earlier: (scene) => movedInTime(scene, -TIME_SHARE * scene.view.span),
  later: (scene) => movedInTime(scene, TIME_SHARE * scene.view.span),
  spanLonger: spanTimes(SPAN_STEP),
  spanShorter: spanTimes(1 / SPAN_STEP),
  live: () => ({ t1: null, times: [] }),
  escape,
  timeLater: (scene) => stepTime(scene, 1),
  timeEarlier: (scene) => stepTime(scene, -1),
  pause: ({ view, newestMs }) => ({ t1: view.t1 === null ? newestMs : null }),
  cursor: nextCursor,
  cursorLower: (scene) => stepCursor(scene, -1),
  cursorHigher: (scene) => stepCursor(scene, 1),
  cursorToPeak,
  dayEarlier,
  harmonics: harmonicsOfCursor,
  band: bandOfCursors,
  select: (scene) => ({ selection: scene.view.selection === null ? boxOf(scene) : null }),
  holdMax: ({ view }) => ({ holds: toggleHold(view.holds, "max") }),
  holdMin: ({ view }) => ({ holds: toggleHold(view.holds, "min") }),
  holdMean: ({ view }) => ({ holds: toggleHold(view.holds, "mean") }),
});
