// Selections: what is measured in them, what the card says of it, and what a view does with one.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ACTIONS } from "../../spectrod/apps/web/page/panel/actions.js";
import { loudestPart, searchedBox } from "../../spectrod/apps/web/page/panel/loudest.js";
import { boxOf, boxText, measuredText, zoomedTo } from "../../spectrod/apps/web/page/panel/selectioncard.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { meanLevel, measureSelection, peakOf, rowsIn } from "../../spectrod/apps/web/page/rows/selection.js";
import { description, random } from "./descriptions.js";

const BIN_HZ = 10;
const N_BINS = 200;
const ROW_MS = 100;
const N_ROWS = 157;
const T0 = 1_000_000;
const codeOf = (level) => Math.round((level + 327.67) * 100);

/** Levels of rows: noise, and one bin that is loudest. */
function made(seed, count = N_ROWS) {
  const next = random(seed);
  const rows = Array.from({ length: count }, () => Float64Array.from({ length: N_BINS }, () => -90 + 20 * next()));
  const [loud, bin] = [20 + Math.floor(100 * next()), 30 + Math.floor(100 * next())];
  rows[loud][bin] = -12.34;
  return { rows, loud, bin };
}

/** A server of such rows: columns of whole 50 ms, values of whole bins, efforts cut at a column's length. */
function serverOf({ rows }, { isRecorded = true } = {}) {
  const asked = [];
  const fetch = async (address) => {
    const given = Object.fromEntries([...address.searchParams].map(([name, value]) => [name, Number.isNaN(Number(value)) ? value : Number(value)]));
    asked.push(given);
    const { t0, t1, f0, f1, layers } = given;
    const cell = (t1 - t0) / given.w >= 50 ? 50 : 10;
    const begin = Math.floor(t0 / cell) * cell;
    const columnMs = cell * Math.ceil((t1 - begin) / (cell * given.w));
    const w = Math.ceil((t1 - begin) / columnMs);
    const [first, last] = [Math.max(0, Math.floor(f0 / BIN_HZ)), Math.min(N_BINS, Math.ceil(f1 / BIN_HZ - 1e-9))];
    const per = layers === "level" ? last - first : Math.ceil((last - first) / given.h);
    const h = Math.ceil((last - first) / per);
    const header = { w, h, layers: [layers], cell_ms: columnMs, t0: begin, f0: first * BIN_HZ, f1: (first + h * per) * BIN_HZ, unit: "dBFS", row_s: ROW_MS / 1000, sources: ["segment"], left_out: [] };
    const values = new Uint16Array(w * h).fill(65535);
    const effort = new Float32Array(w);
    for (let c = 0; c < w; c += 1) {
      const [from, to] = [begin + c * columnMs, begin + (c + 1) * columnMs];
      const isLong = columnMs >= ROW_MS;
      const inside = rows.filter((_, n) => {
        const middle = T0 + (n + 0.5) * ROW_MS;
        return isLong ? middle >= from && middle < to : middle - ROW_MS / 2 <= (from + to) / 2 && (from + to) / 2 < middle + ROW_MS / 2;
      });
      effort[c] = Math.min((inside.length * ROW_MS) / 1000, columnMs / 1000);
      for (let v = 0; v < h && inside.length > 0; v += 1) {
        const parts = inside.map((row) => row.subarray(first + v * per, Math.min(last, first + (v + 1) * per)));
        const power = parts.reduce((sum, part) => sum + part.reduce((one, level) => one + 10 ** (level / 10), 0), 0) / inside.length;
        values[c * h + v] = codeOf(layers === "level" ? 10 * Math.log10(power) : Math.max(...parts.map((part) => Math.max(...part))));
      }
    }
    if (layers === "level" && !isRecorded) values.fill(65535);
    const text = new TextEncoder().encode(JSON.stringify(header));
    const at = Math.ceil((4 + text.length) / 4) * 4;
    const bytes = new Uint8Array(at + 4 * w + 2 * w * h);
    new DataView(bytes.buffer).setUint32(0, text.length, true);
    bytes.set(text, 4);
    bytes.set(new Uint8Array(effort.buffer), at);
    bytes.set(new Uint8Array(values.buffer), at + 4 * w);
    return { ok: true, arrayBuffer: async () => bytes.buffer };
  };
  return { fetch, asked };
}

const TOPIC = { id: 3, topic: "spec/a/0/x/", endpoint: "e" };

test("a selection's level is that of the mean power of its rows, its peak the greatest bin, at its row and frequency", async () => {
  for (let seed = 1; seed <= 6; seed += 1) {
    const data = made(seed);
    const { fetch } = serverOf(data);
    const box = { t0: T0 + 1000, t1: T0 + 1000 * (13 + seed / 7), f0: 100, f1: 1900 };
    const found = await measureSelection(fetch, "http://a.test/", { topic: TOPIC, rowMs: 23, box }); // what is live has other rows
    // The server's columns begin and end with cells of 10 ms: rows whose middles are in them.
    const inside = data.rows.filter((_, n) => T0 + (n + 0.5) * ROW_MS >= Math.floor(box.t0 / 50) * 50 && T0 + (n + 0.5) * ROW_MS < box.t1);
    const power = inside.reduce((sum, row) => sum + row.subarray(10, 190).reduce((one, level) => one + 10 ** (level / 10), 0), 0) / inside.length;
    assert.ok(Math.abs(found.band.level - 10 * Math.log10(power)) < 0.05, `${found.band.level} ${10 * Math.log10(power)}`);
    assert.ok(Math.abs(found.rows - inside.length) <= 1, `${found.rows} ${inside.length}`);
    assert.ok(Math.abs(found.peak.level + 12.34) < 0.006);
    assert.ok(Math.abs(found.peak.hz - (data.bin + 0.5) * BIN_HZ) < 1e-6, `${found.peak.hz}`);
    assert.ok(Math.abs(found.peak.tMs - (T0 + (data.loud + 0.5) * ROW_MS)) <= ROW_MS / 2 + 5, `${found.peak.tMs}`);
  }
});

test("each row counts once in a level, however many columns would fit into it", async () => {
  for (const [seconds, rowMs] of [[26, ROW_MS], [26, 23], [21.7, ROW_MS], [21.7, 333]]) {
    const { rows } = made(1, 400);
    rows.forEach((row, n) => row.fill(n % 50 === 7 ? -20 : -90)); // five rows have nearly all of the power
    const { fetch } = serverOf({ rows });
    const box = { t0: T0, t1: T0 + 1000 * seconds, f0: 100, f1: 1900 };
    const { band, rows: count } = await measureSelection(fetch, "http://a.test/", { topic: TOPIC, rowMs, box });
    const loud = rows.slice(0, count).filter(([level]) => level === -20).length;
    const expected = 10 * Math.log10((180 * loud * 10 ** -2) / count);
    assert.ok(Math.abs(band.level - expected) < 0.02, `${seconds} s, ${rowMs} ms: ${band.level} ${expected}`);
    assert.ok(Math.abs(count - 10 * seconds) <= 2, `${count}`);
  }
});

test("without recordings there is a peak and no level; of nothing there is neither", async () => {
  const box = { t0: T0, t1: T0 + 5000, f0: 100, f1: 1900 };
  const unrecorded = await measureSelection(serverOf(made(1), { isRecorded: false }).fetch, "http://a.test/", { topic: TOPIC, rowMs: ROW_MS, box });
  assert.equal(unrecorded.band, null);
  assert.notEqual(unrecorded.peak, null);
  const nothing = await measureSelection(serverOf({ rows: [] }).fetch, "http://a.test/", { topic: TOPIC, rowMs: ROW_MS, box });
  assert.deepEqual([nothing.band, nothing.peak, nothing.rows], [null, null, 0]);
  assert.equal(measuredText(nothing, "UTC", 5), "no data");
});

test("the loudest moment of what is shown, or of the selection, gets cursor A, on its bin and in its row", async () => {
  const data = made(3);
  const { fetch, asked } = serverOf(data);
  const channel = { info: TOPIC, description: description({ nfft: 2 * N_BINS, fs: 2 * N_BINS * BIN_HZ }) };
  const axis = makeAxis({ kind: "linear", f0: 100, f1: 1900, width: 100 });
  const sceneOf = (view) => ({ view: makeView(view), axis, newestMs: T0 + N_ROWS * ROW_MS });
  const part = await loudestPart(fetch, "http://a.test/", { scene: sceneOf({ cursors: [5, 7], times: [null, 9], span: 15 }), channel });
  assert.ok([data.bin, data.bin + 1].includes(part.cursors[0] / BIN_HZ), `${part.cursors}`);
  assert.ok(Math.abs(part.times[0] - (T0 + (data.loud + 0.5) * ROW_MS)) <= ROW_MS / 2 + 5, `${part.times}`);
  assert.deepEqual([part.cursors[1], part.times[1]], [7, 9]);
  const { t0, t1, f0, f1 } = asked[0];
  assert.deepEqual([t0, t1, f0, f1], [T0 + N_ROWS * ROW_MS - 15_000, T0 + N_ROWS * ROW_MS, 100, 1900]);
  const selection = { t0: T0 + 100, t1: T0 + 4000, f0: 200, f1: 400 };
  assert.deepEqual(searchedBox(sceneOf({ selection })), selection);
});

test("without data, and before the first row, nothing is the loudest moment", async () => {
  const axis = makeAxis({ kind: "linear", f0: 100, f1: 1900, width: 100 });
  const channel = { info: TOPIC, description: description() };
  const { fetch, asked } = serverOf({ rows: [] });
  const at = (newestMs, about = channel) => loudestPart(fetch, "http://a.test/", { scene: { view: makeView({}), axis, newestMs }, channel: about });
  assert.equal(await at(null), null);
  assert.equal(asked.length, 0);
  assert.equal(await at(T0), null);
  await assert.rejects(at(T0, { ...channel, description: null }), /^Error: the frequencies of this channel are not known yet$/);
});

test("a server's refusal is the error's text", async () => {
  const fetch = async () => ({ ok: false, status: 503, json: async () => ({ error: "too many requests wait" }) });
  await assert.rejects(measureSelection(fetch, "http://a.test/", { topic: TOPIC, rowMs: 1, box: { t0: 0, t1: 1, f0: 0, f1: 1 } }), /^Error: too many requests wait$/);
});

test("columns that are full have as many rows as can begin in them, others as much as their sound", () => {
  const answer = (columnMs, effort) => ({ header: { cell_ms: columnMs }, effort: Float32Array.from(effort) });
  assert.deepEqual(rowsIn(answer(150, [0.15, 0.1, 0, 0.15]), 100).map((n) => Math.round(1000 * n) / 1000), [2, 1, 0, 2]);
  assert.deepEqual(rowsIn(answer(200, [0.2]), 100), [2]);
  assert.ok(Math.abs(rowsIn(answer(10, [0.01]), 100)[0] - 0.1) < 1e-6);
  const levels = { ...answer(150, [0.15, 0.1, 0]), layers: [Uint16Array.from([codeOf(-10), codeOf(-20), 65535])] };
  assert.ok(Math.abs(meanLevel(levels, 100) - 10 * Math.log10((2 * 0.1 + 0.01) / 3)) < 1e-3);
});

test("the peak of bands is at its band's middle", () => {
  const header = { t0: 0, cell_ms: 10, h: 2, f0: 10, f1: 40, edges_hz: [[10, 20], [20, 40]] };
  const { hz, bandHz, tMs } = peakOf({ header, layers: [Uint16Array.from([1, 2, 3, 65535])] });
  assert.deepEqual([hz, bandHz, tMs], [15, 10, 15]);
  assert.equal(peakOf({ header, layers: [Uint16Array.from([65535, 65535, 65535, 65535])] }), null);
});

test("a selection is made of the cursors' places, or in the middle, and zooming shows it alone", () => {
  const axis = makeAxis({ kind: "linear", f0: 0, f1: 1000, width: 100 });
  const scene = (view) => ({ view: makeView(view), axis, newestMs: 900_000 });
  assert.deepEqual(boxOf(scene({ cursors: [400, 100], times: [8000, 5000] })), { t0: 5000, t1: 8000, f0: 100, f1: 400 });
  assert.deepEqual(boxOf(scene({ cursors: [400], times: [8000], span: 100 })), { t0: 840_000, t1: 860_000, f0: 400, f1: 600 });
  assert.equal(boxOf({ ...scene({}), newestMs: null }), null);
  const selection = { t0: 5000, t1: 8000, f0: 100, f1: 400 };
  assert.deepEqual(zoomedTo(selection), { f0: 100, f1: 400, t1: 8000, span: 3, selection: null });
  assert.deepEqual(ACTIONS.select(scene({ selection })), { selection: null });
});

test("the card says in words what is selected, and of how many rows", () => {
  const box = { t0: 1_700_000_000_000, t1: 1_700_000_003_500, f0: 1000, f1: 1500 };
  assert.equal(boxText(box, "UTC"), "2023-11-14 22:13:20.000 to 22:13:23.500 UTC, 3.500 s; 1.000 kHz to 1.500 kHz");
  const measured = { seconds: 3.5, rows: 35, isOfCells: true, leftOut: [], band: { level: -20, unit: "dBFS", f0: 1000, f1: 1500 }, peak: { level: -18, unit: "dBFS", hz: 1250, bandHz: 10, tMs: box.t0 + 250, columnMs: 100 } };
  assert.equal(measuredText(measured, "UTC", 3.5), "Leq of the band -20.0 dBFS; peak -18.0 dBFS at 1.250 kHz, 22:13:20.250 UTC (35 rows, 3.500 s, from cells of a pyramid)");
  assert.match(measuredText({ ...measured, band: null, isOfCells: false }, "UTC", 3.5), /^peak -18.0 dBFS at .*\(35 rows, 3.500 s\)$/);
});
