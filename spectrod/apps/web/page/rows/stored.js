/** What is stored of topics, where no rows come: their time axis ends with what is there, not now. */

/** An archive of more days is shown as days at first. */
const DAYS_LEAST = 1.5;

/** Span of what is stored of some topics [ms], or null. */
export function storedSpan(infos) {
  const spans = infos.map(({ stored }) => stored).filter(Boolean);
  if (spans.length === 0) return null;
  return { t0: Math.min(...spans.map(([begin]) => begin)), t1: Math.max(...spans.map(([, end]) => end)) };
}

/**
 * Where the time axis of daemons' channels rests while no row has come of any: `t1`, the end of what is stored of them [ms];
 * null where rows have come, or nothing is stored.
 */
export function restOf(channels) {
  const t1 = Math.max(...channels.map(({ receivedAt, description }) => (receivedAt === null ? (description?.newest_ms ?? 0) : Infinity)));
  return t1 > 0 && t1 < Infinity ? { t1 } : null;
}

/**
 * Part of a view that has no time: the end of what is stored, and all of it the first time.
 *
 * @param {{t1: number | null, span: number}} view
 * @param {{t0?: number, t1: number} | null} stored see `storedSpan` and `restOf`
 * @param {boolean} isFirst whether the view says nothing of times yet
 */
export function atStored({ t1 }, stored, isFirst) {
  if (t1 !== null || stored === null) return {};
  if (!isFirst || stored.t0 === undefined) return { t1: stored.t1 };
  const seconds = (stored.t1 - stored.t0) / 1000;
  return { t1: stored.t1, span: Math.max(1, seconds), days: seconds > DAYS_LEAST * 86400 };
}
