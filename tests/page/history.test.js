import assert from "node:assert/strict";
import { test } from "node:test";

import { hasBars } from "../../spectrod/apps/web/page/rows/spectrumsum.js";
import { decodeHistory, rowsOf } from "../../spectrod/apps/web/page/rows/answer.js";
import { columnFor, exportAddress, History, LADDER_MS, TILE_COLUMNS } from "../../spectrod/apps/web/page/rows/history.js";

const TOPIC = { id: 7, topic: "spec/pond/0/dbfs/", endpoint: "tcp://127.0.0.1:5556" };
const ABOUT = { topic: TOPIC, f0: 10, f1: 24000, axis: "log", px: 600, statistic: "max" };
const SECOND = 1000;
const TILE = SECOND * TILE_COLUMNS;

/** Body of an answer; `value(n)` fills column n, null is a gap. */
function body(changes = {}, value = (n) => n) {
  const header = {
    topic: TOPIC.topic, kind: "spec", unit: "dBFS", cell_ms: SECOND, t0: 0, t1: TILE, f0: 0, f1: 24000,
    w: TILE_COLUMNS, h: 3, layers: ["max"], edges_hz: null, sources: ["ring"], left_out: [], ...changes,
  };
  const columns = Array.from({ length: header.w }, (_, n) => value(n));
  header.until ??= header.t0 + (columns.findLastIndex((one) => one !== null) + 1) * header.cell_ms;
  const text = new TextEncoder().encode(JSON.stringify(header));
  const begin = Math.ceil((4 + text.length) / 4) * 4;
  const { w, h } = header;
  const buffer = new ArrayBuffer(begin + 4 * w + 2 * w * h);
  new DataView(buffer).setUint32(0, text.length, true);
  new Uint8Array(buffer).set(text, 4);
  const effort = new Float32Array(buffer, begin, w);
  const values = new Uint16Array(buffer, begin + 4 * w, w * h);
  for (const [n, what] of columns.entries()) {
    effort[n] = what === null ? 0 : header.cell_ms / 1000;
    values.fill(what ?? 65535, n * h, (n + 1) * h);
  }
  return buffer;
}

/** A server that answers when told to. */
class Server {
  asked = [];
  etag = 0;

  fetch = (address, { signal, headers }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("aborted")));
      this.asked.push({ query: Object.fromEntries(address.searchParams), signal, headers, resolve, reject });
    });

  async answer(n, { isFinal = true, value, status = 200, changes = {} } = {}) {
    const { query, resolve } = this.asked[n];
    const cell_ms = (query.t1 - query.t0) / query.w;
    this.etag += 1;
    const headers = new Map([["cache-control", isFinal ? "private, immutable" : "no-store"], ["etag", `${this.etag}`]]);
    const buffer = body({ t0: Number(query.t0), t1: Number(query.t1), cell_ms, ...changes }, value);
    resolve({ ok: status === 200, status, headers, arrayBuffer: async () => buffer, json: async () => ({ error: "no" }) });
    await new Promise((done) => setImmediate(done));
  }
}

function started(now = () => 0) {
  const server = new Server();
  const history = new History({ fetch: server.fetch, base: "http://here/page/", now });
  const said = [];
  history.onnotice = (text) => said.push(text);
  return { server, history, said };
}

const times = (t0, t1, msPerPx = 1500) => ({ t0, t1, msPerPx });

test("columns are the longest of the ladder that are not longer than a pixel", () => {
  assert.equal(columnFor(1), 10);
  assert.equal(columnFor(999), 750);
  assert.equal(columnFor(1000), 1000);
  assert.equal(columnFor(1e12), 345_600_000);
  for (let n = 1; n < LADDER_MS.length - 3; n += 1) {
    const ratio = LADDER_MS[n] / LADDER_MS[n - 1];
    assert.ok(ratio > 1 && ratio <= 2, `${LADDER_MS[n]}: a pixel has two columns at most`);
  }
});

test("columns become rows with the middle of their time; gaps are left out and said by the next row", () => {
  const rows = rowsOf(decodeHistory(body({ sources: ["segment", "ring"] }, (n) => (n === 0 || n === 5 ? null : n))));
  assert.equal(rows.length, TILE_COLUMNS - 2);
  assert.deepEqual(rows.slice(0, 5).map(({ tMs, flags, values }) => [tMs, flags, values[2]]), [
    [1500, 1, 1], [2500, 0, 2], [3500, 0, 3], [4500, 0, 4], [6500, 1, 6],
  ]);
  const { description } = rows[0];
  assert.deepEqual([description.row_s, description.bits, description.first_hz, description.bin_hz], [1, 16, 4000, 8000]);
});

test("columns have what their sums over bins need", () => {
  const said = { enbw_hz: 15, weighting: "A" };
  const [{ description }] = rowsOf(decodeHistory(body({ sources: ["segment"], ...said }, (n) => n)));
  assert.deepEqual({ enbw_hz: description.enbw_hz, weighting: description.weighting }, said);
  assert.ok(hasBars({ ...description, unit: "dBFS" }));
});

test("what the server did not receive, because nobody watched, is no gap", () => {
  const rows = rowsOf(decodeHistory(body({ sources: ["replay", "ring"] }, (n) => (n === 5 ? null : n))));
  assert.equal(rows.length, TILE_COLUMNS - 1);
  assert.ok(rows.every(({ flags }) => flags === 0));
});

test("answers that are not what they say are refused with a text", () => {
  const whole = body();
  assert.throws(() => decodeHistory(new ArrayBuffer(3)), /a header of 0 bytes in 3/);
  assert.throws(() => decodeHistory(whole.slice(0, 100)), /a header of \d+ bytes in 100/);
  assert.throws(() => decodeHistory(whole.slice(0, whole.byteLength - 2)), /bytes: must be/);
  assert.throws(() => decodeHistory(body({ w: 3 }).slice(0, -4)), /bytes: must be/);
  assert.throws(() => decodeHistory(body({ f1: null })), /without its numbers/);
  assert.throws(() => decodeHistory(body({ cell_ms: 0 })), /without its numbers/);
});

test("each tile of the span is asked for once, by number and name", async () => {
  const { server, history } = started();
  assert.deepEqual(history.rows("me", ABOUT, times(0, 2 * TILE)), { rows: [], isComplete: false });
  history.settle();
  history.settle();
  assert.equal(server.asked.length, 2);
  const { query } = server.asked[0];
  assert.deepEqual([query.t0, query.t1, query.w, query.topic, query.layers], [`${TILE}`, `${2 * TILE}`, "64", "7", "max"]);
  assert.deepEqual([query.f0, query.f1, query.axis, query.h, query.step], ["10", "24000", "log", "600", "0.1"]);
  assert.equal(query.name, "tcp://127.0.0.1:5556 spec/pond/0/dbfs/");
  await server.answer(0);
  await server.answer(1);
  assert.equal(history.version, 2);
  const { rows, isComplete } = history.rows("me", ABOUT, times(1000, 2 * TILE - 1000));
  assert.equal(isComplete, true);
  assert.equal(rows.length, 2 * TILE_COLUMNS - 2);
  assert.ok(rows.every(({ tMs }, n) => n === 0 || tMs < rows[n - 1].tMs), "the newest first");
  history.settle();
  assert.equal(server.asked.length, 2);
});

test("where a tile has come the next is asked for at once, not with the next frame", async () => {
  const { server, history } = started();
  history.rows("me", ABOUT, times(0, 5 * TILE));
  history.settle();
  assert.equal(server.asked.length, 3);
  await server.answer(1);
  assert.equal(server.asked.length, 4);
  assert.equal(history.running, 3);
});

test("what is wanted no more is ended, and others are fetched instead", async () => {
  const { server, history } = started();
  history.rows("me", ABOUT, times(0, 10 * TILE));
  history.settle();
  assert.equal(server.asked.length, 3);
  history.rows("me", ABOUT, times(20 * TILE, 21 * TILE));
  history.settle();
  assert.deepEqual(server.asked.map(({ signal }) => signal.aborted), [true, true, true, false]);
  await server.answer(3);
  assert.equal(history.size, 1);
  history.rows("me", ABOUT, times(30 * TILE, 31 * TILE));
  history.forget("me");
  history.settle();
  assert.equal(server.asked.length, 4);
});

test("a coarser tile shows until the finer one is there", async () => {
  const { server, history } = started();
  history.rows("me", ABOUT, times(0, TILE, 5000));
  history.settle();
  await server.answer(0);
  const { rows, isComplete } = history.rows("me", ABOUT, times(0, TILE, 1000));
  assert.equal(isComplete, false);
  assert.equal(rows.length, 13);
  assert.equal(rows[0].description.row_s, 5);
});

test("a tile that was made before its end is asked for again, no sooner than after some seconds", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  const ask = () => {
    const found = history.rows("me", ABOUT, times(0, TILE));
    history.settle();
    return found;
  };
  ask();
  await server.answer(0, { isFinal: false, value: (n) => (n < 40 ? n : null) });
  assert.equal(ask().rows.length, 40);
  now = 2999;
  ask();
  assert.equal(server.asked.length, 1);
  now = 3000;
  ask();
  assert.equal(server.asked.length, 2);
  await server.answer(1, { isFinal: false });
  now = 10_000;
  assert.equal(ask().isComplete, true);
  assert.equal(server.asked.length, 2, "it reaches its end now");
});

test("before live rows a tile has the column that they begin in, and is asked for again soon, once", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  const ask = (t1) => {
    const { rows } = history.rows("me", ABOUT, { ...times(0, t1), isBeforeLive: true });
    history.settle();
    return rows.length;
  };
  ask(20_300);
  await server.answer(0, { isFinal: false, changes: { until: 20_300 }, value: (n) => (n < 21 ? n : null) });
  assert.equal(ask(20_300), 21);
  assert.equal(ask(20_000), 20);
  now = 249;
  ask(20_400);
  assert.equal(server.asked.length, 1);
  now = 250;
  ask(20_400);
  assert.equal(server.asked.length, 2);
  await server.answer(1, { status: 304 });
  now = 3249;
  ask(20_400);
  assert.equal(server.asked.length, 2, "the server has no more");
});

test("a tile that brings nothing new is asked for less and less often, at least once a minute", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  const asked = [];
  for (; now <= 400_000; now += 1000) {
    history.rows("me", ABOUT, times(0, TILE));
    history.settle();
    if (server.asked.length === asked.length) continue;
    asked.push(now);
    server.etag = 0;
    await server.answer(asked.length - 1, { isFinal: false, value: () => null });
  }
  assert.deepEqual(asked.slice(0, 6), [0, 3000, 9000, 21_000, 45_000, 93_000]);
  assert.equal(asked.at(-1) - asked.at(-2), 60_000);
  assert.equal(history.version, 1);
});

test("an archive is asked once for what it does not have, and again when it says that more is stored", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  const asked = [];
  const about = (stored) => ({ ...ABOUT, topic: { ...TOPIC, stored } });
  const askUntil = async (endMs, stored, changes = {}) => {
    for (; now < endMs; now += 1000) {
      history.rows("me", about(stored), times(0, TILE));
      history.settle();
      if (server.asked.length === asked.length) continue;
      asked.push(now);
      server.etag = 0;
      await server.answer(asked.length - 1, { isFinal: false, value: () => null, changes });
    }
  };
  await askUntil(200_000, [0, 5000], { left_out: ["1 files of recordings are not indexed yet"] });
  assert.equal(asked.length > 3, true, "the server has not read all");
  const before = asked.length;
  server.etag = 1;
  await askUntil(270_000, [0, 5000]);
  assert.equal(asked.length, before + 1);
  await askUntil(500_000, [0, 5000]);
  assert.equal(asked.length, before + 1);
  await askUntil(600_000, [0, 9000]);
  assert.equal(asked.length, before + 2);
  await askUntil(1_000_000, [0, 9000]);
  assert.equal(asked.length, before + 3, "a hole may be filled");
});

test("until there is something for a new axis, the old one's rows show; axes that are passed through are not asked for", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  history.rows("me", ABOUT, times(0, TILE));
  history.settle();
  await server.answer(0);
  for (const f0 of [20, 40, 80]) {
    now += 50;
    assert.equal(history.rows("me", { ...ABOUT, f0 }, times(0, TILE)).rows.length, TILE_COLUMNS);
    history.settle();
  }
  assert.equal(server.asked.length, 1);
  now += 200;
  history.rows("me", { ...ABOUT, f0: 80 }, times(0, TILE));
  history.settle();
  assert.equal(server.asked[1].query.f0, "80");
  await server.answer(1, { value: (n) => n + 1000 });
  const { rows, isComplete } = history.rows("me", { ...ABOUT, f0: 80 }, times(0, TILE));
  assert.deepEqual([rows.length, rows[0].values[0], isComplete], [TILE_COLUMNS, 1000 + TILE_COLUMNS - 1, true]);
});

test("a tile is asked for again by its tag; the server need not send it twice", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  const ask = () => {
    const found = history.rows("me", ABOUT, times(0, TILE));
    history.settle();
    return found.rows.length;
  };
  ask();
  await server.answer(0, { isFinal: false, value: (n) => (n < 40 ? n : null) });
  now = 3000;
  ask();
  assert.equal(server.asked[1].headers["If-None-Match"], "1");
  await server.answer(1, { status: 304 });
  assert.equal(ask(), 40);
  assert.equal(history.version, 1);
});

test("slices of an answer are those of its rows; wrong ones are refused", () => {
  const bins = { f0: 5, f1: 75, first_hz: 0, bin_hz: 10, n_bins: 8 };
  const slices = [{ first: 1, per_value: 1, values: 1 }, { first: 2, per_value: 4, values: 2 }];
  const [row] = rowsOf(decodeHistory(body({ ...bins, slices })));
  assert.deepEqual([row.description.slices, row.description.first_hz, row.description.n_bins], [slices, 0, 8]);
  for (const wrong of [[], [slices[0]], [{ ...slices[0], values: 3, first: 6 }], [{ ...slices[0], values: 3, per_value: 0 }], "no"]) {
    assert.throws(() => decodeHistory(body({ ...bins, slices: wrong })), /without its numbers/);
  }
  assert.throws(() => decodeHistory(body({ slices })), /without its numbers/);
});

test("over a slow line one tile is fetched at a time, over a fast one three", async () => {
  let now = 0;
  const { server, history } = started(() => now);
  history.rows("me", ABOUT, times(0, 20 * TILE));
  history.settle();
  assert.equal(history.running, 3);
  now = 600;
  for (const n of [0, 1, 2]) await server.answer(n);
  history.settle();
  assert.equal(history.running, 1);
  for (const [n, atOnce] of [[3, 2], [4, 3], [5, 3]]) {
    now += 100;
    await server.answer(n);
    history.settle();
    assert.equal(history.running, atOnce);
  }
});

test("an error is said, and tried again later", async () => {
  let now = 0;
  const { server, history, said } = started(() => now);
  const ask = () => {
    history.rows("me", ABOUT, times(0, TILE));
    history.settle();
  };
  ask();
  await server.answer(0, { status: 404 });
  assert.deepEqual(said, ["the past: no"]);
  now = 4999;
  ask();
  assert.equal(server.asked.length, 1);
  now = 5000;
  ask();
  assert.equal(server.asked.length, 2);
  await server.answer(1, { changes: { left_out: ["2 of 3 segments were not read"] } });
  assert.deepEqual(said.slice(1), ["the past: 2 of 3 segments were not read"]);
});

test("at most 512 tiles are kept, the ones that were used last", async () => {
  const { server, history } = started();
  for (let n = 0; n < 530; n += 1) {
    history.rows("me", ABOUT, times(n * TILE, (n + 1) * TILE));
    history.settle();
    await server.answer(n);
  }
  assert.equal(history.size, 512);
  history.rows("me", ABOUT, times(529 * TILE, 530 * TILE));
  history.settle();
  assert.equal(server.asked.length, 530);
  history.rows("me", ABOUT, times(0, TILE));
  history.settle();
  assert.equal(server.asked.length, 531);
});

test("a span of centuries wants a bounded number of tiles", () => {
  const { server, history } = started();
  history.rows("me", ABOUT, times(0, 4e12, 10));
  history.settle();
  assert.equal(server.asked.length, 3);
});

test("a file of what is shown has its times, frequencies and the topic's name", () => {
  const shown = { t0: 1000, t1: 31_000, f0: 10, f1: 24_000, axis: "log", px: 800, statistic: "mean" };
  const address = exportAddress("http://here/page/", TOPIC, shown, "csv");
  assert.equal(address.pathname, "/page/api/export");
  assert.deepEqual(Object.fromEntries(address.searchParams), {
    format: "csv", topic: "7", name: "tcp://127.0.0.1:5556 spec/pond/0/dbfs/",
    t0: "1000", t1: "31000", f0: "10", f1: "24000", axis: "log", w: "1024", h: "800", layers: "mean",
  });
});
