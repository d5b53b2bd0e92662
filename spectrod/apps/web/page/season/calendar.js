/** Days and months of a zone: where each begins, with days of 23 and 25 hours. */

import { zoneOffset } from "../plot/time.js";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/**
 * @typedef {object} Day
 * @property {string} date `2026-03-29`
 * @property {number} begin first moment of the day in the zone [ms UTC]
 * @property {number} end first moment of the next day [ms UTC]
 * @property {number} hours its length: 24, or 23 and 25 where the clock is changed
 * @property {number} weekday 0 is Monday
 */

/** Number of the day in the zone, counted from 1970-01-01. */
const dayNumber = (tMs, zone) => Math.floor((tMs + zoneOffset(tMs, zone)) / DAY_MS);

/** First moment of a day of the zone: midnight, or when the clock was put forward over it. */
function beginOf(number, zone) {
  const local = number * DAY_MS;
  const offsets = [local - DAY_MS, local + DAY_MS].map((tMs) => zoneOffset(tMs, zone));
  const times = offsets.map((offset) => local - offset).sort((a, b) => a - b);
  return times.find((tMs) => dayNumber(tMs, zone) === number) ?? times[1];
}

function dayOf(number, zone) {
  const [begin, end] = [beginOf(number, zone), beginOf(number + 1, zone)];
  const date = new Date(number * DAY_MS).toISOString().slice(0, 10);
  return { date, begin, end, hours: (end - begin) / HOUR_MS, weekday: (number + 3) % 7 };
}

/**
 * Months that a span of time touches, the oldest first, each with all of its days that the span touches.
 *
 * @param {{t0: number, t1: number}} span [ms UTC]
 * @param {string} zone
 * @param {number} monthsMax of more the newest are returned
 * @returns {{months: Array<{name: string, days: Day[]}>, left: number}} `left`: days before the first month
 */
export function monthsOf({ t0, t1 }, zone, monthsMax) {
  const last = dayNumber(Math.max(t0, t1 - 1), zone);
  const first = dayNumber(t0, zone);
  const months = [];
  let number = last;
  for (; number >= first; number -= 1) {
    const day = dayOf(number, zone);
    const name = day.date.slice(0, 7);
    if (months[0]?.name !== name) {
      if (months.length === monthsMax) break;
      months.unshift({ name, days: [] });
    }
    months[0].days.unshift(day);
  }
  return { months, left: number - first + 1 };
}
