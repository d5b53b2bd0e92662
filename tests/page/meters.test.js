// Meters: scales, zones, the peak that is held, the lamp, the last minutes.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ClipLamp, isOld } from "../../spectrod/apps/web/page/side/meter.js";
import { meterScale, meterShare, meterTicks, PeakHold, Trend, trendScale, trendText, zoneOf, zonesOf } from "../../spectrod/apps/web/page/side/meterscale.js";

test("each unit has its own scale, which tens of decibels lengthen to what is seen", () => {
  assert.deepEqual(meterScale("dBFS", null), { lo: -80, hi: 0 });
  assert.deepEqual(meterScale("dBFS", { min: -61, max: -20 }), { lo: -80, hi: 0 });
  assert.deepEqual(meterScale("dBFS", { min: -93, max: 3.01 }), { lo: -100, hi: 10 });
  assert.deepEqual(meterScale("dBFS", { min: -200, max: -200 }), { lo: -120, hi: 0 });
  assert.deepEqual(meterScale("dB SPL", { min: 12, max: 121 }), { lo: 10, hi: 130 });
  assert.deepEqual(meterScale("dB re 1 um/s2", { min: 20, max: 61 }), { lo: -10, hi: 70 });
  assert.deepEqual(meterScale("dB re 1 um/s2", null), { lo: -80, hi: 0 });
});

test("a level fills its share of the scale, and no level none", () => {
  const scale = { lo: -80, hi: 0 };
  assert.deepEqual([0, -20, -80, -100, 6, null].map((level) => meterShare(scale, level)), [1, 0.75, 0, 0, 1, 0]);
});

test("zones are those of the unit, and of peaks in SPL their own; other units have none", () => {
  const zoned = (name, unit, ...levels) => levels.map((level) => zoneOf(level, zonesOf(name, unit)));
  assert.deepEqual(zoned("LAeq", "dBFS", -18.1, -18, -9.1, -9, 3), ["good", "notice", "notice", "bad", "bad"]);
  assert.deepEqual(zoned("true peak", "dBTP", -9.1, -1.1, -1), ["good", "notice", "bad"]);
  assert.deepEqual(zoned("LUFS S", "LUFS", -23, -21, -10), ["good", "notice", "bad"]);
  assert.deepEqual(zoned("LAeq", "dB SPL", 79.9, 80, 85), ["good", "notice", "bad"]);
  assert.deepEqual(zoned("LCpeak", "dB SPL", 120, 135, 137), ["good", "notice", "bad"]);
  assert.deepEqual(zoned("LAeq", "dB re 1 V", -200, 200), ["none", "none"]);
});

test("ticks are as close as their numbers allow, and on the scale", () => {
  assert.deepEqual(meterTicks({ lo: -80, hi: 0 }, 200), [-80, -60, -40, -20, 0]);
  assert.deepEqual(meterTicks({ lo: 20, hi: 100 }, 400), [20, 30, 40, 50, 60, 70, 80, 90, 100]);
  assert.deepEqual(meterTicks({ lo: -120, hi: 10 }, 100), [-120, -60, 0]);
  assert.deepEqual(meterTicks({ lo: -10, hi: 70 }, 1), [0]);
});

test("the peak is held for 2 s, or three intervals, falls by 20 dB in 1.7 s, and rises at once", () => {
  const hold = new PeakHold();
  assert.equal(hold.at(0), null);
  hold.take(-10, 0.1, 0);
  hold.take(-40, 0.1, 1000);
  assert.equal(hold.at(2000), -10);
  assert.ok(Math.abs(hold.at(3700) - -30) < 1e-9);
  hold.take(-20, 0.1, 3700);
  assert.equal(hold.at(5700), -20);
  hold.take(null, 0.1, 5700);
  assert.equal(hold.at(5700), -20);
  const slow = new PeakHold();
  slow.take(-10, 60, 0);
  slow.take(-30, 60, 60_000);
  assert.equal(slow.at(180_000), -10);
  assert.ok(slow.at(181_700) < -29);
});

test("the trend has the least and the greatest level of each part, and forgets what is older", () => {
  const trend = new Trend();
  assert.equal(trendText(trend, "dBFS"), "");
  for (let tMs = 0; tMs < 600_000; tMs += 250) trend.take(tMs < 200_000 ? -5 : tMs % 1000 === 0 ? -20 : -60, tMs, 0.25);
  assert.deepEqual(trend.seen, { min: -60, max: -20 });
  assert.equal(trend.parts.length, 120);
  assert.deepEqual([trend.parts[0].from, trend.parts.at(-1).to], [0, 1]);
  assert.ok(trend.parts.every(({ min, max }) => min === -60 && max === -20));
  assert.equal(trendText(trend, "dBFS"), "last 5 min: -60.0 to -20.0 dBFS");
});

test("a trend shows what was seen, 10 dB at least", () => {
  assert.deepEqual(trendScale({ min: -21, max: -20 }), { lo: -25.5, hi: -15.5 });
  assert.deepEqual(trendScale({ min: -60, max: -20 }), { lo: -60.5, hi: -19.5 });
});

test("a trend of long intervals is longer, a value without a level is a hole, and a clock set back begins again", () => {
  const trend = new Trend();
  for (let k = 0; k < 300; k += 1) trend.take(k === 299 - 10 ? null : -k, 3_600_000 * k, 3600);
  assert.equal(trend.parts.length, 119);
  assert.match(trendText(trend, "dBFS"), /^last 120 h: -299\.0 to -180\.0 dBFS$/);
  trend.take(-3, 0, 3600);
  assert.deepEqual(trend.seen, { min: -3, max: -3 });
});

test("the lamp stays lit until it is put out, says since when, and lights for the overload flag alone", () => {
  const lamp = new ClipLamp();
  lamp.take(["settling", "gap"], 0);
  assert.equal(lamp.isLit, false);
  lamp.take(["overload"], Date.UTC(2026, 0, 1, 12, 0, 5));
  lamp.take([], Date.UTC(2026, 0, 1, 12, 0, 6));
  assert.equal(lamp.text("UTC"), "clipped at 12:00:05 UTC");
  lamp.take(["overload", "partial"], Date.UTC(2026, 0, 1, 12, 0, 7));
  assert.equal(lamp.text("UTC"), "clipped at 12:00:05 UTC, 2 intervals");
  lamp.reset();
  assert.deepEqual([lamp.isLit, lamp.text("UTC")], [false, "no clipping"]);
});

test("a value is old after 3 s, or three intervals", () => {
  assert.deepEqual([2999, 3001].map((now) => isOld({ interval_s: 0.1 }, 0, now)), [false, true]);
  assert.deepEqual([179_999, 180_001].map((now) => isOld({ interval_s: 60 }, 0, now)), [false, true]);
  assert.equal(isOld({ interval_s: null }, 0, 3001), true);
});
