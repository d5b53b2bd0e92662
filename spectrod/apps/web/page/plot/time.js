/**
 * Time axis, and numbers as people read them.
 *
 * Times are those of the source: UTC in milliseconds since 1970, never the browser's clock.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// From one tick to the next; months and years follow, whose lengths differ [ms].
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7].map((n) => n * DAY),
];
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200];
const MONTH = 30.44 * DAY;
const MONDAY = 4 * DAY; // 1970-01-05

const TICK_PX = 40;
const TICKS_MAX = 64;
const DATE_MS_MAX = 8.64e15; // the last time that a Date can hold
const OFFSETS_KEPT = 256;

const formats = new Map();

const zones = new Map();

/** Whether a name is that of a time zone which the browser knows. */
export function isZone(name) {
  if (name === "") return false;
  if (!zones.has(name)) zones.set(name, isKnown(name));
  return zones.get(name);
}

function isKnown(name) {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== null;
  } catch {
    return false;
  }
}

/** Return the cached format of a zone that gives local time as numbers. */
function zoneFormat(zone) {
  if (!formats.has(zone)) {
    const numeric = "2-digit";
    const time = { hour: numeric, minute: numeric, second: numeric, hourCycle: "h23" };
    const date = { era: "short", year: "numeric", month: numeric, day: numeric };
    const format = new Intl.DateTimeFormat("en-US-u-ca-gregory", { timeZone: zone, ...date, ...time });
    const name = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "short" });
    formats.set(zone, { format, name, offsets: new Map() });
  }
  return formats.get(zone);
}

/**
 * Return how far local time is ahead of UTC [ms].
 *
 * @param {number} tMs
 * @param {string} zone name in the IANA's database, or `UTC`
 */
export function zoneOffset(tMs, zone) {
  if (zone === "UTC") return 0;
  const { format, offsets } = zoneFormat(zone);
  const quarter = Math.floor(tMs / (15 * MINUTE)); // zones change at quarters of an hour
  if (!offsets.has(quarter)) {
    if (offsets.size >= OFFSETS_KEPT) offsets.clear();
    offsets.set(quarter, localMs(format, quarter * 15 * MINUTE) - quarter * 15 * MINUTE);
  }
  return offsets.get(quarter);
}

function localMs(format, tMs) {
  const part = Object.fromEntries(format.formatToParts(tMs).map(({ type, value }) => [type, value]));
  const year = part.era === "BC" ? 1 - Number(part.year) : Number(part.year);
  const date = new Date(0);
  date.setUTCFullYear(year, Number(part.month) - 1, Number(part.day));
  return date.setUTCHours(Number(part.hour), Number(part.minute), Number(part.second));
}

/** Return the short name of a zone at a time: `UTC`, `CET`, `GMT+5:30`. */
export function zoneName(tMs, zone) {
  if (zone === "UTC") return "UTC";
  const parts = zoneFormat(zone).name.formatToParts(tMs);
  return parts.find(({ type }) => type === "timeZoneName").value;
}

/** Return local time as `2026-11-27T03:12:05.250`. */
export function isoOfLocal(tMs, zone) {
  return new Date(tMs + zoneOffset(tMs, zone)).toISOString().slice(0, -1);
}

/**
 * Return the time that a clock of a zone shows as a text such as `2026-11-27T03:12:05`.
 *
 * @param {string} iso local date and time
 * @param {string} zone
 * @returns {{tMs: number, count: number}} `count`: how often the clock shows it. Of a time that comes twice, as clocks
 *   are put back, the first; of one that does not come, what a clock shows that was not put forward.
 */
export function localOfIso(iso, zone) {
  const local = Date.parse(`${iso}Z`);
  const offsets = [...new Set([zoneOffset(local - DAY, zone), zoneOffset(local + DAY, zone)])];
  const found = offsets.map((offset) => local - offset).filter((tMs) => tMs + zoneOffset(tMs, zone) === local);
  return { tMs: found.length > 0 ? Math.min(...found) : local - offsets[0], count: found.length };
}

/**
 * @typedef {object} TimeTick
 * @property {number} px place, 0 at t1Ms (the newest, at the top)
 * @property {number} tMs
 * @property {string} label time of day, or the date where a day begins; between seconds `.200`
 * @property {boolean} major where a day begins; of days a month, of months a year
 */

/**
 * Return the ticks of a time axis, from the newest down.
 *
 * Ticks are at round local times; where the clock is put forward or back a step is shorter or longer.
 *
 * @param {number} t0Ms at the lower end
 * @param {number} t1Ms at the upper end, px 0; above t0Ms
 * @param {number} height [px]
 * @param {string} zone
 * @returns {TimeTick[]} at most 64
 */
export function timeTicks(t0Ms, t1Ms, height, zone) {
  const isDrawn = t1Ms > t0Ms && height > 0 && Math.abs(t0Ms) < DATE_MS_MAX && t1Ms < DATE_MS_MAX;
  if (!isDrawn) return [];
  const shortest = ((t1Ms - t0Ms) * TICK_PX) / Math.max(height, TICK_PX);
  const step = STEPS.find((ms) => ms >= shortest);
  const times = step === undefined ? monthTimes(t0Ms, t1Ms, shortest, zone) : clockTimes(t0Ms, t1Ms, step, zone);
  const place = (tMs) => ((t1Ms - tMs) / (t1Ms - t0Ms)) * height;
  return times
    .map((tMs) => ({ px: place(tMs), tMs, ...tickLabel(tMs, step ?? MONTH, zone) }))
    .reverse();
}

function clockTimes(t0Ms, t1Ms, step, zone) {
  const origin = step === 7 * DAY ? MONDAY : 0;
  const times = [];
  let tMs = nextMultiple(Math.ceil(t0Ms) - 1, step, origin, zone);
  for (; tMs <= t1Ms && times.length < TICKS_MAX; tMs = nextMultiple(tMs, step, origin, zone)) {
    times.push(tMs);
  }
  return times;
}

/** Return the first time after tMs whose local time is a multiple of the step. */
function nextMultiple(tMs, step, origin, zone) {
  const restAt = (time) => modulo(time + zoneOffset(time, zone) - origin, step);
  const next = tMs + step - restAt(tMs);
  if (restAt(next) === 0) return next;
  // The clock was changed in between: by less than a step, so the multiple is near.
  const moved = next - (zoneOffset(next, zone) - zoneOffset(tMs, zone));
  return moved > tMs && restAt(moved) === 0 ? moved : next + step - restAt(next);
}

function modulo(value, by) {
  return ((value % by) + by) % by;
}

function monthTimes(t0Ms, t1Ms, shortest, zone) {
  const months = MONTH_STEPS.find((n) => n * MONTH >= shortest) ?? MONTH_STEPS.at(-1);
  const from = new Date(t0Ms + zoneOffset(t0Ms, zone));
  const first = Math.floor((from.getUTCFullYear() * 12 + from.getUTCMonth()) / months) * months;
  const starts = Array.from({ length: TICKS_MAX }, (_, n) => monthStart(first + n * months, zone));
  return starts.filter((tMs) => tMs >= t0Ms && tMs <= t1Ms);
}

function monthStart(month, zone) {
  const local = new Date(0).setUTCFullYear(Math.floor(month / 12), modulo(month, 12), 1);
  return local - zoneOffset(local - zoneOffset(local, zone), zone);
}

function tickLabel(tMs, step, zone) {
  const local = isoLocal(tMs, zone);
  if (step >= DAY) return { label: local.date, major: step >= MONTH ? local.isYear : local.isMonth };
  if (local.isMidnight) return { label: local.date, major: true };
  // Fractions alone between whole seconds: all of it is wider than the gutter.
  if (step < SECOND && !local.isSecond) return { label: local.time.slice(8, 12), major: false };
  return { label: local.time.slice(0, step >= MINUTE ? 5 : 8), major: false };
}

function isoLocal(tMs, zone) {
  const iso = new Date(tMs + zoneOffset(tMs, zone)).toISOString();
  const [date, time] = iso.slice(0, -1).split("T");
  const isMonth = date.endsWith("-01");
  const isSecond = time.endsWith(".000");
  return { date, time, isSecond, isMidnight: time === "00:00:00.000", isMonth, isYear: date.endsWith("-01-01") };
}

/**
 * Return a time as a text: `2026-11-23 07:13:16.250 CET`.
 *
 * @param {number} tMs
 * @param {string} zone
 * @param {number} decimals of the second, 0 to 3
 */
export function formatTime(tMs, zone = "UTC", decimals = 0) {
  if (!(Math.abs(tMs) < DATE_MS_MAX - DAY)) return "no time";
  // Rounded as a whole, so that 59.9996 s is the next minute.
  const unit = 10 ** (3 - decimals);
  const rounded = Math.round(tMs / unit) * unit;
  const { date, time } = isoLocal(rounded, zone);
  const end = decimals === 0 ? 8 : 9 + decimals;
  return `${date} ${time.slice(0, end)} ${zoneName(rounded, zone)}`;
}

/** Return a begin and an end as a text: `2026-11-23 07:13:16.3 to 07:13:19.0 CET`; one time where they do not differ. */
export function formatSpan(t0, t1, zone = "UTC", decimals = 0) {
  const [begin, end] = [t0, t1].map((tMs) => formatTime(tMs, zone, decimals));
  const [date, time, name] = begin.split(" ");
  if (begin === end || name === undefined) return begin;
  const [endDate, endTime, endName] = end.split(" ");
  const isShort = date === endDate && name === endName;
  return isShort ? `${date} ${time} to ${endTime} ${name}` : `${begin} to ${end}`;
}

/** Decimals of the second that tell places of a time axis of some seconds apart. */
export const decimalsOf = (spanSeconds) => (spanSeconds <= 120 ? 3 : spanSeconds <= 3600 ? 1 : 0);

/**
 * Return a frequency as a text with its unit: `1.000 kHz`.
 *
 * @param {number} hz
 * @param {number} resolutionHz what its last digit is about worth; without it four digits
 */
export function formatHertz(hz, resolutionHz = 0) {
  if (!Number.isFinite(hz)) return "no frequency";
  // Rounded first, so that 999.9999 Hz is 1.000 kHz.
  const rounded = resolutionHz > 0 ? Math.round(Math.abs(hz) / resolutionHz) * resolutionHz : Math.abs(hz);
  const size = Number(rounded.toPrecision(resolutionHz > 0 ? 12 : 4));
  const [scale, unit] = size >= 1e6 ? [1e6, "MHz"] : size >= 1e3 ? [1e3, "kHz"] : [1, "Hz"];
  const step = resolutionHz > 0 ? resolutionHz : Math.max(size, 1) * 1.0000001e-3;
  const decimals = Math.ceil(-Math.log10(step / scale) - 1e-6);
  return `${unsigned0((hz / scale).toFixed(Math.min(Math.max(decimals, 0), 9)))} ${unit}`;
}

/**
 * Return a level as a text: `-20.0 dB`, and `no data` for NaN.
 *
 * @param {number} level
 * @param {string} unit
 * @param {number} decimals
 */
export function formatLevel(level, unit = "dB", decimals = 1) {
  if (!Number.isFinite(level)) return "no data";
  return `${unsigned0(level.toFixed(decimals))} ${unit}`;
}

/** Return the text of a number without the sign of a zero. */
function unsigned0(text) {
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text;
}

const NOTES = ["C", "C♯", "D", "D♯", "E", "F", "F♯", "G", "G♯", "A", "A♯", "B"];
const NOTE_HZ_MAX = 20000;
const NOTE_HZ_MIN = 8;

/**
 * Return the nearest note in equal temperament with A4 at 440 Hz: `A4 +3 ct`; cents are a hundredth
 * of a semitone. Empty for what is no note: below 8 Hz or above 20 kHz.
 *
 * @param {number} hz
 */
export function noteName(hz) {
  if (!(hz >= NOTE_HZ_MIN && hz <= NOTE_HZ_MAX)) return "";
  const key = 69 + 12 * Math.log2(hz / 440); // MIDI's numbers: 69 is A4, an octave begins with C
  const nearest = Math.round(key);
  const cents = unsigned0((100 * (key - nearest)).toFixed(0));
  const signed = Number(cents) > 0 ? `+${cents}` : cents;
  return `${NOTES[nearest % 12]}${Math.floor(nearest / 12) - 1} ${signed} ct`;
}
