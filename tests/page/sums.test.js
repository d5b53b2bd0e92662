// Smoothing and bars: what they are of, and what they leave as it is. Their values: tests/unit/apps/web/test_page_sums.py.
import assert from "node:assert/strict";
import { test } from "node:test";

import { legend } from "../../spectrod/apps/web/page/panel/captions.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { levelOf } from "../../spectrod/apps/web/page/rows/levels.js";
import { shownRow, smoothed, thirdOctaves, weightingA } from "../../spectrod/apps/web/page/rows/spectrumsum.js";
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
