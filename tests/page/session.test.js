// What the page makes of the server's texts and rows, and what it asks for.
import assert from "node:assert/strict";
import { test } from "node:test";

import { streamId, streamRole, streamsWanted, pixelsWanted, rowsWanted } from "../../spectrod/apps/web/page/link/demand.js";
import { FLAG_DROPPED, FLAG_GAP, FLAG_NEW_EPOCH } from "../../spectrod/apps/web/page/rows/decode.js";
import { EventLog } from "../../spectrod/apps/web/page/link/events.js";
import { Session } from "../../spectrod/apps/web/page/link/session.js";
import { ambiguousNames, chosenTopics, findTopic, inOrder, missingText, nextTopic, spectraOf, topicName } from "../../spectrod/apps/web/page/link/topics.js";
import { makeView } from "../../spectrod/apps/web/page/panel/view.js";
import { description, row } from "./descriptions.js";

const LIMITS = { streams: 8, values: 4096, rows_s: 50 };

function topic(id, name, changes = {}) {
  const [kind, source, channel, product] = name.split("/");
  return { id, topic: name, kind, endpoint: "tcp://a:1", source, channel, product, unit: "dBFS", fs: 48000, ...changes };
}

const MIC0 = topic(1, "spec/mic/0/dbfs/");
const MIC1 = topic(2, "spec/mic/1/dbfs/");
const MIC2 = topic(3, "spec/mic/2/dbfs/");
const THIRD = topic(4, "bands/mic/0/third/");
const METER = topic(5, "levels/mic/0/meter/");
const FAR = topic(6, "spec/mic/0/dbfs/", { endpoint: "tcp://b:1" });

function setUp(topics = [THIRD, MIC0, MIC1, MIC2, METER]) {
  const heard = { changed: [], rows: [], refused: [] };
  const session = new Session({
    now: () => 1000,
    listeners: {
      changed: (what) => heard.changed.push(what),
      row: (...given) => heard.rows.push(given),
      refused: (text) => heard.refused.push(text),
    },
  });
  session.text({ op: "hello", version: 1, limits: LIMITS });
  session.text({ op: "topics", topics });
  return { session, heard };
}

const SHAPE = { f0: 0, f1: 24000, axis: "linear", widthCss: 800, breadthCss: 800, lengthPx: 600, ratio: 1 };

function streamText(place, role, generation, changes = {}) {
  return { op: "stream", topic: MIC0.topic, epoch: "1", generation, ...description(changes), id: streamId(place, role) };
}

const block = (generation, ...rows) => ({ stream: 0, generation, bits: 8, rows, clientDropped: 0 });
const quiet = (changes) => row(new Uint8Array(2049), changes);

test("the source's time zone is that of the first channel shown which says one that the browser knows", () => {
  const zoned = (zones) => setUp([MIC0, MIC1, MIC2].map((info, k) => ({ ...info, time_zone: zones[k] }))).session;
  assert.equal(zoned([undefined, "Asia/Kolkata"]).timeZone, "Asia/Kolkata");
  assert.equal(zoned(["", "Mars/Base"]).timeZone, "");
  const session = zoned(["Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"]);
  assert.equal(session.timeZone, "Europe/Berlin");
  session.select([MIC2.topic]);
  assert.equal(session.timeZone, "Pacific/Apia");
});

test("a topic's last rows, which come after the list that has its successor, do not hide it", () => {
  const { session } = setUp([MIC0]);
  const [channel] = session.channels;
  session.text(streamText(0, "waterfall", 1));
  session.rows([block(1, quiet())]);
  session.text({ op: "topics", topics: [MIC0, THIRD] });
  session.rows([block(1, quiet())]);
  assert.deepEqual(channel.newer.map(({ topic: name }) => name), [THIRD.topic]);
  channel.fallSilent();
  session.rows([block(1, quiet())]);
  assert.deepEqual(channel.newer, []);
  channel.noteNewer([THIRD], 1000 - 5000);
  session.rows([block(1, quiet())]);
  assert.deepEqual(channel.newer, []);
});

test("without names the first source's first two channels of spectra are shown", () => {
  assert.deepEqual(chosenTopics([], [THIRD, MIC0, MIC1, MIC2, METER]), [MIC0, MIC1]);
  assert.deepEqual(chosenTopics([], [METER, THIRD]), [THIRD]);
  assert.deepEqual(chosenTopics([], []), [].slice());
});

test("the next topic is of the same kind, after the last that is shown, and not shown", () => {
  const topics = [THIRD, MIC0, MIC1, MIC2, METER];
  assert.equal(nextTopic([MIC0], topics), MIC1);
  assert.equal(nextTopic([MIC1, MIC2], topics), MIC0);
  assert.equal(nextTopic([MIC0, MIC1, MIC2], topics), null);
  assert.equal(nextTopic([THIRD], topics), null);
  assert.equal(nextTopic([], topics), spectraOf(topics)[0]);
  assert.equal(nextTopic([], []), null);
});

test("names choose topics in their order; unknown ones and those without a spectrum are left out", () => {
  const names = [MIC1.topic, "spec/none/0/x/", METER.topic, THIRD.topic, MIC1.topic];
  assert.deepEqual(chosenTopics(names, [THIRD, MIC0, MIC1, METER]), [MIC1, THIRD]);
});

test("the same topic of two daemons has a name with its endpoint, which finds it", () => {
  const topics = [MIC0, MIC1, FAR];
  const ambiguous = ambiguousNames(topics);
  assert.equal(topicName(FAR, ambiguous), "spec/mic/0/dbfs/@tcp://b:1");
  assert.equal(topicName(MIC1, ambiguous), "spec/mic/1/dbfs/");
  assert.equal(findTopic(topicName(FAR, ambiguous), topics), FAR);
});

test("sources go by name, channels in the order of the configuration, spectra before bands, whatever was heard first", () => {
  const named = (id, name, changes) => topic(id, name, changes);
  const west = named(5, "spec/yard/west/dbfs/");
  const east = named(6, "spec/yard/east/dbfs/");
  const slow = named(7, "spec/yard/west/average/");
  const third = named(4, "bands/yard/west/third/");
  const ten = Array.from({ length: 12 }, (_, k) => named(20 + k, `spec/array/${k}/dbfs/`));
  const far = named(8, "spec/mic/0/dbfs/", { endpoint: "tcp://b:1" });
  const expected = [...ten, slow, west, east, third, far];
  const byName = [...expected].sort((a, b) => (a.topic < b.topic ? -1 : 1));
  assert.deepEqual(inOrder(byName), expected);
  assert.deepEqual(inOrder([THIRD, MIC0, MIC1, METER]), [MIC0, MIC1, THIRD, METER]);
});

test("a channel that is not there is named, with what there is instead of it", () => {
  const topics = [MIC0, MIC1, THIRD, topic(9, "spec/mic/0/density/"), topic(10, "spec/roof/0/dbfs/")];
  assert.equal(
    missingText("spec/mic/0/slow/", topics),
    "mic · 0 · slow: there is no such channel now; there is: mic · 0 · dbfs; mic · 0 · third (bands); mic · 0 · density",
  );
  assert.match(missingText("spec/mic/7/dbfs/", topics), /; there is: mic · 0 · dbfs; mic · 1 · dbfs; .*density$/);
  assert.match(missingText("nonsense", topics), /^nonsense: there is no such channel now; there is: mic · 0 · dbfs; /);
  assert.equal(missingText("spec/a/b/c/", []), "a · b · c: there is no such channel now");
  const { session } = setUp();
  session.select(["spec/mic/0/slow/"]);
  assert.match(session.missing()[0], /^mic · 0 · slow: there is no such channel now; there is: mic · 0 · dbfs; /);
  session.select([MIC0.topic, "spec/none/0/x/"]);
  assert.match(session.missing()[0], /^none · 0 · x: there is no such/);
  session.select([MIC0.topic]);
  assert.deepEqual(session.missing(), []);
});

test("a source that waits and has no channel is silent, and a link to one says so", () => {
  const { session } = setUp([MIC0]);
  const { endpoint } = MIC0;
  const state = (name, given) => ({ endpoint, source: name, state: "waiting", waiting_for: "a writer", ...given });
  const others = [state("gone", { state: "stopped" }), state("new", { state: "running" }), state("off", { state: "paused" })];
  const away = state("mic", { endpoint: "ipc://other" });
  session.text({ op: "state", endpoints: [], sources: [state("mic"), state("mic10"), state("mic9"), away, ...others], now_ms: 0 });
  const silent = session.silentSources.map((one) => [one.endpoint, one.source]);
  assert.deepEqual(silent.filter(([of]) => of === endpoint).map(([, name]) => name), ["mic9", "mic10", "off"]);
  assert.deepEqual(silent.filter(([of]) => of !== endpoint), [["ipc://other", "mic"]]);
  session.select([MIC0.topic, "spec/mic9/0/dbfs/"]);
  assert.deepEqual(session.missing(), ["mic9 · 0 · dbfs: no sample has come from this source since its daemon started"]);
});

test("a source that has recordings alone is silent, shown where it is asked for, or where there is no other", () => {
  const old = topic(7, "spec/attic/0/dbfs/", { is_silent: true });
  const { session } = setUp([old, MIC0]);
  const shown = () => session.channels.map(({ info }) => info.topic);
  session.text({ op: "state", endpoints: [], sources: [{ endpoint: MIC0.endpoint, source: "attic", state: "waiting" }], now_ms: 0 });
  assert.deepEqual(session.silentSources.map(({ source }) => source), ["attic"]);
  assert.deepEqual(shown(), [MIC0.topic]);
  session.select([old.topic]);
  assert.deepEqual([shown(), session.missing()], [[old.topic], []]);
  session.text({ op: "topics", topics: [{ ...old, is_silent: false }, MIC0] });
  assert.deepEqual([shown(), session.silentSources], [[old.topic], []]);
  const { session: alone } = setUp([old]);
  alone.select([]);
  assert.deepEqual(alone.channels.map(({ info }) => info.topic), [old.topic]);
});

test("what is recorded of a source is not what a channel has become", () => {
  const { session } = setUp([MIC0]);
  session.select([MIC0.topic]);
  const other = (changes) => topic(8, "spec/mic/0/slow/", changes);
  session.text({ op: "topics", topics: [MIC0, other({ is_silent: true })] });
  assert.deepEqual(session.channels[0].newer, []);
  session.text({ op: "topics", topics: [MIC0] });
  session.text({ op: "topics", topics: [MIC0, other()] });
  assert.deepEqual(session.channels[0].newer.map(({ product }) => product), ["slow"]);
});

test("a channel that goes says what there is now, has no peaks any more, and is itself again when it comes back", () => {
  const { session } = setUp();
  session.select([MIC0.topic]);
  const [channel] = session.channels;
  for (const t_ms of [0, 1000]) session.text({ op: "measured", id: streamId(0, "trace"), t_ms, peaks: [{ hz: 1000, level: -20, hz_error: 1 }] });
  assert.equal(channel.peaks.list().length, 1);
  session.text({ op: "topics", topics: [topic(9, "spec/mic/0/density/"), MIC1] });
  assert.equal(session.channels[0], channel);
  assert.match(channel.gone, /^mic · 0 · dbfs: there is no such channel now; there is: mic · 0 · density/);
  assert.deepEqual([channel.peaks.list(), channel.measured], [[], null]);
  session.text({ op: "topics", topics: [MIC0, MIC1] });
  assert.equal(channel.gone, "");
});

test("no channel of eight, each with all holds, goes without a line, by the limits of this version", () => {
  const shown = Array.from({ length: 8 }, (_, place) => ({ place, topicId: place, ...SHAPE }));
  const view = makeView({ holds: ["max", "min", "mean"] });
  const limits = { ...LIMITS, streams: 40 };
  assert.deepEqual(streamsWanted(shown, { view, limits, isVisible: true }).left, []);
});

test("what the server does not send is said of the channel until it is sent", () => {
  const { session } = setUp();
  session.text({ op: "hello", version: 1, limits: { ...LIMITS, streams: 3 } });
  session.select([MIC0.topic, MIC1.topic]);
  session.demand(makeView(), () => SHAPE, true);
  assert.deepEqual(session.channels.map(({ unsent }) => unsent.has("trace")), [false, true]);
  assert.equal(session.channels[1].unsent.why, "the server sends a page at most 3 streams");
  session.select([MIC1.topic]);
  session.demand(makeView(), () => SHAPE, true);
  assert.equal(session.channels[0].unsent.has("trace"), false);
});

test("a waterfall that shows lower levels than 8 bits have is asked for in 16, and stays so", () => {
  const { session } = setUp();
  session.select([MIC0.topic]);
  session.text(streamText(0, "waterfall", 1, { lo: -127 }));
  const [channel] = session.channels;
  const bits = () => session.demand(makeView(), () => SHAPE, true).text.streams.map((one) => one.bits);
  assert.equal(channel.showDownTo(-120), false);
  assert.deepEqual(bits(), [8, 16]);
  assert.equal(channel.showDownTo(-160), true);
  assert.deepEqual(bits(), [16, 16]);
  assert.equal(channel.showDownTo(-170), false);
  session.text(streamText(0, "waterfall", 2, { bits: 16, lo: -327.67, step: 0.01 }));
  assert.equal(channel.showDownTo(-20), false);
  assert.deepEqual(bits(), [16, 16]);
});

test("every role of every place has a number of its own from 0 to 255 that tells both", () => {
  const seen = new Set();
  for (let place = 0; place < 8; place++) {
    for (const role of ["waterfall", "trace", "max", "min", "mean"]) {
      const id = streamId(place, role);
      seen.add(id);
      assert.deepEqual(streamRole(id), { place, role });
      assert.ok(id <= 255);
    }
  }
  assert.equal(seen.size, 40);
});

test("a shown topic has a waterfall of 8 bits, a line of 16 that is measured, and the holds that are on", () => {
  const { session } = setUp();
  const view = makeView({ holds: ["max", "mean"], cursors: [1000], band: [10, 20] });
  session.select([MIC0.topic]);
  const { text, left } = session.demand(view, () => SHAPE, true);
  assert.deepEqual(left, []);
  assert.deepEqual(text.streams.map(({ of, bits, measure }) => [of, bits, measure]), [
    ["rows", 8, undefined],
    ["rows", 16, { cursors: [1000], bands: [[10, 20]], peaks: 10 }],
    ["max", 16, undefined],
    ["mean", 16, undefined],
  ]);
  assert.deepEqual(new Set(text.streams.map(({ topic_id }) => topic_id)), new Set([1]));
});

test("extremes are asked for with their decay, the mean with its time constant, and neither by default", () => {
  const [shown] = [[{ place: 0, topicId: 1, ...SHAPE }]];
  const asked = (ballistics) => {
    const view = makeView({ holds: ["max", "min", "mean"], ...ballistics });
    const { streams } = streamsWanted(shown, { view, limits: LIMITS, isVisible: true });
    return streams.slice(2).map(({ of, decay_db_s, hold_s, time_constant_s }) => [of, decay_db_s, hold_s, time_constant_s]);
  };
  assert.deepEqual(asked({ decay: 6, holdTime: 1.5, timeConstant: 0.125 }), [
    ["max", 6, 1.5, undefined],
    ["min", 6, 1.5, undefined],
    ["mean", undefined, undefined, 0.125],
  ]);
  assert.deepEqual(asked({ holdTime: 1.5 }), ["max", "min", "mean"].map((of) => [of, undefined, undefined, undefined]));
});

test("a waterfall is asked for with a value for each pixel of its own axis, and a row for each of its time axis", () => {
  const shown = [{ place: 0, topicId: 1, ...SHAPE, breadthCss: 210, lengthPx: 1600, ratio: 2 }];
  const limits = { streams: 8, values: 16384, rows_s: 50 };
  const [waterfall, trace] = streamsWanted(shown, { view: makeView({ span: 100 }), limits, isVisible: true }).streams;
  assert.deepEqual([waterfall.px, trace.px, waterfall.rows_s], [420, 1600, 16]);
});

test("what a line spectrum needs beyond the view is asked for with as many values for each frequency, and not for a waterfall", () => {
  const shown = [{ place: 0, topicId: 1, ...SHAPE, f0: 1000, f1: 1050, line: { f0: 891, f1: 1122, width: 2 * SHAPE.widthCss } }];
  const { streams } = streamsWanted(shown, { view: makeView({ holds: ["mean"] }), limits: LIMITS, isVisible: true });
  assert.deepEqual(streams.map(({ f0, f1, px }) => [f0, f1, px / (SHAPE.widthCss * SHAPE.ratio)]), [[1000, 1050, 1], [891, 1122, 2], [891, 1122, 2]]);
});

test("beyond the server's limit holds are left out first, then lines, and never a waterfall", () => {
  const shown = [0, 1, 2, 3].map((place) => ({ place, topicId: place, ...SHAPE }));
  const view = makeView({ holds: ["max"] });
  const { streams, left } = streamsWanted(shown, { view, limits: { ...LIMITS, streams: 7 }, isVisible: true });
  assert.equal(streams.length, 7);
  assert.equal(streams.filter(({ bits }) => bits === 8).length, 4);
  assert.deepEqual(left.map(({ role }) => role), ["trace", "max", "max", "max", "max"]);
});

test("a hidden page asks for one row a second of its waterfalls and nothing else", () => {
  const { session } = setUp();
  const { text } = session.demand(makeView({ holds: ["max"] }), () => SHAPE, false);
  assert.equal(text.visible, false);
  assert.deepEqual(text.streams.map(({ rows_s, bits }) => [rows_s, bits]), [[1, 8], [1, 8]]);
});

test("values are one a device pixel, bounded for phones, walls and the server", () => {
  assert.equal(pixelsWanted(800, 2, 16384), 1600);
  assert.equal(pixelsWanted(390, 4, 16384), 1200);
  assert.equal(pixelsWanted(9000, 2, 16384), 4096);
  assert.equal(pixelsWanted(9000, 2, 1000), 1000);
  assert.equal(pixelsWanted(0, 1, 1000), 1);
});

test("rows are one a pixel of the waterfall, within the server's limit, whatever the transform", () => {
  assert.equal(rowsWanted(30, 600, 50), 20);
  assert.equal(rowsWanted(1, 600, 50), 50);
  assert.equal(rowsWanted(86400, 600, 50), 1);
});

test("rows reach the channel that their description names, and its ring", () => {
  const { session, heard } = setUp();
  session.text(streamText(0, "waterfall", 3));
  session.rows([block(3, quiet({ tMs: 10 }), quiet({ tMs: 20 }))]);
  const [channel] = session.channels;
  assert.equal(channel.ring.length, 2);
  assert.equal(session.newestMs("tcp://a:1"), 20);
  assert.equal(session.newestMs("tcp://b:1"), null);
  assert.deepEqual(heard.rows.map(([one, role]) => [one, role]), [[channel, "waterfall"], [channel, "waterfall"]]);
});

test("the newest time is that of the line until the waterfall has a row: a pause finds one", () => {
  const { session } = setUp();
  session.text(streamText(0, "waterfall", 3));
  session.text(streamText(0, "trace", 4));
  session.rows([block(4, quiet({ tMs: 30 }))]);
  assert.equal(session.newestMs("tcp://a:1"), 30);
  session.rows([block(3, quiet({ tMs: 20 }))]);
  assert.equal(session.newestMs("tcp://a:1"), 20);
});

test("rows of a generation that nobody described, or of a topic no longer shown, are left out", () => {
  const { session, heard } = setUp();
  session.rows([block(3, quiet())]);
  session.text(streamText(0, "waterfall", 3));
  session.select([MIC2.topic]);
  session.rows([block(3, quiet())]);
  assert.equal(heard.rows.length, 0);
});

test("a description of a topic that had the place before changes nothing", () => {
  const { session } = setUp();
  session.select([MIC2.topic]);
  session.text(streamText(session.channels[0].place, "waterfall", 3));
  assert.equal(session.channels[0].description, null);
});

test("longer rows get a longer ring, with the older ones still in it", () => {
  const { session } = setUp();
  session.text(streamText(0, "waterfall", 1));
  session.rows([block(1, row(new Uint8Array(2049).fill(7), { tMs: 10 }))]);
  session.text(streamText(0, "waterfall", 2, { nfft: 16384 }));
  session.rows([block(2, row(new Uint8Array(8193).fill(9), { tMs: 20 }))]);
  const { ring } = session.channels[0];
  assert.deepEqual([ring.length, ring.at(0).values[8192], ring.at(1).values[2048]], [2, 9, 7]);
  assert.equal(ring.at(1).description.n_bins, 2049);
});

test("gaps, restarts and dropped rows are counted and noted once for all channels of a source", () => {
  const { session } = setUp();
  for (const place of [0, 1]) {
    const changes = { topic: [MIC0, MIC1][place].topic };
    session.text({ ...streamText(place, "waterfall", place + 1), ...changes });
  }
  const flags = FLAG_GAP | FLAG_NEW_EPOCH | FLAG_DROPPED;
  for (const generation of [1, 2]) {
    session.rows([{ ...block(generation, quiet({ tMs: 50, flags, missed: 3, gapSamples: 480 })), clientDropped: 4 }]);
  }
  assert.deepEqual(session.events.entries.map(({ kind }) => kind).sort(), ["dropped", "epoch", "gap"]);
  assert.match(session.events.entries.find(({ kind }) => kind === "gap").text, /^480 samples lost$/);
  for (const { counts } of session.channels) {
    assert.deepEqual(counts, { missed: 3, gapSamples: 480, gaps: 1, clientDropped: 4 });
  }
});

test("a server that starts again gives other numbers, and the channels keep their rows", () => {
  const { session } = setUp();
  session.text(streamText(0, "waterfall", 1));
  session.rows([block(1, quiet())]);
  const before = session.channels;
  session.text({ op: "hello", version: 1, limits: LIMITS });
  session.text({ op: "topics", topics: [{ ...MIC1, id: 72 }, { ...MIC0, id: 71 }] });
  assert.deepEqual(session.channels, before);
  assert.equal(session.channels[0].ring.length, 1);
  const { text } = session.demand(makeView(), () => SHAPE, true);
  assert.deepEqual(text.streams.map(({ topic_id }) => topic_id), [71, 72, 71, 72]);
  session.rows([block(1, quiet())]);
  assert.equal(session.channels[0].ring.length, 1, "numbers of the old connection mean nothing now");
});

test("of another epoch the holds and measurements are forgotten, the rows are kept", () => {
  const { session } = setUp();
  session.text(streamText(0, "waterfall", 1));
  session.rows([block(1, quiet())]);
  const [channel] = session.channels;
  channel.holds.max = {};
  session.text({ op: "measured", id: streamId(0, "trace"), t_ms: 1, peaks: [] });
  assert.notEqual(channel.measured, null);
  session.text({ ...streamText(0, "waterfall", 2), epoch: "2" });
  assert.deepEqual([channel.holds, channel.measured, channel.ring.length], [{}, null, 1]);
});

test("texts that this page does not know are left alone; a refusal is shown", () => {
  const { session, heard } = setUp();
  heard.changed.length = 0;
  session.text({ op: "fireworks" });
  session.text({ op: "refused", what: "view", why: "9 streams: must be at most 8" });
  assert.deepEqual(heard.changed, []);
  assert.deepEqual(heard.refused, ["view: 9 streams: must be at most 8"]);
});

test("an interval that comes before the list with its topic is kept for it, and not for the topics of another connection", () => {
  const { session } = setUp([MIC0]);
  const values = (t_ms, level) => session.text({ op: "values", topic_id: METER.id, t_ms, interval_s: 1, names: ["LAeq"], units: ["dBFS"], values: [level] });
  const at = (tMs) => session.levels.column(`${METER.product}/LAeq`, METER, session.topics)?.at(tMs) ?? null;
  values(1000, -20);
  session.text({ op: "topics", topics: [MIC0, METER] });
  assert.equal(at(1500), -20);
  session.text({ op: "topics", topics: [MIC0] });
  values(2000, -30);
  session.text({ op: "hello", version: 1, limits: LIMITS });
  session.text({ op: "topics", topics: [MIC0, METER] });
  assert.equal(at(2500), null);
});

test("events are in order of time, each once, and at most 500", () => {
  const log = new EventLog();
  const event = (number, t_ms) => ({ endpoint: "e", source: "s", t_ms, kind: "k", text: "", number });
  for (const number of [1, 3, 2, 3]) log.take(event(number, number * 1000));
  assert.deepEqual(log.entries.map(({ t0 }) => t0), [3000, 2000, 1000]);
  assert.deepEqual(log.between(1500, 2500).map(({ t0 }) => t0), [2000]);
  for (let number = 10; number < 2000; number++) log.take(event(number, number * 1000));
  assert.equal(log.entries.length, 500);
  assert.equal(log.entries[0].t0, 1999000);
});

test("a description without a row says where the time rests, and nothing once there are rows", () => {
  const { session } = setUp([MIC0, MIC1, FAR]);
  session.select([MIC0.topic, MIC1.topic, `${FAR.topic}@${FAR.endpoint}`]);
  const newest = () => [MIC0, FAR].map(({ endpoint }) => session.newestMs(endpoint));
  assert.deepEqual([session.stored, ...newest()], [null, null, null]);
  session.text(streamText(0, "waterfall", 1, { newest_ms: 5000 }));
  session.text(streamText(1, "waterfall", 2, { topic: MIC1.topic, newest_ms: 7000 }));
  session.text(streamText(2, "waterfall", 3, { newest_ms: null }));
  assert.deepEqual([session.stored, ...newest()], [{ t1: 7000 }, 7000, null]);
  const [channel] = session.channels;
  session.text(streamText(0, "waterfall", 4));
  session.rows([block(4, quiet({ tMs: 9000 }))]);
  assert.deepEqual([session.stored, ...newest()], [null, 9000, null]);
  const { description: live } = channel;
  session.text(streamText(0, "waterfall", 5, { newest_ms: 5000 }));
  assert.equal(channel.description, live);
});
