// Recorded sound of events: what is asked for, and where a player begins.
import assert from "node:assert/strict";
import { test } from "node:test";

import { findClips, secondsInto } from "../../spectrod/apps/web/page/panel/soundclips.js";

const BASE = "http://here/spectra/";
const CLIP = { folder: 0, recording: "night", source: "pond", name: "a&b.wav", begin_ms: 1000, end_ms: 4000, bytes: 5 };

test("clips of an event are asked for by its source and time, and have an address below the page's", async () => {
  const asked = [];
  const fetch = async (address) => {
    asked.push(String(address));
    return { ok: true, json: async () => ({ clips: Array(20).fill(CLIP) }) };
  };
  const clips = await findClips(fetch, BASE, { source: "pond", t0: 2000, t1: 2000, kind: "owl" });
  assert.deepEqual(asked, ["http://here/spectra/api/sound?source=pond&t0=2000&t1=2001"]);
  assert.equal(clips.length, 8);
  assert.equal(clips[0].address, "http://here/spectra/api/sound/file?folder=0&recording=night&source=pond&name=a%26b.wav");
  assert.deepEqual([clips[0].beginMs, clips[0].endMs, clips[0].name], [1000, 4000, "a&b.wav"]);
});

test("a refusal is an error with the server's reason, and an answer without clips has none", async () => {
  const answering = (ok, body) => async () => ({ ok, status: 502, json: async () => (body === null ? Promise.reject(new SyntaxError("x")) : body) });
  const event = { source: "pond", t0: 0, t1: 1 };
  await assert.rejects(findClips(answering(false, { error: "token: needed to hear" }), BASE, event), /^Error: token: needed to hear$/);
  await assert.rejects(findClips(answering(false, null), BASE, event), /^Error: status 502$/);
  assert.deepEqual(await findClips(answering(true, { clips: 3 }), BASE, event), []);
});

test("a player begins where the event does, within its file", () => {
  const clip = { beginMs: 1000, endMs: 4000 };
  assert.deepEqual([0, 1000, 2500, 9000].map((tMs) => secondsInto(clip, tMs)), [0, 0, 1.5, 3]);
});
