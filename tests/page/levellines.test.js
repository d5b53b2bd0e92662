// Levels over time: the numbers that came, gaps between them, and the scale.
import assert from "node:assert/strict";
import { test } from "node:test";

import { scaleOf } from "../../spectrod/apps/web/page/panel/levellines.js";
import { LevelSeries } from "../../spectrod/apps/web/page/rows/levelseries.js";
import { random } from "./descriptions.js";

const T0 = Date.UTC(2026, 10, 23, 7, 0, 0);
const METER = { endpoint: "e", topic: "levels/mic/0/meter/", kind: "levels", source: "mic", channel: "0", product: "meter" };
const SPEC = { endpoint: "e", topic: "spec/mic/0/dbfs/", kind: "spec", source: "mic", channel: "0", product: "dbfs" };
const NAMES = ["LAeq", "L10"];
const message = (t_ms, values, changes = {}) => ({ t_ms, interval_s: 1, names: NAMES, units: ["dBFS", "dBFS"], values, ...changes });
const seriesOf = (...messages) => {
  const series = new LevelSeries();
  for (const one of messages) series.take(METER, one);
  return series;
};
const column = (series, name = "meter/LAeq") => series.column(name, SPEC, [SPEC, METER]);
const times = (runs) => runs.map((run) => run.map(({ t0, t1, lo, hi }) => [(t0 - T0) / 1000, (t1 - T0) / 1000, lo, hi]));

test("a value is the very number that was sent, in all of its interval and nowhere else", () => {
  const next = random(1);
  const values = Array.from({ length: 50 }, () => [-90 * next(), -90 * next()]);
  const series = seriesOf(...values.map((some, n) => message(T0 + 1000 * n, some)));
  values.forEach(([laeq, l10], n) => {
    for (const within of [0, 1, 999.99]) {
      assert.equal(column(series).at(T0 + 1000 * n + within), laeq);
      assert.equal(column(series, "meter/L10").at(T0 + 1000 * n + within), l10);
    }
  });
  assert.deepEqual([T0 - 1, T0 + 50_000].map((tMs) => column(series).at(tMs)), [null, null]);
  assert.deepEqual([column(series).newest, column(series).since], [values[49][0], T0]);
});

test("an interval that did not come, and one without a value, stay gaps", () => {
  const series = seriesOf(message(T0, [-1, -2]), message(T0 + 1000, [-3, -4]), message(T0 + 3000, [-5, -6]), message(T0 + 4000, [null, -7]), message(T0 + 5000, [-8, -9]));
  assert.deepEqual(times(column(series).runs(T0, T0 + 1e5, 1)), [[[0, 1, -1, -1], [1, 2, -3, -3]], [[3, 4, -5, -5]], [[5, 6, -8, -8]]]);
  assert.equal(times(column(series, "meter/L10").runs(T0, T0 + 1e5, 1)).length, 2);
  assert.deepEqual([2500, 4500].map((ms) => column(series).at(T0 + ms)), [null, null]);
});

test("intervals in one pixel are one point with the least and the greatest value", () => {
  const values = [-50, -10, -30, -70, -20, -40];
  const series = seriesOf(...values.map((value, n) => message(T0 + 1000 * n, [value, 0])));
  const [run] = column(series).runs(T0, T0 + 6000, 1e9);
  assert.deepEqual([run.length, run[0].lo, run[0].hi, run[0].last], [1, -70, -10, -40]);
  const extremes = column(series).runs(T0, T0 + 6000, 2000).flat();
  assert.deepEqual([Math.min(...extremes.map(({ lo }) => lo)), Math.max(...extremes.map(({ hi }) => hi))], [-70, -10]);
  assert.ok(extremes.length < values.length);
});

test("only what is in a span of time is drawn, with intervals that reach into it", () => {
  const series = seriesOf(...[0, 1, 2, 3, 4].map((n) => message(T0 + 1000 * n, [n, 0])));
  const [run] = column(series).runs(T0 + 1500, T0 + 3000, 1);
  assert.deepEqual(run.map(({ last }) => last), [1, 2]);
  assert.deepEqual(column(series).runs(T0 + 9000, T0 + 9999, 1), []);
});

test("an interval that came before, or has no time, is left out", () => {
  const series = seriesOf(message(T0, [-1, 0]), message(T0, [-2, 0]), message(T0 - 5000, [-3, 0]), message(NaN, [-4, 0]), message(T0 + 9000, [-5, 0], { interval_s: 0 }));
  assert.deepEqual(times(column(series).runs(T0 - 1e6, T0 + 1e6, 1)), [[[0, 1, -1, -1]]]);
});

test("an interval that was cut ends where the next one begins", () => {
  const series = seriesOf(message(T0, [-1, 0]), message(T0 + 400, [-2, 0]));
  assert.deepEqual(times(column(series).runs(T0 - 1e6, T0 + 1e6, 1)), [[[0, 0.4, -1, -1], [0.4, 1.4, -2, -2]]]);
  assert.deepEqual([399, 400].map((ms) => column(series).at(T0 + ms)), [-1, -2]);
});

test("columns are those of the channel's own topics; other names begin the series again", () => {
  const series = seriesOf(message(T0, [-1, -2]));
  const infos = [SPEC];
  assert.deepEqual(series.columns([SPEC, METER], infos), ["meter/LAeq", "meter/L10"]);
  assert.deepEqual(series.columns([SPEC, METER], [{ ...SPEC, channel: "1" }]), []);
  assert.equal(series.column("meter/LAeq", { ...SPEC, endpoint: "f" }, [SPEC, METER]), null);
  assert.equal(series.column("meter/none", SPEC, [SPEC, METER]), null);
  series.take(METER, message(T0 + 1000, [3], { names: ["L90"], units: ["dBFS"] }));
  assert.deepEqual([series.columns([SPEC, METER], infos), column(series)], [["meter/L90"], null]);
});

test("a topic that never ends, or has thousands of columns, is bounded", () => {
  const names = Array.from({ length: 4000 }, (_, k) => `b${k}`);
  const series = new LevelSeries();
  for (let n = 0; n < 3000; n += 1) series.take(METER, message(T0 + 1000 * n, names.map((_, k) => k), { names, units: names.map(() => "dBFS") }));
  assert.equal(series.columns([METER], [SPEC]).length, 64);
  const runs = column(series, "meter/b63").runs(0, T0 + 1e9, 1);
  assert.ok(runs.flat().length <= 992 && runs.flat().length >= 0.8 * 992 - 1);
  assert.equal(column(series, "meter/b63").at(T0 + 2999_000), 63);
});

test("a scale has all values between round numbers, whatever their unit", () => {
  assert.equal(scaleOf([]), null);
  assert.deepEqual(scaleOf([-31, -48.5]), { lo: -50, hi: -30 });
  assert.deepEqual(scaleOf([-30]), { lo: -40, hi: -20 });
  const next = random(2);
  for (let n = 0; n < 2000; n += 1) {
    const size = 10 ** (8 * next() - 3);
    const values = Array.from({ length: 3 }, () => (next() - 0.5) * size);
    const { lo, hi } = scaleOf(values);
    assert.ok(lo <= Math.min(...values) && hi >= Math.max(...values) && hi > lo, `${values}`);
  }
});
