import assert from "node:assert/strict";
import { test } from "node:test";

import {
  AXIS_KINDS,
  binRanges,
  hertzToMel,
  makeAxis,
  melToHertz,
  rowLength,
  valueEdges,
} from "../../spectrod/apps/web/page/plot/axis.js";
import { description } from "./descriptions.js";

const axisOf = (changes) => makeAxis({ kind: "linear", f0: 20, f1: 20000, width: 1000, ...changes });

const close = (value, expected, relative = 1e-9) =>
  assert.ok(Math.abs(value - expected) <= relative * Math.max(1, Math.abs(expected)), `${value} is not ${expected}`);

for (const kind of AXIS_KINDS) {
  test(`${kind}: pixels and hertz are inverses, and the ends are exact`, () => {
    const axis = axisOf({ kind });
    close(axis.toPixel(20), 0);
    close(axis.toPixel(20000), 1000);
    for (let px = 0; px <= 1000; px += 7) close(axis.toPixel(axis.toHertz(px)), px);
  });

  test(`${kind}: edges ascend from f0 to f1 without a step back`, () => {
    const edges = axisOf({ kind }).edges();
    assert.deepEqual([edges.length, edges[0], edges.at(-1)], [1001, 20, 20000]);
    for (let i = 0; i < 1000; i += 1) assert.ok(edges[i + 1] > edges[i]);
  });

  test(`${kind}: the frequency under the pointer stays while zooming, inside of the limits`, () => {
    const limits = { f0: 10, f1: 24000 };
    for (const factor of [1.3, 1 / 1.01]) {
      const axis = axisOf({ kind, f0: 100, f1: 10000 });
      const zoomed = axis.zoom(factor, 300, limits);
      assert.notEqual(zoomed, axis);
      close(zoomed.toHertz(300), axis.toHertz(300));
    }
  });

  test(`${kind}: panning keeps the length on the scale and ends at the limits`, () => {
    const limits = { f0: 10, f1: 24000 };
    const axis = axisOf({ kind, f0: 100, f1: 10000 });
    close(axis.pan(5, limits).toPixel(axis.toHertz(505)), 500);
    assert.equal(axis.pan(1e6, limits).f1, 24000);
    assert.equal(axis.pan(-1e6, limits).f0, 10);
    close(axis.pan(1e6, limits).toPixel(24000) - axis.pan(1e6, limits).toPixel(24000), 0);
  });

  test(`${kind}: zooming out ends at exactly the limits and then changes nothing`, () => {
    const limits = { f0: 10, f1: 24000 };
    const all = axisOf({ kind }).zoom(1e-6, 10, limits);
    assert.deepEqual([all.f0, all.f1], [10, 24000]);
    assert.equal(all.zoom(0.5, 500, limits), all);
    assert.equal(all.pan(50, limits), all);
  });

  test(`${kind}: zooming in ends at the shortest span`, () => {
    const limits = { f0: 10, f1: 24000, minSpanHz: 50 };
    let axis = axisOf({ kind });
    for (let n = 0; n < 200; n += 1) axis = axis.zoom(1.2, 500, limits);
    assert.ok(axis.f1 - axis.f0 >= 50 && axis.f1 - axis.f0 < 75);
    let free = axisOf({ kind });
    for (let n = 0; n < 500; n += 1) free = free.zoom(1.2, 500, { f0: 10, f1: 24000 });
    assert.ok(free.f1 > free.f0);
  });
}

test("a logarithmic axis within limits from 0 Hz on stays above 0 Hz", () => {
  const axis = axisOf({ kind: "log" }).zoom(1e-6, 500, { f0: 0, f1: 24000 });
  assert.deepEqual([axis.f0, axis.f1], [1, 24000]);
});

test("mel is Slaney's: 1 kHz is 15, 6.4 kHz is 42, linear below", () => {
  close(hertzToMel(1000), 15);
  close(hertzToMel(6400), 42);
  close(hertzToMel(500), 7.5);
  close(melToHertz(42), 6400);
});

test("an octave takes the same number of pixels everywhere on a logarithmic axis", () => {
  const axis = axisOf({ kind: "log", f0: 20, f1: 20480 });
  for (const hz of [20, 333, 10240]) close(axis.toPixel(2 * hz) - axis.toPixel(hz), 100);
});

for (const [changes, text] of [
  [{ kind: "cubic" }, /axis=cubic: must be one of linear, log, mel, octave/],
  [{ kind: "log", f0: 0 }, /axis from 0 Hz: must start above 0 Hz if log/],
  [{ kind: "octave", f0: -1 }, /axis from -1 Hz: must start above 0 Hz if octave/],
  [{ f0: 5, f1: 5 }, /axis from 5 Hz to 5 Hz: must be finite and ascending/],
  [{ f1: NaN }, /axis from 20 Hz to NaN Hz: must be finite/],
  [{ width: 0 }, /axis of 0 px: must be an integer, at least 1/],
  [{ width: 1.5 }, /axis of 1.5 px: must be an integer/],
]) {
  test(`${JSON.stringify(changes)} makes no axis`, () => {
    assert.throws(() => axisOf(changes), text);
  });
}

/** For each pixel, all values whose edges meet the pixel's: the definition, without a sweep. */
function touching(axis, stream) {
  const { lower, upper } = valueEdges(stream);
  const edges = axis.edges();
  return Array.from({ length: axis.width }, (_, px) => {
    const margin = 1e-6 * (edges[px + 1] - edges[px]);
    const isIn = (j) => upper[j] > edges[px] + margin && lower[j] < edges[px + 1] - margin;
    const found = [...lower.keys()].filter(isIn);
    return found.length === 0 ? [0, -1] : [found[0], found.at(-1)];
  });
}

const octaveSlices = description({
  slices: [
    { first: 1, per_value: 1, values: 127 },
    { first: 128, per_value: 4, values: 128 },
    { first: 640, per_value: 16, values: 89 },
  ],
});

for (const [what, stream] of [
  ["bins", description({ nfft: 256 })],
  ["pooled bins", description({ per: 5 })],
  ["a slice an octave", octaveSlices],
  ["two-sided bins", description({ first_hz: -24000, bin_hz: 48000 / 2048 })],
]) {
  for (const kind of ["linear", "log", "mel"]) {
    test(`${what}, ${kind}: the ranges of the pixels are all values that touch them`, () => {
      const axis = axisOf({ kind, width: 160 });
      const { first, last } = binRanges(axis, stream);
      assert.deepEqual([...first].map((value, px) => [value, last[px]]), touching(axis, stream));
    });
  }

  test(`${what}: no value between the ends is left out, and every pixel on them has one`, () => {
    const axis = axisOf({ f0: 100, f1: 20000, width: 333 });
    const { first, last } = binRanges(axis, stream);
    const { lower, upper } = valueEdges(stream);
    const seen = new Set();
    for (let px = 0; px < 333; px += 1) {
      assert.ok(first[px] <= last[px]);
      for (let j = first[px]; j <= last[px]; j += 1) seen.add(j);
    }
    lower.forEach((low, j) => {
      if (low < 19999 && upper[j] > 101) assert.ok(seen.has(j), `value ${j} is on no pixel`);
    });
  });
}

test("a tone is in the pixel of its frequency at every zoom", () => {
  const stream = description();
  const bin = Math.round(1000 / stream.bin_hz);
  for (const kind of AXIS_KINDS) {
    for (const width of [100, 801, 4096]) {
      const axis = axisOf({ kind, width });
      const { first, last } = binRanges(axis, stream);
      const px = Math.floor(axis.toPixel(bin * stream.bin_hz));
      assert.ok(first[px] <= bin && bin <= last[px]);
    }
  }
});

test("whole bins to a pixel do not spill into their neighbours", () => {
  const stream = description();
  const half = stream.bin_hz / 2;
  const axis = axisOf({ f0: 96 * half * 2 - half, f1: (96 + 800) * half * 2 - half, width: 200 });
  const { first, last } = binRanges(axis, stream);
  for (let px = 0; px < 200; px += 1) assert.deepEqual([first[px], last[px]], [96 + 4 * px, 99 + 4 * px]);
});

test("pixels beyond the topic have no value", () => {
  const { first, last } = binRanges(axisOf({ f0: -48000, f1: 48000, width: 96 }), description());
  assert.deepEqual([first[0], last[0], first[95], last[95]], [0, -1, 0, -1]);
  assert.ok(first[60] <= last[60]);
});

test("bands have the edges that the server says", () => {
  const edges = [[88, 177, 355], [177, 355, 710]];
  const stream = description({ edges_hz: edges, n_bins: 3, slices: [{ first: 0, per_value: 1, values: 3 }] });
  const { first, last } = binRanges(axisOf({ kind: "log", f0: 100, f1: 600, width: 50 }), stream);
  assert.deepEqual([first[0], last[0], first[49], last[49]], [0, 0, 2, 2]);
});

test("the last value of a topic ends where the topic does", () => {
  const stream = description({ per: 5 });
  assert.equal(rowLength(stream), 410);
  assert.equal(valueEdges(stream).upper.at(-1), (2048 + 0.5) * stream.bin_hz);
});

test("slices that go back in frequency are refused", () => {
  const slices = [{ first: 100, per_value: 1, values: 5 }, { first: 0, per_value: 1, values: 5 }];
  assert.throws(() => binRanges(axisOf({}), description({ slices })), /value 5 is below the one before/);
});
