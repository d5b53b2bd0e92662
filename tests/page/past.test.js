import assert from "node:assert/strict";
import { test } from "node:test";

import { JoinedRows, seamOf } from "../../spectrod/apps/web/page/rows/past.js";
import { nearestIndex } from "../../spectrod/apps/web/page/rows/rowat.js";
import { RowRing } from "../../spectrod/apps/web/page/rows/rows.js";
import { description, row } from "./descriptions.js";

const about = description({ slices: [{ first: 0, per_value: 1, values: 1 }], row_s: 0.01 });
const old = Object.freeze({ bits: 16, row_s: 1 });
const past = (...seconds) => seconds.map((tMs) => ({ tMs: 1000 * tMs, description: old, values: Uint16Array.of(1) }));

function live(count, rows = 100) {
  const ring = new RowRing({ rows, valuesMax: 1 });
  ring.setDescription(about);
  for (let n = 0; n < count; n += 1) ring.push(row(Uint8Array.of(n + 1), { tMs: 10_005 + 10 * n, merged: 1 }));
  return ring;
}

test("live rows come first, then those of the past that end before them", () => {
  const ring = live(3);
  assert.equal(seamOf(ring), 10_000);
  const joined = new JoinedRows(ring, past(10.5, 9.6, 9.5, 8.5));
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
