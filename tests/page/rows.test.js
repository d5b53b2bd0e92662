import assert from "node:assert/strict";
import { test } from "node:test";

import { nearestIndex } from "../../spectrod/apps/web/page/rows/rowat.js";
import { RowRing } from "../../spectrod/apps/web/page/rows/rows.js";
import { description, row } from "./descriptions.js";

const small = (values, changes = {}) =>
  description({ slices: [{ first: 0, per_value: 1, values }], ...changes });

function filled(count, rows = 4) {
  const ring = new RowRing({ rows, valuesMax: 3 });
  ring.setDescription(small(3));
  for (let n = 0; n < count; n += 1) {
    ring.push(row(Uint8Array.of(n, n + 1, n + 2), { seq: n, tMs: 10 * n, gapSamples: n / 2 }));
  }
  return ring;
}

test("row 0 is the newest, with all that it was pushed with", () => {
  const ring = filled(2);
  const newest = ring.at(0);
  assert.deepEqual([newest.seq, newest.tMs, newest.gapSamples, [...newest.values]], [1, 10, 0.5, [1, 2, 3]]);
  assert.equal(ring.at(1).seq, 0);
  assert.equal(ring.length, 2);
});

test("a full ring drops its oldest row and counts on", () => {
  const ring = filled(11);
  assert.deepEqual([ring.length, ring.total], [4, 11]);
  assert.deepEqual([0, 1, 2, 3].map((i) => ring.at(i).seq), [10, 9, 8, 7]);
});

test("values are copied, so the message can go", () => {
  const ring = filled(0);
  const values = Uint8Array.of(1, 2, 3);
  ring.push(row(values));
  values.fill(9);
  assert.deepEqual([...ring.at(0).values], [1, 2, 3]);
});

test("rows of an older generation keep their description and their length", () => {
  const ring = filled(2);
  const before = ring.at(0).description;
  ring.setDescription(small(2));
  ring.push(row(Uint8Array.of(7, 8)));
  assert.equal(ring.at(1).description, before);
  assert.deepEqual([...ring.at(0).values], [7, 8]);
  assert.deepEqual([...ring.at(1).values], [1, 2, 3]);
});

test("another number of bits empties the ring and keeps the count", () => {
  const ring = filled(3);
  ring.setDescription(small(3, { bits: 16 }));
  assert.deepEqual([ring.length, ring.total], [0, 3]);
  ring.push(row(Uint16Array.of(65535, 1, 40000)));
  assert.deepEqual([...ring.at(0).values], [65535, 1, 40000]);
});

test("the row nearest to a time is found, also beyond the ends", () => {
  const ring = filled(9, 5); // 40 to 80 ms
  for (const [tMs, i] of [[80, 0], [1e9, 0], [76, 0], [74, 1], [60, 2], [40, 4], [-5, 4]]) {
    assert.equal(nearestIndex(ring, tMs), i, `${tMs} ms`);
  }
  assert.equal(nearestIndex(filled(0), 5), -1);
  assert.equal(nearestIndex(filled(1), 5), 0);
});

test("what does not fit is refused by its size", () => {
  const ring = new RowRing({ rows: 2, valuesMax: 3 });
  assert.throws(() => ring.push(row(Uint8Array.of(1))), /row of 1 values of 8 bits: the stream has -1/);
  assert.throws(() => ring.setDescription(small(4)), /rows of 4 values: at most 3/);
  ring.setDescription(small(3));
  assert.throws(() => ring.push(row(Uint8Array.of(1, 2))), /row of 2 values of 8 bits: the stream has 3 of 8/);
  assert.throws(() => ring.push(row(Uint16Array.of(1, 2, 3))), /values of 16 bits: the stream has 3 of 8/);
  assert.throws(() => new RowRing({ rows: 0, valuesMax: 3 }), /rows=0: must be an integer, at least 1/);
  assert.throws(() => new RowRing({ rows: 1, valuesMax: 0.5 }), /valuesMax=0.5: must be an integer/);
});

test("there is no row beyond the ends", () => {
  for (const i of [-1, 2, 0.5]) assert.throws(() => filled(2).at(i), /there are 2/);
});
