/** What archives have: the time axis ends with it, and nothing says that a daemon is missing. */

import assert from "node:assert/strict";
import test from "node:test";

import { atStored, restOf, storedSpan } from "../../spectrod/apps/web/page/rows/stored.js";
import { Session } from "../../spectrod/apps/web/page/link/session.js";
import { bannerText } from "../../spectrod/apps/web/page/panel/captions.js";
import { healthGroups } from "../../spectrod/apps/web/page/side/health.js";
import { LossWatch, stateLine } from "../../spectrod/apps/web/page/side/stateline.js";
import { channelFacts, endpointFact } from "../../spectrod/apps/web/page/side/status.js";

const DAY = 86_400_000;
const topic = (id, stored) => ({
  id, topic: `spec/s${id}/0/p/`, kind: "spec", endpoint: "results", source: `s${id}`, channel: "0", product: "p", unit: "dBFS", fs: 48000, stored,
});

test("the span is that of all topics that are stored", () => {
  assert.equal(storedSpan([]), null);
  assert.equal(storedSpan([{}]), null);
  assert.deepEqual(storedSpan([topic(0, [5, 9]), {}, topic(1, [2, 7])]), { t0: 2, t1: 9 });
});

test("a view without a time ends with what is stored, and shows all of it the first time only, more than a day as days", () => {
  const stored = { t0: 10 * DAY, t1: 40 * DAY };
  assert.deepEqual(atStored({ t1: null, span: 30 }, stored, true), { t1: 40 * DAY, span: 30 * 86400, days: true });
  assert.equal(atStored({ t1: null, span: 30 }, { t0: 0, t1: DAY }, true).days, false);
  assert.deepEqual(atStored({ t1: null, span: 60 }, stored, false), { t1: 40 * DAY });
  assert.deepEqual(atStored({ t1: 5, span: 60 }, stored, true), {});
  assert.deepEqual(atStored({ t1: null, span: 60 }, null, true), {});
});

test("daemons' channels rest at the end of what is stored of them until a row of one comes", () => {
  const channel = (newest_ms, receivedAt = null) => ({ receivedAt, description: newest_ms === undefined ? null : { newest_ms } });
  assert.equal(restOf([]), null);
  assert.equal(restOf([channel(undefined), channel(null)]), null);
  assert.deepEqual(restOf([channel(5), channel(undefined), channel(9)]), { t1: 9 });
  assert.equal(restOf([channel(5), channel(undefined, 1)]), null);
  assert.deepEqual(atStored({ t1: null, span: 30 }, { t1: 9 }, true), { t1: 9 });
});

function sessionOf(topics) {
  const session = new Session({ listeners: { changed() {}, row() {}, refused() {} }, now: () => 0 });
  session.text({ op: "hello", version: 1, has_history: true, is_archive: true });
  session.text({ op: "topics", topics });
  return session;
}

test("the newest time of an archive is the end of what is stored, not of rows", () => {
  const session = sessionOf([topic(0, [5, 9])]);
  assert.equal(session.isArchive, true);
  assert.equal(session.newestMs("results"), 9);
});

test("nothing is said to be missing, late or waited for", () => {
  const session = sessionOf([topic(0, [5, 9 * DAY])]);
  const [channel] = session.channels;
  assert.equal(bannerText(session.channels, 1e9, { t1: 9, zone: "UTC" }), "");
  assert.equal(bannerText(session.channels, 1e9, { t1: null, zone: "UTC" }), "");
  assert.deepEqual(channelFacts(channel, 1e9), [{ name: "stored", text: "1970-01-01 00:00:00 UTC to 1970-01-10 00:00:00 UTC", grade: "good" }]);
});

test("an archive that is there is open, and not connected to anything", () => {
  assert.deepEqual(endpointFact({ endpoint: "results", is_archive: true, connected: true, silence_s: 0 }), { name: "results", text: "open", grade: "good" });
  const gone = { endpoint: "results", is_archive: true, connected: false, silence_s: 0, why: "is no longer there" };
  assert.deepEqual(endpointFact(gone), { name: "results", text: "is no longer there", grade: "bad" });
});

test("an archive that has gone says so, in the head and on its panel", () => {
  const session = sessionOf([topic(0, [5, 9])]);
  session.text({ op: "topics", topics: [] });
  session.text({ op: "state", endpoints: [{ endpoint: "results", connected: false, silence_s: 0, missed: 0, why: "is no longer there" }], sources: [] });
  const { text, grade } = stateLine(healthGroups(session, { phase: "open" }, 0), "results", new LossWatch(), 0);
  assert.deepEqual([text, grade], ["results: is no longer there", "bad"]);
  assert.match(bannerText(session.channels, 0, { t1: 9, zone: "UTC" }), /^s0 · 0 · p: there is no such channel now/);
});
