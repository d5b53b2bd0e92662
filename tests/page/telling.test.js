// What the page tells: states, announcements, values, preferences, tokens.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Announcer } from "../../spectrod/web/page/announce.js";
import { askDaemon } from "../../spectrod/web/page/control.js";
import { barShare, barTop, valueText } from "../../spectrod/web/page/meter.js";
import { makePrefs, readPrefs, writePrefs, zoneOf } from "../../spectrod/web/page/prefs.js";
import * as status from "../../spectrod/web/page/status.js";
import { bandRows, cursorRows } from "../../spectrod/web/page/tables.js";
import { postToken, splitToken } from "../../spectrod/web/page/token.js";

const endpoint = (changes) => ({ endpoint: "tcp://a:1", connected: true, silence_s: 0.4, missed: 0, why: "", ...changes });
const source = (changes) => ({ source: "mic", state: "running", waiting_for: "", checks: [], ...changes });
const texts = (facts) => facts.map(({ text }) => text).join("; ");

test("silence, a daemon that is gone, and a page without its server look like three things", () => {
  const silent = status.sourceFacts(source({ checks: ["silent: 0"] }));
  assert.equal(status.worstGrade(silent), "notice");
  assert.match(texts(silent), /digital silence: the samples come and are all zero \(0\)/);
  const gone = status.endpointFact(endpoint({ silence_s: 12 }));
  assert.deepEqual([gone.grade, gone.text], ["bad", "no sign of life for 12 s; the daemon has ended or hangs"]);
  const lost = status.connectionFact({ phase: "waiting", wait_ms: 1280, why: "the connection was lost" });
  assert.deepEqual([lost.grade, lost.text], ["bad", "the connection was lost; next attempt in 1.3 s"]);
});

test("a daemon in order is good, one that lost messages is not", () => {
  assert.equal(status.endpointFact(endpoint()).grade, "good");
  assert.deepEqual(status.endpointFact(endpoint({ missed: 3 })).text, "connected, 3 messages missed");
  assert.equal(status.endpointFact(endpoint({ connected: false, why: "keys refused" })).text, "keys refused");
});

test("a source says what it waits for, what it lost, and how far its clock is off", () => {
  assert.equal(status.sourceFacts(source())[0].grade, "good");
  const waiting = status.sourceFacts(source({ state: "waiting", waiting_for: "the sound card" }));
  assert.deepEqual([waiting[0].text, waiting[0].grade], ["waits for the sound card", "bad"]);
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
  assert.match(texts(status.sourceFacts(source({ checks: ["dc: 1 (-23.1 dBFS)"] }))), /offset of the samples \(1 \(-23\.1 dBFS\)\)/);
  assert.match(texts(status.sourceFacts(source({ checks: ["wobbling"] }))), /wobbling/);
});

test("rows are late after three of them, and never before 3 s", () => {
  const channel = { description: null, counts: {}, receivedAt: 0 };
  assert.equal(status.worstGrade(status.channelFacts(channel, 2999)), "good");
  assert.match(texts(status.channelFacts(channel, 3001)), /none for 3\.0 s/);
  assert.equal(status.rowsDueMs({ row_s: 60 }), 180000);
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
});

test("a bar shows 80 dB below a top that only rises, by tens", () => {
  assert.equal(barTop(null, [-23.4, null]), -20);
  assert.equal(barTop(-20, [-60]), -20);
  assert.equal(barTop(-20, [3]), 10);
  assert.equal(barTop(null, [null]), null);
  assert.deepEqual([barShare(-20, -20), barShare(-60, -20), barShare(-200, -20), barShare(null, -20)], [1, 0.5, 0, 0]);
});

test("the table of cursors has both and their difference; what is not exact says so", () => {
  const readings = [{ hz: 440, level: -20, isExact: true }, { hz: 880, level: -50, isExact: false }];
  assert.deepEqual(cursorRows(readings, "dBFS", 1), [
    ["A", "440.0 Hz", "-20.0 dBFS", "A4 0 ct"],
    ["B", "880.0 Hz", "≈ -50.0 dBFS", "A5 0 ct"],
    ["B − A", "440.0 Hz", "-30.0 dB", "1.000 octaves"],
  ]);
});

test("the band's level is the server's, and until it has measured there is none", () => {
  const info = { source: "mic", channel: "0", product: "dbfs" };
  assert.deepEqual(bandRows([{ info, measured: null }], [100, 200])[0][2], "not measured yet");
  const measured = { bands: [{ level: -31.5, unit: "dBFS" }] };
  assert.deepEqual(bandRows([{ info, measured }], [100, 200])[0][2], "-31.5 dBFS");
  assert.deepEqual(bandRows([{ info, measured }], null), []);
});

test("preferences of nonsense, of a full or of a forbidden storage are the defaults", () => {
  const usual = { theme: "auto", zone: "local", keysEverywhere: false };
  for (const stored of [null, "{", "[]", "3", '{"theme":"pink","zone":1,"keysEverywhere":"yes"}']) {
    assert.deepEqual({ ...readPrefs(() => ({ getItem: () => stored })) }, usual);
  }
  const forbidden = () => {
    throw new Error("forbidden");
  };
  assert.deepEqual({ ...readPrefs(forbidden) }, usual);
  writePrefs(forbidden, makePrefs({ theme: "dark" }));
  assert.equal(zoneOf({ zone: "UTC" }), "UTC");
});

test("preferences that are written are read again", () => {
  let kept = null;
  const storage = () => ({ getItem: () => kept, setItem: (_, text) => (kept = text) });
  writePrefs(storage, makePrefs({ theme: "dark", zone: "UTC", keysEverywhere: true }));
  assert.deepEqual({ ...readPrefs(storage) }, { theme: "dark", zone: "UTC", keysEverywhere: true });
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
  await assert.rejects(askDaemon({ method: "record.start", params: {} }, "http://here/", fetch), /^Error: recording night: already there$/);
  const broken = async () => ({ ok: false, status: 502, json: () => Promise.reject(new SyntaxError("x")) });
  await assert.rejects(askDaemon({ method: "pause", params: {} }, "http://here/", broken), /^Error: HTTP status 502$/);
});
