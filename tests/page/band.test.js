import assert from "node:assert/strict";
import { test } from "node:test";

import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { bandBars } from "../../spectrod/apps/web/page/plot/band.js";
import { description } from "./descriptions.js";

const octaves = description({
  edges_hz: [[25, 50, 100, 200, 400], [50, 100, 200, 400, 800]],
  n_bins: 5,
  slices: [{ first: 0, per_value: 1, values: 5 }],
});

test("octaves are bars of one width on a logarithmic axis, a pixel apart", () => {
  const bars = bandBars(makeAxis({ kind: "log", f0: 25, f1: 800, width: 500 }), octaves);
  assert.deepEqual(bars.map(({ index }) => index), [0, 1, 2, 3, 4]);
  for (const { index, x0, x1 } of bars) {
    assert.ok(Math.abs(x0 - 100 * index) < 1e-9 && Math.abs(x1 - x0 - 99) < 1e-9);
  }
});

test("bands beyond the axis are left out, and those at its ends are cut", () => {
  const bars = bandBars(makeAxis({ kind: "linear", f0: 75, f1: 300, width: 225 }), octaves);
  assert.deepEqual(bars.map(({ index, x0, x1 }) => [index, x0, x1]), [[1, 0, 24], [2, 25, 124], [3, 125, 224]]);
});

test("narrow bars touch", () => {
  const bars = bandBars(makeAxis({ kind: "log", f0: 25, f1: 800, width: 15 }), octaves);
  bars.slice(1).forEach(({ x0 }, i) => assert.ok(Math.abs(x0 - bars[i].x1) < 1e-9));
});
