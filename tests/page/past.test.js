import assert from "node:assert/strict";
import { test } from "node:test";

import { alikeOf, JoinedRows, refilled, seamOf } from "../../spectrod/apps/web/page/rows/past.js";
import { nearestIndex } from "../../spectrod/apps/web/page/rows/rowat.js";
import { RowRing } from "../../spectrod/apps/web/page/rows/rows.js";
import { description, row } from "./descriptions.js";

const about = description({ slices: [{ first: 0, per_value: 1, values: 1 }], row_s: 0.01 });
const old = Object.freeze({ bits: 16, row_s: 1 });
const past = (...seconds) => seconds.map((tMs) => ({ tMs: 1000 * tMs, merged: 1, description: old, values: Uint16Array.of(1) }));
const ends = (rows) => rows.map(({ tMs, merged, description: { row_s } }) => [tMs - 500 * merged * row_s, tMs + 500 * merged * row_s]);

function live(count, rows = 100) {
  const ring = new RowRing({ rows, valuesMax: 1 });
  ring.setDescription(about);
  for (let n = 0; n < count; n += 1) ring.push(row(Uint8Array.of(n + 1), { tMs: 10_005 + 10 * n, merged: 1 }));
  return ring;
}

test("live rows come first, then those of the past", () => {
  const ring = live(3);
  assert.equal(seamOf(ring), 10_000);
  const joined = new JoinedRows(ring, past(9.5, 8.5));
  assert.deepEqual([joined.length, joined.total], [5, 5]);
  assert.deepEqual([0, 1, 2, 3, 4].map((i) => joined.timeAt(i)), [10_025, 10_015, 10_005, 9500, 8500]);
  assert.equal(joined.at(3).description, old);
  assert.throws(() => joined.at(5), /row 5: there are 5/);
});

test("rows that come later keep the numbers of all others", () => {
  const ring = live(3, 4);
  const joined = new JoinedRows(ring, past(9.5));
  const number = joined.total - 1 - 3;
  for (let n = 0; n < 5; n += 1) {
    ring.push(row(Uint8Array.of(1), { tMs: 20_000 + n, merged: 1 }));
    const i = joined.total - 1 - number;
    assert.ok(i >= joined.length - 1, "the oldest live rows go, the past stays behind them");
  }
  assert.equal(joined.at(joined.length - 1).tMs, 9500);
});

test("without live rows all of the past is there", () => {
  assert.equal(seamOf(null), Infinity);
  assert.equal(seamOf(live(0)), Infinity);
  const joined = new JoinedRows(null, past(3, 2, 1));
  assert.deepEqual([joined.length, nearestIndex(joined, 2400), nearestIndex(joined, -1e9)], [3, 1, 2]);
  assert.equal(nearestIndex(new JoinedRows(null, []), 0), -1);
});

test("the row nearest to a time is found on both sides of the seam", () => {
  const joined = new JoinedRows(live(3), past(9.5, 8.5));
  for (let i = 0; i < joined.length; i += 1) assert.equal(nearestIndex(joined, joined.timeAt(i)), i);
});

test("the column in which live rows begin ends there, and has its values", () => {
  const ring = live(3);
  const rows = (...given) => refilled(ring, past(...given), { untilMs: 10_000, alike: 3 }).past;
  assert.deepEqual(ends(rows(10.2, 9.2, 8.2)), [[9700, 10_000], [8700, 9700], [7700, 8700]]);
  assert.deepEqual(rows(9.8, 8.8).map(({ values }) => [...values]), [[1], [1]]);
  assert.deepEqual(ends(rows(9.8, 8.8)), [[9300, 10_000], [8300, 9300]]);
  assert.deepEqual(ends(rows(10.5, 9.5)), [[9000, 10_000]]);
});

test("a column that is shorter than a row, and has its middle in a live one, is not of the row before", () => {
  const ring = live(3);
  const short = Object.freeze({ ...old, row_s: 0.004 });
  const rows = [10_002, 9998, 9994].map((tMs) => ({ tMs, merged: 1, description: short }));
  const { past: found } = refilled(ring, rows.map((one) => ({ ...one, tMs: one.tMs - 1 })), { untilMs: 10_000, alike: 3 });
  assert.deepEqual(ends(found), [[9995, 9999], [9991, 9995]]);
  const { past: cut } = refilled(ring, rows.map((one) => ({ ...one, tMs: one.tMs + 1 })), { untilMs: 10_000, alike: 3 });
  assert.deepEqual(ends(cut), [[9997, 10_000], [9993, 9997]]);
});

const bins = (first, values) => [{ first, per_value: 1, values }];
const ZOOMED = Object.freeze({ ...about, slices: bins(5, 1), statistic: "max" });
const WHOLE = Object.freeze({ ...about, slices: bins(0, 1), statistic: "max" });

/** Ten live rows of a zoom, with a gap before the sixth, then three of all frequencies. */
function zoomedOut(zoomed = ZOOMED) {
  const ring = new RowRing({ rows: 100, valuesMax: 1 });
  for (let n = 0; n < 13; n += 1) {
    ring.setDescription(n < 10 ? zoomed : WHOLE);
    ring.push(row(Uint8Array.of(n + 1), { tMs: 10_005 + 10 * n, merged: 1, flags: n === 5 ? 1 : 0, gapSamples: n === 5 ? 24 : 0 }));
  }
  return ring;
}

/** Columns of 10 ms of the past, the newest first, from a time on. */
const columns = (fromMs, toMs, slices = bins(0, 1)) => {
  const of = Object.freeze({ bits: 16, fs: 1, row_s: 0.01, slices });
  return Array.from({ length: (toMs - fromMs) / 10 }, (_, n) => row(Uint16Array.of(n), { tMs: toMs - 5 - 10 * n, merged: 1, description: of }));
};

test("the past takes the place of live rows that came at another zoom, with their gaps", () => {
  const ring = zoomedOut();
  assert.deepEqual([ring.alike, seamOf(ring, ring.alike)], [3, 10_100]);
  const { past: found, since, seamMs } = refilled(ring, columns(9000, 10_200), { untilMs: 10_100, alike: ring.alike });
  assert.deepEqual([since, seamMs], [10, 10_100]);
  const joined = new JoinedRows(ring, found, since);
  assert.equal(joined.length, 3 + 110);
  for (let i = 1; i < joined.length; i += 1) assert.equal(joined.timeAt(i - 1) - joined.timeAt(i), 10);
  assert.ok(Array.from({ length: joined.length }, (_, i) => joined.at(i)).every(({ description: { slices } }) => slices[0].first === 0));
  const marked = found.filter(({ flags }) => flags !== 0);
  assert.deepEqual(marked.map(({ tMs, flags, gapSamples }) => [tMs, flags, gapSamples]), [[10_055, 1, 24 / about.fs]]);
  const [number, tMs] = [joined.total - 1 - 50, joined.timeAt(50)];
  for (let n = 0; n < 40; n += 1) ring.push(row(Uint8Array.of(1), { tMs: 10_135 + 10 * n, merged: 1 }));
  assert.equal(joined.timeAt(joined.total - 1 - number), tMs, "rows keep their numbers");
});

test("live rows of another zoom stay until the past has the values of this one, and where it does not know their time", () => {
  const ring = zoomedOut();
  const kept = { since: 0, seamMs: 10_000 };
  const check = (given) => {
    const { past: found, ...others } = refilled(ring, given, { untilMs: 10_100, alike: ring.alike });
    assert.deepEqual(others, kept);
    assert.ok(found.every(({ tMs }) => tMs < 10_000));
  };
  check([]);
  check(columns(9000, 10_200, bins(5, 1)));
  check(columns(9000, 10_050));
  check([...columns(10_060, 10_200), ...columns(9000, 10_010)]);
  const back = refilled(ring, columns(9000, 10_050), { untilMs: 10_050, alike: ring.alike }); // of a view that ends before newer rows of the other zoom
  assert.deepEqual([back.since, back.past.length], [10, 105]);
});

test("while no rows come after a zoom, those of before it have the values of that zoom still", () => {
  const ring = zoomedOut();
  const alike = alikeOf(ring, true);
  assert.equal(alike, 0);
  const { past: found, since, seamMs } = refilled(ring, columns(9000, 10_130), { untilMs: 10_130, alike });
  assert.deepEqual([since, seamMs], [10, 10_100]);
  assert.equal(new JoinedRows(ring, found, since).length, 3 + 110);
  const later = columns(9004, 10_134);
  assert.deepEqual(ends(refilled(ring, later, { untilMs: 10_130, alike: 3 }).past.slice(0, 1)), [[10_094, 10_100]]);
});

test("rows are all alike where nothing has changed but the analysis, or the times of a description", () => {
  for (const other of [{ ...ZOOMED, epoch: "other" }, { ...ZOOMED, bin_hz: 5 }, { ...WHOLE, row_s: 0.01 }]) {
    const ring = zoomedOut(Object.freeze(other));
    assert.equal(ring.alike, 13);
    assert.equal(refilled(ring, columns(9000, 10_200), { untilMs: 10_100, alike: ring.alike }).since, 0);
  }
  const mean = zoomedOut(Object.freeze({ ...WHOLE, statistic: "mean" }));
  assert.equal(mean.alike, 3);
  assert.equal(refilled(null, [], { untilMs: 0, alike: 0 }).seamMs, Infinity);
});

test("while no rows come the past has the values of another zoom for all live rows, and stays behind them at the same", () => {
  const ring = live(20);
  const alike = alikeOf(ring, true);
  assert.deepEqual([alike, alikeOf(ring, false), alikeOf(null, true)], [0, 20, 0]);
  const refill = (rows) => refilled(ring, rows, { untilMs: 10_200, alike });
  const other = refill(columns(9000, 10_200, bins(5, 1)));
  assert.deepEqual([other.since, other.seamMs, other.past.length], [20, 10_200, 120]);
  assert.equal(new JoinedRows(ring, other.past, other.since).length, 120);
  const half = refill(columns(9000, 10_100, bins(5, 1)));
  assert.deepEqual([half.since, half.past.length], [0, 100]);
  const same = refill(columns(9000, 10_200, about.slices));
  assert.deepEqual([same.since, same.seamMs, same.past.length], [0, 10_000, 100]);
  assert.deepEqual(refill([]), { past: [], since: 0, seamMs: 10_000 });
  ring.setDescription({ ...about, epoch: "other" });
  assert.equal(alikeOf(ring, true), 20);
});
