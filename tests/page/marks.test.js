// Marks of events: what they are made of, which are one, which a filter finds, and where they lie.
import assert from "node:assert/strict";
import { test } from "node:test";

import { concerns, EventLog, filtered, makeMark, ordered } from "../../spectrod/apps/web/page/link/events.js";
import { drawnOf, grouped, groupText } from "../../spectrod/apps/web/page/panel/eventmarks.js";
import { boxOfMark, placeText, viewOfMark } from "../../spectrod/apps/web/page/panel/markcard.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { countText, newsText } from "../../spectrod/apps/web/page/side/eventlist.js";
import { Session } from "../../spectrod/apps/web/page/link/session.js";
import { StoredEvents } from "../../spectrod/apps/web/page/link/storedevents.js";

const T0 = Date.UTC(2026, 10, 23, 7, 0, 0);
const TRIGGER = { state: "ended", begin_utc_ns: T0 * 1e6, end_utc_ns: (T0 + 2500) * 1e6, f_min_hz: 900, f_max_hz: 1100, channel: "left" };
const event = (changes) => ({ endpoint: "e", source: "mic", t_ms: T0 + 3000, kind: "trigger.ended", text: "hum", number: 1, ...changes });

test("a trigger's event is a mark of its condition's time, band and channel", () => {
  const log = new EventLog();
  log.take(event({ trigger: TRIGGER }));
  log.take(event({ number: 2, kind: "trigger.begun", trigger: { ...TRIGGER, state: "begun" } }));
  const [begun, ended] = ["trigger.begun", "trigger.ended"].map((kind) => log.entries.find((mark) => mark.kind === kind));
  assert.deepEqual([ended.t0, ended.t1, ended.f0, ended.f1, ended.channel], [T0, T0 + 2500, 900, 1100, "left"]);
  assert.deepEqual([begun.t0, begun.t1], [T0, T0]);
  const info = { endpoint: "e", source: "mic", channel: "left" };
  assert.deepEqual([info, { ...info, channel: "right" }, { ...info, source: "roof" }].map((one) => concerns(ended, one)), [true, false, false]);
});

test("an event without numbers of a trigger, or with broken ones, is a mark of its own time", () => {
  const log = new EventLog();
  log.take(event({ number: 1 }));
  log.take(event({ number: 2, trigger: { ...TRIGGER, begin_utc_ns: null } }));
  log.take(event({ number: 3, trigger: { ...TRIGGER, f_max_hz: null } }));
  assert.deepEqual(log.entries.map(({ t0, t1, f0 }) => [t0 - T0, t1 - T0, f0]), [[3000, 3000, null], [3000, 3000, null], [0, 2500, null]]);
});

test("a mark of which only a part is in a span of time is in it", () => {
  const log = new EventLog();
  log.take(event({ trigger: TRIGGER }));
  const counts = [[-10, -1], [-10, 0], [1000, 1100], [2500, 9000], [2501, 9000]].map(([a, b]) => log.between(T0 + a, T0 + b).length);
  assert.deepEqual(counts, [0, 1, 1, 1, 0]);
});

test("clipping that goes on is one mark that grows, and stays selected; after a pause it is another one", () => {
  const log = new EventLog();
  log.noteClipping("mic", { t0: T0, t1: T0 + 1000 }, { count: 5, total: 5 });
  log.select(log.entries);
  log.noteClipping("mic", { t0: T0 + 1000, t1: T0 + 2000 }, { count: 2, total: 7 });
  assert.deepEqual(log.entries.map(({ t0, t1 }) => [t0 - T0, t1 - T0]), [[0, 2000]]);
  assert.equal(log.selected[0], log.entries[0]);
  assert.equal(log.takeNews().length, 1);
  log.noteClipping("mic", { t0: T0 + 9000, t1: T0 + 10000 }, { count: 1, total: 8 });
  log.noteClipping("roof", { t0: T0 + 10000, t1: T0 + 11000 }, { count: 1, total: 1 });
  assert.equal(log.entries.length, 3);
  assert.match(log.entries[0].text, /^1 samples at full scale, 1 in all$/);
});

test("states that count more clipped samples make a mark between them; the first state of a source makes none", () => {
  const session = new Session({ listeners: { changed: () => {}, row: () => {}, refused: () => {} }, now: () => 0 });
  const state = (now_ms, clipped_samples) => session.text({ op: "state", now_ms, endpoints: [], sources: [{ endpoint: "e", source: "mic", clipped_samples }] });
  state(T0, 40);
  assert.equal(session.events.entries.length, 0);
  state(T0 + 1000, 43);
  state(T0 + 2000, 43);
  const [{ t0, t1, text, kind }] = session.events.entries;
  assert.deepEqual([t0, t1, kind, text], [T0, T0 + 1000, "clipping", "3 samples at full scale, 43 in all"]);
  state(T0 + 9000, 0); // the source was opened again: its count begins again
  assert.equal(session.events.entries.length, 1);
});

test("a filter takes a kind, what a mark is about, and words of all of it in any order and case", () => {
  const marks = [
    makeMark({ t0: 1, kind: "gap", source: "mic", text: "480 samples lost" }),
    makeMark({ t0: 2, kind: "trigger.begun", source: "mic", channel: "left", text: "Hum: 12 dB over" }),
    makeMark({ t0: 3, kind: "gap", source: "roof", text: "7 samples lost" }),
  ];
  const found = (filter) => filtered(marks, filter).map(({ t0 }) => t0);
  assert.deepEqual(found({}), [1, 2, 3]);
  assert.deepEqual(found({ kind: "gap" }), [1, 3]);
  assert.deepEqual(found({ about: "mic · left" }), [2]);
  assert.deepEqual(found({ text: " LOST gap 7 " }), [3]);
  assert.deepEqual(found({ kind: "gap", text: "hum" }), []);
});

test("a list is ordered by time, or by kind or source, of one of these the newest first", () => {
  const of = (t0, kind, source) => makeMark({ t0, kind, source, text: "" });
  const marks = [of(4, "gap", "roof"), of(3, "epoch", "mic"), of(2, "gap", "mic"), of(1, "epoch", "roof")];
  const times = (order) => ordered(marks, order).map(({ t0 }) => t0);
  assert.deepEqual(times("newest"), [4, 3, 2, 1]);
  assert.deepEqual(times("oldest"), [1, 2, 3, 4]);
  assert.deepEqual(times("kind"), [3, 1, 4, 2]);
  assert.deepEqual(times("source"), [3, 2, 4, 1]);
});

test("marks nearer than a finger's breadth are clicked as one, and no two places that are clicked overlap", () => {
  const places = [100, 0, 10, 23, 47, 47.5, 200].map((at) => ({ mark: { kind: `k${at}`, text: "t" }, at }));
  const groups = grouped(places);
  assert.deepEqual(groups.map(({ marks }) => marks.length), [3, 2, 1, 1]);
  assert.deepEqual(groups.flatMap(({ marks }) => marks).length, places.length);
  assert.equal(groupText(groups[3].marks), "k200: t");
  assert.equal(groupText(groups[0].marks), "3 events: k0, k10, k23");
});

test("a click on a mark shows it whole in the middle, later than the newest row never", () => {
  const mark = makeMark({ t0: T0, t1: T0 + 60_000, kind: "k", source: "mic", text: "" });
  const { t1, span } = viewOfMark(mark, makeView({ span: 30 }), T0 + 1e6);
  assert.equal(span, 90);
  assert.ok(t1 - 1000 * span <= mark.t0 && t1 >= mark.t1);
  assert.equal(t1 - 500 * span, T0 + 30_000);
  assert.equal(viewOfMark(mark, makeView({ span: 30 }), T0 + 61_000).t1, null);
  assert.equal(viewOfMark(mark, makeView({ span: 1e7, days: true }), T0 + 1e9).span, 86_400);
});

test("the box of a mark has its time and band, of one without a length a second, without a band all that is shown", () => {
  const mark = makeMark({ t0: T0, kind: "k", source: "mic", text: "" });
  assert.deepEqual(boxOfMark(mark, { f0: 20, f1: 8000 }), { t0: T0 - 500, t1: T0 + 500, f0: 20, f1: 8000 });
  const long = makeMark({ ...mark, t1: T0 + 5000, f0: 100, f1: 200 });
  assert.deepEqual(boxOfMark(long, { f0: 20, f1: 8000 }), { t0: T0, t1: T0 + 5000, f0: 100, f1: 200 });
  assert.equal(placeText(long, "UTC"), "2026-11-23 07:00:00.0 UTC, 5.000 s, 100.0 Hz to 200.0 Hz");
  assert.equal(placeText(mark, "UTC"), "2026-11-23 07:00:00.0 UTC");
});

test("a screen reader hears of each event once, of several the newest and how many there were", () => {
  const log = new EventLog();
  assert.equal(newsText(log.takeNews(), log.total, "UTC"), "");
  log.take(event({ text: "a" }));
  assert.equal(newsText(log.takeNews(), log.total, "UTC"), "Event at 07:00:03: trigger.ended, mic: a");
  log.take(event({ number: 2, text: "b" }));
  log.take(event({ number: 3, text: "c" }));
  assert.equal(newsText(log.takeNews(), log.total, "UTC"), "3 events so far, the newest at 07:00:03: trigger.ended, mic: c");
  log.take(event({ number: 3, text: "c" }));
  assert.equal(newsText(log.takeNews(), log.total, "UTC"), "");
});

const stored = (n, stepMs = 1000) => Array.from({ length: n }, (_, k) => makeMark({ t0: T0 + k * stepMs, t1: T0 + k * stepMs + 500, kind: "event", source: "north", text: `t${k}` }));

test("marks of an archive are in order of time, and those of a span are found with what lasts into it", () => {
  const log = new EventLog();
  const long = makeMark({ t0: T0 - 10_000, t1: T0 + 4_200, kind: "event", source: "north", text: "long" });
  log.putStored([...stored(2000), long], true);
  assert.deepEqual([log.entries.length, log.entries[0].text, log.hasMore], [2001, "t1999", true]);
  assert.deepEqual(log.between(T0 + 3600, T0 + 5000).map(({ text }) => text), ["t5", "t4", "long"]);
  assert.deepEqual(log.between(T0 - 1000, T0 - 500).map(({ text }) => text), ["long"]);
  assert.deepEqual(log.between(T0 + 3e6, T0 + 4e6), []);
  log.select(log.entries.slice(0, 1));
  log.putStored([], false);
  assert.deepEqual([log.entries, log.selected], [[], []]);
});

test("of many marks one is drawn in each part of the height, the newest of it, and those that are selected", () => {
  const marks = stored(5000).reverse();
  const shareOf = ({ t0 }) => (T0 + 5e6 - t0) / 5e6;
  const chosen = marks[7];
  const drawn = drawnOf(marks, [chosen], shareOf);
  assert.ok(drawn.length <= 101 && drawn.length > 90);
  assert.ok(drawn.includes(chosen) && drawn.includes(marks[0]));
  const shares = drawn.map(shareOf);
  assert.ok(Math.min(...shares) < 0.02 && Math.max(...shares) > 0.98);
  assert.deepEqual(drawnOf(marks.slice(0, 100), [], shareOf), marks.slice(0, 100));
});

test("a list of too many says how many there are", () => {
  assert.equal(countText(20, 20), "");
  assert.equal(countText(3, 20), "3 of 20");
  assert.equal(countText(900, 900, false, "oldest"), "the oldest 500 are listed");
  assert.equal(countText(900, 900, false, "kind"), "the first 500 are listed");
  assert.equal(countText(900, 20000, true), "900 of 20000; the newest 500 are listed; older than the newest 20000 are left out");
});

test("events of an archive are fetched once for each version, and again some time after an answer that failed", async () => {
  const answers = [{ ok: false }, { ok: true, json: async () => ({ version: 3, events: [{ t0: 1, t1: 2, f0: null, f1: null, kind: "event", source: "s", channel: "", text: "x" }, { t0: NaN }, null], has_more: true }) }];
  const asked = [];
  let nowMs = 0;
  const fetch = async (address) => {
    asked.push(address.href);
    return answers.shift();
  };
  const events = new StoredEvents({ fetch, base: "http://localhost/a/", now: () => nowMs });
  const taken = [];
  const follow = (version) => events.follow(version, (marks, hasMore) => taken.push([marks.map(({ text, f0 }) => [text, f0]), hasMore]));
  await follow(0);
  await follow(3);
  await follow(3);
  assert.deepEqual([asked.length, taken.length], [1, 0]);
  nowMs = 6000;
  await Promise.all([follow(3), follow(3)]);
  await follow(3);
  assert.deepEqual(asked, ["http://localhost/a/api/events", "http://localhost/a/api/events"]);
  assert.deepEqual(taken, [[[["x", null]], true]]);
  await follow(0);
  assert.deepEqual(taken[1], [[], false]);
});
