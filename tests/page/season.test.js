/** The days of an archive: their calendar, tiles, pictures, scale and trend. */

import assert from "node:assert/strict";
import test from "node:test";

import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { monthsOf } from "../../spectrod/apps/web/page/season/calendar.js";
import { dayOfKey } from "../../spectrod/apps/web/page/season/daykeys.js";
import { HEIGHT, paintDay } from "../../spectrod/apps/web/page/season/daypicture.js";
import { sampleOf, scaleOf } from "../../spectrod/apps/web/page/season/dayscale.js";
import { BYTES_MAX, columnOf, DayTiles, levelColumnOf } from "../../spectrod/apps/web/page/season/daytiles.js";
import { divergingColours } from "../../spectrod/apps/web/page/plot/diverging.js";
import { gapsOf, pointsOf, rangeOfLines } from "../../spectrod/apps/web/page/season/trendline.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const daysOf = (t0, t1, zone) => monthsOf({ t0: Date.parse(t0), t1: Date.parse(t1) }, zone, 100).months.flatMap(({ days }) => days);

test("days are those of the zone, each beginning where the one before ends", () => {
  for (const zone of ["UTC", "Europe/Berlin", "America/Santiago", "Asia/Beirut", "Asia/Kathmandu", "Atlantic/Azores", "Australia/Lord_Howe"]) {
    const days = daysOf("2026-01-01T00:00Z", "2026-12-31T00:00Z", zone);
    days.slice(1).forEach((day, k) => assert.equal(day.begin, days[k].end, `${zone} ${day.date}`));
    const local = new Intl.DateTimeFormat("sv", { timeZone: zone });
    for (const { date, begin, end } of days) {
      assert.equal(local.format(begin), date, zone);
      assert.equal(local.format(end - 1), date, zone);
      assert.notEqual(local.format(begin - 1), date, zone);
    }
  }
});

test("days of a change of the clock have 23, 25 or half hours", () => {
  const changed = (zone) => daysOf("2026-01-01T12:00Z", "2026-12-30T12:00Z", zone).filter(({ hours }) => hours !== 24).map(({ date, hours }) => `${date} ${hours}`);
  assert.deepEqual(changed("UTC"), []);
  assert.deepEqual(changed("Europe/Berlin"), ["2026-03-29 23", "2026-10-25 25"]);
  assert.deepEqual(changed("Asia/Beirut"), ["2026-03-29 23", "2026-10-24 25"]);
  assert.deepEqual(changed("Australia/Lord_Howe"), ["2026-04-05 24.5", "2026-10-04 23.5"]);
});

test("months are headings, weekdays begin with Monday, and of too many months the newest are there", () => {
  const span = { t0: Date.parse("2025-11-20T00:00Z"), t1: Date.parse("2026-02-03T00:00Z") };
  const all = monthsOf(span, "UTC", 60);
  assert.deepEqual(all.months.map(({ name, days }) => [name, days.length]), [["2025-11", 11], ["2025-12", 31], ["2026-01", 31], ["2026-02", 2]]);
  assert.equal(all.months[0].days[0].weekday, 3);
  assert.equal(all.left, 0);
  const some = monthsOf(span, "UTC", 2);
  assert.deepEqual(some.months.map(({ name }) => name), ["2026-01", "2026-02"]);
  assert.equal(some.left, 42);
});

test("keys go from day to day as in a calendar, and no further than the days", () => {
  const days = daysOf("2026-01-20T00:00Z", "2026-03-31T00:00Z", "UTC");
  const press = (key, date, more = {}) => {
    const found = dayOfKey({ key, ...more }, days, days.findIndex((day) => day.date === date));
    return found === null ? null : days[found].date;
  };
  const moves = [
    ["ArrowLeft", "2026-02-01", "2026-01-31"], ["ArrowRight", "2026-02-28", "2026-03-01"],
    ["ArrowUp", "2026-02-02", "2026-01-26"], ["ArrowDown", "2026-02-25", "2026-03-04"],
    ["ArrowLeft", "2026-01-20", "2026-01-20"], ["ArrowRight", "2026-03-30", "2026-03-30"],
    ["ArrowUp", "2026-01-25", "2026-01-25"], ["ArrowDown", "2026-03-25", "2026-03-25"],
    ["Home", "2026-02-11", "2026-02-09"], ["End", "2026-02-11", "2026-02-15"], ["Home", "2026-01-22", "2026-01-20"],
    ["PageUp", "2026-03-30", "2026-02-28"], ["PageDown", "2026-01-31", "2026-02-28"], ["PageUp", "2026-02-11", "2026-01-20"],
    ["PageUp", "2026-01-22", "2026-01-20"], ["PageDown", "2026-03-02", "2026-03-30"],
  ];
  for (const [key, from, to] of moves) assert.equal(press(key, from), to, `${key} from ${from}`);
  assert.equal(press("Home", "2026-02-11", { ctrlKey: true }), "2026-01-20");
  assert.equal(press("End", "2026-02-11", { ctrlKey: true }), "2026-03-30");
  for (const more of [{ shiftKey: true }, { altKey: true }, { ctrlKey: true }]) assert.equal(press("ArrowUp", "2026-02-11", more), null);
  for (const key of ["Enter", "t", "toString"]) assert.equal(press(key, "2026-02-11"), null);
});

const DESCRIPTION = Object.freeze({
  bits: 16, lo: -327.67, step: 0.01, row_s: 3600, n_bins: 8, first_hz: 50, bin_hz: 100, edges_hz: null,
  slices: [{ first: 0, per_value: 1, values: 8 }],
});
const codeOf = (level) => Math.round((level + 327.67) * 100);
const row = (tMs, levels) => ({ tMs, values: Uint16Array.from(levels, (level) => (level === null ? 65535 : codeOf(level))), description: DESCRIPTION });

test("a day's picture has its hours from left to right and frequencies upwards, and nothing where nothing is", () => {
  const begin = 10 * DAY;
  const rows = [row(begin + 0.5 * HOUR, [-10, -20, -30, -40, -50, -60, -70, null]), row(begin + 23.5 * HOUR, [-1, -2, -3, -4, -5, -6, -7, -8])];
  const pixels = new Uint32Array(HEIGHT * 24);
  const axis = makeAxis({ kind: "linear", f0: 0, f1: 800, width: HEIGHT });
  const used = paintDay(pixels, 24, rows, { begin, end: begin + DAY }, axis, (level) => Math.round(-100 * level));
  assert.equal(used, 2);
  const column = (x) => Array.from({ length: 8 }, (_, band) => pixels[(HEIGHT - 1 - (band * 5 + 2)) * 24 + x]);
  assert.deepEqual(column(0), [1000, 2000, 3000, 4000, 5000, 6000, 7000, 0]);
  assert.deepEqual(column(23), [100, 200, 300, 400, 500, 600, 700, 800]);
  for (let x = 1; x < 23; x += 1) assert.deepEqual(column(x), Array(8).fill(0));
});

test("a day of 23 hours has as many columns, the last hour in the last", () => {
  const pixels = new Uint32Array(HEIGHT * 23);
  const axis = makeAxis({ kind: "linear", f0: 0, f1: 800, width: HEIGHT });
  paintDay(pixels, 23, [row(22.5 * HOUR, Array(8).fill(-1))], { begin: 0, end: 23 * HOUR }, axis, () => 7);
  assert.deepEqual([...pixels.subarray(0, 23)], [...Array(22).fill(0), 7]);
});

test("the scale is that of all samples; of differences it is even about 0", () => {
  const levels = Array.from({ length: 1000 }, (_, k) => -100 + 0.08 * k);
  const sample = sampleOf(Uint16Array.from(levels, codeOf), DESCRIPTION);
  assert.ok(Math.abs(sample[0] + 100) < 0.01 && sample.length === 1000);
  assert.deepEqual(scaleOf([sample], false), { lo: -100, hi: -20 });
  assert.deepEqual(scaleOf([sample, Float32Array.from(Array(1000).fill(10))], false), { lo: -95, hi: 10 });
  assert.deepEqual(scaleOf([Float32Array.from([-7.5, 0, 1, 2])], true), { lo: -8, hi: 8 });
  assert.deepEqual(scaleOf([Float32Array.from([-0.1, 0])], true), { lo: -3, hi: 3 });
  assert.equal(scaleOf([], false), null);
  assert.equal(sampleOf(new Uint16Array(50).fill(65535), DESCRIPTION).length, 0);
});

test("colours of differences go from blue over the middle to red, in both themes", () => {
  for (const theme of ["light", "dark"]) {
    const colours = divergingColours(theme);
    assert.equal(colours.length, 256);
    assert.ok(colours[0][2] > colours[0][0] && colours[255][0] > colours[255][2]);
    const [red, , blue] = colours[128];
    assert.ok(Math.abs(red - blue) < 12);
  }
});

const TOPIC = { id: 3, topic: "spec/a/0/p/", endpoint: "results" };
const AXIS = { kind: "log", f0: 10, f1: 1000 };
const asked = (n, more = {}) => ({ topic: TOPIC, less: null, layer: "max", times: { t0: n * DAY, t1: (n + 1) * DAY, columnMs: HOUR }, axis: AXIS, ...more });

function answerOf(header, values) {
  const text = new TextEncoder().encode(JSON.stringify({ t0: 0, cell_ms: HOUR, f0: 0, f1: 1, layers: ["max"], unit: "dB", sources: ["pyramid"], left_out: [], ...header }));
  const begin = Math.ceil((4 + text.length) / 4) * 4;
  const buffer = new ArrayBuffer(begin + 4 * header.w + 2 * values.length);
  new DataView(buffer).setUint32(0, text.length, true);
  new Uint8Array(buffer, 4, text.length).set(text);
  new Float32Array(buffer, begin, header.w).fill(3600);
  new Uint16Array(buffer, begin + 4 * header.w).set(values);
  return buffer;
}

/** A server whose answers wait to be given. */
function server() {
  const waiting = [];
  const fetch = (address, { signal }) =>
    new Promise((resolve, reject) => {
      waiting.push({ address: new URL(address), resolve });
      signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  const give = async (buffer) => {
    waiting.shift().resolve({ ok: true, arrayBuffer: async () => buffer });
    for (let k = 0; k < 10; k += 1) await Promise.resolve();
  };
  const refuse = async (error) => {
    waiting.shift().resolve({ ok: false, status: 400, json: async () => ({ error }) });
    for (let k = 0; k < 10; k += 1) await Promise.resolve();
  };
  return { waiting, fetch, give, refuse };
}

test("tiles are asked for in order, two at once, a column more than the days have", async () => {
  const { waiting, fetch, give } = server();
  const tiles = new DayTiles({ fetch, base: "http://x/", now: () => 0 });
  const less = { id: 5, topic: "spec/b/0/p/", endpoint: "results" };
  tiles.want([asked(0), asked(1, { less }), asked(2)]);
  assert.equal(waiting.length, 2);
  const queries = waiting.map(({ address }) => Object.fromEntries(address.searchParams));
  assert.deepEqual([queries[0].w, queries[0].t0, queries[0].t1, queries[0].axis, queries[0].less], ["25", "0", String(DAY), "log", undefined]);
  assert.deepEqual([queries[1].less, queries[1].less_name, queries[1].name], ["5", "results spec/b/0/p/", "results spec/a/0/p/"]);
  await give(answerOf({ w: 2, h: 1 }, [codeOf(-20), codeOf(-30)]));
  assert.equal(waiting.length, 2);
  const tile = tiles.get(asked(0));
  assert.deepEqual(pointsOf(tile).map(({ tMs, level }) => [tMs, Math.round(level)]), [[0.5 * HOUR, -20], [1.5 * HOUR, -30]]);
  assert.equal(tiles.get(asked(2)), null);
});

test("an answer of what nobody wants any more is left, and what fails is told and asked for again later", async () => {
  const { waiting, fetch, refuse } = server();
  let now = 0;
  const tiles = new DayTiles({ fetch, base: "http://x/", now: () => now });
  tiles.want([asked(0)]);
  tiles.want([asked(1)]);
  waiting.shift();
  await refuse("have different bins; a difference needs the same");
  assert.equal(tiles.get(asked(1)).why, "have different bins; a difference needs the same");
  tiles.want([asked(1)]);
  assert.equal(waiting.length, 0);
  now = 10_000;
  tiles.want([asked(1)]);
  assert.equal(waiting.length, 1);
});

test("kept tiles are bounded; those that were not used for longest go", async () => {
  const { fetch, give } = server();
  const tiles = new DayTiles({ fetch, base: "http://x/", now: () => 0 });
  const values = new Uint16Array(1500 * 1400).fill(codeOf(-20));
  for (let n = 0; n < 9; n += 1) {
    tiles.want([asked(n)]);
    await give(answerOf({ w: 1500, h: 1400 }, values));
    assert.ok(tiles.bytes <= BYTES_MAX);
  }
  assert.equal(tiles.get(asked(0)), null);
  assert.notEqual(tiles.get(asked(8)), null);
});

test("columns of days are a quarter of an hour or an hour, those of a level no more than a screen has", () => {
  assert.deepEqual([columnOf(14), columnOf(15)], [HOUR / 4, HOUR]);
  assert.deepEqual([1, 80, 300, 3000, 300000].map((days) => levelColumnOf(days * DAY) / HOUR), [1, 1, 4, 168, 168]);
});

test("the trend has gaps where no line has a point, and an axis around all levels", () => {
  const point = (hour, level) => ({ tMs: (hour + 0.5) * HOUR, level });
  const lines = [{ points: [point(0, -20), point(1, -21)] }, { points: [point(1, -25), point(5, -50)] }];
  assert.deepEqual(gapsOf(lines, { t0: 0, t1: 8 * HOUR }, HOUR), [[2 * HOUR, 5 * HOUR], [6 * HOUR, 8 * HOUR]]);
  assert.deepEqual(rangeOfLines(lines), { lo: -52, hi: -18 });
  assert.deepEqual(rangeOfLines([{ points: [point(0, -20)] }]), { lo: -22, hi: -12 });
  assert.equal(rangeOfLines([]), null);
});
