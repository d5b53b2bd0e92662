// The strip of all that is stored: what it asks for, what it says of a time, and what its window does.
import assert from "node:assert/strict";
import { test } from "node:test";

import { drawOverview, overviewTicks, tickSpan } from "../../spectrod/apps/web/page/plot/overviewplot.js";
import { levelsRange, Overview, storedIn } from "../../spectrod/apps/web/page/rows/overview.js";
import { keyedWindow, movedWindow, showSpan } from "../../spectrod/apps/web/page/side/overviewstrip.js";
import { random } from "./descriptions.js";

const DAY = 86_400_000;
const T0 = Date.UTC(2026, 9, 20);
const TOPIC = { id: 3, topic: "spec/a/0/x/", endpoint: "e" };
const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
const codeOf = (level) => Math.round((level + 327.67) * 100);

function history(levels, { t0, columnMs }) {
  const header = { w: levels.length, h: 1, layers: ["level"], cell_ms: columnMs, t0, f0: 0, f1: 100, unit: "dBFS", sources: [], left_out: [] };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const at = Math.ceil((4 + text.length) / 4) * 4;
  const bytes = new Uint8Array(at + 6 * levels.length);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  levels.forEach((level, n) => {
    new DataView(bytes.buffer).setFloat32(at + 4 * n, level === null ? 0 : columnMs / 1000, true);
    new DataView(bytes.buffer).setUint16(at + 4 * levels.length + 2 * n, level === null ? 65535 : codeOf(level), true);
  });
  return { ok: true, arrayBuffer: async () => bytes.buffer };
}

/** An overview and its server; `told` is what `api/stored` answers. */
function asking(told, levels = [-50, null, -40, -60]) {
  const asked = [];
  const state = { now: 0, told };
  const fetch = async (address) => {
    const query = Object.fromEntries(address.searchParams);
    asked.push({ path: address.pathname, ...query });
    if (state.told === null) return { ok: false, status: 503 };
    if (address.pathname.endsWith("stored")) return { ok: true, json: async () => state.told };
    return history(levels, { t0: Number(query.t0), columnMs: (query.t1 - query.t0) / levels.length });
  };
  return { overview: new Overview({ fetch, base: "http://a.test/p/", now: () => state.now }), asked, state };
}

test("what is stored is asked for once a minute and topic, levels of long times where a pyramid has them", async () => {
  const told = { t0: T0, t1: T0 + 4 * DAY, spans: [[T0, T0 + 4 * DAY]], has_pyramid: true };
  const { overview, asked, state } = asking(told);
  const ask = async (topic = TOPIC) => {
    overview.ask(topic, { f0: 0, f1: 24000 });
    await settle();
    await settle();
  };
  await ask();
  await ask();
  assert.deepEqual(asked.map(({ path }) => path), ["/p/api/stored", "/p/api/history"]);
  assert.deepEqual([asked[1].layers, asked[1].w, asked[1].h, asked[1].name, asked[1].f1], ["level", "1024", "1", "e spec/a/0/x/", "24000"]);
  const { columns } = overview.stored;
  assert.deepEqual([...columns.levels].map((level) => Math.round(level * 100) / 100), [-50, NaN, -40, -60]);
  state.now = 61_000;
  state.told = { ...told, has_pyramid: false };
  await ask();
  assert.equal(asked.length, 3);
  assert.equal(overview.stored.columns, null);
  state.told = { ...told, t1: T0 + 1000, has_pyramid: false };
  const other = { ...TOPIC, id: 4, topic: "spec/b/0/x/" };
  await ask(other);
  assert.equal(asked.length, 5);
  assert.equal(overview.stored.t1, T0 + 1000);
  state.now = 130_000;
  state.told = null;
  await ask(other);
  assert.equal(overview.stored.t1, T0 + 1000, "a refusal leaves what was known");
});

test("of an archive it is asked again when that says that more is stored, else now and then", async () => {
  const told = { t0: T0, t1: T0 + 4 * DAY, spans: [[T0, T0 + 4 * DAY]], has_pyramid: true };
  const { overview, asked, state } = asking(told);
  const questions = async (now, stored) => {
    state.now = now;
    overview.ask({ ...TOPIC, stored }, { f0: 0, f1: 1 });
    await settle();
    await settle();
    return asked.filter(({ path }) => path.endsWith("stored")).length;
  };
  const [before, after] = [[T0, T0 + 4 * DAY], [T0, T0 + 5 * DAY]];
  const counts = [];
  for (const [now, stored] of [[0, before], [5000, before], [299_999, before], [300_000, before], [304_999, after], [305_000, after], [310_000, after]]) {
    counts.push(await questions(now, stored));
  }
  assert.deepEqual(counts, [1, 1, 1, 2, 2, 3, 3]);
  state.told = null;
  assert.equal(await questions(700_000, after), 4);
  assert.equal(overview.stored.t1, told.t1, "a refusal leaves what was known");
});

test("of a short time it is asked again before the news take a twentieth of the strip, but no more often than each 5 s", async () => {
  const told = { t0: T0, t1: T0 + 400_000, spans: [[T0, T0 + 400_000]], has_pyramid: false };
  const { overview, asked, state } = asking(told);
  const questions = async (now) => {
    state.now = now;
    overview.ask(TOPIC, { f0: 0, f1: 1 });
    await settle();
    await settle();
    return asked.filter(({ path }) => path.endsWith("stored")).length;
  };
  const counts = [];
  for (const now of [0, 4999, 5000, 10_000, 15_000, 34_999, 35_000]) counts.push(await questions(now));
  assert.deepEqual(counts, [1, 1, 2, 3, 4, 4, 5]);
  state.told = { ...told, t1: T0 + 20_000 };
  assert.equal(await questions(55_000), 6);
  assert.equal(await questions(59_999), 6);
  assert.equal(await questions(60_000), 7);
});

test("where nothing is stored, or an answer is none, there is nothing to show", async () => {
  for (const told of [{ t0: null, t1: null, spans: [], has_pyramid: false }, { t0: 5, t1: 4, spans: [] }, { t0: 1, t1: 2, spans: "x" }, {}]) {
    const { overview } = asking(told);
    overview.ask(TOPIC, { f0: 0, f1: 1 });
    await settle();
    assert.equal(overview.stored, null);
  }
});

test("a part of the strip has the greatest level of its columns, and is stored if any of them is", () => {
  const columns = { t0: 1000, columnMs: 100, effort: Float32Array.from([0.1, 0, 0.1, 0.1]), levels: Float32Array.from([-50, NaN, -40, -60]), unit: "dBFS", isWhole: true };
  const stored = { t0: 1000, t1: 1400, spans: [[1000, 1400], [1500, 1600]], columns };
  assert.deepEqual(storedIn(stored, 1000, 1400), { isStored: true, level: -40 });
  assert.deepEqual(storedIn(stored, 1110, 1190), { isStored: false, level: NaN });
  assert.deepEqual(storedIn(stored, 1050, 1150), { isStored: true, level: -50 });
  assert.deepEqual(storedIn(stored, 1399, 1500), { isStored: true, level: -60 });
  assert.deepEqual(storedIn(stored, 1450, 1490), { isStored: false, level: NaN });
  assert.deepEqual(storedIn(stored, 1550, 1560), { isStored: true, level: NaN });
  assert.deepEqual(storedIn({ ...stored, columns: null }, 1100, 1101), { isStored: true, level: NaN });
  const partial = { ...stored, columns: { ...columns, isWhole: false } };
  assert.deepEqual(storedIn(partial, 1110, 1190), { isStored: true, level: NaN }, "not read is not missing");
  assert.deepEqual(storedIn(partial, 1450, 1490), { isStored: false, level: NaN });
  const { lo, hi } = levelsRange(stored);
  assert.ok(lo < -60 && hi === -40);
  assert.equal(levelsRange({ columns: null }), null);
});

test("a window is moved as a whole or by an end, which keeps a second; later than the newest is live", () => {
  const span = { t0: 100_000, t1: 160_000 };
  assert.deepEqual(movedWindow(span, "all", -5000), { t0: 95_000, t1: 155_000 });
  assert.deepEqual(movedWindow(span, "begin", 5000), { t0: 105_000, t1: 160_000 });
  assert.deepEqual(movedWindow(span, "begin", 500_000), { t0: 159_000, t1: 160_000 });
  assert.deepEqual(movedWindow(span, "end", -500_000), { t0: 100_000, t1: 101_000 });
  const view = { span: 10, times: [] };
  assert.deepEqual(showSpan(view, span, 200_000), { span: 60, t1: 160_000, times: [] });
  assert.deepEqual(showSpan(view, { t0: 150_000, t1: 210_000 }, 200_000), { span: 60, t1: null, times: [] });
});

test("keys of the window move it by halves and tens of its length, and to both ends", () => {
  const whole = { t0: 0, t1: 1000 };
  const key = (name) => keyedWindow({ t0: 400, t1: 500 }, name, whole);
  assert.deepEqual(["ArrowLeft", "ArrowUp", "PageDown", "Home", "End"].map((name) => key(name).t0), [350, 450, -600, 0, 900]);
  assert.equal(key("x"), null);
});

test("a click between two dates shows what is between them: local days, also those of 23 and 25 hours", () => {
  const zone = "Europe/Berlin";
  const whole = { t0: T0, t1: T0 + 10 * DAY };
  const next = random(3);
  const lengths = new Set();
  for (let n = 0; n < 300; n += 1) {
    const px = 2000 * next();
    const { t0, t1 } = tickSpan(whole, 2000, zone, px);
    const tMs = whole.t0 + (px / 2000) * (whole.t1 - whole.t0);
    assert.ok(t0 <= tMs + 1 && tMs <= t1 + 1);
    lengths.add(Math.round((t1 - t0) / 3_600_000));
  }
  assert.ok(lengths.has(25) && lengths.has(24), [...lengths].join());
  const ticks = overviewTicks(whole, 2000, zone);
  assert.ok(ticks.every(({ px }, k) => k === 0 || px - ticks[k - 1].px >= 79));
});

test("what is stored is drawn over hatching, and events and dates are where they belong", () => {
  const drawn = [];
  let fillStyle = "";
  const nothing = () => {};
  const context = { clearRect: nothing, beginPath: nothing, moveTo: nothing, lineTo: nothing, stroke: nothing, measureText: () => ({ width: 30 }) };
  context.fillRect = (x, y, width, height) => drawn.push({ colour: fillStyle, x, y, width, height });
  context.fillText = (text, x) => drawn.push({ text, x });
  Object.defineProperty(context, "fillStyle", { set: (value) => (fillStyle = value), get: () => fillStyle });
  const canvas = { width: 400, height: 45, getContext: () => context };
  const span = { t0: T0, t1: T0 + 4 * DAY };
  const stored = { ...span, spans: [[T0, T0 + DAY], [T0 + 2 * DAY, T0 + 4 * DAY]], columns: null };
  drawOverview(canvas, { stored, span, zone: "UTC", entries: [{ t0: T0 + 2 * DAY }] }, { plot: "p", now: "n", grid: "g", mark: "m", muted: "t" }, 1);
  const bars = drawn.filter(({ colour }) => colour === "n").map(({ x }) => x);
  assert.deepEqual(bars, [...Array(100).keys(), ...Array.from({ length: 200 }, (_, k) => 200 + k)]);
  assert.deepEqual(drawn.filter(({ colour }) => colour === "m").map(({ x }) => x), [199]);
  assert.ok(drawn.some(({ text }) => text === "2026-10-21"));
  drawn.length = 0;
  drawOverview(canvas, { stored: { ...stored, t1: T0 + 3 * DAY, spans: [[T0, T0 + 2 * DAY]] }, span, zone: "UTC", entries: [] }, { plot: "p", now: "n" }, 1);
  const plain = drawn.filter(({ colour, x, width }) => colour === "p" && width === 1 && x >= 200).map(({ x }) => x);
  assert.deepEqual(plain, Array.from({ length: 100 }, (_, k) => 300 + k), "hatched to the end of the answer, not beyond");
});
