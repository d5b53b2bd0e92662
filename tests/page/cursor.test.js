// Cursors in time: where they go, how the view moves about them, and the rows that the server has of their times.
import assert from "node:assert/strict";
import { test } from "node:test";

import { actionIn, ACTIONS, cursorAt, movedInTime, zoomedInTime } from "../../spectrod/apps/web/page/panel/actions.js";
import { goTo, typedNote } from "../../spectrod/apps/web/page/side/timebar.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { CursorRows } from "../../spectrod/apps/web/page/rows/cursorrow.js";

const NEWEST = 1_000_000;
const scene = (view) => ({ view: makeView(view), newestMs: NEWEST, stepInTime: (tMs, direction) => tMs + 100 * direction });
/** Time at a share of the height. */
const timeAt = ({ t1, span }, share) => (t1 ?? NEWEST) - 1000 * share * span;

test("zooming in time keeps the time under the pointer, until that would show what is not there yet", () => {
  for (const t1 of [null, 500_000]) {
    for (const [factor, share] of [[2, 0.5], [1.3, 0.9], [0.8, 0.3], [4, 1]]) {
      const { view } = scene({ t1, span: 100 });
      const after = { ...view, ...zoomedInTime({ view, newestMs: NEWEST }, factor, share) };
      const isLive = after.t1 === null;
      assert.equal(after.span, 100 / factor);
      if (!isLive) assert.ok(Math.abs(timeAt(after, share) - timeAt(view, share)) < 1e-6);
      assert.equal(isLive, t1 === null && factor < 1);
    }
  }
  assert.equal(zoomedInTime(scene({ span: 100 }), 2, 0.01).t1, null);
  // Before the first row a view of the past is held as well; one of now has no time to hold.
  assert.deepEqual(zoomedInTime({ view: { span: 40, t1: 500_000 }, newestMs: null }, 2, 0.5), { span: 20, t1: 490_000 });
  assert.deepEqual(zoomedInTime({ view: { span: 40, t1: null }, newestMs: null }, 2, 0.5), { span: 20 });
  assert.deepEqual(movedInTime({ view: { t1: 500_000 }, newestMs: null }, 3), { t1: 503_000 });
  assert.deepEqual(movedInTime({ view: { t1: null }, newestMs: null }, 3), {});
  assert.deepEqual(zoomedInTime(scene({ span: 2, t1: 500_000 }), 100, 0.5), { span: 1, t1: 499_500 });
});

test("a click in a waterfall sets cursor A at its place, with Shift cursor B; one of a line spectrum has no time", () => {
  const first = cursorAt(scene({}), { hz: 100, tMs: 5, isSecond: true });
  assert.deepEqual(first, { cursors: [100], times: [5] });
  const second = cursorAt(scene(first), { hz: 200, tMs: 6, isSecond: true });
  assert.deepEqual(second, { cursors: [100, 200], times: [5, 6] });
  assert.deepEqual(cursorAt(scene(second), { hz: 300, tMs: 7, isSecond: false }), { cursors: [300, 200], times: [7, 6] });
  assert.deepEqual(cursorAt(scene({ cursors: [1] }), { hz: 2, tMs: 7, isSecond: true }), { cursors: [1, 2], times: [null, 7] });
});

test("arrow keys move a cursor that has a time, and the waterfall follows one that leaves it", () => {
  assert.equal(actionIn("levelsUp", makeView({ cursors: [1] })), "levelsUp");
  assert.equal(actionIn("levelsUp", makeView({ cursors: [1], times: [5] })), "timeLater");
  // Where rows move up, the row above is an earlier one.
  assert.equal(actionIn("levelsUp", makeView({ cursors: [1], times: [5], direction: "up" })), "timeEarlier");
  assert.equal(actionIn("levelsUp", makeView({ direction: "up" })), "levelsUp");
  assert.deepEqual(["later", "earlier"].map((name) => actionIn(name, makeView({ direction: "up" }))), ["earlier", "later"]);
  const step = (view, name) => ACTIONS[name](scene({ cursors: [1, 2], span: 10, ...view }));
  assert.deepEqual(step({ times: [998_000] }, "timeEarlier"), { times: [997_900] });
  assert.deepEqual(step({ times: [998_000, 997_000] }, "timeLater").times, [998_000, 997_100]);
  assert.deepEqual(step({ times: [NEWEST] }, "timeLater"), { times: [NEWEST] });
  assert.deepEqual(step({ times: [990_000] }, "timeEarlier"), { times: [989_900], t1: NEWEST - 100 - 2500 });
  assert.deepEqual(step({ times: [500_000], t1: 500_050 }, "timeLater"), { times: [500_100], t1: 500_050 + 50 + 2500 });
});

test("D compares with 24 hours before: both cursors have a frequency and a time, and both times show", () => {
  const [dayMs, newestMs] = [86_400_000, 1_000_000_000];
  const axis = { f0: 0, f1: 1000, width: 100, toHertz: (px) => 10 * px };
  const pressed = (view) => ACTIONS.dayEarlier({ view: makeView(view), newestMs, axis, peaks: [] });
  const t1 = 900_000_000;
  const part = pressed({ cursors: [440, 7], times: [t1 - 3_600_000], t1, span: 86_400 });
  assert.deepEqual([part.cursors, part.times], [[440, 440], [t1 - 3_600_000, t1 - 3_600_000 - dayMs]]);
  assert.ok(t1 - 1000 * part.span < part.times[1]);
  assert.equal(pressed({ cursors: [440], times: [t1], t1, span: 1e6 }).span, 1e6);
  assert.deepEqual(pressed({}).times, [newestMs, newestMs - dayMs]);
  assert.deepEqual(pressed({}).cursors, [500, 500]);
  assert.deepEqual(ACTIONS.dayEarlier({ view: makeView({}), newestMs: null, axis, peaks: [] }), {});
});

test("Escape gives up the selection, then the times, then the past; Live all but the selection", () => {
  const selection = { t0: 1, t1: 9, f0: 1, f1: 2 };
  let view = makeView({ cursors: [1], times: [5], t1: 9, selection });
  const seen = [];
  for (let n = 0; n < 3; n += 1) {
    view = makeView({ ...view, ...ACTIONS.escape(scene(view)) });
    seen.push([view.selection === null, view.times.length, view.t1]);
  }
  assert.deepEqual(seen, [[true, 1, 9], [true, 0, 9], [true, 0, null]]);
  assert.deepEqual(ACTIONS.live(), { t1: null, times: [] });
});

/** An answer of one column. */
function answer(effort, values) {
  const header = new TextEncoder().encode(JSON.stringify({ w: 1, h: values.length, layers: ["max"], cell_ms: 10, t0: 0, f0: 0, f1: 100, topic: "t", kind: "spec", sources: ["segment"] }));
  const begin = Math.ceil((4 + header.length) / 4) * 4;
  const bytes = new Uint8Array(begin + 4 + 2 * values.length);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  new DataView(bytes.buffer).setFloat32(begin, effort, true);
  values.forEach((value, k) => new DataView(bytes.buffer).setUint16(begin + 4 + 2 * k, value, true));
  return { ok: true, arrayBuffer: async () => bytes.buffer };
}

test("the server is asked once for the row of a time, in the shortest column where rows are long, and again if it has none", async () => {
  const asked = [];
  let reply = () => answer(0, [65535, 65535]);
  let now = 0;
  const rows = new CursorRows({ base: "http://a.test/", now: () => now, fetch: async (address) => {
    asked.push(Object.fromEntries(address.searchParams));
    return reply();
  } });
  const about = { topic: { id: 3, topic: "spec/a/0/x/", endpoint: "e" }, f0: 0, f1: 100, axis: "linear", px: 2, statistic: "max" };
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  const long = { msPerPx: 46, rowMs: 100 };
  assert.equal(rows.at(about, 12_345, long), null);
  rows.at(about, 12_345, long);
  await settle();
  assert.equal(asked.length, 1);
  assert.deepEqual([asked[0].t0, asked[0].t1, asked[0].w, asked[0].step], ["12340", "12350", "1", "0.01"]);
  rows.at(about, 12_345, long);
  await settle();
  assert.equal(asked.length, 1);
  now = 3000;
  reply = () => answer(0.01, [30767, 65535]);
  rows.at(about, 12_345, long);
  await settle();
  assert.equal(rows.version, 1);
  const found = rows.at(about, 12_345, long);
  assert.deepEqual([found.tMs, found.count, ...found.values], [12_345, 1, 30767, 65535]);
  assert.equal(asked.length, 2);
  reply = () => answer(4.9, [1, 2]);
  const short = { msPerPx: 6000, rowMs: 20 };
  rows.at(about, 12_345, short);
  await settle();
  assert.deepEqual([asked[2].t0, asked[2].t1], ["10000", "15000"]);
  assert.equal(rows.at(about, 12_345, short).count, 245);
});

test("a server that refuses leaves the row of the waterfall, and is asked again later", async () => {
  const rows = new CursorRows({ base: "http://a.test/", now: () => 0, fetch: async () => ({ ok: false }) });
  const about = { topic: { id: 3, topic: "t", endpoint: "e" }, f0: 0, f1: 100, axis: "linear", px: 2, statistic: "max" };
  for (let n = 0; n < 3; n += 1) {
    assert.equal(rows.at(about, 5, { msPerPx: 100, rowMs: 50 }), null);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  assert.equal(rows.version, 0);
});

test("going to a time leaves the cursors that are still on the screen, and what is not there yet is live", () => {
  const view = { span: 10, times: [495_000, 480_000] };
  assert.deepEqual(goTo(view, 500_000, NEWEST), { t1: 500_000, times: [495_000, null] });
  assert.deepEqual(goTo(view, NEWEST + 1, NEWEST), { t1: null, times: [null, null] });
  assert.deepEqual(goTo(view, -5, null), { t1: 0, times: [null, null] });
});

test("a time that comes twice or never is said to be so", () => {
  assert.equal(typedNote({ tMs: 0, count: 1 }, "UTC"), "");
  assert.match(typedNote({ tMs: 0, count: 2 }, "UTC"), /comes twice .* 1970-01-01 00:00:00 UTC$/);
  assert.match(typedNote({ tMs: 0, count: 0 }, "UTC"), /no such time .* 1970-01-01 00:00:00 UTC$/);
});
