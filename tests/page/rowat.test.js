// Which row is at a time, and what is shown of it: one rule for the picture, the readout, tables and files.
import assert from "node:assert/strict";
import { test } from "node:test";

import { binRanges, makeAxis, valuesOfPixel } from "../../spectrod/apps/web/page/plot/axis.js";
import { Channel } from "../../spectrod/apps/web/page/rows/channel.js";
import { traceCsv } from "../../spectrod/apps/web/page/side/export.js";
import { levelOfValues } from "../../spectrod/apps/web/page/rows/bins.js";
import { CODE_LEVEL_MAX, CODE_LEVEL_MIN, CODE_STRIPE, levelOf, levelOfCode } from "../../spectrod/apps/web/page/rows/levels.js";
import { LineStore } from "../../spectrod/apps/web/page/plot/lines.js";
import { momentOf, unmeasuredText } from "../../spectrod/apps/web/page/rows/moment.js";
import { JoinedRows } from "../../spectrod/apps/web/page/rows/past.js";
import { levelOfPixel, lineRowAt, rowAt, rowsOfLine, spanOf, stepInTime, timeOfLine } from "../../spectrod/apps/web/page/rows/rowat.js";
import { RowRing } from "../../spectrod/apps/web/page/rows/rows.js";
import { description, random, row } from "./descriptions.js";

const VALUES = 40;
const SEEDS = 12;
const PLACES = 500;
const LIVE = description({ fs: 1000, bin_hz: 10, first_hz: 0, n_bins: VALUES, row_s: 0.05, slices: [
  { first: 0, per_value: 1, values: 8 }, { first: 8, per_value: 2, values: 8 }, { first: 24, per_value: 4, values: 4 },
] });
const OLD = Object.freeze({ ...LIVE, bits: 16, lo: -327.67, step: 0.01, row_s: 0.25, slices: [{ first: 0, per_value: 1, values: VALUES }] });
const fill = (count, make) => Array.from({ length: count }, make);

/** Random rows of the past and live ones, of several lengths, with holes, marks and missing values. */
function joined(seed) {
  const next = random(seed);
  const ring = new RowRing({ rows: 400, valuesMax: VALUES });
  ring.setDescription(LIVE);
  let tMs = 100_000;
  for (let n = 0; n < 300; n += 1) {
    const merged = 1 + Math.floor(3 * next());
    const isHole = next() < 0.05;
    tMs += 25 * merged + (isHole ? 900 * next() : 0);
    const flags = isHole ? [1, 2, 8, 0][Math.floor(4 * next())] : 0;
    const values = Uint8Array.from({ length: 20 }, () => (next() < 0.02 ? 0 : 1 + Math.floor(255 * next())));
    ring.push(row(values, { seq: n, tMs, merged, flags, gapSamples: flags & 1 ? 30 : 0 }));
    tMs += 25 * merged;
  }
  const past = fill(200, (_, n) => ({
    ...row(Uint16Array.from({ length: VALUES }, () => (next() < 0.02 ? 65535 : Math.floor(65000 * next()))), { tMs: 99_975 - 250 * (n + (n > 50 ? 7 : 0)) }),
    description: OLD,
  }));
  return { rows: new JoinedRows(ring, past), next, endMs: tMs };
}

function drawn(rows, axis, { newestMs, msPerPx, height }) {
  const lines = new LineStore();
  lines.resize(axis.width, height);
  lines.setAxis(axis);
  lines.setScroll({ newestMs, msPerPx });
  lines.rebuild(rows);
  lines.work(Infinity, () => 0);
  return lines;
}

test("the values of a pixel are those that it is drawn with, on every axis and at every zoom", () => {
  const next = random(5);
  for (let n = 0; n < 60; n += 1) {
    const kind = ["linear", "log", "mel", "octave"][n % 4];
    const f0 = 5 + 100 * next();
    const axis = makeAxis({ kind, f0, f1: f0 + 10 + 300 * next(), width: 30 + Math.floor(300 * next()) });
    for (const about of [LIVE, OLD]) {
      const { first, last } = binRanges(axis, about);
      for (let px = 0; px < axis.width; px += 1) {
        assert.deepEqual(valuesOfPixel(axis, about, px), { first: first[px], last: last[px] }, `${kind} ${px}`);
      }
    }
  }
});

test("the readout of a pixel is the level of its colour, live and past, at any scale of time; hatching is no data", () => {
  let levels = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { rows, next, endMs } = joined(seed);
    for (const msPerPx of [7, 60, 400, 3000]) {
      const height = Math.min(200, Math.ceil(80_000 / msPerPx));
      const axis = makeAxis({ kind: "log", f0: 12, f1: 390, width: 97 });
      const newestMs = endMs - next() * 20_000;
      const lines = drawn(rows, axis, { newestMs, msPerPx, height });
      for (let n = 0; n < PLACES; n += 1) {
        const [px, y] = [Math.floor(next() * axis.width), Math.floor(next() * height)];
        const line = Math.floor(newestMs / msPerPx) - y;
        const code = lines.codes[lines.slotOf(line) * axis.width + px];
        const level = levelOfPixel(rows, { line, msPerPx, axis, px });
        if (code <= CODE_STRIPE) assert.ok(Number.isNaN(level), `${level} over no data`);
        else if (code >= CODE_LEVEL_MIN && code <= CODE_LEVEL_MAX) {
          assert.ok(Math.abs(level - levelOfCode(code)) <= 0.0051, `${level}, drawn ${levelOfCode(code)}`);
          levels += 1;
        }
      }
    }
  }
  assert.ok(levels > SEEDS * PLACES, `${levels} places with a level`);
});

test("the row at a time is the one whose time it is; within a hole there is none", () => {
  let holes = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { rows, next, endMs } = joined(seed);
    const spans = fill(rows.length, (_, i) => ({ i, ...spanOf(rows, i) }));
    for (let n = 0; n < PLACES; n += 1) {
      const tMs = endMs - next() * 70_000;
      const at = spans.find(({ beginMs, endMs: end }) => beginMs <= tMs && tMs < end);
      const found = rowAt(rows, tMs, 1e-3);
      holes += at === undefined;
      assert.deepEqual(found?.tMs, at && rows.timeAt(at.i), `${tMs}`);
    }
  }
  assert.ok(holes > 50);
});

test("where a line has a short row beside its time, that row is at it; the newest row is at a time just after it", () => {
  const rows = new JoinedRows(null, [row(Uint16Array.of(1), { tMs: 5000 })].map((one) => ({ ...one, description: { ...OLD, row_s: 1 } })));
  assert.equal(rowAt(rows, 59_000, 60_000)?.tMs, 5000);
  assert.equal(rowAt(rows, 61_000, 60_000), null);
  assert.equal(rowAt(rows, 7400, 10)?.tMs, 5000);
  assert.equal(rowAt(rows, 7600, 10), null);
  assert.equal(rowAt(rows, 4400, 10), null);
  assert.equal(rowAt(new JoinedRows(null, []), 0, 10), null);
});

const INFO = { id: 1, topic: "spec/mic/0/dbfs/", endpoint: "ipc://a", source: "mic", channel: "0", product: "dbfs" };

/** A channel with rows, a line of 16 bits, a hold and measurements up to a time. */
function channelUntil(endMs) {
  const channel = new Channel(INFO, 0, 400);
  channel.describe("waterfall", LIVE);
  channel.describe("trace", OLD);
  const take = (tMs) => {
    channel.take("waterfall", row(new Uint8Array(20).fill(1 + (tMs / 50) % 200), { tMs }), LIVE, 0, () => {});
    channel.take("trace", row(new Uint16Array(VALUES).fill(tMs % 60_000), { tMs }), OLD, 0, () => {});
    channel.take("max", row(new Uint16Array(VALUES).fill(tMs % 60_000), { tMs }), OLD, 0, () => {});
    channel.measure({ t_ms: tMs, peaks: [{ hz: 100, level: tMs, hz_error: 1 }], cursors: [], bands: [] });
  };
  for (let tMs = 0; tMs <= endMs; tMs += 50) take(tMs);
  return { channel, take };
}

test("a view that stands still keeps its row, holds and measurements, whatever comes", () => {
  const { channel, take } = channelUntil(5000);
  const shown = (t1) => ({ rows: new JoinedRows(channel.ring, []), t1, msPerPx: 50 });
  const live = momentOf(channel, shown(null));
  channel.keepMoment(5000);
  const paused = JSON.stringify(momentOf(channel, shown(5000)));
  assert.equal(paused, JSON.stringify(live));
  for (let tMs = 5050; tMs < 9000; tMs += 50) take(tMs);
  assert.equal(JSON.stringify(momentOf(channel, shown(5000))), paused);
  assert.equal(momentOf(channel, shown(null)).tMs, 8950);
});

test("a pause keeps measurements though rows of streams are not equally new; a step back from it has none", () => {
  const { channel } = channelUntil(5000);
  for (let tMs = 5050; tMs <= 6000; tMs += 50) channel.take("waterfall", row(new Uint8Array(20).fill(1), { tMs }), LIVE, 0, () => {});
  channel.keepMoment(6000);
  const at = (t1) => momentOf(channel, { rows: new JoinedRows(channel.ring, []), t1, msPerPx: 50 });
  assert.deepEqual([at(6000).tMs, at(6000).measured.t_ms], [6000, 5000]);
  assert.equal(at(6000.4).measured.t_ms, 5000, "an address has whole milliseconds");
  assert.equal(at(5950).measured, null);
  channel.keepMoment(5950);
  assert.equal(at(5950).measured, null, "a click in the waterfall is no pause");
  channel.keepMoment(9000);
  assert.equal(at(9000).measured, null, "another source is far ahead");
});

test("a pause just after late rows takes what is measured next of its time, and keeps that", () => {
  for (const forgets of [true, false]) {
    const { channel, take } = channelUntil(5000);
    const { measured } = channel;
    if (forgets) channel.fallSilent();
    take(8000);
    channel.measure(measured);
    if (forgets) channel.forgetMeasured();
    channel.keepMoment(8000);
    const atPause = () => momentOf(channel, { rows: new JoinedRows(channel.ring, []), t1: 8000, msPerPx: 50 }).measured?.t_ms;
    assert.equal(atPause(), forgets ? undefined : 5000);
    for (const [t_ms, kept] of [[8300, atPause()], [8200, 8200], [8250, 8200]]) {
      channel.measure({ ...measured, t_ms });
      assert.equal(atPause(), kept);
    }
  }
});

test("of a time of the past there are the waterfall's row, no holds and no measurements, and the table says so", () => {
  const { channel } = channelUntil(9000);
  channel.keepMoment(4020);
  const shown = { rows: new JoinedRows(channel.ring, []), t1: 4020, msPerPx: 50 };
  const moment = momentOf(channel, shown);
  assert.deepEqual([moment.tMs, moment.row.description.bits, moment.holds, moment.measured, moment.peaks], [4000, 8, {}, null, []]);
  assert.equal(unmeasuredText(channel, moment, shown), "not measured at this time");
  const nothing = momentOf(channel, { ...shown, t1: -60_000 });
  assert.deepEqual([nothing.tMs, nothing.row], [-60_000, null]);
});

test("without a cursor more of the row of the waterfall is what the server has of its time and its length", () => {
  const { channel } = channelUntil(9000);
  const asked = [];
  const shown = { rows: new JoinedRows(channel.ring, []), t1: 4020, msPerPx: 50, isCursor: false };
  const whole = { ...row(new Uint16Array(VALUES).fill(9)), tMs: 4000, description: { ...OLD, row_s: 0.05 } };
  const fineOf = (found) => (scale, tMs) => {
    asked.push([scale, tMs]);
    return found;
  };
  assert.equal(momentOf(channel, { ...shown, fine: fineOf(whole) }).row, whole);
  assert.deepEqual(asked, [[{ msPerPx: 50, rowMs: 1000 * channel.description.row_s }, 4000]]);
  const own = momentOf(channel, shown);
  assert.deepEqual(momentOf(channel, { ...shown, fine: fineOf(null) }), own, "until it has come");
  assert.equal(own.row.tMs, 4000);
  assert.deepEqual(momentOf(channel, { ...shown, fine: () => ({ ...whole, description: { ...OLD, row_s: 0.1 } }) }), own, "a longer one is of another time");
  assert.equal(momentOf(channel, { ...shown, t1: -60_000, fine: fineOf(whole) }).row, null);
  assert.equal(asked.length, 2);
});

test("the time of an archive's spectrum is that of its sound, not of the pause after it or of what is not stored yet", () => {
  const [minutes, { row_s }] = [60_000, { row_s: 180 }];
  const column = (beginMs, about = {}) => ({ ...row(new Uint16Array(VALUES).fill(9)), merged: 1, tMs: beginMs + 90_000, description: { ...OLD, row_s }, ...about });
  const rows = new JoinedRows(null, [column(30 * minutes), column(0, { merged: 10, tMs: 15 * minutes, heardMs: minutes / 2, soundMs: minutes })]);
  const timeAt = (t1, stored) => momentOf(new Channel({ ...INFO, stored }, 0, 1), { rows, t1, msPerPx: 1000 }).tMs / minutes;
  assert.equal(timeAt(31 * minutes, [0, 31 * minutes]), 30.5);
  assert.equal(timeAt(31 * minutes, [0, 60 * minutes]), 31.5);
  for (const stored of [undefined, [0, minutes]]) assert.equal(timeAt(20 * minutes, stored), 0.5);
  assert.equal(timeAt(20 * minutes, [0, 0.5 * minutes]), 0.25);
});

test("what the server does not send is neither of now nor measured, with the reason", () => {
  const { channel } = channelUntil(9000);
  channel.setUnsent(["trace", "max"], "the server sends a page at most 8 streams");
  const shown = { rows: new JoinedRows(channel.ring, []), t1: null, msPerPx: 50 };
  const moment = momentOf(channel, shown);
  assert.deepEqual([moment.row.description.bits, moment.holds, moment.peaks], [8, {}, []]);
  assert.equal(unmeasuredText(channel, moment, shown), "not measured: the server sends a page at most 8 streams");
  channel.setUnsent([], "");
  assert.equal(unmeasuredText(channel, moment, shown), "not measured yet");
});

test("the file of a line spectrum has the levels of the row that is shown, and its time", () => {
  const { rows, next, endMs } = joined(4);
  for (let n = 0; n < 100; n += 1) {
    const found = rowAt(rows, endMs - next() * 60_000, 50);
    if (found === null) continue;
    const lines = traceCsv({ title: "a", time: "b", row: found }).trim().split("\n").slice(4);
    const expected = [...found.values].map((value) => levelOf(found.description, value));
    lines.forEach((text, j) => {
      const level = text.split(",")[2];
      if (Number.isNaN(expected[j])) assert.equal(level, "");
      else assert.ok(Math.abs(Number(level) - expected[j]) < 1e-6);
    });
    assert.equal(lines.length, expected.length);
  }
});

test("the spectrum at a cursor has in each pixel the level that the waterfall shows at its time", () => {
  let [compared, pooled] = [0, 0];
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { rows, next, endMs } = joined(seed);
    for (let n = 0; n < 100; n += 1) {
      const msPerPx = [7, 60, 260, 1300][n % 4];
      const axis = makeAxis({ kind: "linear", f0: 0, f1: 395, width: 1 + Math.floor(60 * next()) });
      const line = Math.floor((60_000 + (endMs - 60_000) * next()) / msPerPx);
      const drawn = rowsOfLine(rows, line, msPerPx);
      if (new Set(drawn.map((one) => one.description)).size > 1) continue; // at the seam of past and live rows
      const tMs = timeOfLine(rows, line, msPerPx);
      const found = lineRowAt(rows, tMs, { msPerPx, rowMs: 50 });
      const px = Math.floor(axis.width * next());
      // A long row's middle may be in another of its lines, where a hole before it begins as well.
      const shown = levelOfPixel(rows, { line: Math.floor(tMs / msPerPx), msPerPx, axis, px });
      const level = found === null ? NaN : levelOfValues(found.values, found.description, valuesOfPixel(axis, found.description, px));
      assert.deepEqual(level, shown, `${seed} ${n}`);
      compared += 1;
      if (drawn.length > 1) pooled += 1;
      if (found !== null && drawn.length > 0) assert.equal(found.count, Math.max(1, Math.round(drawn.reduce((sum, one) => sum + one.merged * one.description.row_s * 20, 0))));
    }
  }
  assert.ok(compared > 900 && pooled > 200, `${compared} ${pooled}`);
});

test("a cursor that steps in time visits each row once, and lines where rows are shorter", () => {
  const { rows } = joined(3);
  let tMs = rows.timeAt(rows.length - 1);
  const visited = [tMs];
  for (let n = 0; n < 20; n += 1) visited.push((tMs = stepInTime(rows, tMs, 10, 1)));
  const wanted = Array.from({ length: 21 }, (_, n) => rows.timeAt(rows.length - 1 - n));
  assert.deepEqual(visited, wanted);
  for (let n = 0; n < 20; n += 1) tMs = stepInTime(rows, tMs, 10, -1);
  assert.equal(tMs, wanted[0]);
  assert.equal(stepInTime(rows, 99_000, 1000, 1), 100_000);
  assert.equal(stepInTime(rows, 99_000, 1000, -1), 98_000);
});
