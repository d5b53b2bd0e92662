/** The frequencies on the screen: what a view asks for, within what its topics have. */

import { extentOf } from "./bins.js";
import { makeAxis } from "../plot/axis.js";

/** At most this many pixels show one bin of a linear axis; more would only make it wider. */
const PIXELS_A_BIN = 8;
/** Other axes show wide bins at their lower end anyway: at least this many bins. */
const BINS_LEAST = 12;

/**
 * Limits that all shown topics share.
 *
 * @param {object[]} descriptions `stream` texts; none: a range to begin with
 * @param {string} kind of the axis that is asked for
 * @returns {{kind: string, f0: number, f1: number, binHz: number}} a topic with frequencies of 0 Hz and
 *   less on both sides has no logarithm: its axis is linear
 */
export function limitsOf(descriptions, kind) {
  const extents = descriptions.map(extentOf);
  if (extents.length === 0) return { kind, f0: kind === "linear" ? 0 : 10, f1: 24000, binHz: 0 };
  const hasLog = extents.every(({ least, f1 }) => least > 0 && least < f1);
  const shown = hasLog ? kind : "linear";
  const low = extents.map(({ f0, least }) => (shown === "linear" || shown === "mel" ? f0 : least));
  return {
    kind: shown,
    f0: Math.min(...low),
    f1: Math.max(...extents.map(({ f1 }) => f1)),
    binHz: Math.min(...descriptions.map(({ bin_hz }) => bin_hz || 0)),
  };
}

/** Range that the axis may move in, for `Axis.zoom` and `Axis.pan`. */
export function axisLimits(limits, width) {
  const least = limits.binHz * (limits.kind === "linear" ? width / PIXELS_A_BIN : BINS_LEAST);
  return { f0: limits.f0, f1: limits.f1, minSpanHz: Math.min(least, limits.f1 - limits.f0) };
}

/**
 * The axis for a view.
 *
 * A range that lies beyond the limits is moved into them; one that lies wholly outside shows all.
 *
 * @param {{f0: number | null, f1: number | null}} view
 * @param {{kind: string, f0: number, f1: number}} limits
 * @param {number} width [px]
 */
export function axisOf(view, limits, width) {
  let f0 = Math.max(view.f0 ?? limits.f0, limits.f0);
  let f1 = Math.min(view.f1 ?? limits.f1, limits.f1);
  if (!(f0 < f1)) [f0, f1] = [limits.f0, limits.f1];
  if (!(f0 < f1)) f1 = f0 + 1;
  return makeAxis({ kind: limits.kind, f0, f1, width: Math.max(1, Math.round(width)) });
}

/** Part of a view for an axis: null at the limits, so that "all" stays all when a topic changes. */
export function rangeOfAxis(axis, limits) {
  const isAll = axis.f0 <= limits.f0 && axis.f1 >= limits.f1;
  return isAll ? { f0: null, f1: null } : { f0: axis.f0, f1: axis.f1 };
}
