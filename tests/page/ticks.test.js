import assert from "node:assert/strict";
import { test } from "node:test";

import { AXIS_KINDS, makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { frequencyTicks, levelTicks, niceStep, TICKS_MAX } from "../../spectrod/apps/web/page/plot/ticks.js";
import { random } from "./descriptions.js";

const measure = (text) => 7 * text.length;
const labels = (given) =>
  frequencyTicks(makeAxis({ kind: "linear", f0: 0, f1: 24000, width: 1000, ...given }), measure)
    .filter(({ label }) => label !== "")
    .map(({ label }) => label)
    .join(" ");

const hertz = (label) => Number.parseFloat(label) * { G: 1e9, M: 1e6, k: 1e3 }[label.at(-1)] || Number.parseFloat(label);

test("any axis has few ticks on it, in order, whose labels are true and do not collide", () => {
  const next = random(3);
  for (let round = 0; round < 2000; round += 1) {
    const kind = AXIS_KINDS[round % 4];
    const f0 = 10 ** (7 * next() - 3);
    const f1 = f0 * (1 + 10 ** (9 * next() - 6));
    const axis = makeAxis({ kind, f0, f1, width: 1 + Math.floor(4000 * next()) });
    const ticks = frequencyTicks(axis, measure);
    assert.ok(ticks.length <= TICKS_MAX, `${ticks.length} ticks`);
    let end = -Infinity;
    let before = -Infinity;
    for (const { px, value, label } of ticks) {
      assert.ok(px >= before && px >= -1e-3 && px <= axis.width + 1e-3);
      before = px;
      if (label === "") continue;
      assert.ok(Math.abs(hertz(label) - value) <= Math.max(1e-9 * value, (f1 - f0) / 500), `${label} at ${value} Hz`);
      assert.ok(px - measure(label) / 2 >= end + 5.999, `${label} collides`);
      end = px + measure(label) / 2;
    }
  }
});

test("an axis of 100 px and more has two labels or more", () => {
  const next = random(4);
  for (let round = 0; round < 500; round += 1) {
    const f0 = 10 ** (4 * next());
    const given = { kind: AXIS_KINDS[round % 4], f0, f1: f0 * (1.05 + 99 * next()), width: 400 };
    assert.ok(labels(given).split(" ").length >= 2, JSON.stringify(given));
  }
});

test("each kind of axis has its usual frequencies", () => {
  assert.equal(labels({ width: 300 }), "0 5k 10k 15k 20k");
  assert.equal(labels({ kind: "log", f0: 10, width: 300 }), "10 20 50 100 500 1k 2k 5k 10k");
  assert.equal(labels({ kind: "octave", f0: 20 }), "31.25 62.5 125 250 500 1k 2k 4k 8k 16k");
  assert.equal(labels({ kind: "mel", width: 300 }), "0 500 1k 2k 3k 4k 6k 8k 16k 24k");
});

test("below a decade a logarithmic axis has even steps", () => {
  assert.equal(labels({ kind: "log", f0: 400, f1: 900, width: 600 }), "400 450 500 550 600 650 700 750 800 850 900");
});

test("deep inside labels keep the digits that differ", () => {
  assert.equal(labels({ f0: 999.99, f1: 1000.01, width: 300 }), "999.99 999.995 1000 1000.005 1000.01");
});

test("negative frequencies are labelled around 0", () => {
  assert.equal(labels({ f0: -1.2e6, f1: 1.2e6, width: 300 }), "-1M -0.5M 0 0.5M 1M");
});

test("steps are 1, 2, 2.5 or 5 times a power of ten, never below what is asked for", () => {
  assert.deepEqual([0.9, 1, 1.01, 2.1, 2.6, 5.1, 0.0024].map((n) => niceStep(n).step), [1, 1, 2, 2.5, 5, 10, 0.0025]);
  assert.deepEqual([1, 0.25, 0.0025, 50].map((n) => niceStep(n).decimals), [0, 2, 4, 0]);
});

test("levels go down from the top at even steps", () => {
  assert.equal(levelTicks(-120, 0, 300).map(({ label }) => label).join(" "), "0 -20 -40 -60 -80 -100 -120");
  const [top, next] = levelTicks(-120, 0, 240);
  assert.deepEqual([top.px, next.px - top.px], [0, 40]);
  assert.deepEqual(levelTicks(-0.3, 0.3, 100).map(({ label }) => label), ["0.2", "0.0", "-0.2"]);
});

test("a level axis of any range and height has two levels at least", () => {
  assert.deepEqual(levelTicks(-35, -15, 46).map(({ label }) => label), ["-20", "-30"]);
  const next = random(4);
  for (let n = 0; n < 5000; n += 1) {
    const lo = 400 * (next() - 0.5);
    const [hi, height] = [lo + 10 ** (3 * next() - 1), 1 + 300 * next()];
    assert.ok(levelTicks(lo, hi, height).length > 1, `${lo} to ${hi} in ${height} px`);
  }
});

test("a level axis that cannot be drawn has no ticks", () => {
  for (const [lo, hi, height] of [[0, 0, 100], [1, 0, 100], [0, 1, 0], [NaN, 1, 10]]) {
    assert.deepEqual(levelTicks(lo, hi, height), []);
  }
});
