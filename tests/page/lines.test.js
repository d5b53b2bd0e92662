import assert from "node:assert/strict";
import { test } from "node:test";

import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { CODE_DROPPED, CODE_GAP, CODE_NONE, CODE_STRIPE, codeOf, codeTable } from "../../spectrod/apps/web/page/rows/levels.js";
import { LINES_AHEAD, LineStore } from "../../spectrod/apps/web/page/plot/lines.js";
import { rowSpan } from "../../spectrod/apps/web/page/rows/rowspan.js";
import { RowRing } from "../../spectrod/apps/web/page/rows/rows.js";
import { description, random, row } from "./descriptions.js";

const VALUES = 16;
const stream = description({ fs: 1000, bin_hz: 10, n_bins: VALUES, slices: [{ first: 0, per_value: 1, values: VALUES }] });
const axis = (changes = {}) => makeAxis({ kind: "linear", f0: -5, f1: 155, width: VALUES, ...changes });
const HEIGHT = 20;

function makeLines({ newestMs = 1000, msPerPx = 20, axis: shown = axis() } = {}) {
  const lines = new LineStore();
  lines.resize(shown.width, HEIGHT);
  lines.setAxis(shown);
  lines.setScroll({ newestMs, msPerPx });
  return lines;
}

/** Return the codes of the visible lines, the uppermost first; no data without its hatching. */
function picture(lines) {
  return Array.from({ length: lines.height }, (_, y) => {
    const slot = (lines.topSlot + y) % lines.slots;
    const codes = [...lines.codes.subarray(slot * lines.width, (slot + 1) * lines.width)];
    return codes.map((value) => (value === CODE_STRIPE ? CODE_NONE : value));
  });
}

const flat = (value, changes) => row(new Uint8Array(VALUES).fill(value), changes);
const code = (value) => codeTable(stream)[value];
const column = (lines) => picture(lines).map((codes) => codes[4]);
const finish = (lines) => lines.work(Infinity, () => 0);

test("a row is on the line of its middle, the newest at the top", () => {
  const lines = makeLines();
  for (const [tMs, value] of [[990, 50], [1010, 90], [650, 70]]) lines.append(flat(value, { tMs }), stream);
  assert.equal(column(lines)[0], code(90));
  assert.equal(column(lines)[1], code(50));
  assert.equal(column(lines)[18], code(70));
  assert.equal(column(lines).filter((value) => value !== 0).length, 3);
});

test("rows faster than a line share it, and the greatest level counts", () => {
  const lines = makeLines({ msPerPx: 100 });
  [10, 90, 30, 20, 40].forEach((value, n) => lines.append(flat(value, { tMs: 910 + 20 * n }), stream));
  assert.deepEqual(column(lines).slice(0, 3), [0, code(90), 0]);
});

test("rows slower than a line fill all lines of their time", () => {
  const lines = makeLines({ msPerPx: 4 });
  for (const [tMs, value] of [[970, 10], [990, 20]]) lines.append(flat(value, { tMs }), stream);
  const filled = column(lines).slice(1, 11);
  assert.deepEqual(filled, [...Array(5).fill(code(20)), ...Array(5).fill(code(10))]);
});

test("merged rows are as long as all that is in them", () => {
  const lines = makeLines();
  lines.append(flat(33, { tMs: 910, merged: 5 }), stream);
  assert.equal(column(lines).filter((value) => value === code(33)).length, 5);
});

test("any steady rate leaves no line without a row, however times are rounded", () => {
  const next = random(9);
  for (let round = 0; round < 60; round += 1) {
    const rowS = 10 ** (-3 + 2.5 * next());
    const slow = { ...stream, row_s: rowS };
    const msPerPx = 1 + 60 * next();
    const lines = makeLines({ newestMs: 1000, msPerPx });
    const spacing = 1000 * rowS * (1 + 0.05 * (next() - 0.5));
    for (let tMs = 1000 - msPerPx * 25 - 2 * spacing; tMs < 1000 + 2 * spacing; tMs += spacing) {
      lines.append(flat(100, { tMs: tMs + 0.1 * spacing * (next() - 0.5) }), slow);
    }
    assert.ok(column(lines).every((value) => value === code(100)), `${rowS} s, ${msPerPx} ms`);
  }
});

test("a pixel has the greatest of all values that touch it, at every zoom", () => {
  const next = random(2);
  const values = Uint8Array.from({ length: VALUES }, () => Math.floor(256 * next()));
  for (const shown of [axis({ width: 4 }), axis({ width: 64 }), axis({ f0: 20, f1: 90, width: 7 })]) {
    const lines = makeLines({ axis: shown });
    lines.append(row(values, { tMs: 1010 }), stream);
    picture(lines)[0].forEach((found, px) => {
      const touching = [...values].filter((_, k) => {
        const [lower, upper] = [10 * k - 5, 10 * k + 5];
        return upper > shown.toHertz(px) + 1e-6 && lower < shown.toHertz(px + 1) - 1e-6;
      });
      assert.equal(found, Math.max(...touching.map(code)));
    });
  }
});

test("a missing sample's hole is hatched, and no data but it has no level", () => {
  const lines = makeLines();
  lines.append(flat(50, { tMs: 810 }), stream);
  lines.append(flat(50, { tMs: 1010, flags: 1, gapSamples: 180 }), stream);
  const codes = picture(lines).slice(1, 9).flat();
  assert.ok(codes.includes(CODE_GAP));
  assert.deepEqual([...new Set(codes)].sort(), [0, CODE_GAP]);
  assert.equal(codes.filter((value) => value === CODE_GAP).length, codes.length / 4);
});

test("a gap is no longer than its samples, a row and a window, however long nobody asked for rows", () => {
  const previous = { tMs: 1010, endMs: 1020, epoch: "1" };
  const described = { ...stream, win_length: (50 * stream.fs) / 1000, epoch: "1" };
  const hole = (changes, epoch = "1") =>
    rowSpan(flat(1, { tMs: 9010, flags: 1, gapSamples: (100 * stream.fs) / 1000, ...changes }), { ...described, epoch }, previous).holeMs;
  assert.equal(hole({}), 9000 - 100 - 20 - 50);
  assert.equal(hole({ gapSamples: 1e9 }), 1020);
  for (const changes of [{ missed: 1 }, { flags: 3 }, { flags: 9 }]) assert.equal(hole(changes), 1020);
  assert.equal(hole({}, "2"), 1020);
});

test("a gap before the first row of all is as long as its samples", () => {
  const lines = makeLines();
  lines.append(flat(50, { tMs: 1010, flags: 1, gapSamples: 100 }), stream);
  const hatched = picture(lines).map((codes) => codes.includes(CODE_GAP));
  assert.deepEqual(hatched, Array.from({ length: HEIGHT }, (_, y) => y >= 1 && y <= 5));
});

test("a gap shorter than a line is seen in the row after it", () => {
  const lines = makeLines();
  lines.append(flat(50, { tMs: 990 }), stream);
  lines.append(flat(50, { tMs: 1010, flags: 1, gapSamples: 1 }), stream);
  assert.equal(picture(lines)[0].filter((value) => value === CODE_GAP).length, 4);
  assert.equal(picture(lines)[0].filter((value) => value === code(50)).length, 12);
});

for (const [what, changes] of [["dropped by the server", { flags: 8 }], ["missed", { missed: 2 }]]) {
  test(`rows ${what} have a hatching of their own`, () => {
    const lines = makeLines();
    lines.append(flat(50, { tMs: 910 }), stream);
    lines.append(flat(50, { tMs: 1010, ...changes }), stream);
    const codes = picture(lines).slice(1, 5).flat();
    assert.deepEqual([...new Set(codes)].sort(), [0, CODE_DROPPED]);
  });
}

test("the time in which a daemon restarted is hatched, flag or not", () => {
  const [before, after] = ["1", "2"].map((epoch) => ({ ...stream, epoch }));
  for (const [first, second, isHatched] of [[before, after, true], [before, before, false], [stream, after, false]]) {
    const lines = makeLines();
    lines.append(flat(50, { tMs: 910 }), first);
    lines.append(flat(50, { tMs: 1010 }), second);
    assert.equal(picture(lines).slice(1, 5).flat().includes(CODE_GAP), isHatched);
  }
});

test("a row before a set-back clock does not stretch the next one", () => {
  const span = rowSpan(flat(1, { tMs: 100 }), stream, { tMs: 5000, endMs: 5010 });
  assert.deepEqual([span.beginMs, span.endMs], [90, 110]);
});

test("no data is hatched, in one pattern over all lines that moves with them", () => {
  const lines = makeLines();
  lines.append(flat(0, { tMs: 910 }), stream);
  const stripes = () =>
    Array.from({ length: HEIGHT }, (_, y) => {
      const slot = (lines.topSlot + y) % lines.slots;
      const codes = lines.codes.subarray(slot * VALUES, (slot + 1) * VALUES);
      assert.deepEqual([...new Set(codes)].sort(), [CODE_NONE, CODE_STRIPE]);
      return codes.indexOf(CODE_STRIPE);
    });
  const before = stripes();
  before.slice(1).forEach((px, y) => assert.equal(px, (before[y] + 15) % 16));
  lines.setScroll({ newestMs: 1060, msPerPx: 20 });
  assert.deepEqual(stripes().slice(3), before.slice(0, -3));
});

test("scrolling moves lines and keeps what they show", () => {
  const lines = makeLines();
  lines.append(flat(50, { tMs: 1010 }), stream);
  for (let step = 1; step < HEIGHT; step += 1) {
    lines.setScroll({ newestMs: 1010 + 20 * step, msPerPx: 20 });
    assert.deepEqual(column(lines).indexOf(code(50)), step);
  }
  lines.setScroll({ newestMs: 1010 + 20 * HEIGHT, msPerPx: 20 });
  assert.deepEqual(new Set(column(lines)), new Set([0]));
});

test("rows ahead of the top are there when the top gets to them", () => {
  const lines = makeLines();
  lines.append(flat(50, { tMs: 1010 + 20 * LINES_AHEAD }), stream);
  assert.deepEqual(new Set(column(lines)), new Set([0]));
  lines.setScroll({ newestMs: 1010 + 20 * LINES_AHEAD, msPerPx: 20 });
  assert.equal(column(lines)[0], code(50));
});

/** Return random rows with holes and marks in a ring, and the lines drawn from them one by one. */
function drawn(seed, shown, scroll) {
  const next = random(seed);
  const ring = new RowRing({ rows: 200, valuesMax: VALUES });
  ring.setDescription(stream);
  const lines = makeLines({ axis: shown, ...scroll });
  let tMs = 0;
  for (let seq = 0; seq < 150; seq += 1) {
    const merged = 1 + Math.floor(3 * next());
    const isHole = next() < 0.1;
    tMs += 20 * merged + (isHole ? 200 * next() : 0);
    const flags = isHole ? [1, 2, 8, 0][Math.floor(4 * next())] : 0;
    const values = Uint8Array.from({ length: VALUES }, () => Math.floor(256 * next()));
    const made = row(values, { seq, tMs, merged, flags, gapSamples: flags & 1 ? 30 : 0 });
    ring.push(made);
    lines.append(made, stream);
  }
  return { ring, lines, tMs };
}

test("lines redrawn from the ring are those drawn row by row, at any zoom and time", () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    for (const shown of [axis(), axis({ f0: 30, f1: 60, width: 40 })]) {
      for (const msPerPx of [7, 20, 130]) {
        const scroll = { newestMs: 2000 + 97 * seed, msPerPx };
        const { ring, lines } = drawn(seed, shown, scroll);
        const again = makeLines({ axis: shown, ...scroll });
        again.rebuild(ring);
        finish(again);
        assert.deepEqual(picture(again), picture(lines));
      }
    }
  }
});

test("going back in time, jumping and coming back show what was there", () => {
  const { ring, tMs } = drawn(3, axis(), { newestMs: 3000, msPerPx: 20 });
  const lines = makeLines({ newestMs: tMs });
  lines.rebuild(ring);
  for (const newestMs of [tMs, tMs - 60, tMs - 1000, 500, tMs + 40, tMs - 20, 1e7, tMs]) {
    lines.setScroll({ newestMs, msPerPx: 20 });
    finish(lines);
    const fresh = makeLines({ newestMs });
    fresh.rebuild(ring);
    finish(fresh);
    assert.deepEqual(picture(lines), picture(fresh), `at ${newestMs} ms`);
  }
});

test("rows that came while the top stood still are there when it goes on", () => {
  const ring = new RowRing({ rows: 2000, valuesMax: VALUES });
  ring.setDescription(stream);
  const lines = makeLines();
  lines.rebuild(ring);
  finish(lines);
  for (let n = 0; n < 1000; n += 1) {
    const made = flat(1 + (n % 200), { tMs: 1010 + 20 * n });
    ring.push(made);
    lines.append(made, stream);
  }
  lines.setScroll({ newestMs: 1010 + 20 * 999, msPerPx: 20 });
  finish(lines);
  assert.deepEqual(column(lines), Array.from({ length: HEIGHT }, (_, y) => code(1 + ((999 - y) % 200))));
});

test("redrawing stops when its time is over, the newest rows first, and goes on", () => {
  const { ring, tMs } = drawn(4, axis(), { newestMs: 3000, msPerPx: 20 });
  const lines = makeLines({ newestMs: tMs });
  lines.rebuild(ring);
  let clock = 0;
  lines.work(3, () => clock++);
  assert.ok(lines.isBehind);
  assert.ok(column(lines)[0] !== 0 && column(lines)[HEIGHT - 1] === 0);
  finish(lines);
  assert.ok(!lines.isBehind);
});

test("until rows are drawn along another axis, what was there is stretched to it", () => {
  const { ring, tMs } = drawn(6, axis(), { newestMs: 3000, msPerPx: 20 });
  const lines = makeLines({ newestMs: tMs });
  lines.rebuild(ring);
  finish(lines);
  const before = picture(lines);
  lines.setAxis(axis({ f0: 35, f1: 115 }));
  picture(lines).forEach((codes, y) => {
    codes.forEach((value, px) => assert.equal(value, before[y][4 + Math.floor((px + 0.5) / 2)]));
  });
  let clock = 0;
  lines.work(4, () => clock++);
  const fresh = makeLines({ newestMs: tMs, axis: axis({ f0: 35, f1: 115 }) });
  fresh.rebuild(ring);
  finish(fresh);
  assert.deepEqual(picture(lines)[0], picture(fresh)[0]);
  assert.notDeepEqual(picture(lines), picture(fresh));
  finish(lines);
  assert.deepEqual(picture(lines), picture(fresh));
});

test("another ring takes over line by line, and leaves nothing of the one before", () => {
  const { ring, tMs } = drawn(7, axis(), { newestMs: 3000, msPerPx: 20 });
  const lines = makeLines({ newestMs: tMs });
  lines.rebuild(ring);
  finish(lines);
  const before = picture(lines);
  const other = new RowRing({ rows: 5, valuesMax: VALUES });
  other.setDescription(stream);
  other.push(flat(77, { tMs }));
  lines.rebuild(other);
  assert.deepEqual(picture(lines), before);
  assert.ok(lines.isBehind);
  finish(lines);
  const fresh = makeLines({ newestMs: tMs });
  fresh.append(flat(77, { tMs }), stream);
  assert.deepEqual(picture(lines), picture(fresh));
  lines.rebuild(new RowRing({ rows: 5, valuesMax: VALUES }));
  finish(lines);
  assert.deepEqual(new Set(picture(lines).flat()), new Set([0]));
});

test("only lines whose codes changed are to be painted", () => {
  const lines = makeLines();
  lines.changed.fill(0);
  lines.append(flat(50, { tMs: 1010 }), stream);
  assert.equal(lines.changed.reduce((sum, value) => sum + value), 1);
  lines.changed.fill(0);
  lines.setScroll({ newestMs: 1000, msPerPx: 20 });
  assert.equal(lines.changed.reduce((sum, value) => sum + value), 0);
});

test("rows of 16 bits are drawn to a hundredth", () => {
  const fine = { ...stream, bits: 16, lo: -327.67, step: 0.01 };
  const lines = makeLines();
  lines.append(row(new Uint16Array(VALUES).fill(30767), { tMs: 1010 }), fine);
  assert.equal(column(lines)[0], codeOf(-20));
});

test("nothing is drawn while the axis is not as wide as the lines, and all of it after", () => {
  const { ring, tMs } = drawn(5, axis(), { newestMs: 3000, msPerPx: 20 });
  const lines = makeLines({ newestMs: tMs });
  lines.rebuild(ring);
  lines.resize(40, HEIGHT);
  assert.ok(!lines.isReady);
  finish(lines);
  lines.append(flat(1, { tMs }), stream);
  lines.setAxis(axis({ width: 40 }));
  finish(lines);
  assert.ok(column(lines)[0] !== 0);
});

for (const scroll of [{ newestMs: NaN, msPerPx: 1 }, { newestMs: 0, msPerPx: 0 }, { newestMs: 0, msPerPx: Infinity }]) {
  test(`${JSON.stringify(scroll)} is no scroll`, () => {
    assert.throws(() => new LineStore().setScroll(scroll), /must be finite, the latter above 0/);
  });
}
