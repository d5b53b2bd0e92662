// Ranges of levels: by hand, linked over panels, automatic.
import assert from "node:assert/strict";
import { test } from "node:test";

import { levelAtShare, scaleFor, shareOf } from "../../spectrod/apps/web/page/plot/colourbar.js";
import { LEAST_SPAN_DB, linked, moved, rangeKey, rangeOf, withEnd, withRange, zoomedRange } from "../../spectrod/apps/web/page/panel/ranges.js";
import { formatFragment, makeView, parseFragment } from "../../spectrod/apps/web/page/panel/view.js";
import { LevelFollower, shownLevels } from "../../spectrod/apps/web/page/rows/follow.js";
import { axisOf, limitsOf } from "../../spectrod/apps/web/page/rows/range.js";
import { RowRing } from "../../spectrod/apps/web/page/rows/rows.js";
import { JoinedRows } from "../../spectrod/apps/web/page/rows/past.js";
import { description, random, row } from "./descriptions.js";

const panel = (name, unit, ref) => ({ names: [name], unit, ref });
const LEFT = panel("spec/a/left/dbfs/", "dBFS", "0 dBFS = full-scale sine");
const RIGHT = panel("spec/a/right/dbfs/", "dBFS", "0 dBFS = full-scale sine");
const SPL = panel("spec/b/0/dbfs/", "dB SPL", "0 dB = 20 uPa");
const IQ = panel("spec/c/0/dbfs/", "dBFS", "0 dBFS = complex tone of amplitude 1");
const keysOf = (view, panels) => panels.map((one) => rangeKey(view, one));
const after = (view, part) => makeView({ ...view, ...part });

test("linked panels share a range if unit and reference are the same, others never", () => {
  const [left, right, spl, iq] = keysOf(makeView(), [LEFT, RIGHT, SPL, IQ]);
  assert.equal(left, right);
  assert.equal(new Set([left, spl, iq]).size, 3);
  assert.equal(new Set(keysOf(makeView({ isLinked: false }), [LEFT, RIGHT])).size, 2);
});

test("a range that is set changes the panels that are linked with it, and no other", () => {
  const view = makeView();
  const keys = keysOf(view, [LEFT, RIGHT, SPL]);
  const next = after(view, withRange(view, keys, keys[0], { lo: -90, hi: -10 }));
  assert.deepEqual(keys.map((key) => rangeOf(next, key)), [{ lo: -90, hi: -10 }, { lo: -90, hi: -10 }, null]);
  const both = after(next, withRange(next, keys, keys[2], { lo: 20, hi: 100 }));
  assert.deepEqual(rangeOf(both, keys[1]), { lo: -90, hi: -10 });
  assert.deepEqual(rangeOf(after(both, withRange(both, keys, keys[0], null)), keys[0]), null);
  assert.deepEqual(rangeOf(after(both, withRange(both, keys, keys[0], null)), keys[2]), { lo: 20, hi: 100 });
});

test("the range of a single key is the field db of links, which old pages know", () => {
  const view = makeView();
  const keys = keysOf(view, [LEFT, RIGHT]);
  const next = after(view, withRange(view, keys, keys[1], { lo: -90, hi: -10 }));
  assert.equal(formatFragment(next), "v=1&db=-90:-10");
  assert.deepEqual(after(next, withRange(next, keys, keys[0], null)), view);
});

test("the field db of an old link is the range of all panels until one of them has another", () => {
  const view = parseFragment("#v=1&db=-90:0");
  const keys = keysOf(view, [LEFT, SPL]);
  assert.deepEqual(keys.map((key) => rangeOf(view, key)), [{ lo: -90, hi: 0 }, { lo: -90, hi: 0 }]);
  const next = after(view, withRange(view, keys, keys[1], { lo: 0, hi: 90 }));
  assert.deepEqual(keys.map((key) => rangeOf(next, key)), [{ lo: -90, hi: 0 }, { lo: 0, hi: 90 }]);
});

test("ranges survive the text of a view, with whatever name they are of; bad ones are left out", () => {
  const view = makeView({ isLinked: false, ranges: [{ of: "spec/a/left/dbfs/@tcp://10.0.0.1:5556", lo: -90.5, hi: 0 }, { of: "a&b=c#%", lo: 1, hi: 9 }] });
  assert.deepEqual(parseFragment(formatFragment(view)), view);
  for (const bad of ["range=", "range=1:2", "range=1:2:", "range=a:b:c", "range=1:1.5:x", "range=::", `range=1:5:${"x".repeat(600)}`, "levels=", "levels=x"]) {
    assert.deepEqual(parseFragment(bad), makeView(), bad);
  }
  const many = Array.from({ length: 50 }, (_, k) => ({ of: `t${k}`, lo: -1e9, hi: 1e9 }));
  assert.equal(makeView({ ranges: many }).ranges.length, 8);
  assert.deepEqual(makeView({ ranges: many }).ranges[0], { of: "t0", lo: -1000, hi: 1000 });
});

test("unlinked panels keep what they show; linked again, all take the range of the active one", () => {
  const view = makeView({ lo: -90, hi: -10 });
  const own = after(view, linked(view, false, [RIGHT, LEFT]));
  const keys = keysOf(own, [LEFT, RIGHT]);
  assert.deepEqual(keys.map((key) => rangeOf(own, key)), [{ lo: -90, hi: -10 }, { lo: -90, hi: -10 }]);
  const other = after(own, withRange(own, keys, keys[1], { lo: -60, hi: 0 }));
  assert.deepEqual(rangeOf(other, keys[0]), { lo: -90, hi: -10 });
  const again = after(other, linked(other, true, [RIGHT, LEFT]));
  assert.deepEqual(rangeOf(again, rangeKey(again, LEFT)), { lo: -60, hi: 0 });
  assert.equal(again.isLinked, true);
  const auto = after(other, withRange(other, keys, keys[1], null));
  assert.equal(rangeOf(after(auto, linked(auto, true, [RIGHT, LEFT])), rangeKey(again, LEFT)), null);
});

test("an end stops 5 dB before the other one and at 1000 dB; half decibels are the finest steps", () => {
  const range = { lo: -100, hi: -20 };
  assert.deepEqual(withEnd(range, "hi", -31.3), { lo: -100, hi: -31.5 });
  assert.deepEqual(withEnd(range, "hi", -300), { lo: -100, hi: -95 });
  assert.deepEqual(withEnd(range, "lo", 50), { lo: -25, hi: -20 });
  assert.deepEqual(withEnd(range, "lo", -1e9), { lo: -1000, hi: -20 });
  assert.deepEqual(moved(range, 7.2), { lo: -93, hi: -13 });
  assert.deepEqual(moved(range, 1e9), { lo: 920, hi: 1000 });
});

test("the wheel keeps the level under it in its place, and out again is the range before", () => {
  const range = { lo: -100, hi: -20 };
  const near = zoomedRange(range, 2, -40);
  assert.deepEqual(near, { lo: -70, hi: -30 });
  assert.deepEqual(zoomedRange(near, 0.5, -40), range);
  const least = zoomedRange(range, 1e9, -40);
  assert.equal(least.hi - least.lo, LEAST_SPAN_DB);
  for (const factor of [1e-9, 1e9]) {
    for (const level of [-1000, 1000, -60]) {
      const { lo, hi } = zoomedRange(range, factor, level);
      assert.ok(lo >= -1000 && hi <= 1000 && hi - lo >= LEAST_SPAN_DB, `${factor} ${level}: ${lo} ${hi}`);
    }
  }
});

test("the bar's scale goes beyond the range, and stands still while the range fits in it", () => {
  const scale = scaleFor(null, { lo: -100, hi: -20 });
  assert.deepEqual(scale, { lo: -112, hi: -8 });
  assert.equal(scaleFor(scale, { lo: -95, hi: -30 }), scale);
  assert.deepEqual(scaleFor(scale, { lo: -100, hi: 0 }), { lo: -115, hi: 15 });
  assert.notEqual(scaleFor(scale, { lo: -60, hi: -40 }), scale);
  assert.notEqual(scaleFor(scale, { lo: -100, hi: -9 }), scale, "its end would be at the end of the bar");
  for (const level of [-112, -60, -8]) assert.ok(Math.abs(levelAtShare(scale, shareOf(scale, level)) - level) < 1e-9);
  assert.deepEqual([shareOf(scale, -500), shareOf(scale, 500)], [0, 1]);
});

const FINE = description({ bits: 16, lo: -327.67, step: 0.01 });
const ROW_MS = 20;
const valueOf = (level) => Math.round((level + 327.67) * 100);
const floor = (level, next = () => 0) => Uint16Array.from({ length: 2049 }, () => valueOf(level + next()));
const axis = axisOf({ f0: null, f1: null }, limitsOf([FINE], "linear"), 800);

/** A channel on the screen: live rows of `live`, and behind them columns of the past. */
function channelOf({ live, past = [], held = [], t0 = 0 }) {
  const ring = new RowRing({ rows: 4096, valuesMax: 2049 });
  ring.setDescription(FINE);
  live.forEach((values, k) => ring.push(row(values, { tMs: t0 + k * ROW_MS })));
  const line = ring.length > 0 ? ring.at(0) : null;
  return { rows: new JoinedRows(ring, past), line, held: held.map((values) => ({ values, description: FINE })) };
}

const CLOCK = { now: 0 };
const view = makeView({ span: 30 });

/** Levels after some seconds of a follower that sees what `shownAt` says of each time. */
function follow(follower, seconds, shownAt, { of = view } = {}) {
  let levels = null;
  for (const end = CLOCK.now + 1000 * seconds; CLOCK.now < end; CLOCK.now += 250) levels = follower.levels(of, null, CLOCK.now, () => shownAt(CLOCK.now));
  return levels;
}

const shownOf = (channel, newestMs, spanMs = 30_000) => shownLevels(channel, axis, { newestMs, spanMs });

test("the automatic range takes the past that is shown as much as live rows: by their share of the picture", () => {
  const column = (k) => ({ ...row(floor(-60), { tMs: -100_000 * k - 60_000 }), description: { ...FINE, row_s: 100 } });
  const channel = channelOf({ live: Array.from({ length: 500 }, () => floor(-145)), past: Array.from({ length: 30 }, (_, k) => column(k)) });
  const levels = follow(new LevelFollower(), 1, () => [shownOf(channel, 10_000, 3_000_000)]);
  assert.ok(levels.hi > -60 && levels.hi < -50, `${levels.hi}`);
  // All that was live is less than a tenth of the picture.
  assert.ok(levels.lo > -110 && levels.lo < -60, `${levels.lo}`);
});

test("a chirp in one bin of 2049 is below the top within half a second, and a click once in the window is not", () => {
  const channel = channelOf({ live: Array.from({ length: 1500 }, () => floor(-100)) });
  const usual = [shownOf(channel, 30_000)];
  const loud = [{ ...usual[0], passing: -12 }];
  const follower = new LevelFollower();
  const calm = follow(follower, 3, () => usual);
  const clickAt = CLOCK.now;
  assert.deepEqual(follow(follower, 2, (now) => (now === clickAt ? loud : usual)), calm);
  assert.ok(follow(follower, 0.5, () => loud).hi >= -12);
});

test("a max hold and a reference are never above the top", () => {
  const peak = floor(-100);
  peak[500] = valueOf(-3);
  const channel = channelOf({ live: Array.from({ length: 1500 }, () => floor(-100)), held: [peak] });
  const follower = new LevelFollower();
  follow(follower, 3, () => [{ ...shownOf(channel, 30_000), held: -Infinity }]);
  const { hi } = follow(follower, 0.25, () => [shownOf(channel, 30_000)]);
  assert.ok(hi >= -3 && hi <= 1, `${hi}`);
});

test("noise does not make the range breathe: of a minute it moves in no frame once it is there", () => {
  const next = random(5);
  const noisy = () => [shownOf(channelOf({ live: Array.from({ length: 40 }, () => floor(-80, () => 20 * Math.log10(next() + 0.01))) }), 800, 800)];
  const follower = new LevelFollower();
  const before = follow(follower, 4, noisy);
  for (let k = 0; k < 60; k += 1) assert.deepEqual(follow(follower, 1, noisy), before);
});

test("when it gets quieter the top comes down by 3 dB a second, all the way", () => {
  const quiet = [shownOf(channelOf({ live: Array.from({ length: 1500 }, () => floor(-100)) }), 30_000)];
  const loud = [{ ...quiet[0], passing: -20 }];
  const follower = new LevelFollower();
  assert.ok(follow(follower, 4, () => loud).hi >= -20);
  const top = follow(follower, 29, () => quiet).hi; // it is on the screen for 30 s
  assert.ok(top >= -20, `${top}`);
  const later = follow(follower, 12, () => quiet).hi;
  assert.ok(later < top - 20 && later > top - 40, `${later}`);
  const rest = follow(follower, 60, () => quiet).hi;
  assert.ok(Math.abs(rest - -96.75) < 3, `${rest}`);
});

test("another view, and automatic after by hand, have their range at once", () => {
  const quiet = [shownOf(channelOf({ live: Array.from({ length: 1500 }, () => floor(-100)) }), 30_000)];
  const other = [shownOf(channelOf({ live: Array.from({ length: 1500 }, () => floor(-200)) }), 30_000)];
  const follower = new LevelFollower();
  const usual = follow(follower, 4, () => quiet);
  assert.ok(follow(follower, 0.25, () => other, { of: makeView({ span: 30, f0: 10, f1: 100 }) }).hi < -190);
  assert.deepEqual(follower.levels(view, { lo: -1, hi: 9 }, CLOCK.now, () => quiet), { lo: -1, hi: 9 });
  CLOCK.now += 250;
  assert.deepEqual(follow(follower, 0.25, () => quiet), usual);
});

test("panels that share a range show the whole of each: from the lowest floor to the highest top", () => {
  const of = (level) => shownOf(channelOf({ live: Array.from({ length: 1500 }, () => floor(level)) }), 30_000);
  const { lo, hi } = follow(new LevelFollower(), 1, () => [of(-130), of(-30)]);
  assert.ok(lo < -130 && hi > -30, `${lo} ${hi}`);
});

test("without a row the range is the usual one, and digital silence is no floor 140 dB below the top", () => {
  assert.deepEqual(follow(new LevelFollower(), 1, () => [shownOf(channelOf({ live: [] }), 30_000)]), { lo: -120, hi: 0 });
  const silent = shownOf(channelOf({ live: Array.from({ length: 1500 }, () => floor(-300)) }), 30_000);
  const { lo, hi } = follow(new LevelFollower(), 1, () => [{ ...silent, passing: -10 }]);
  assert.ok(Math.abs(hi - lo - 140) < 1e-9, `${lo} ${hi}`);
});
