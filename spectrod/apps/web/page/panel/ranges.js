/**
 * Which panels share a range of levels, and what a view says of it.
 *
 * A range belongs to a key. Linked panels whose levels have one unit and one reference have one key, so that their
 * colours compare; else each panel has its own. Without a range a key is automatic.
 */

/** Least span that a person can set [dB]. */
export const LEAST_SPAN_DB = 5;
const HIGHEST_DB = 1000;
/** Ranges that people set are multiples of this [dB]. */
const STEP_DB = 0.5;

/**
 * Key of a panel's range.
 *
 * @param {{isLinked: boolean}} view
 * @param {{names: string[], unit: string, ref: string | undefined}} panel names of its topics; unit and reference
 *   of their levels
 */
export function rangeKey({ isLinked }, { names, unit, ref, isDifference = false }) {
  if (isDifference) return [DIFFERENCE, ...(isLinked ? [] : names)].join(" ");
  if (isLinked) return ref ? `${unit} ${ref}` : unit;
  return names.join(" ");
}

/** Key of the range of differences, or the begin of one: no unit and no topic has this name. */
const DIFFERENCE = "difference";
const isOfDifferences = (key) => key === DIFFERENCE || key.startsWith(`${DIFFERENCE} `);

/** Range that a view gives a key, or null: automatic. Differences have none of what is not theirs. */
export function rangeOf({ lo, hi, ranges }, key) {
  const own = ranges.find(({ of }) => of === key);
  if (own !== undefined) return { lo: own.lo, hi: own.hi };
  return lo === null || isOfDifferences(key) ? null : { lo, hi };
}

/**
 * Part of a view in which a key has another range.
 *
 * @param {object} view
 * @param {readonly string[]} keys of all panels
 * @param {string} key of the one that changes
 * @param {{lo: number, hi: number} | null} range null: automatic
 */
export function withRange(view, keys, key, range) {
  if (isOfDifferences(key)) {
    const rest = view.ranges.filter(({ of }) => of !== key);
    return { lo: view.lo, hi: view.hi, ranges: range === null ? rest : [{ of: key, ...range }, ...rest] };
  }
  const shown = [...new Set(keys.filter((of) => !isOfDifferences(of)))];
  const others = view.ranges.filter(({ of }) => !shown.includes(of));
  // Of a single key the range is short in links, and old pages know it.
  if (shown.length === 1) return { lo: range?.lo ?? null, hi: range?.hi ?? null, ranges: others };
  const kept = shown.map((of) => ({ of, ...(of === key ? range : rangeOf(view, of)) })).filter(({ lo }) => lo !== undefined);
  return { lo: null, hi: null, ranges: [...kept, ...others] };
}

/**
 * Part of a view after linking or unlinking; what is shown stays, as far as one range for several panels can.
 *
 * @param {object} view
 * @param {boolean} isLinked
 * @param {Array<{names: string[], unit: string, ref: string | undefined}>} panels the one that counts first
 */
export function linked(view, isLinked, panels) {
  const next = { ...view, isLinked, lo: null, hi: null, ranges: [] };
  const keys = panels.map((panel) => rangeKey(next, panel));
  const part = panels.reduceRight((made, panel, k) => {
    const range = rangeOf(view, rangeKey(view, panel));
    return { ...made, ...withRange(made, keys, keys[k], range) };
  }, next);
  return { isLinked, lo: part.lo, hi: part.hi, ranges: part.ranges };
}

const rounded = (level) => Math.round(level / STEP_DB) * STEP_DB;

const clamped = (level, lowest, highest) => Math.min(highest, Math.max(lowest, level));

/** A range whose end `lo` or `hi` is at a level, as near to it as the other end lets it come. */
export function withEnd(range, end, level) {
  const [lo, hi] = [rounded(range.lo), rounded(range.hi)];
  if (end === "lo") return { lo: clamped(rounded(level), -HIGHEST_DB, hi - LEAST_SPAN_DB), hi };
  return { lo, hi: clamped(rounded(level), lo + LEAST_SPAN_DB, HIGHEST_DB) };
}

/** The range about 0 that has the end of a range which was moved further from where it was. */
export function centred(range, before) {
  const end = Math.abs(range.hi - before.hi) >= Math.abs(range.lo - before.lo) ? range.hi : -range.lo;
  const size = clamped(rounded(end), LEAST_SPAN_DB / 2, HIGHEST_DB);
  return { lo: -size, hi: size };
}

/** A range moved by some decibels. */
export function moved({ lo, hi }, by) {
  const step = clamped(rounded(by), -HIGHEST_DB - lo, HIGHEST_DB - hi);
  return { lo: lo + step, hi: hi + step };
}

/** A range with `1 / factor` of the span, in which a level keeps its place. */
export function zoomedRange({ lo, hi }, factor, level) {
  const span = clamped((hi - lo) / factor, LEAST_SPAN_DB, 2 * HIGHEST_DB);
  const low = rounded(level - ((level - lo) / (hi - lo)) * span);
  const high = Math.max(rounded(low + span), low + LEAST_SPAN_DB);
  return { lo: clamped(low, -HIGHEST_DB, HIGHEST_DB - LEAST_SPAN_DB), hi: clamped(high, LEAST_SPAN_DB - HIGHEST_DB, HIGHEST_DB) };
}
