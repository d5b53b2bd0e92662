// Smoothing and bars: what they are of, and what they leave as it is. Their values: tests/unit/apps/web/test_page_sums.py.
import assert from "node:assert/strict";
import { test } from "node:test";

import { legend } from "../../spectrod/apps/web/page/panel/captions.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { levelOf } from "../../spectrod/apps/web/page/rows/levels.js";
import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { axisOfBars, shownRow, smoothed, thirdOctaves, weightingA } from "../../spectrod/apps/web/page/rows/spectrumsum.js";
import { description } from "./descriptions.js";

const BINS = description({ unit: "dBFS", enbw_hz: 17.58 });
const ROW = { values: new Uint8Array(2049).fill(101), description: BINS };
const BANDS = { values: Uint8Array.of(1, 2, 3), description: description({ edges_hz: [[100, 200, 400], [200, 400, 800]], n_bins: 3, slices: [{ first: 0, per_value: 1, values: 3 }] }) };
const DENSITY = { ...ROW, description: { ...BINS, unit: "dB re FS^2/Hz" } };

test("A weighting has the values of IEC 61672-1, table 3", () => {
  for (const [hz, db] of [[31.623, -39.4], [100, -19.1], [1000, 0], [2511.9, 1.3], [10000, -2.5], [19953, -9.3]]) {
    assert.ok(Math.abs(10 * Math.log10(weightingA(hz)) - db) < 0.06, `${hz} Hz`);
  }
});

test("bands and densities are not summed to bands, and bands are not smoothed", () => {
  assert.equal(thirdOctaves(BANDS, false), BANDS);
  assert.equal(thirdOctaves(DENSITY, false), DENSITY);
  assert.equal(smoothed(BANDS, 3), BANDS);
});

test("a flat spectrum stays flat, to half a step", () => {
  const { values, description: made } = smoothed(ROW, 3);
  for (const value of values) assert.ok(Math.abs(levelOf(made, value) - -70) <= 0.005);
});

test("no data stays no data, and no neighbour takes part of it", () => {
  const row = { ...ROW, values: ROW.values.slice() };
  row.values.fill(0, 100, 200);
  const { values, description: made } = smoothed(row, 1);
  assert.ok(values.slice(100, 200).every((value) => value === 65535));
  assert.ok(Math.abs(levelOf(made, values[99]) - -70) <= 0.005);
  assert.ok(thirdOctaves({ ...row, values: new Uint8Array(2049) }, false).values.every((value) => value === 65535));
});

test("a row that is A weighted is not weighted again", () => {
  const of = (weighting) => thirdOctaves({ ...ROW, description: { ...BINS, weighting } }, true).values;
  assert.deepEqual(of("A"), thirdOctaves(ROW, false).values);
  assert.notDeepEqual(of("Z"), of("A"));
});

test("a row is summed once for a view, and its description is the same for the next row", () => {
  const view = makeView({ bars: "third" });
  assert.equal(shownRow(ROW, makeView()), ROW);
  assert.equal(shownRow(null, view), null);
  assert.equal(shownRow(ROW, view), shownRow(ROW, view));
  assert.notEqual(shownRow(ROW, view), shownRow(ROW, makeView({ smoothing: 3 })));
  assert.equal(shownRow(ROW, view).description, shownRow({ ...ROW }, view).description);
});

test("the legend says what lines are, and that extremes of bins have no bars", () => {
  const channel = { info: { source: "a", channel: "0", product: "dbfs" }, unsent: { has: () => false }, description: BINS, reference: null };
  const moment = { tMs: 0, row: ROW, holds: { max: ROW, mean: ROW } };
  const texts = (view) => legend([channel], makeView({ holds: ["max", "mean"], ...view }), { moments: [moment], seconds: [], zone: "UTC" }).map(({ text }) => text);
  assert.deepEqual(texts({ bars: "third-a" }), ["live", "no max hold: the extremes of bins are not those of bands", "average", "bins in a pixel: mean power; lines: third octaves, A weighting"]);
  assert.equal(texts({ smoothing: 6 }).at(-1), "bins in a pixel: mean power; lines: smoothed, 1/6 octave");
});

test("where bars are shown a line needs the whole of the bands at the ends of a view, as far as the topic goes", () => {
  const view = makeView({ bars: "third" });
  for (const kind of ["linear", "log", "mel"]) {
    const axis = makeAxis({ kind, f0: 1000, f1: 1050, width: 800 });
    const { f0, f1, width } = axisOfBars(axis, BINS, view);
    assert.deepEqual([f0, f1].map((hz) => hz.toFixed(2)), ["891.25", "1122.02"]);
    assert.equal(width, Math.round(axis.toPixel(f1) - axis.toPixel(f0)));
  }
  const wide = makeAxis({ kind: "linear", f0: 0, f1: 24000, width: 800 });
  assert.equal(axisOfBars(wide, BINS, view), wide);
  const both = makeAxis({ kind: "linear", f0: -24000, f1: 20000, width: 800 });
  assert.deepEqual([axisOfBars(both, { ...BINS, first_hz: -24000 }, view).f0, axisOfBars(both, BINS, makeView())], [-24000, both]);
  const beyond = makeAxis({ kind: "log", f0: 30000, f1: 40000, width: 800 });
  assert.ok(axisOfBars(beyond, BINS, view).f0 < 30000);
  for (const others of [null, BANDS.description, DENSITY.description]) assert.equal(axisOfBars(both, others, view), both);
});

test("a band of which a row has a part, or that is narrower than a bin, is no bar, and bins are none", () => {
  const view = makeView({ bars: "third" });
  const part = { ...ROW, description: { ...BINS, slices: [{ first: 88, per_value: 1, values: 3 }] } };
  assert.equal(shownRow(part, view).description.n_bins, 0);
  const channel = { info: { source: "a", channel: "0", product: "dbfs" }, unsent: { has: () => false }, description: BINS, reference: null };
  const shown = { moments: [{ tMs: 0, row: part, holds: {} }], seconds: [], zone: "UTC" };
  assert.equal(legend([channel], view, shown).at(-1).text, "bins in a pixel: mean power; lines: none, as no third octave here is a bin wide and known as a whole");
});
