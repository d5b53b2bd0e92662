/**
 * What a meter's scale, zones, peak and trend are; without a document.
 *
 * Zones: of dBFS, EBU R 68: alignment level -18 dBFS, permitted maximum -9 dBFS; of dBTP, EBU R 128: at most -1 dBTP
 * besides; of LUFS, EBU R 128: -23 LUFS +-1 LU, on the scale EBU +18 of EBU Tech 3341; of dB SPL the lower and upper
 * exposure action values of Directive 2003/10/EC, 80 and 85 dB, of peaks 135 and 137 dB. Those are of a working day of
 * eight hours: the zone of a shorter level is a hint.
 */

const TENS_DB = 10;
const FALL_DB_S = 20 / 1.7; // return of a peak programme meter, IEC 60268-10, type I
const HOLD_MS = 2000;
const HOLD_INTERVALS = 3;
/** Length of a trend, as short as this and as long as so many intervals [ms]. */
const TREND_MS = 300_000;
const TREND_INTERVALS = 120;
const BUCKETS = 120;

const KINDS = Object.freeze({
  dBFS: { lo: -80, hi: 0, least: -120, zones: [-18, -9] },
  dBTP: { lo: -80, hi: 0, least: -120, zones: [-9, -1] },
  LUFS: { lo: -60, hi: 0, least: -120, zones: [-22, -14] },
  "dB SPL": { lo: 20, hi: 100, least: -20, zones: [80, 85] },
});
const SPL_PEAK_ZONES = Object.freeze([135, 137]);
/** Of other units a meter shows so many decibels below the greatest value. */
const OTHER_DB = 80;

/** Levels where the zones of a quantity change, ascending; none where the unit has no zones. */
export function zonesOf(name, unit) {
  if (unit === "dB SPL" && /peak/i.test(name)) return SPL_PEAK_ZONES;
  return KINDS[unit]?.zones ?? [];
}

/** Zone of a level: `good`, `notice` or `bad`; `none` where the unit has no zones. */
export function zoneOf(level, zones) {
  if (zones.length === 0) return "none";
  return ["good", "notice", "bad"][zones.filter((from) => level >= from).length];
}

/**
 * Scale of a meter: that of the unit, as much longer by tens of decibels as the levels that are seen need.
 *
 * @param {string} unit
 * @param {{min: number, max: number} | null} seen levels
 * @returns {{lo: number, hi: number}}
 */
export function meterScale(unit, seen) {
  const kind = KINDS[unit];
  const [min, max] = seen === null ? [NaN, NaN] : [Math.floor(seen.min / TENS_DB) * TENS_DB, Math.ceil(seen.max / TENS_DB) * TENS_DB];
  if (kind === undefined) return Number.isNaN(max) ? { lo: -OTHER_DB, hi: 0 } : { lo: max - OTHER_DB, hi: max };
  if (Number.isNaN(max)) return { lo: kind.lo, hi: kind.hi };
  return { lo: Math.max(kind.least, Math.min(kind.lo, min)), hi: Math.max(kind.hi, max) };
}

/** Share of a scale below a level, 0 to 1; 0 of no level. */
export function meterShare({ lo, hi }, level) {
  return level === null ? 0 : Math.max(0, Math.min(1, (level - lo) / (hi - lo)));
}

/** Levels of the ticks of a scale that is so wide [CSS px]: multiples of 10, 20 or more decibels. */
export function meterTicks({ lo, hi }, widthPx, labelPx = 34) {
  const step = [10, 20, 40, 60, 100].find((db) => (widthPx * db) / (hi - lo) >= labelPx) ?? 200;
  const first = Math.ceil(lo / step);
  return Array.from({ length: Math.max(0, Math.floor(hi / step) - first + 1) }, (_, k) => (first + k) * step);
}

/** The greatest level for a while; then it falls. */
export class PeakHold {
  #level = null;
  #heldUntil = 0;

  /** Take a level, or null, of an interval [s]. */
  take(level, interval_s, now) {
    const shown = this.at(now);
    if (level === null || (shown !== null && level < shown)) return;
    this.#level = level;
    this.#heldUntil = now + Math.max(HOLD_MS, 1000 * HOLD_INTERVALS * (interval_s || 0));
  }

  /** Level at a time [ms], never below the newest one if `take` has it; null before the first. */
  at(now) {
    if (this.#level === null) return null;
    return this.#level - (Math.max(0, now - this.#heldUntil) / 1000) * FALL_DB_S;
  }
}

/** Least and greatest levels of equal parts of the last minutes. */
export class Trend {
  #parts = [];
  #lengthMs = TREND_MS;

  /** Take a level at a time [ms], of an interval [s]. */
  take(level, tMs, interval_s) {
    this.#lengthMs = Math.max(TREND_MS, 1000 * TREND_INTERVALS * (interval_s || 0));
    const n = Math.floor(tMs / this.partMs);
    const last = this.#parts.at(-1);
    if (last !== undefined && n < last.n) this.#parts = []; // a clock that is set back, a source that begins again
    if (level === null) return;
    const part = this.#parts.at(-1);
    if (part?.n === n) Object.assign(part, { min: Math.min(part.min, level), max: Math.max(part.max, level) });
    else this.#parts.push({ n, min: level, max: level });
    this.#parts = this.#parts.filter((one) => one.n > n - BUCKETS);
  }

  get lengthMs() {
    return this.#lengthMs;
  }

  get partMs() {
    return this.#lengthMs / BUCKETS;
  }

  /** Least and greatest level, or null without any. */
  get seen() {
    if (this.#parts.length === 0) return null;
    return { min: Math.min(...this.#parts.map(({ min }) => min)), max: Math.max(...this.#parts.map(({ max }) => max)) };
  }

  /** Parts, the oldest first, each with the share of the trend's length at which it begins. */
  get parts() {
    const newest = this.#parts.at(-1)?.n ?? 0;
    return this.#parts.map(({ n, min, max }) => ({ from: (n - newest + BUCKETS - 1) / BUCKETS, to: (n - newest + BUCKETS) / BUCKETS, min, max }));
  }
}

/** Scale of a trend: the levels that are seen, 10 dB at least, so that small changes show. */
export function trendScale(seen) {
  const { min, max } = seen ?? { min: 0, max: 0 };
  const beyond = Math.max(TENS_DB - (max - min), 1) / 2;
  return { lo: min - beyond, hi: max + beyond };
}

/** Text of a trend for who does not see it; empty without levels. */
export function trendText(trend, unit) {
  if (trend.seen === null) return "";
  const { min, max } = trend.seen;
  const minutes = trend.lengthMs / 60_000;
  const time = minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`;
  return `last ${time}: ${min.toFixed(1)} to ${max.toFixed(1)} ${unit}`;
}
