// What is drawn and saved, as far as it is reckoned: levels that follow, labels, health, names, lines.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Channel } from "../../spectrod/apps/web/page/rows/channel.js";
import { fileName, traceCsv } from "../../spectrod/apps/web/page/side/export.js";
import { LevelFollower, shownLevels } from "../../spectrod/apps/web/page/rows/follow.js";
import { healthGroups } from "../../spectrod/apps/web/page/side/health.js";
import { labelOffset } from "../../spectrod/apps/web/page/panel/overlay.js";
import { makeAxis } from "../../spectrod/apps/web/page/plot/axis.js";
import { drawFrequencyRuler, drawLevelRuler, drawTimeRuler, placeLabels } from "../../spectrod/apps/web/page/plot/ruler.js";
import { savePast } from "../../spectrod/apps/web/page/side/saving.js";
import { lineOffsets } from "../../spectrod/apps/web/page/plot/trace.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";

const INFO = { id: 3, topic: "spec/mic/0/dbfs/", endpoint: "ipc://a", source: "mic", channel: "0", product: "dbfs" };
const DESCRIPTION = { bits: 8, lo: -120, step: 0.5, first_hz: 0, bin_hz: 10, n_bins: 100, row_s: 0.1, epoch: "1", edges_hz: null, slices: [{ first: 0, per_value: 1, values: 100 }] };
const AXIS = { f0: 0, f1: 1000 };

/** A channel with a row whose values have one level, and another one in its upper half. */
function channelOf(low, high) {
  const channel = new Channel(INFO, 0, 8);
  channel.describe("waterfall", DESCRIPTION);
  const byte = (level) => 1 + (level + 120) * 2;
  const values = Uint8Array.from({ length: 100 }, (_, k) => byte(k < 50 ? low : high));
  const row = { seq: 0, missed: 0, merged: 1, flags: 0, tMs: 1000, gapSamples: 0, values };
  channel.take("waterfall", row, DESCRIPTION, 0, () => {});
  return channel;
}

const shownOf = (channel, newestMs, held = []) => shownLevels({ rows: channel.ring, line: null, held }, AXIS, { newestMs, spanMs: 500 });
const rangeAt = (channel, newestMs, held = []) => new LevelFollower().levels(makeView(), null, 0, () => [shownOf(channel, newestMs, held)]);

test("levels by themselves follow slowly, by hand at once, and rest where the past that is shown has its levels", () => {
  const follower = new LevelFollower();
  const levels = (view, now, channel, range = null) => follower.levels(makeView(view), range, now, () => [shownOf(channel, 1000)]);
  assert.deepEqual(new LevelFollower().levels(makeView(), null, 0, () => []), { lo: -120, hi: 0 });
  const first = levels({}, 0, channelOf(-100, -20));
  assert.ok(Math.abs(first.lo + 103) <= 0.5 && Math.abs(first.hi + 17) <= 0.5, `${first.lo} ${first.hi}`);
  const louder = channelOf(-60, -20);
  assert.deepEqual(levels({}, 100, louder), first);
  levels({}, 1600, channelOf(-100, -20));
  const later = levels({}, 2600, louder);
  assert.ok(later.lo > first.lo && later.lo <= first.lo + 3.01, `${later.lo}`);
  const past = [9000, 10_000].map((now) => levels({ t1: 1000 }, now, louder));
  assert.ok(Math.abs(past[0].lo + 63) <= 2.5, `${past[0].lo}`);
  assert.deepEqual(past[1], past[0]);
  assert.deepEqual(levels({}, 11_001, louder, { lo: -50, hi: 10 }), { lo: -50, hi: 10 });
});

test("the range is of the time that is shown, and reaches to the tops of lines that stay, such as a hold's", () => {
  const channel = channelOf(-100, -60);
  assert.ok(Math.abs(rangeAt(channel, 1000).hi + 57) <= 0.5);
  for (const newestMs of [60_000, 900]) assert.deepEqual(rangeAt(channel, newestMs), { lo: -120, hi: 0 });
  const hold = channelOf(-100, -60).newest;
  const values = hold.values.slice();
  values[3] = 1 + (120 - 12) * 2;
  assert.ok(Math.abs(rangeAt(channel, 1000, [{ ...hold, values }]).hi + 9) <= 0.5);
});

test("labels of a scale stay whole within it and never touch", () => {
  const measure = (text) => 10 * text.length;
  const ticks = [0, 20, 100, 185, 200].map((px, k) => ({ px, label: k === 2 ? "" : `${k}abc` }));
  assert.deepEqual(placeLabels(ticks, measure, 200, 4), [{ label: "0abc", x: 0 }, { label: "3abc", x: 160 }]);
  assert.deepEqual(placeLabels(ticks.slice(1, 2), measure, 200, 4), [{ label: "1abc", x: 0 }]);
});

/** A canvas whose signs are `signPx` wide, and the texts that are written on it. */
function paper(width, height, signPx) {
  const texts = [];
  const nothing = () => {};
  const context = { clearRect: nothing, beginPath: nothing, moveTo: nothing, lineTo: nothing, stroke: nothing, fill: nothing, measureText: (text) => ({ width: signPx * text.length }) };
  context.fillText = (text, x, y, maxWidth = Infinity) => texts.push({ text, y, left: x - (context.textAlign === "left" ? 0 : Math.min(signPx * text.length, maxWidth)) });
  return { canvas: { width, height, getContext: () => context }, texts };
}

test("labels of times and levels are whole in any gutter: a cut one would be another date", () => {
  for (const ratio of [1, 1.25, 2, 3]) {
    for (const days of [0.001, 1, 30, 400]) {
      const { canvas, texts } = paper(64 * ratio, 400 * ratio, 7 * ratio);
      const t1Ms = Date.UTC(2026, 10, 26, 12);
      drawTimeRuler(canvas, { t0Ms: t1Ms - days * 86_400_000, t1Ms, direction: days > 1 ? "up" : "down", zone: "UTC", entries: [] }, {}, ratio);
      drawLevelRuler(canvas, { lo: -175, hi: -133 }, {}, ratio);
      assert.ok(texts.length > 5);
      for (const { text, left } of texts) assert.ok(left >= 0, `${text} begins at ${left}`);
    }
  }
});

/** Texts of a time scale, as they are written, with their heights. */
function timeTexts(days, height, zone, direction, width = 80) {
  const { canvas, texts } = paper(width, height, 7);
  const t1Ms = Date.UTC(2026, 10, 26, 23, 30);
  drawTimeRuler(canvas, { t0Ms: t1Ms - days * 86_400_000, t1Ms, direction, zone, entries: [] }, {}, 1);
  return texts;
}

test("where rows move up a scale of times has the same labels at heights from the bottom", () => {
  const [down, up] = ["down", "up"].map((direction) => new Map(timeTexts(0.001, 401, "UTC", direction).map(({ text, y }) => [text, y])));
  assert.ok(down.size > 5);
  assert.deepEqual(new Set(up.keys()), new Set(down.keys()));
  for (const [text, y] of down) assert.ok(Math.abs(up.get(text) - (401 - y)) < 1e-9, text);
});

test("a scale of times has the date of its top and its zone, where its ticks are no dates and there is room", () => {
  const written = (days, height, zone) => timeTexts(days, height, zone, "down").map(({ text }) => text);
  assert.deepEqual(written(0.001, 400, "Europe/Berlin").slice(0, 2), ["2026-11-27", "GMT+1"]);
  assert.equal(written(30, 400, "UTC")[0], "UTC");
  assert.ok(!written(0.001, 60, "UTC").includes("UTC"));
});

test("below a waterfall the date is at the right, the zone at the left, and labels between them do not touch", () => {
  for (const width of [240, 290, 700, 1300]) {
    for (const days of [0.0001, 0.001, 0.5, 2]) {
      const texts = timeTexts(days, 26, "Europe/Berlin", "right", width);
      const found = texts.map(({ text, left }) => ({ text, left, length: 7 * text.length }));
      const [date, zone] = ["2026-11-27", "GMT+1"].map((text) => found.find((one) => one.text === text));
      assert.deepEqual([date.left + date.length, zone.left], [width, 0]);
      const ordered = found.sort((a, b) => a.left - b.left);
      ordered.slice(1).forEach((one, k) => assert.ok(one.left >= ordered[k].left + ordered[k].length, `${one.text} in ${width} px`));
      assert.ok(found.length > 2, `${width} px`);
    }
  }
  assert.ok(!timeTexts(0.001, 26, "UTC", "right", 200).some(({ text }) => text === "UTC"));
  const times = timeTexts(0.001, 26, "UTC", "right", 700).map(({ text }) => text).slice(2);
  assert.deepEqual(times, [...times].sort());
});

test("a frequency scale at the left has low frequencies at the bottom, and labels that do not touch", () => {
  for (const [kind, f0] of [["linear", 0], ["log", 10], ["mel", 0], ["octave", 10]]) {
    for (const height of [60, 200, 700]) {
      const { canvas, texts } = paper(64, height, 7);
      drawFrequencyRuler(canvas, makeAxis({ kind, f0, f1: 24000, width: height }), {}, 1, true);
      const hertz = texts.map(({ text }) => Number.parseFloat(text) * (text.includes("k") ? 1000 : 1));
      assert.ok(texts.length >= 2, `${kind} ${height}`);
      assert.deepEqual(hertz, [...hertz].sort((a, b) => b - a));
      texts.slice(1).forEach(({ y }, k) => assert.ok(y >= texts[k].y + 12, `${kind} ${height}`));
    }
  }
});

test("a wide line is equally wide whatever its slope", () => {
  for (const width of [1, 1.5, 2, 3, 4.5]) {
    const offsets = lineOffsets(width);
    for (let k = 0; k < 12; k += 1) {
      const angle = (Math.PI * k) / 12;
      const across = offsets.map(({ x, y }) => x * Math.cos(angle) + y * Math.sin(angle));
      const found = 1 + Math.max(...across) - Math.min(...across);
      assert.ok(Math.abs(found - width) <= 0.3 * (width - 1) + 1e-9, `${found} of ${width} px at ${angle}`);
    }
  }
});

test("a cursor's label is on the side with more room, and whole within the plot", () => {
  assert.equal(labelOffset(10, 500, 100), 6);
  assert.equal(labelOffset(400, 500, 100), -106);
  assert.equal(labelOffset(90, 200, 130), -20);
  assert.equal(labelOffset(110, 200, 130), -110);
  assert.equal(labelOffset(20, 100, 130), -20);
});

test("the state names daemons, then sources and channels that are shown, and no others", () => {
  const channel = channelOf(-100, -20);
  const sources = [{ endpoint: "ipc://a", source: "mic", state: "running" }, { endpoint: "ipc://a", source: "pond", state: "running" }];
  const session = { channels: [channel], sources, endpoints: [{ endpoint: "ipc://a", connected: false, why: "keys refused" }], silentSources: [], sourceOf: () => sources[0] };
  const groups = healthGroups(session, { phase: "open" }, 10_000);
  assert.deepEqual(groups.map(({ title }) => title), ["", "mic", "mic · 0 · dbfs"]);
  assert.deepEqual(groups[0].facts.map(({ text }) => text), ["connected", "keys refused"]);
  assert.match(groups[2].facts[0].text, /none for 10 s/);
});

test("a refused export is an error with the server's reason, and one without is its status", async (t) => {
  const channels = [{ info: INFO }];
  const scene = { view: makeView({ span: 10 }), axis: AXIS, newestMs: 20_000.5 };
  const asked = [];
  const answers = [{ ok: false, json: async () => ({ error: "no recorded rows" }) }, { ok: false, status: 500, json: () => Promise.reject(new SyntaxError("x")) }];
  t.mock.method(globalThis, "fetch", async (address) => {
    asked.push(new URL(address).searchParams);
    return answers[asked.length - 1];
  });
  await assert.rejects(savePast("spd", "http://here/", channels, scene), /^Error: no recorded rows$/);
  await assert.rejects(savePast("spd", "http://here/", channels, scene), /^Error: status 500$/);
  assert.deepEqual(["t0", "t1", "f0", "f1", "format", "name"].map((key) => asked[0].get(key)), ["10001", "20001", "0", "1000", "spd", "ipc://a spec/mic/0/dbfs/"]);
});

test("names of files have only signs that every system takes, and levels are saved as they are read", () => {
  assert.match(fileName("mic · 0 · dbfs 2026-11-25 22:00:00.000 UTC/../x", "csv"), /^[\w.-]+\.csv$/);
  const row = channelOf(-100, -20).newest;
  const lines = traceCsv({ title: "a", time: "b", row }).trim().split("\n");
  assert.ok(lines.at(-1).startsWith("990"), lines.at(-1));
  assert.ok(lines.at(-1).includes("-20"), lines.at(-1));
});
