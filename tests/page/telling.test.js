// What the page tells: states, announcements, values, preferences, tokens.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Announcer } from "../../spectrod/apps/web/page/side/announce.js";
import * as control from "../../spectrod/apps/web/page/link/control.js";
import { legend } from "../../spectrod/apps/web/page/panel/captions.js";
import { healthGroups } from "../../spectrod/apps/web/page/side/health.js";
import { HATCHINGS, hatchingCss } from "../../spectrod/apps/web/page/panel/legend.js";
import { hasBar, nameText, valueText, waitingText } from "../../spectrod/apps/web/page/side/meter.js";
import { makePrefs, readPrefs, writePrefs, zoneOf } from "../../spectrod/apps/web/page/side/prefs.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import * as status from "../../spectrod/apps/web/page/side/status.js";
import { TERMS } from "../../spectrod/apps/web/page/side/terms.js";
import { bandRows, cursorRows, secondsText, noPeakText, peakRows } from "../../spectrod/apps/web/page/side/tables.js";
import { postToken, splitToken } from "../../spectrod/apps/web/page/link/token.js";

const endpoint = (changes) => ({ endpoint: "tcp://a:1", connected: true, silence_s: 0.4, missed: 0, why: "", ...changes });
const source = (changes) => ({ source: "mic", state: "running", waiting_for: "", checks: [], ...changes });
const texts = (facts) => facts.map(({ text }) => text).join("; ");

test("silence, a daemon that is gone, and a page without its server look like three things", () => {
  const silent = status.sourceFacts(source({ checks: ["silent: 0"] }));
  assert.equal(status.worstGrade(silent), "notice");
  assert.match(texts(silent), /digital silence: all samples are zero \(0\)/);
  const gone = status.endpointFact(endpoint({ silence_s: 12 }));
  assert.deepEqual([gone.grade, gone.text], ["bad", "no heartbeat for 12 s: the daemon has stopped or hangs"]);
  const lost = status.connectionFact({ phase: "waiting", wait_ms: 1280, why: "the connection was lost" });
  assert.deepEqual([lost.grade, lost.text], ["bad", "the connection was lost; next attempt in 1.3 s"]);
});

test("a daemon in order is good, one that lost messages is not", () => {
  assert.equal(status.endpointFact(endpoint()).grade, "good");
  assert.deepEqual(status.endpointFact(endpoint({ missed: 3 })).text, "connected, 3 messages missed");
  const { grade, text } = status.endpointFact(endpoint({ missed: 1, broken: 2 }));
  assert.deepEqual([grade, text], ["notice", "connected, 1 messages missed, 2 messages left out: they break the protocol"]);
  assert.equal(status.endpointFact(endpoint({ connected: false, why: "keys refused" })).text, "keys refused");
});

test("a source says what it waits for, what it lost, and how far its clock is off", () => {
  assert.equal(status.sourceFacts(source())[0].grade, "good");
  const waiting = status.sourceFacts(source({ state: "waiting", waiting_for: "no sound card" }));
  assert.deepEqual([waiting[0].text, waiting[0].grade], ["waiting: no sound card", "bad"]);
  const facts = status.sourceFacts(
    source({ overflows: 2, suspected: 1, dropped: 4, clipped_samples: 9, rate_error_ppm: -12.34, rate_uncertainty_ppm: 0.5, clock_offset_s: 2.5 }),
  );
  assert.deepEqual(
    facts.map(({ name, text }) => `${name} ${text}`),
    ["state running", "overflows 2", "suspected losses 1", "dropped by the daemon 4", "clipped 9 samples", "sample clock -12.3 ± 0.5 ppm", "clock 2.5 s off this machine's"],
  );
  assert.doesNotMatch(texts(status.sourceFacts(source({ clock_offset_s: 0.9 }))), /off this/);
});

test("checks say the channel and the level; one that is not known is shown as it came", () => {
  assert.match(texts(status.sourceFacts(source({ checks: ["dc: 1 (-23.1 dBFS)"] }))), /DC offset \(1 \(-23\.1 dBFS\)\)/);
  assert.match(texts(status.sourceFacts(source({ checks: ["wobbling"] }))), /wobbling/);
});

test("every loss that the page names is explained", () => {
  const facts = [
    ...status.sourceFacts(source({ overflows: 2, suspected: 1, dropped: 4, clipped_samples: 9, rate_error_ppm: 1, clock_offset_s: 2.5 })),
    ...status.channelFacts({ description: { fs: 48000, engine: "numpy", epoch: 1 }, counts: { missed: 1, gaps: 1, gapSamples: 3, clientDropped: 1 }, receivedAt: 0 }, 0),
  ];
  const plain = ["state", "sample rate", "unit"];
  assert.deepEqual(facts.map(({ name }) => name).filter((name) => !TERMS[name]), plain);
  for (const text of Object.values(TERMS)) assert.match(text, /^[A-Z].*\.$/);
});

test("rows are late after three of them, and never before 3 s", () => {
  const channel = { description: null, counts: {}, receivedAt: 0 };
  assert.equal(status.worstGrade(status.channelFacts(channel, 2999)), "good");
  assert.match(texts(status.channelFacts(channel, 3001)), /none for 3\.0 s/);
  assert.equal(status.rowsDueMs({ row_s: 60 }), 180000);
});

test("a panel's legend names its lines with their ballistics, and says what a pixel shows", () => {
  const sent = { has: () => false };
  const moments = [{ row: {}, tMs: 1000, holds: {} }];
  const texts = (view, channels = [{ reference: { tMs: 5000 }, unsent: sent }]) =>
    legend(channels, makeView(view), { moments, zone: "UTC" }).map(({ text }) => text);
  assert.deepEqual(texts({}, [{ reference: null, unsent: sent }]), ["live", "bins in a pixel: max"]);
  assert.deepEqual(
    texts({ holds: ["max", "min", "mean"], decay: 6, timeConstant: 1, statistic: "mean" }),
    ["live", "max hold, 6 dB/s", "min hold, 6 dB/s", "average, τ 1 s", "reference, 1970-01-01 00:00:05.0 UTC", "bins in a pixel: mean power"],
  );
  assert.equal(texts({ holds: ["max"], decay: 20, holdTime: 2 })[1], "max hold, 2 s, then 20 dB/s");
  assert.equal(texts({ holds: ["max"], holdTime: 2 })[1], "max hold");
  assert.deepEqual(texts({ t1: 1000, holds: ["max"] }).slice(0, 2), ["1970-01-01 00:00:01.0 UTC", "no max hold: not known of this time"]);
  const unsent = { has: (role) => role === "max", why: "the server sends a page at most 8 streams" };
  assert.equal(texts({ holds: ["max"] }, [{ reference: null, unsent }])[1], "no max hold: the server sends a page at most 8 streams");
});

test("no source of a daemon that is away is said to run", () => {
  const open = { phase: "open", wait_ms: 0, why: "" };
  const alive = { endpoint: "ipc://a", connected: true, silence_s: 0.5, missed: 0, why: "" };
  const dead = { endpoint: "ipc://b", connected: false, silence_s: 9, missed: 0, why: "" };
  const source = { endpoint: "ipc://b", source: "mic", state: "running" };
  const session = { endpoints: [alive, dead], channels: [{ info: source, counts: {}, receivedAt: null, description: null }], sources: [source], silentSources: [], sourceOf: () => source };
  const [, facts] = healthGroups(session, open, 0).map((group) => group.facts);
  assert.deepEqual([facts[0].text, facts[0].grade], ["unknown: no connection to the daemon", "bad"]);
});

test("hatchings of the legend have the waterfall's colours and differ in lean or width", () => {
  assert.equal(hatchingCss(HATCHINGS[1], "dark"), "repeating-linear-gradient(45deg, rgb(170 170 255) 0 3px, rgb(34 36 42) 3px 8px)");
  assert.equal(new Set(HATCHINGS.map(({ angle, widthPx }) => `${angle} ${widthPx}`)).size, HATCHINGS.length);
});

test("peaks say of which channel they are in as few words as tell the channels apart", () => {
  const channel = (source, name, product) => ({ info: { source, channel: name, product }, unsent: { has: () => false }, description: null });
  const moment = { peaks: [{ hz: 440, level: -20, hz_error: 0.1 }], measured: {} };
  const named = (...channels) => peakRows(channels.map((one) => ({ channel: one, moment })), makeView()).map((cells) => cells[3]);
  assert.deepEqual(named(channel("mic", "0", "dbfs"), channel("mic", "1", "dbfs")), ["0", "1"]);
  assert.deepEqual(named(channel("mic", "0", "dbfs"), channel("roof", "0", "dbfs")), ["mic · 0", "roof · 0"]);
  assert.deepEqual(named(channel("mic", "0", "dbfs"), channel("mic", "0", "fine")), ["mic · 0 · dbfs", "mic · 0 · fine"]);
});

test("a topic without a value says by when the first one comes", () => {
  const since = Date.UTC(2026, 10, 23, 12, 0, 30);
  assert.equal(waitingText(60, since, "UTC"), "first value by 2026-11-23 12:01:30 UTC");
  assert.equal(waitingText(null, since, "UTC"), "waiting for the first value");
});

test("announcements are 5 s apart, of changes only, and the newest of a subject", () => {
  const said = [];
  const timers = [];
  let now = 0;
  const announcer = new Announcer((text) => said.push(text), { now: () => now, setTimeout: (call, ms) => timers.push({ call, ms }) });
  const fire = () => {
    const { call, ms } = timers.shift();
    now += ms;
    call();
  };
  announcer.say("page", "connected");
  fire();
  announcer.say("page", "lost");
  announcer.say("page", "connected again");
  announcer.say("mic", "silent");
  assert.equal(timers[0].ms, 5000);
  fire();
  announcer.say("page", "connected again");
  assert.deepEqual(said, ["connected", "connected again. silent"]);
  assert.equal(timers.length, 0);
});

test("a change that was taken back before it was said is not said", () => {
  const said = [];
  let run = null;
  const announcer = new Announcer((text) => said.push(text), { now: () => 0, setTimeout: (call) => (run = call) });
  announcer.say("page", "a");
  run();
  announcer.say("page", "b");
  announcer.say("page", "a");
  run();
  assert.deepEqual(said, ["a"]);
});

test("values have their unit, and no value says so", () => {
  assert.equal(valueText(-20.04, "dB SPL"), "-20.0 dB SPL");
  assert.equal(valueText(1234.567, "Hz"), "1235 Hz");
  assert.equal(valueText(null, "dB"), "no value");
  assert.equal(valueText(0.5, ""), "0.5");
  assert.equal(valueText(20.891, "1"), "20.89");
  assert.equal(valueText(-0.0001234567, "s"), "-0.1235 ms");
  assert.equal(valueText(1.5, "s"), "1.5 s");
  assert.equal(nameText("level_difference"), "level difference");
  assert.deepEqual(["dB SPL", "dBFS", "LUFS", "dB", "LU", "1", null].map(hasBar), [true, true, true, false, false, false, false]);
});

test("the table of cursors has both and their difference; what is not exact says so", () => {
  const readings = [{ hz: 440, level: -20, isExact: true }, { hz: 880, level: -50, isExact: false }];
  assert.deepEqual(cursorRows(readings, "dBFS", 1), [
    ["A", "440.0 Hz", "-20.0 dBFS", "A4 0 ct", ""],
    ["B", "880.0 Hz", "≈ -50.0 dBFS", "A5 0 ct", ""],
    ["B − A", "440.0 Hz", "-30.0 dB", "1.000 oct", ""],
  ]);
  const timed = readings.map((one, k) => ({ ...one, tMs: 1_700_000_000_250 + 1500 * k }));
  const times = cursorRows(timed, "dBFS", 1, { span: 30 }).map((cells) => cells.at(-1));
  assert.deepEqual(times, ["22:13:20.250", "22:13:21.750", "1.500 s"]);
  const nextDay = cursorRows([timed[0], { ...timed[1], tMs: timed[1].tMs + 86_400_000 }], "dBFS", 1, { span: 30 });
  assert.deepEqual(nextDay.map((cells) => cells.at(-1)), ["2023-11-14 22:13:20.250", "2023-11-15 22:13:21.750", "24 h 0 min 2 s"]);
  assert.equal(cursorRows([timed[0], readings[1]], "dBFS", 1).at(-1).at(-1), "");
  const harmonics = [{ n: 2, hz: 880, level: -60, isExact: false }, { n: 3, hz: 1320, level: NaN, isExact: false }];
  assert.deepEqual(cursorRows(readings, "dBFS", 1, { harmonics }).slice(3), [
    ["2 A", "880.0 Hz", "≈ -60.0 dBFS", "-40.0 dB re A", ""],
    ["3 A", "1.3200 kHz", "no data", "", ""],
  ]);
});

test("a difference of times is read as seconds, and as hours and minutes where it is long", () => {
  const texts = [-0.0125, 119.9, 120, -3723.4, 3599.7, 90061].map(secondsText);
  assert.deepEqual(texts, ["-0.013 s", "119.900 s", "2 min 0 s", "-1 h 2 min 3 s", "1 h 0 min 0 s", "25 h 1 min 1 s"]);
});

test("the band's level is the server's, and until it has measured there is none", () => {
  const info = { source: "mic", channel: "0", product: "dbfs" };
  const unsent = { has: () => false };
  const text = (measured, view) => bandRows([{ channel: { info, unsent }, moment: { measured } }], makeView(view)).map((cells) => cells[2]);
  assert.deepEqual(text(null, { band: [100, 200] }), ["not measured yet"]);
  const measured = { bands: [{ f0: 100, f1: 200, level: -31.5, unit: "dBFS" }] };
  assert.deepEqual(text(measured, { band: [100, 200] }), ["-31.5 dBFS"]);
  assert.deepEqual(text(measured, { band: [100, 300] }), ["not measured yet"]);
  assert.deepEqual(text(measured, { band: [100, 300], t1: 5000 }), ["not measured at this time"]);
  assert.deepEqual(text(measured, { band: null }), []);
});

test("channels that are not measured are named with the reason, and none is said to have no peak", () => {
  const channel = (name, has) => ({ info: { source: "mic", channel: name, product: "dbfs" }, unsent: { has: () => has, why: "too many streams" }, description: null });
  const measured = { channel: channel("0", false), moment: { peaks: [{ hz: 440, level: -20, hz_error: 0.1 }], measured: {} } };
  const unsent = { channel: channel("1", true), moment: { peaks: [], measured: null } };
  const view = makeView();
  assert.deepEqual(peakRows([measured, unsent], view).map((cells) => [cells[0], cells[3]]), [["440.0 Hz", "0"], ["not measured: too many streams", "1"]]);
  assert.deepEqual(peakRows([unsent], view), []);
  assert.equal(noPeakText([unsent], view), "not measured: too many streams");
  assert.equal(noPeakText([{ ...measured, moment: { peaks: [], measured: {} } }], view), "no steady peak");
  assert.equal(noPeakText([unsent], makeView({ t1: 1000 })), "not measured at this time");
});

const FIGURE = { widthMm: 160, plotsMm: 100, dpi: 300 };

test("preferences of nonsense, of a full or of a forbidden storage are the defaults", () => {
  const usual = { theme: "auto", zone: "local", keysEverywhere: true, isLinked: true, lines: [], panes: [], isEventsOpen: false, bands: [], figure: FIGURE };
  for (const stored of [null, "{", "[]", "3", '{"theme":"pink","zone":1,"keysEverywhere":"yes","isLinked":0}', '{"lines":"LAeq"}', '{"lines":[3,null]}']) {
    assert.deepEqual({ ...readPrefs(() => ({ getItem: () => stored })) }, usual);
  }
  const forbidden = () => {
    throw new Error("forbidden");
  };
  assert.deepEqual({ ...readPrefs(forbidden) }, usual);
  writePrefs(forbidden, makePrefs({ theme: "dark" }));
  assert.equal(zoneOf({ zone: "UTC" }, "Asia/Kolkata"), "UTC");
  assert.equal(zoneOf({ zone: "source" }, "Asia/Kolkata"), "Asia/Kolkata");
  assert.equal(zoneOf({ zone: "source" }), zoneOf({ zone: "local" }), "of a source that says none it is the browser's");
});

test("preferences that are written are read again", () => {
  let kept = null;
  const storage = () => ({ getItem: () => kept, setItem: (_, text) => (kept = text) });
  const chosen = { theme: "dark", zone: "UTC", keysEverywhere: false, isLinked: false, lines: ["meter/LAeq"], panes: ["options"], isEventsOpen: true, bands: [{ name: "owl: hoots", f0: 200, f1: 900 }], figure: { ...FIGURE, dpi: 600 } };
  writePrefs(storage, makePrefs(chosen));
  assert.deepEqual({ ...readPrefs(storage) }, chosen);
});

test("the token is taken out of the fragment, and the rest stays", () => {
  assert.deepEqual(splitToken("#k=abc"), { token: "abc", rest: "" });
  assert.deepEqual(splitToken("#v=1&k=abc&axis=mel"), { token: "abc", rest: "v=1&axis=mel" });
  assert.deepEqual(splitToken("#v=1"), { token: null, rest: "v=1" });
  assert.deepEqual(splitToken("#k="), { token: null, rest: "" });
  assert.equal(splitToken(`#k=${"x".repeat(257)}`).token, null);
});

test("the token is posted once, in the body; a wrong one and a silent server are told apart", async () => {
  const asked = [];
  const answer = (result) => async (address, request) => {
    asked.push([address, request.method, request.body]);
    return result;
  };
  assert.equal(await postToken("abc", "http://here/at/", answer({ ok: true })), "");
  assert.deepEqual(asked, [["http://here/at/api/token", "POST", "abc"]]);
  assert.equal(await postToken("abc", "http://here/", answer({ ok: false, status: 403 })), "this token is not valid");
  assert.equal(await postToken("abc", "http://here/", answer({ ok: false, status: 429 })), "HTTP status 429");
  assert.equal(await postToken("abc", "http://here/", () => Promise.reject(new TypeError("x"))), "the server does not answer");
});

test("a refusal of the daemon reaches the person with its reason", async () => {
  const fetch = async () => ({ ok: false, status: 409, json: async () => ({ error: "recording night: already there" }) });
  await assert.rejects(control.askDaemon({ method: "record.start", params: {} }, "http://here/", fetch), /^Error: recording night: already there$/);
  const broken = async () => ({ ok: false, status: 502, json: () => Promise.reject(new SyntaxError("x")) });
  await assert.rejects(control.askDaemon({ method: "pause", params: {} }, "http://here/", broken), /^Error: HTTP status 502$/);
});

const topicOf = (changes) => ({ endpoint: "tcp://a:1", source: "mic", channel: "0", product: "dbfs", ...changes });

test("sources of two daemons are told apart, and each has its products once", () => {
  const topics = [topicOf({}), topicOf({ channel: "1" }), topicOf({ product: "slow" }), topicOf({ endpoint: "tcp://b:1" }), topicOf({ source: "pond" })];
  assert.deepEqual(
    control.sourcesOf(topics).map(({ title, endpoint, products }) => [title, endpoint, products]),
    [["mic@tcp://a:1", "tcp://a:1", ["dbfs", "slow"]], ["mic@tcp://b:1", "tcp://b:1", ["dbfs"]], ["pond", "tcp://a:1", ["dbfs"]]],
  );
});

test("settings are those of the product, else of the source's analysis, else of all", () => {
  const config = {
    analysis: { hop: 512, averaging: "none" },
    sources: { "low.noise": { analysis: { hop: 256, averaging: "max" } } },
    products: { slow: { averaging: "min", sources: ["a"] } },
  };
  const keys = (source, product) => control.settingsOf(config, { source, product }).map(({ key, value }) => `${key} ${value}`);
  assert.deepEqual(keys("low.noise", "dbfs"), ['sources."low.noise".analysis.hop 256', 'sources."low.noise".analysis.averaging max']);
  assert.deepEqual(keys("low.noise", "slow"), ["products.slow.hop 256", "products.slow.averaging min", 'products.slow.sources ["a"]']);
  assert.deepEqual(keys("other", "dbfs"), ["analysis.hop 512", "analysis.averaging none"]);
});

test("a request names the endpoint, its source and product; a recording has a name of its own", async () => {
  const chosen = { source: "pond/2", product: "slow", kind: "spd", duration_s: null, date: new Date(Date.UTC(2026, 1, 3, 4, 5, 6, 789)) };
  const { method, params, done } = control.REQUESTS.record(chosen);
  assert.deepEqual([method, params], ["record.start", { source: "pond/2", product: "slow", name: "pond_2-20260203T040506Z.spd" }]);
  assert.equal(control.REQUESTS.record({ ...chosen, duration_s: 5 }).params.duration_s, 5);
  assert.equal(done({ name: "x.spd" }), "recording x.spd");
  assert.equal(control.REQUESTS.stop().done([]), "no recording was running");
  let sent = null;
  const fetch = async (address, { body }) => ({ ok: true, json: async () => (sent = [address, JSON.parse(body)]) });
  await control.askDaemon({ method, params, endpoint: "tcp://b:1" }, "http://here/at/", fetch);
  assert.deepEqual(sent, ["http://here/at/api/control", { method, params, endpoint: "tcp://b:1" }]);
});
