/** The first screen: the line of state, the details behind it, the places of panels, what a browser remembers. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { titleOfAll } from "../../spectrod/apps/web/page/link/topics.js";
import { NO_ANSWER } from "../../spectrod/apps/web/page/link/stream.js";
import { columnsOf } from "../../spectrod/apps/web/page/panel/columns.js";
import { channelGroups, isFound } from "../../spectrod/apps/web/page/side/channellist.js";
import { healthGroups, joinedGroups } from "../../spectrod/apps/web/page/side/health.js";
import { makePrefs } from "../../spectrod/apps/web/page/side/prefs.js";
import { Wall } from "../../spectrod/apps/web/page/side/wall.js";
import { LossWatch, stateLine } from "../../spectrod/apps/web/page/side/stateline.js";

const OPEN = Object.freeze({ phase: "open", wait_ms: 0, why: "" });
const COUNTS = Object.freeze({ missed: 0, gaps: 0, gapSamples: 0, clientDropped: 0 });

const daemon = (given = {}) => ({ endpoint: "ipc://a", connected: true, silence_s: 0.2, missed: 0, why: "", ...given });
const mic = (given = {}) => ({ endpoint: "ipc://a", source: "mic", state: "running", ...given });
const info = (channel, given = {}) => ({ endpoint: "ipc://a", kind: "spec", source: "mic", channel, product: "dbfs", ...given });

function sessionOf({ endpoints = [daemon()], sources = [mic()], counts = {}, receivedAt = 0, silent = [] } = {}) {
  const channels = [{ info: info("0"), description: null, counts: { ...COUNTS, ...counts }, receivedAt }];
  return { endpoints, sources, channels, silentSources: silent, sourceOf: () => sources[0] ?? null };
}

/** Say the state of some sessions one after another, at their times [s]. */
function lines(given, shown = "live") {
  const watch = new LossWatch();
  return given.map(([seconds, session, phase = OPEN]) => stateLine(healthGroups(session, phase, 1000 * seconds), shown, watch, 1000 * seconds));
}

const one = (session, phase, shown) => lines([[0, session, phase]], shown)[0];

test("where all is in order the line says what is shown, and that nothing is lost", () => {
  assert.deepEqual(one(sessionOf()), { text: "live, nothing lost", grade: "good", about: "live" });
  assert.equal(one(sessionOf(), OPEN, "paused, 2026-11-27 12:00:00 UTC").text, "paused, 2026-11-27 12:00:00 UTC");
});

test("a server that is away is the one thing that is said, with what to do", () => {
  const dead = sessionOf({ endpoints: [daemon({ connected: false })] });
  const { text, grade } = one(dead, { phase: "waiting", wait_ms: 1280, why: NO_ANSWER });
  assert.deepEqual([text, grade], ["the server does not answer; next attempt in 1.3 s: start spectrod web again", "bad"]);
});

test("a daemon that is away is said without all that it lacks, and what to do", () => {
  const text = (given) => one(sessionOf({ endpoints: [daemon(given)], sources: [mic({ overflows: 3 })], receivedAt: -60_000 })).text;
  assert.equal(text({ connected: false }), "ipc://a: no connection to the daemon: start it, and the page goes on");
  assert.equal(text({ silence_s: 12 }), "ipc://a: no heartbeat for 12 s: the daemon has stopped or hangs: restart it");
  assert.equal(text({ connected: false, why: "keys refused" }), "ipc://a: keys refused");
});

test("a source that waits, and rows that do not come, are bad; the rest is counted", () => {
  const waiting = sessionOf({ sources: [mic({ state: "waiting", waiting_for: "no sound card" })], receivedAt: -12_000 });
  const { text, grade } = one(waiting);
  assert.deepEqual([text, grade], ["mic: waiting: no sound card: it goes on by itself once that is over; and 1 more", "bad"]);
  assert.equal(one(sessionOf({ receivedAt: -12_000 })).text, "mic · 0 · dbfs: no data for 12 s: see the daemon's log");
});

test("a loss is bad for a minute after it has grown, and one of before the page came is a note", () => {
  const lost = (missed) => sessionOf({ counts: { missed }, receivedAt: 61_000 });
  const said = lines([[0, lost(5)], [1, lost(7)], [60.9, lost(7)], [61, lost(7)]]);
  assert.deepEqual(said.map(({ grade }) => grade), ["notice", "bad", "bad", "notice"]);
  assert.equal(said[0].text, "live; mic · 0 · dbfs: 5 messages missed");
  assert.equal(said[1].text, "mic · 0 · dbfs: 7 messages missed: the line from the daemon is too slow");
});

test("each loss has a phrase of its own", () => {
  const texts = (given) => one(sessionOf(given)).text;
  assert.equal(texts({ sources: [mic({ overflows: 2 })] }), "live; mic: 2 overflows");
  assert.equal(texts({ counts: { clientDropped: 9 } }), "live; mic · 0 · dbfs: 9 rows dropped for this page");
  assert.equal(texts({ counts: { gaps: 1, gapSamples: 480 } }), "live; mic · 0 · dbfs: 1 gaps");
  assert.equal(texts({ endpoints: [daemon({ missed: 3 })] }), "live; ipc://a: 3 messages missed");
});

test("too loud is a note, and no loss", () => {
  const { text, grade } = one(sessionOf({ sources: [mic({ clipped_samples: 9 })] }));
  assert.deepEqual([text, grade], ["live; mic: clipped 9 samples", "notice"]);
});

test("a screen reader hears of another state, and not of each second of it", () => {
  const silent = (silence_s) => sessionOf({ endpoints: [daemon({ silence_s })] });
  const [first, second, back] = lines([[0, silent(5)], [1, silent(6)], [2, silent(0)]]);
  assert.notEqual(first.text, second.text);
  assert.equal(first.about, second.about);
  assert.notEqual(second.about, back.about);
});

test("channels of which the same is to be said share a line, and others keep theirs", () => {
  const channel = (name, counts = {}) => ({ info: info(name), description: { fs: 48000, unit: "dBFS" }, counts: { ...COUNTS, ...counts }, receivedAt: 0 });
  const names = ["0", "1", "2", "3", "4", "5"];
  const session = { endpoints: [daemon()], sources: [mic()], silentSources: [], sourceOf: () => null, channels: [...names.map((name) => channel(name)), channel("6", { missed: 1 })] };
  const titles = joinedGroups(healthGroups(session, OPEN, 0)).map(({ title }) => title);
  assert.deepEqual(titles, ["", "mic · 0, 1, 2, 3 and 2 more · dbfs", "mic · 6 · dbfs"]);
});

test("sources of one name, of two daemons, have a line each", () => {
  const channel = (endpoint) => ({ info: info("0", { endpoint }), description: null, counts: COUNTS, receivedAt: 0 });
  const sources = [mic(), mic({ endpoint: "ipc://b" })];
  const session = { endpoints: [daemon(), daemon({ endpoint: "ipc://b" })], sources, silentSources: [], channels: [channel("ipc://a"), channel("ipc://b")] };
  session.sourceOf = (one) => sources.find(({ endpoint }) => endpoint === one.info.endpoint);
  const titles = joinedGroups(healthGroups(session, OPEN, 0)).map(({ title }) => title);
  assert.deepEqual(titles, ["", "mic", "mic", "mic · 0, mic · 0 · dbfs"]);
});

test("a title of several topics says once what they share", () => {
  assert.equal(titleOfAll([info("0"), info("1")]), "mic · 0, 1 · dbfs");
  assert.equal(titleOfAll([info("0"), info("0", { source: "roof" })]), "mic · 0, roof · 0 · dbfs");
  assert.equal(titleOfAll([info("0"), info("0", { product: "fine" })]), "mic · 0 · dbfs, 0 · fine");
  assert.equal(titleOfAll([info("0"), info("1", { endpoint: "ipc://b" })]), "mic · 0, mic · 1 · dbfs");
});

test("panels have the columns that leave them the most room", () => {
  const columns = (width, height) => [1, 2, 3, 4, 5, 6, 7, 8].map((count) => columnsOf(count, { width, height }));
  assert.deepEqual(columns(1366, 724), [1, 2, 3, 2, 3, 3, 4, 4]);
  assert.deepEqual(columns(1920, 1036), [1, 2, 3, 2, 3, 3, 4, 4]);
  assert.deepEqual(columns(360, 551), [1, 1, 1, 1, 1, 1, 1, 1]);
  assert.deepEqual([columnsOf(0, { width: 0, height: 0 }), columnsOf(3, { width: 0, height: 0 })], [1, 1]);
});

test("a browser opens the panes that it had open, of those that there are, and at first none", () => {
  assert.deepEqual(makePrefs(null).panes, []);
  assert.deepEqual(makePrefs({ panes: ["options", "nonsense", "state", 3] }).panes, ["state", "options"]);
  for (const panes of [null, "state", 5, { length: 1e9 }]) assert.deepEqual(makePrefs({ panes }).panes, []);
});

const listed = (...given) => given.map((one) => ({ name: `${one.source}/${one.channel}/${one.product}`, info: one, isShown: false }));
const labels = (topics) => channelGroups(topics).map(({ title, items }) => [title, ...items.map(({ label }) => label)]);

test("channels are listed by source in their order, and what a source shares is said once", () => {
  const names = ["west", "10", "9", "east"];
  assert.deepEqual(labels(listed(...names.map((name) => info(name)), info("0", { source: "a" }))), [["mic", ...names], ["a", "0"]]);
});

test("a source with several products or kinds says which, and daemons are named where there are several", () => {
  const bands = info("0", { kind: "bands", product: "third" });
  assert.deepEqual(labels(listed(info("0"), bands)), [["mic", "0 · dbfs", "0 · third (bands)"]]);
  assert.deepEqual(labels(listed(info("0"), info("0", { kind: "bands" }))), [["mic", "0", "0 (bands)"]]);
  assert.deepEqual(labels(listed(info("0"), info("0", { endpoint: "ipc://b" }))), [["mic (ipc://a)", "0"], ["mic (ipc://b)", "0"]]);
});

test("a source without a channel is listed with its state among the others, and named where no channel is", () => {
  const silent = (source, given = {}) => ({ endpoint: "ipc://a", source, text: "waiting: no program writes to it", ...given });
  const groups = (...given) => channelGroups(...given).map(({ title, state, items }) => [title, state, items.length]);
  const topics = listed(info("0", { source: "mic2" }), info("1", { source: "mic2" }));
  assert.deepEqual(groups(topics, [silent("mic10"), silent("mic1")]), [["mic1", "waiting: no program writes to it", 0], ["mic2", "", 2], ["mic10", "waiting: no program writes to it", 0]]);
  assert.deepEqual(groups(topics, [silent("mic2", { endpoint: "ipc://b" })]), [["mic2 (ipc://a)", "", 2], ["mic2 (ipc://b)", "waiting: no program writes to it", 0]]);
  assert.deepEqual(groups([], [silent("mic")]), [["mic", "waiting: no program writes to it", 0]]);
  const recorded = [...topics, ...listed(info("0", { source: "mic3", is_silent: true }))];
  assert.deepEqual(groups(recorded, [silent("mic3")]), [["mic2", "", 2], ["mic3", "waiting: no program writes to it", 1]]);
});

test("a source without a channel is a note of the state, and none where its daemon is away", () => {
  const silent = [mic({ source: "pond", state: "waiting", waiting_for: "no program writes to it" })];
  assert.deepEqual(one(sessionOf({ silent })).text, "live; pond: waiting: no program writes to it");
  assert.equal(one(sessionOf({ silent })).grade, "notice");
  const shown = mic({ state: "waiting", waiting_for: "no sound card" });
  const groups = healthGroups(sessionOf({ sources: [shown], silent: [shown, ...silent] }), OPEN, 0);
  assert.deepEqual(groups.map(({ title }) => title), ["", "mic", "mic · 0 · dbfs", "pond"]); // of a channel that has gone
  const { text } = one(sessionOf({ silent, endpoints: [daemon({ connected: false })] }));
  assert.equal(text, "ipc://a: no connection to the daemon: start it, and the page goes on");
});

test("who hears the list has the whole name of each channel, and whoever searches it", () => {
  const [{ items }] = channelGroups(listed(info("left"), info("right")));
  for (const { before, label, after, text } of items) assert.equal(before + label + after, text);
  const found = (search) => items.filter(({ text }) => isFound(text, search)).map(({ label }) => label);
  assert.deepEqual([found(""), found("MIC  ri"), found("dbfs left"), found("mic none")], [["left", "right"], ["right"], ["left"], []]);
});

function screen({ canFill = true, isAllowed = true } = {}) {
  const listeners = [];
  const locks = [];
  const made = { body: { dataset: {} }, fullscreenElement: null, visibilityState: "visible", addEventListener: (name, listener) => listeners.push([name, listener]) };
  const fire = (name) => listeners.filter(([one]) => one === name).forEach(([, listener]) => listener());
  const fill = (element) => {
    made.fullscreenElement = element;
    fire("fullscreenchange");
  };
  made.documentElement = canFill ? { requestFullscreen: async () => fill(made.documentElement) } : {};
  made.exitFullscreen = async () => fill(null);
  const request = async () => {
    if (!isAllowed) throw new Error("battery low");
    locks.push({ isHeld: true, release: async () => (locks[locks.length - 1].isHeld = false) });
    return locks.at(-1);
  };
  const wall = new Wall(made, { wakeLock: { request } });
  const see = async (visibilityState) => {
    made.visibilityState = visibilityState;
    fire("visibilitychange");
    await settled();
  };
  return { wall, made, see, isLit: () => locks.some(({ isHeld }) => isHeld), isOn: () => "wall" in made.body.dataset };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("on a wall the screen stays lit while the page is seen, and no longer", async () => {
  const { wall, see, isLit, isOn, made } = screen();
  await wall.toggle();
  await settled();
  assert.deepEqual([isOn(), isLit()], [true, true]);
  await see("hidden");
  assert.equal(isLit(), false);
  await see("visible");
  assert.equal(isLit(), true);
  await made.exitFullscreen(); // as Escape does
  await settled();
  assert.deepEqual([isOn(), isLit()], [false, false]);
});

test("without full screens or the right to keep it lit the plots are shown alone all the same", async () => {
  const { wall, isOn } = screen({ canFill: false, isAllowed: false });
  await wall.toggle();
  assert.equal(isOn(), true);
  assert.equal(wall.leave(), true);
  assert.equal(isOn(), false);
  assert.equal(wall.leave(), false);
});
