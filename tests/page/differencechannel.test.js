// The difference of two channels as a channel: rows, gaps, ranges, and what is asked of the server.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Session } from "../../spectrod/apps/web/page/link/session.js";
import { topicTitle } from "../../spectrod/apps/web/page/link/topics.js";
import { legend } from "../../spectrod/apps/web/page/panel/captions.js";
import { centred, rangeKey, rangeOf, withRange } from "../../spectrod/apps/web/page/panel/ranges.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { codeColors, differenceMap } from "../../spectrod/apps/web/page/plot/palette.js";
import { LevelHistogram } from "../../spectrod/apps/web/page/rows/autorange.js";
import { Channel } from "../../spectrod/apps/web/page/rows/channel.js";
import { FLAG_GAP } from "../../spectrod/apps/web/page/rows/decode.js";
import { DifferenceChannel, shownChannels } from "../../spectrod/apps/web/page/rows/differencechannel.js";
import { LevelFollower } from "../../spectrod/apps/web/page/rows/follow.js";
import { exportAddress, historyAddress, keyOf } from "../../spectrod/apps/web/page/rows/history.js";
import { codeOf, levelOf } from "../../spectrod/apps/web/page/rows/levels.js";
import { rowSpan, previousOf } from "../../spectrod/apps/web/page/rows/rowspan.js";
import { hasBars, shownRow } from "../../spectrod/apps/web/page/rows/spectrumsum.js";
import { description, random, row } from "./descriptions.js";

const BINS = 5;
const ROW_MS = 20;
const FINE = { bits: 16, lo: -327.67, step: 0.01, nfft: 2 * (BINS - 1), unit: "dBFS", ref: "0 dBFS", epoch: "1" };
const NOTHING = 65535;
const code = (level) => Math.round((level + 327.67) * 100);
const still = () => 0;

const infoOf = (id, channel) => ({ id, kind: "spec", source: "mic", channel, product: "dbfs", topic: `spec/mic/${channel}/dbfs/`, endpoint: "tcp://a:1", fs: 48000 });

function channelOf(id, name, changes = {}) {
  const channel = new Channel(infoOf(id, name), id, 64);
  channel.describe("waterfall", description({ ...FINE, ...changes }));
  return channel;
}

function push(channel, tMs, level, changes = {}) {
  const values = Uint16Array.from({ length: BINS }, (_, bin) => code(level + bin));
  channel.take("waterfall", row(values, { tMs, ...changes }), channel.descriptions.waterfall, tMs, () => {});
}

const timesOf = (rows) => rows.map(({ tMs }) => tMs);
const levelsOf = ({ values, description: about }) => Array.from(values, (value) => Number(levelOf(about, value).toFixed(2)));

test("rows of one time are subtracted, in steps of 0.01 dB, whichever comes first", () => {
  const [a, b] = [channelOf(1, "left"), channelOf(2, "right")];
  const difference = new DifferenceChannel(a, b, 64);
  push(a, 0, -20);
  assert.deepEqual(difference.subtract(still), [], "the other may still come");
  push(b, 0, -26.5);
  push(b, ROW_MS, -10);
  assert.deepEqual(timesOf(difference.subtract(still)), [0]);
  push(a, ROW_MS, -30);
  const [second] = difference.subtract(still);
  assert.deepEqual(levelsOf(second), Array(BINS).fill(-20));
  assert.equal(difference.ring.length, 2);
  assert.deepEqual(levelsOf(difference.ring.at(1)), Array(BINS).fill(6.5));
  assert.deepEqual(difference.subtract(still), [], "each row once");
  assert.equal(second.description.unit, "dB");
  assert.equal(shownRow(second, { smoothing: 3, bars: "none" }), second, "differences are no power to sum up");
  assert.equal(topicTitle(difference.info), "mic · left · dbfs less mic · right · dbfs");
});

test("a row that one of both lacks is none, and the next one has a gap of that time before it", () => {
  for (const lacking of [0, 1]) {
    const channels = [channelOf(1, "left"), channelOf(2, "right")];
    const difference = new DifferenceChannel(...channels, 64);
    channels.forEach((channel, which) => {
      for (let n = 0; n < 10; n += 1) if (which !== lacking || n < 3 || n > 6) push(channel, n * ROW_MS, -20);
    });
    const rows = difference.subtract(still);
    assert.deepEqual(timesOf(rows), [0, 1, 2, 7, 8, 9].map((n) => n * ROW_MS));
    if (lacking === 1) assert.deepEqual(rows.map(({ flags }) => flags), [0, 0, 0, FLAG_GAP, 0, 0]);
    const span = rowSpan(rows[3], rows[3].description, previousOf(rows[2], rows[2].description));
    assert.equal(span.beginMs, 6.5 * ROW_MS);
    if (lacking === 1) assert.equal(span.holeMs, 2.5 * ROW_MS);
  }
});

test("what one of both says is lost is lost of the difference", () => {
  const [a, b] = [channelOf(1, "left"), channelOf(2, "right")];
  const difference = new DifferenceChannel(a, b, 64);
  for (const channel of [a, b]) push(channel, 0, -20);
  push(a, 5 * ROW_MS, -20, { missed: 1 });
  push(b, 5 * ROW_MS, -20, { flags: FLAG_GAP, gapSamples: 4800 });
  const [, after] = difference.subtract(still);
  assert.deepEqual([after.flags, after.missed, after.gapSamples], [FLAG_GAP, 1, 4800]);
});

test("rows of sources that begin elsewhere are subtracted from those half a row away at most", () => {
  const next = random(3);
  for (let trial = 0; trial < 20; trial += 1) {
    const shift = (next() - 0.5) * 0.98 * ROW_MS;
    const [a, b] = [channelOf(1, "left"), channelOf(2, "right")];
    const difference = new DifferenceChannel(a, b, 64);
    for (let n = 0; n < 12; n += 1) {
      push(a, n * ROW_MS, n);
      push(b, n * ROW_MS + shift, 0);
      difference.subtract(still);
    }
    const levels = Array.from({ length: difference.ring.length }, (_, i) => levelsOf(difference.ring.at(i))[0]).reverse();
    assert.deepEqual(levels.slice(0, 11), [...Array(11).keys()], `${shift}`);
  }
});

test("a longer ring of either channel goes on where the shorter one ended", () => {
  const [a, b] = [channelOf(1, "left"), channelOf(2, "right")];
  const difference = new DifferenceChannel(a, b, 64);
  const both = (n) => [a, b].forEach((channel) => push(channel, n * ROW_MS, n));
  both(0);
  both(1);
  assert.equal(difference.subtract(still).length, 2);
  both(2);
  const long = description({ ...FINE, nfft: 8192 });
  a.describe("waterfall", long);
  a.describe("waterfall", description(FINE));
  both(3);
  assert.deepEqual(timesOf(difference.subtract(still)), [2 * ROW_MS, 3 * ROW_MS]);
});

test("many rows that were there before are subtracted over several calls", () => {
  const [a, b] = [channelOf(1, "left"), channelOf(2, "right")];
  const difference = new DifferenceChannel(a, b, 64);
  for (let n = 0; n < 30; n += 1) [a, b].forEach((channel) => push(channel, n * ROW_MS, n));
  let time = 0;
  const counts = [];
  while (difference.ring === null || difference.ring.length < 30) counts.push(difference.subtract(() => (time += 1)).length);
  assert.deepEqual(counts, [8, 8, 8, 6]);
});

test("channels of other bins, units or references have no difference, which is said", () => {
  const a = channelOf(1, "left");
  const cases = [
    [{ bin_hz: 10 }, "no difference: the channels have other bins"],
    [{ unit: "dB SPL", ref: "20 uPa" }, "no difference: the channels have other levels, dBFS re 0 dBFS and dB SPL re 20 uPa"],
  ];
  for (const [changes, text] of cases) {
    const b = channelOf(2, "right", changes);
    const difference = new DifferenceChannel(a, b, 64);
    difference.follow();
    assert.equal(difference.gone, text);
    assert.equal(difference.description, null);
  }
  const other = channelOf(2, "right");
  other.gone = "right: there is no such channel now";
  const difference = new DifferenceChannel(a, other, 64);
  difference.follow();
  assert.equal(difference.gone, "right: there is no such channel now");
});

test("line spectra are subtracted when both are of one time", () => {
  const [a, b] = [channelOf(1, "left"), channelOf(2, "right")];
  const difference = new DifferenceChannel(a, b, 64);
  const trace = (channel, tMs, level) => {
    channel.describe("trace", channel.descriptions.waterfall);
    channel.take("trace", row(Uint16Array.from({ length: BINS }, (_, bin) => (bin === 2 ? NOTHING : code(level))), { tMs }), channel.descriptions.trace, tMs, () => {});
  };
  trace(a, 0, -20);
  assert.equal(difference.subtractNewest("trace"), false);
  trace(b, ROW_MS, -30);
  assert.equal(difference.subtractNewest("trace"), false);
  trace(a, ROW_MS, -20);
  assert.equal(difference.subtractNewest("trace"), true);
  assert.deepEqual(levelsOf(difference.newest), [10, 10, NaN, 10, 10]);
  difference.keepReference(difference.newest);
  assert.deepEqual(levelsOf(difference.reference), [10, 10, NaN, 10, 10]);
});

test("the session has the subtracted channel as well, which is shown where somebody chose it", () => {
  const listeners = { changed: () => {}, row: () => {}, refused: () => {} };
  const session = new Session({ now: () => 0, listeners });
  const topics = [1, 2, 3].map((id) => infoOf(id, String(id)));
  session.text({ op: "topics", topics });
  const [one, two, three] = topics.map(({ topic }) => topic);
  const shown = (names, less) => {
    session.select(names, less);
    return shownChannels(session, (a, b) => new DifferenceChannel(a, b, 8)).map((group) => group.map(({ info }) => topicTitle(info).replaceAll(/mic · | · dbfs/g, "")));
  };
  assert.deepEqual(shown([one, two], ""), [["1", "2"]]);
  assert.deepEqual(shown([one, two], three), [["1 less 3", "2 less 3"], []]);
  assert.deepEqual(session.channels.map(({ info }) => info.id), [1, 2, 3]);
  assert.deepEqual(shown([one, two], two), [["1 less 2"], ["2"]]);
  assert.deepEqual(shown([two], two), [["2"]], "a channel less itself says nothing");
  assert.deepEqual(shown([one], "spec/mic/9/dbfs/"), [["1"]]);
  assert.match(session.missing()[0], /^mic · 9 · dbfs: there is no such channel now/);
});

test("the past of a difference is asked for as one, and kept apart from that of the channel", () => {
  const difference = new DifferenceChannel(channelOf(1, "left"), channelOf(2, "right"), 8);
  const shown = { f0: 0, f1: 24000, axis: "log", px: 600, statistic: "max" };
  const piece = { t0: 0, t1: 1000, w: 1, step: "0.1" };
  const alone = { ...shown, topic: infoOf(1, "left") };
  const about = { ...shown, topic: difference.info };
  const { searchParams } = historyAddress("http://here/", about, piece);
  assert.deepEqual(["topic", "less", "less_name"].map((name) => searchParams.get(name)), ["1", "2", "tcp://a:1 spec/mic/right/dbfs/"]);
  assert.equal(historyAddress("http://here/", alone, piece).searchParams.has("less"), false);
  assert.equal(exportAddress("http://here/", difference.info, { ...shown, ...piece }, "csv").searchParams.get("less"), "2");
  assert.notEqual(keyOf(about), keyOf(alone));
});

test("the range of differences is of its own, has 0 in the middle, and is that of what is seen", () => {
  const levels = { names: ["a"], unit: "dBFS", ref: "0 dBFS" };
  const differences = { names: ["a", "b"], unit: "dB", ref: "difference", isDifference: true };
  for (const isLinked of [true, false]) {
    const view = makeView({ isLinked, lo: -100, hi: 0 });
    const [key, other] = [differences, levels].map((one) => rangeKey(view, one));
    assert.equal(rangeOf(view, key), null, "a range of levels is none of differences");
    const set = makeView({ ...view, ...withRange(view, [key, other], key, centred({ lo: -20, hi: 12 }, { lo: -20, hi: 20 })) });
    assert.deepEqual(rangeOf(set, key), { lo: -12, hi: 12 });
    assert.deepEqual(rangeOf(set, other), { lo: -100, hi: 0 });
    assert.equal(rangeOf(makeView({ ...set, ...withRange(set, [key, other], key, null) }), key), null);
  }
  assert.deepEqual(centred({ lo: -6.2, hi: 20 }, { lo: -20, hi: 20 }), { lo: -6, hi: 6 });
  assert.deepEqual(centred({ lo: -20, hi: -19 }, { lo: -20, hi: 20 }), { lo: -2.5, hi: 2.5 });
  const histogram = new LevelHistogram();
  const about = description({ ...FINE, nfft: 200, unit: "dB" });
  histogram.add(Uint16Array.from({ length: 101 }, (_, k) => code(-8 + 0.05 * k)), about);
  const follower = new LevelFollower(true);
  assert.deepEqual(follower.levels(makeView(), null, 0, () => []), { lo: -20, hi: 20 });
  assert.deepEqual(follower.levels(makeView(), null, 300, () => [{ histogram, held: -Infinity, passing: -Infinity }]), { lo: -8, hi: 8 });
});

test("0 dB has the middle colour in both themes, and the ends are red and blue", () => {
  const rgb = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  for (const theme of ["light", "dark"]) {
    const colors = codeColors(differenceMap(theme), -6, 6);
    const [low, middle, high] = [-6, 0, 6].map((level) => rgb(colors[codeOf(level)]));
    assert.ok(low[2] > low[0] + 60, "blue below");
    assert.ok(high[0] > high[2] + 60, "red above");
    assert.ok(Math.max(...middle) - Math.min(...middle) < 12, "grey at 0");
  }
});

const WIDE = { ...FINE, nfft: 4096, enbw_hz: 17.58, statistic: "mean" };
const noise = (seed) => {
  const next = random(seed);
  return Uint16Array.from({ length: 2049 }, () => code(-90 + 60 * next()));
};

/** Two channels of random rows of one time, and their difference. */
function noisy(changes = {}) {
  const about = description({ ...WIDE, ...changes });
  const channels = [1, 2].map((id) => channelOf(id, `c${id}`, { ...WIDE, ...changes }));
  channels.forEach((channel, k) => {
    for (const role of ["trace", "mean"]) channel.take(role, row(noise(k + (role === "mean" ? 10 : 1)), { tMs: 0 }), about, 0, () => {});
  });
  return { channels, difference: new DifferenceChannel(...channels, 64) };
}

const levels = (shown) => Array.from(shown.values, (value) => levelOf(shown.description, value));

test("bars and smoothed lines of a difference are the difference of those of both, to a step", () => {
  const { channels: [a, b], difference } = noisy();
  assert.equal(difference.subtractNewest("trace"), true);
  for (const view of [{ bars: "third", smoothing: 0 }, { bars: "third-a", smoothing: 0 }, { bars: "none", smoothing: 6 }]) {
    const [ofA, ofB] = [a, b].map(({ trace }) => levels(shownRow(trace, view)));
    const shown = shownRow(difference.trace, view);
    assert.equal(shown.description.isDifference, true);
    assert.equal(Boolean(shown.description.edges_hz), view.bars !== "none");
    levels(shown).forEach((level, k) => assert.ok(Math.abs(level - (ofA[k] - ofB[k])) < 0.0051));
    assert.equal(levels(shown).length, ofA.length);
  }
  assert.equal(hasBars(difference.description), true);
  const alone = { ...difference.trace, of: undefined };
  assert.equal(shownRow(alone, { bars: "third", smoothing: 0 }), alone, "bins of a difference are no power to sum up");
});

test("densities have no bars as differences either", () => {
  const { difference } = noisy({ unit: "dB re FS^2/Hz" });
  difference.subtractNewest("trace");
  assert.equal(hasBars(difference.description), false);
  assert.equal(shownRow(difference.trace, { bars: "third", smoothing: 0 }).description.edges_hz, null);
});

test("averages are subtracted as line spectra are, extremes are not, and the legend says why", () => {
  const { channels: [a, b], difference } = noisy();
  assert.equal(difference.subtractNewest("mean"), true);
  const [ofA, ofB] = [a, b].map(({ holds }) => levels({ ...holds.mean }));
  levels(difference.holds.mean).forEach((level, k) => assert.ok(Math.abs(level - (ofA[k] - ofB[k])) < 0.0051));
  b.holds = {};
  assert.equal(difference.subtractNewest("mean"), false);
  const moment = { tMs: 0, row: { ...difference.holds.mean, of: undefined }, holds: difference.holds };
  const texts = legend([difference], makeView({ holds: ["max", "mean"], bars: "third" }), { moments: [moment], zone: "UTC" }).map(({ text }) => text);
  assert.deepEqual(texts, ["live", "no max hold: the extremes of bins are not those of bands", "average", "bins in a pixel: mean power; lines: bins, as the two spectra of this time are not there"]);
  const plain = legend([difference], makeView({ holds: ["min"] }), { moments: [moment], zone: "UTC" }).map(({ text }) => text);
  assert.equal(plain[1], "no min hold: the extremes of both are not those of their difference");
});
