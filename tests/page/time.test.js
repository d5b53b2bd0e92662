import assert from "node:assert/strict";
import { test } from "node:test";

import {
  formatHertz,
  formatLevel,
  formatSpan,
  formatTime,
  noteName,
  isoOfLocal,
  localOfIso,
  timeTicks,
  zoneOffset,
} from "../../spectrod/apps/web/page/plot/time.js";
import { random } from "./descriptions.js";

const HOUR = 3600e3;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 10, 23, 12);
const BERLIN = "Europe/Berlin";
const labels = (t0, t1, zone = "UTC", height = 400) => timeTicks(t0, t1, height, zone).map((tick) => tick.label);

test("any span in any zone has few ticks, from the newest down, at their times", () => {
  const next = random(5);
  const zones = ["UTC", BERLIN, "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia"];
  for (let round = 0; round < 600; round += 1) {
    const t1 = NOON + (next() - 0.5) * 3e11;
    const t0 = t1 - 10 ** (1.3 + 11 * next());
    const ticks = timeTicks(t0, t1, 100 + 900 * next(), zones[round % zones.length]);
    assert.ok(ticks.length <= 64);
    ticks.forEach(({ tMs, px }, i) => {
      assert.ok(tMs >= t0 && tMs <= t1 && (i === 0 || (tMs < ticks[i - 1].tMs && px > ticks[i - 1].px)));
    });
  }
});

test("ticks are at most three times as far apart as they need to be", () => {
  for (let span = 1000; span < 20 * DAY; span *= 1.7) {
    const n = timeTicks(NOON - span, NOON, 400, "UTC").length;
    assert.ok(n >= 3 && n <= 11, `${n} ticks in ${span} ms`);
  }
});

test("labels say what differs from tick to tick", () => {
  assert.deepEqual(labels(NOON, NOON + 49, "UTC", 200), [".040", ".030", ".020", ".010", "12:00:00"]);
  assert.deepEqual(labels(NOON, NOON + 50e3), ["50", "45", "40", "35", "30", "25", "20", "15", "10", "05", "00"].map((s) => `12:00:${s}`));
  assert.deepEqual(labels(NOON, NOON + 4 * HOUR, "UTC", 200), ["16:00", "15:00", "14:00", "13:00", "12:00"]);
  assert.deepEqual(labels(NOON, NOON + DAY, "UTC", 200), ["12:00", "06:00", "2026-11-24", "18:00", "12:00"]);
});

test("a new day is major and says its date", () => {
  const ticks = timeTicks(NOON, NOON + DAY, 200, "UTC");
  assert.deepEqual(ticks.filter(({ major }) => major).map(({ label }) => label), ["2026-11-24"]);
});

test("months and years begin where the calendar says", () => {
  const from = Date.UTC(2023, 11, 15);
  assert.deepEqual(labels(from, from + 100 * DAY, "UTC", 150), ["2024-03-01", "2024-02-01", "2024-01-01"]);
  const years = timeTicks(from, from + 1200 * DAY, 200, "UTC");
  assert.deepEqual(years.filter(({ major }) => major).map(({ label }) => label), ["2027-01-01", "2026-01-01", "2025-01-01", "2024-01-01"]);
});

test("weeks begin on Monday", () => {
  for (const { tMs } of timeTicks(NOON - 60 * DAY, NOON, 400, "UTC")) assert.equal(new Date(tMs).getUTCDay(), 1);
});

test("a night of 25 hours has its ticks at round local times, the hour that comes twice twice", () => {
  const end = Date.UTC(2026, 9, 25, 5);
  const night = labels(end - 7 * HOUR, end, BERLIN, 320);
  assert.deepEqual(night, ["06:00", "05:00", "04:00", "03:00", "02:00", "02:00", "01:00", "2026-10-25"]);
  assert.deepEqual(labels(end - 9 * HOUR, end + HOUR, BERLIN, 210), ["06:00", "04:00", "02:00", "2026-10-25", "22:00"]);
});

test("a night of 23 hours leaves out the hour that does not come", () => {
  const end = Date.UTC(2026, 2, 29, 4);
  assert.deepEqual(labels(end - 6 * HOUR, end, BERLIN, 280), ["06:00", "05:00", "04:00", "03:00", "01:00", "2026-03-29", "23:00"]);
});

test("days are local days, however long", () => {
  const end = Date.UTC(2026, 9, 27, 12);
  for (const { tMs } of timeTicks(end - 5 * DAY, end, 200, BERLIN)) {
    assert.equal((tMs + zoneOffset(tMs, BERLIN)) % DAY, 0);
  }
});

test("a local time that is typed is the time that the zone's clock shows, also where clocks are changed", () => {
  const next = random(11);
  for (const zone of [BERLIN, "UTC", "Asia/Kolkata", "Pacific/Apia", "America/St_Johns", "Australia/Lord_Howe"]) {
    for (let n = 0; n < 400; n += 1) {
      const tMs = 1000 * Math.floor(1.2e9 + 6e8 * next());
      const { tMs: found, count } = localOfIso(isoOfLocal(tMs, zone), zone);
      assert.equal(isoOfLocal(found, zone), isoOfLocal(tMs, zone));
      assert.ok(count === 2 ? found <= tMs : found === tMs, `${zone} ${tMs}`);
    }
  }
  // 25 October 2026 has 25 hours in Berlin: 02:30 comes twice, in summer time first.
  assert.deepEqual(localOfIso("2026-10-25T02:30:00", BERLIN), { tMs: Date.UTC(2026, 9, 25, 0, 30), count: 2 });
  // 29 March 2026 has 23: 02:30 does not come, and is half an hour after 01:59:59.
  assert.deepEqual(localOfIso("2026-03-29T02:30:00", BERLIN), { tMs: Date.UTC(2026, 2, 29, 1, 30), count: 0 });
});

test("spans that cannot be drawn have no ticks", () => {
  for (const [t0, t1, height] of [[0, 0, 9], [1, 0, 9], [0, 1, 0], [NaN, 1, 9], [0, Infinity, 9]]) {
    assert.deepEqual(timeTicks(t0, t1, height, "UTC"), []);
  }
});

test("a time is rounded as a whole and says its zone", () => {
  assert.equal(formatTime(NOON + 59999.6, "UTC"), "2026-11-23 12:01:00 UTC");
  assert.equal(formatTime(NOON + 250.4, BERLIN, 3), "2026-11-23 13:00:00.250 GMT+1");
  assert.equal(formatTime(NOON + 250, "Asia/Kolkata", 1), "2026-11-23 17:30:00.3 GMT+5:30");
  assert.equal(formatTime(NaN), "no time");
  assert.equal(formatSpan(NOON, NOON + 2090, BERLIN, 1), "2026-11-23 13:00:00.0 to 13:00:02.1 GMT+1");
  assert.equal(formatSpan(NOON, NOON + 43_200_000), "2026-11-23 12:00:00 UTC to 2026-11-24 00:00:00 UTC");
  assert.equal(formatSpan(NOON, NOON + 40, "UTC", 1), "2026-11-23 12:00:00.0 UTC");
  assert.equal(formatSpan(NaN, NOON), "no time");
  assert.equal(formatTime(1e300), "no time");
});

test("a frequency has four digits, or those that its resolution is worth", () => {
  assert.deepEqual([1000, 440, 999.99999, 23437.5, 0, 0.5, 2.5e6, -1000].map((hz) => formatHertz(hz)), [
    ...["1.000 kHz", "440.0 Hz", "1.000 kHz", "23.44 kHz", "0.000 Hz", "0.500 Hz", "2.500 MHz", "-1.000 kHz"],
  ]);
  assert.equal(formatHertz(1000, 0.01), "1.00000 kHz");
  assert.equal(formatHertz(999.997, 0.01), "1.00000 kHz");
  assert.equal(formatHertz(123.456, 20), "123 Hz");
  assert.equal(formatHertz(NaN), "no frequency");
});

test("a level has its unit, and no data is no number", () => {
  assert.equal(formatLevel(-20, "dBFS"), "-20.0 dBFS");
  assert.equal(formatLevel(-0.04), "0.0 dB");
  assert.equal(formatLevel(-3.456, "dB", 2), "-3.46 dB");
  assert.equal(formatLevel(NaN), "no data");
});

test("notes are those of equal temperament", () => {
  const names = [440, 261.6256, 445, 27.5, 4186.009, 466.16].map(noteName);
  assert.deepEqual(names, ["A4 0 ct", "C4 0 ct", "A4 +20 ct", "A0 0 ct", "C8 0 ct", "A♯4 0 ct"]);
  assert.deepEqual([0, -1, 5, 30000, NaN].map(noteName), ["", "", "", "", ""]);
});
