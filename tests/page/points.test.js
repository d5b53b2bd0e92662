import assert from "node:assert/strict";
import { test } from "node:test";

import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { levelTable } from "../../spectrod/apps/web/page/rows/levels.js";
import { linePoints } from "../../spectrod/apps/web/page/plot/points.js";
import { description } from "./descriptions.js";

const listed = ({ x, first, last }) => [...x].map((px, i) => [px, first[i], last[i]]);

for (const kind of ["linear", "log", "octave", "mel"]) {
  for (const [f0, f1, width] of [[20, 24000, 1000], [900, 1100, 800], [20, 24000, 5000]]) {
    test(`${kind} from ${f0} Hz, ${width} px: each value is in one point, where it is on the axis`, () => {
      const stream = description();
      const axis = makeAxis({ kind, f0, f1, width });
      const points = listed(linePoints(axis, stream));
      points.forEach(([px, first, last], i) => {
        assert.ok(first <= last);
        if (i > 0) assert.ok(first === points[i - 1][2] + 1 && px > points[i - 1][0]);
        for (let bin = Math.max(first, 1); bin <= last; bin += 1) {
          assert.ok(Math.abs(axis.toPixel(bin * stream.bin_hz) - px) <= 0.51, `bin ${bin} at ${px}`);
        }
      });
      const [firstShown, lastShown] = [points[0][1] * stream.bin_hz, points.at(-1)[2] * stream.bin_hz];
      assert.ok(firstShown <= f0 + stream.bin_hz / 2 && lastShown >= f1 - stream.bin_hz / 2);
    });
  }
}

test("bins that are wide are points at their middles", () => {
  const stream = description();
  const axis = makeAxis({ kind: "linear", f0: 1000, f1: 1100, width: 1000 });
  for (const [px, first, last] of listed(linePoints(axis, stream))) {
    assert.equal(first, last);
    assert.ok(Math.abs(axis.toHertz(px) - first * stream.bin_hz) < 1e-4);
  }
});

test("the line goes on to the values beyond both ends", () => {
  const points = listed(linePoints(makeAxis({ kind: "linear", f0: 1000, f1: 1100, width: 1000 }), description()));
  assert.ok(points[0][0] < 0 && points.at(-1)[0] > 1000);
});

test("narrow bins of one pixel are one point", () => {
  const axis = makeAxis({ kind: "linear", f0: 0, f1: 24000, width: 100 });
  const points = listed(linePoints(axis, description()));
  assert.deepEqual(points.slice(0, 2).map(([px]) => px), [0.5, 1.5]);
  assert.equal(points.length, 101); // the bin at 24 kHz begins the next pixel
});

test("0 Hz is at the left end of a logarithmic axis, and negative frequencies are not on it", () => {
  const stream = description({ first_hz: -240, bin_hz: 10, n_bins: 49, slices: [{ first: 0, per_value: 1, values: 49 }] });
  const points = listed(linePoints(makeAxis({ kind: "log", f0: 1, f1: 240, width: 300 }), stream));
  assert.ok(points.every(([px]) => Number.isFinite(px)));
  assert.equal(points[0][1], 24);
});

test("beyond the data there are no points", () => {
  const axis = makeAxis({ kind: "linear", f0: 30000, f1: 40000, width: 300 });
  assert.deepEqual(listed(linePoints(axis, description())), []);
});

test("levels of values are those that were quantized", () => {
  const levels = levelTable(description({ lo: -100, step: 0.5 }));
  assert.deepEqual([levels[0], levels[1], levels[255]], [NaN, -100, 27]);
  assert.equal(levelTable(description({ bits: 16, lo: -327.67, step: 0.01 }))[65535], NaN);
});
