// Reading a spectrum: places in rows, cursors, peaks, levels, gestures.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ACTIONS, panned, zoomed } from "../../spectrod/apps/web/page/panel/actions.js";
import { EasyRange, LevelHistogram, rangeOf } from "../../spectrod/apps/web/page/rows/autorange.js";
import { binAt, extentOf, indexOfBin, levelAt } from "../../spectrod/apps/web/page/rows/bins.js";
import { difference, nearestPeak, placeCursor, readCursor, snapToBin } from "../../spectrod/apps/web/page/panel/cursor.js";
import { csvField, fileName, traceCsv } from "../../spectrod/apps/web/page/side/export.js";
import { HARMONICS_MAX, harmonicsOf } from "../../spectrod/apps/web/page/panel/harmonics.js";
import { layersOf } from "../../spectrod/apps/web/page/rows/hold.js";
import { isTyping, wheelFactor } from "../../spectrod/apps/web/page/panel/input.js";
import { actionOf, KEYS, keyText } from "../../spectrod/apps/web/page/side/keys.js";
import { PeakList } from "../../spectrod/apps/web/page/rows/peaks.js";
import { axisOf, limitsOf } from "../../spectrod/apps/web/page/rows/range.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { description, random } from "./descriptions.js";

const BINS = description();
const BIN_HZ = 48000 / 4096;
const BANDS = description({ edges_hz: [[100, 200, 400], [200, 400, 800]], n_bins: 3, bin_hz: 0, slices: [{ first: 0, per_value: 1, values: 3 }] });
const IQ = description({ first_hz: -24000, n_bins: 4096 });

/** A row of 2049 values of 0.5 dB with a tone at a bin. */
function tone(bin, level = -20, floor = -100) {
  const code = (dB) => (dB + 120) * 2 + 1;
  const values = new Uint8Array(2049).fill(code(floor));
  values[bin] = code(level);
  return values;
}

test("a frequency's bin is the nearest one, and none beyond the topic's ends", () => {
  assert.equal(binAt(BINS, 1000), 85);
  assert.equal(binAt(BINS, 24000), 2048);
  assert.equal(binAt(BINS, 24000 + BIN_HZ), -1);
  assert.equal(binAt(BINS, -BIN_HZ), -1);
  assert.equal(binAt(IQ, 0), 2048);
});

test("a band has its lower edge and not its upper one", () => {
  assert.deepEqual([99, 100, 199.9, 200, 799, 800].map((hz) => binAt(BANDS, hz)), [-1, 0, 0, 1, 2, -1]);
});

test("a bin is found in whichever slice has it, whatever bins a value covers", () => {
  const sliced = description({ slices: [{ first: 10, per_value: 1, values: 20 }, { first: 30, per_value: 4, values: 3 }] });
  assert.deepEqual([9, 10, 29, 30, 33, 34, 41, 42].map((bin) => indexOfBin(sliced, bin)), [-1, 0, 19, 20, 20, 21, 22, -1]);
});

test("a tone of -20 dB in bin 85 reads -20.0 dB at its frequency, and NaN where there is no data", () => {
  const values = tone(85);
  assert.equal(levelAt(values, BINS, 85 * BIN_HZ), -20);
  values[85] = 0;
  assert.ok(Number.isNaN(levelAt(values, BINS, 85 * BIN_HZ)));
  assert.ok(Number.isNaN(levelAt(values, BINS, 50000)));
});

test("extents: a logarithmic axis begins at a bin or 10 Hz, and two-sided topics have none", () => {
  assert.deepEqual(extentOf(BINS), { f0: 0, f1: 24000, least: BIN_HZ });
  assert.equal(extentOf(description({ nfft: 16384 })).least, 10);
  assert.ok(Number.isNaN(extentOf(IQ).least));
  assert.equal(limitsOf([BINS, IQ], "log").kind, "linear");
  assert.deepEqual([limitsOf([IQ, BINS], "log").f0, limitsOf([IQ, BINS], "log").f1], [-24000, 24000 - BIN_HZ > 0 ? 24000 : 0]);
  assert.equal(limitsOf([BANDS], "log").f0, 100);
});

test("a range is cut to what the topics have; one wholly outside shows all", () => {
  const limits = limitsOf([BINS], "linear");
  const ends = (f0, f1) => {
    const axis = axisOf({ f0, f1 }, limits, 800);
    return [axis.f0, axis.f1];
  };
  assert.deepEqual(ends(1000, 90000), [1000, 24000]);
  assert.deepEqual(ends(50000, 90000), [0, 24000]);
  assert.deepEqual(ends(null, null), [0, 24000]);
});

test("cursors snap to bins; the nearer one moves, a new one is the second, and never a third", () => {
  assert.equal(snapToBin(1000, BINS), 85 * BIN_HZ);
  assert.deepEqual(placeCursor([], 5), [5]);
  assert.deepEqual(placeCursor([100], 5), [5]);
  assert.deepEqual(placeCursor([100], 5, true), [100, 5]);
  assert.deepEqual(placeCursor([100, 1000], 900), [100, 900]);
  assert.deepEqual(placeCursor([100, 1000], 200, true), [200, 1000]);
});

test("a cursor reads the server's unpooled value, and the row on the screen until there is one", () => {
  const row = { values: tone(85), description: BINS };
  const hz = 85 * BIN_HZ;
  assert.deepEqual(readCursor(hz, { measured: null, row }), { hz, level: -20, isExact: false });
  const measured = { cursors: [{ hz, bin_hz: hz, level: -20.03 }] };
  assert.deepEqual(readCursor(hz, { measured, row }), { hz, level: -20.03, isExact: true });
  const stale = { cursors: [{ hz: 500, bin_hz: 500, level: -1 }] };
  assert.equal(readCursor(hz, { measured: stale, row }).level, -20);
  assert.ok(Number.isNaN(readCursor(hz, { measured: { cursors: [{ hz, level: null }] }, row: null }).level));
});

test("a cursor on the bin of a listed peak reads the peak between the bins; on another bin that bin", () => {
  const row = { values: tone(85), description: BINS };
  const hz = 85 * BIN_HZ;
  const peaks = [{ hz: 440, level: -30 }, { hz: 1000, level: -20 }];
  const measured = { cursors: [{ hz, bin_hz: hz, level: -20.6 }] };
  assert.deepEqual(readCursor(hz, { measured, row, peaks }), { hz: 1000, level: -20, isExact: true });
  assert.deepEqual(readCursor(1000, { measured: null, row, peaks }), { hz: 1000, level: -20, isExact: true });
  assert.deepEqual(readCursor(hz, { measured, row, peaks: [peaks[0]] }), { hz, level: -20.6, isExact: true });
  assert.equal(readCursor(hz + BIN_HZ, { measured: null, row, peaks }).hz, 86 * BIN_HZ);
  assert.equal(readCursor(1000, { measured: null, row: null, peaks }).isExact, false);
  const bands = { values: new Uint8Array(3), description: BANDS };
  assert.equal(readCursor(700, { measured: null, row: bands, peaks: [{ hz: 566, level: -19 }] }).level, -19);
});

test("harmonics are multiples of cursor A that show, from the second on, twenty at most", () => {
  const numbers = (view, f0, f1) => harmonicsOf(makeView(view), { f0, f1 }).map(({ n }) => n);
  assert.deepEqual(harmonicsOf(makeView({ cursors: [440], harmonics: true }), { f0: 20, f1: 1400 }), [{ n: 2, hz: 880 }, { n: 3, hz: 1320 }]);
  assert.deepEqual(numbers({ cursors: [100, 7], harmonics: true }, 850, 1000), [9, 10]);
  assert.deepEqual(numbers({ cursors: [1], harmonics: true }, 1000, 24000), Array.from({ length: HARMONICS_MAX }, (_, k) => 1000 + k));
  assert.deepEqual(numbers({ cursors: [5000], harmonics: true }, 0, 9999), []);
  for (const cursors of [[], [0], [-100]]) assert.deepEqual(numbers({ cursors, harmonics: true }, -5000, 5000), []);
  assert.deepEqual(numbers({ cursors: [100] }, 0, 5000), []);
});

test("the difference of cursors is the second less the first; across 0 Hz it has no octaves", () => {
  const found = difference([{ hz: 440, level: -20 }, { hz: 1760, level: -50 }]);
  assert.deepEqual(found, { hz: 1320, octaves: 2, level: -30 });
  assert.ok(Number.isNaN(difference([{ hz: -1, level: 0 }, { hz: 1, level: 0 }]).octaves));
});

test("the nearest peak is the greatest value within reach", () => {
  assert.equal(nearestPeak(900, 200, tone(85), BINS), 85 * BIN_HZ);
  assert.notEqual(nearestPeak(900, 50, tone(85), BINS), 85 * BIN_HZ);
  assert.equal(nearestPeak(900, 200, new Uint8Array(2049), BINS), null);
});

test("a peak is listed after a second, follows its frequency, and leaves a second after it has gone", () => {
  const list = new PeakList();
  const at = (tMs, ...peaks) => list.update(peaks.map(([hz, level]) => ({ hz, level, hz_error: 1 })), tMs, 10);
  at(0, [1000, -20]);
  at(500, [1003, -21], [3000, -50]);
  assert.deepEqual(list.list(), []);
  at(1000, [1006, -22]);
  assert.deepEqual(list.list(), [{ hz: 1006, level: -22, hz_error: 1 }]);
  at(1900);
  assert.equal(list.list().length, 1);
  at(2000);
  assert.deepEqual(list.list(), []);
});

test("noise whose peaks jump about is never listed", () => {
  const list = new PeakList();
  const next = random(3);
  for (let tMs = 0; tMs < 20000; tMs += 200) {
    const peaks = Array.from({ length: 10 }, () => ({ hz: 24000 * next(), level: -60, hz_error: 1 }));
    list.update(peaks, tMs, 2);
    assert.deepEqual(list.list(), []);
  }
});

test("a clock that is set back starts the list again", () => {
  const list = new PeakList();
  for (const tMs of [5000, 6000]) list.update([{ hz: 1000, level: -20, hz_error: 1 }], tMs, 10);
  assert.equal(list.list().length, 1);
  list.update([{ hz: 1000, level: -20, hz_error: 1 }], 100, 10);
  assert.deepEqual(list.list(), []);
});

test("the range of levels is from the 10th percentile - 3 dB to the 99.9th + 3, and at least 40 dB", () => {
  const flat = new LevelHistogram();
  flat.add(tone(85), BINS);
  assert.deepEqual(rangeOf([flat]), { lo: -136.75, hi: -96.75 });
  const ramp = new LevelHistogram();
  const values = Uint8Array.from({ length: 2049 }, (_, k) => 1 + Math.floor((k / 2049) * 200));
  ramp.add(values, BINS);
  const { lo, hi } = rangeOf([ramp]);
  assert.ok(Math.abs(lo - (-110 - 3)) <= 1 && Math.abs(hi - (-20 + 3)) <= 1, `${lo} ${hi}`);
  assert.equal(rangeOf([new LevelHistogram()]), null);
});

test("values without data, and those beyond the axis, do not move the range", () => {
  const histogram = new LevelHistogram();
  histogram.add(new Uint8Array(2049), BINS);
  histogram.add(tone(85), BINS, 30000, 40000);
  assert.equal(rangeOf([histogram]), null);
});

test("infinite and absurd values, the end of a scale of 16 bits, move no range", () => {
  const fine = { ...BINS, bits: 16, lo: -327.67, step: 0.01 };
  const codes = (level) => new Uint16Array(2049).fill(Math.round((level - fine.lo) / fine.step) + 1);
  const histogram = new LevelHistogram();
  histogram.add(codes(-80), fine);
  const expected = rangeOf([histogram]);
  assert.ok(Math.abs(expected.hi - (-80 + 3)) < 1);
  for (let n = 0; n < 10; n += 1) histogram.add(codes(327), fine);
  assert.deepEqual(rangeOf([histogram]), expected);
});

test("the range is there at once; ends rest within 6 dB, then move by 3 dB/s until they are there", () => {
  const easy = new EasyRange();
  assert.deepEqual(easy.follow({ lo: -100, hi: -20 }, 1), { lo: -100, hi: -20 });
  assert.deepEqual(easy.follow(null, 1), { lo: -100, hi: -20 });
  assert.deepEqual(easy.follow({ lo: -94, hi: -26 }, 1), { lo: -100, hi: -20 });
  assert.deepEqual(easy.follow({ lo: -93, hi: -27 }, 0.5), { lo: -98.5, hi: -21.5 });
  assert.deepEqual(easy.follow({ lo: -97, hi: -23 }, 1), { lo: -97, hi: -23 });
  assert.deepEqual(easy.follow({ lo: -95, hi: -25 }, 1), { lo: -97, hi: -23 });
});

test("what would be cut at the top is shown at once", () => {
  const easy = new EasyRange({ lo: -100, hi: -60 });
  assert.deepEqual(easy.follow({ lo: -100, hi: -58 }, 0.25), { lo: -100, hi: -60 });
  assert.deepEqual(easy.follow({ lo: -100, hi: -9 }, 0.25), { lo: -100, hi: -9 });
});

const axis = axisOf({ f0: null, f1: null }, limitsOf([BINS], "log"), 800);
const SCENE = {
  view: makeView(),
  axis,
  limits: limitsOf([BINS], "log"),
  levels: { lo: -100, hi: -20 },
  newestMs: 50000,
  row: { values: tone(85), description: BINS },
  peaks: [],
};
const withView = (part) => ({ ...SCENE, view: makeView({ ...SCENE.view, ...part }) });

test("zooming in and out again about one place shows all, and panning stays within the topic", () => {
  const closer = zoomed(SCENE, 4, 300);
  assert.ok(closer.f0 > axis.f0 && closer.f1 < axis.f1);
  const near = { ...SCENE, axis: axisOf(closer, SCENE.limits, 800) };
  assert.ok(Math.abs(near.axis.toPixel(axis.toHertz(300)) - 300) < 1e-6, "the frequency under the pointer stays there");
  assert.deepEqual(zoomed(near, 0.2, 300), { f0: null, f1: null });
  assert.equal(panned(near, 1e6).f1, 24000);
  assert.deepEqual(panned(SCENE, 100), { f0: null, f1: null });
});

test("zooming ends at eight pixels a bin of a linear axis, and at twelve bins of others", () => {
  const limits = limitsOf([BINS], "linear");
  let scene = { ...SCENE, limits, axis: axisOf({ f0: null, f1: null }, limits, 800) };
  for (let k = 0; k < 60; k++) scene = { ...scene, axis: axisOf(zoomed(scene, 1.5, 400), scene.limits, 800) };
  const bins = (scene.axis.f1 - scene.axis.f0) / BIN_HZ;
  assert.ok(bins >= 100 && bins < 160, `${bins} bins on 800 px`);
  scene = SCENE;
  for (let k = 0; k < 60; k++) scene = { ...scene, axis: axisOf(zoomed(scene, 1.5, 400), scene.limits, 800) };
  const fewest = (scene.axis.f1 - scene.axis.f0) / BIN_HZ;
  assert.ok(fewest >= 12 && fewest < 18, `${fewest} bins on 800 px`);
});

test("time stops at the newest row, moves back, and is live again beyond it", () => {
  assert.deepEqual(ACTIONS.pause(SCENE), { t1: 50000 });
  assert.deepEqual(ACTIONS.pause(withView({ t1: 40000 })), { t1: null });
  assert.deepEqual(ACTIONS.earlier(SCENE), { t1: 42500 });
  assert.deepEqual(ACTIONS.later(withView({ t1: 49000 })), { t1: null });
  assert.deepEqual(ACTIONS.earlier({ ...SCENE, newestMs: null }), {});
});

test("levels by hand keep at least 10 dB", () => {
  assert.deepEqual(ACTIONS.floorUp(SCENE), { lo: -95, hi: -20 });
  assert.deepEqual(ACTIONS.topDown({ ...SCENE, levels: { lo: -30, hi: -20 } }), {});
});

test("C sets a cursor at the strongest peak, then a second one, then none", () => {
  const peaks = [{ hz: 1000, level: -20 }];
  assert.deepEqual(ACTIONS.cursor({ ...SCENE, peaks }), { cursors: [1000] });
  const second = ACTIONS.cursor({ ...withView({ cursors: [1000] }), peaks }).cursors;
  assert.deepEqual(second, [1000, axis.toHertz(400)]);
  assert.deepEqual(ACTIONS.cursor(withView({ cursors: second })), { cursors: [] });
});

test("keys step the last cursor by a bin where a bin is wider than two pixels, else by pixels", () => {
  const bin = 2 * BIN_HZ;
  assert.deepEqual(ACTIONS.cursorHigher(withView({ cursors: [bin] })).cursors, [3 * BIN_HZ]);
  const high = ACTIONS.cursorHigher(withView({ cursors: [20000] })).cursors[0];
  assert.ok(Math.abs(axis.toPixel(high) - axis.toPixel(20000) - 2) < 1, "two pixels of 800");
  assert.deepEqual(ACTIONS.cursorLower(SCENE), {});
});

test("P moves the cursor to the greatest value that shows", () => {
  assert.deepEqual(ACTIONS.cursorToPeak(withView({ cursors: [5000] })).cursors, [85 * BIN_HZ]);
});

test("B measures between the cursors, and again nothing", () => {
  assert.deepEqual(ACTIONS.band(withView({ cursors: [2000, 100] })), { band: [100, 2000] });
  assert.deepEqual(ACTIONS.band(withView({ band: [1, 2] })), { band: null });
});

test("every key has one action that exists, and a sign for the list", () => {
  const own = ["help", "legend", "loudest", "overlay", "resetHolds", "reference", "saveFigure", "saveLevels", "wall"];
  const seen = new Set();
  for (const { keys, action, text } of KEYS) {
    assert.ok(ACTIONS[action] || own.includes(action), action);
    assert.notEqual(text, "");
    for (const key of keys) {
      assert.ok(!seen.has(key), `${key} twice`);
      seen.add(key);
      assert.ok(keyText(key).trim().length > 0);
    }
  }
});

test("keys with Control, Alt or Meta belong to the browser; Shift counts with arrows alone", () => {
  const press = (key, held = {}) => actionOf({ key, shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, ...held });
  assert.equal(press("r"), "resetHolds");
  for (const held of ["ctrlKey", "altKey", "metaKey"]) assert.equal(press("r", { [held]: true }), null);
  assert.equal(press("ArrowUp"), "levelsUp");
  assert.equal(press("ArrowUp", { shiftKey: true }), "later");
  assert.equal(press("?", { shiftKey: true }), "help");
  assert.equal(press("Tab"), null);
  assert.equal(press("toString"), null);
});

test("keys in a field of a form belong to the field", () => {
  const target = (found) => ({ closest: (selector) => (selector.includes("input") ? found : null) });
  assert.equal(isTyping(target({})), true);
  assert.equal(isTyping(target(null)), false);
  assert.equal(isTyping(null), false);
});

test("turning the wheel back undoes it, in whatever unit it came, and one turn is never more than twofold", () => {
  for (const deltaMode of [0, 1]) {
    const away = wheelFactor({ deltaY: -3, deltaMode, ctrlKey: false });
    assert.ok(away > 1);
    assert.ok(Math.abs(away * wheelFactor({ deltaY: 3, deltaMode, ctrlKey: false }) - 1) < 1e-12);
  }
  assert.ok(wheelFactor({ deltaY: -1e9, deltaMode: 0, ctrlKey: false }) < 2.2);
});

test("the newest row is drawn on top, a hold only if it is on, and the reference below all", () => {
  const layer = (name) => ({ values: name, description: name });
  const rows = { trace: layer("now"), reference: layer("reference"), holds: { max: layer("max"), min: layer("min") } };
  const names = layersOf(rows, ["max", "mean"], (name) => name).map(({ style }) => style);
  assert.deepEqual(names, ["reference", "max", "now"]);
  assert.deepEqual(layersOf({ trace: null, reference: null, holds: {} }, ["max"], String), []);
});

test("CSV has a line for each value with its frequency, bins and level, and no formula", () => {
  const row = { values: Uint8Array.of(201, 0), description: { ...BINS, unit: "dBFS", n_bins: 5, slices: [{ first: 0, per_value: 4, values: 2 }] } };
  const lines = traceCsv({ title: "a", time: "t", row }).split("\n");
  assert.deepEqual(lines.slice(3), ["frequency_hz,bins,level (dBFS)", "0,4,-20", "46.875,1,", ""]);
  assert.equal(csvField("=1+1"), "'=1+1");
  assert.equal(csvField('a,"b"'), '"a,""b"""');
});

test("file names have no sign that a file system minds", () => {
  assert.equal(fileName("mic · 0 · dbfs 2026-11-23 07:13:16 CET", "csv"), "mic-0-dbfs-2026-11-23-07-13-16-CET.csv");
  assert.equal(fileName("../../etc", "png"), "etc.png");
  assert.equal(fileName("…", "png"), "spectrum.png");
});
