// Views with names: what a browser keeps of them, and files of strangers.
import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULTS, formatFragment, makeView, parseFragment } from "../../spectrod/apps/web/page/panel/view.js";
import { StoredTraces } from "../../spectrod/apps/web/page/side/storedtraces.js";
import { readView, VIEW_CHARS_MAX, VIEW_NAME_MAX, Views, VIEWS_MAX, viewText, zoneOfLink } from "../../spectrod/apps/web/page/side/views.js";
import { description, random } from "./descriptions.js";

const BINS = 8;
const about = description({ bits: 16, lo: -327.67, step: 0.01, n_bins: BINS, unit: "dBFS", ref: "0 dBFS", slices: [{ first: 0, per_value: 1, values: BINS }] });
const rowOf = (seed) => {
  const next = random(seed);
  return { values: Uint16Array.from({ length: BINS }, () => Math.floor(60000 * next())), description: about };
};

function storage(kept = { text: null }) {
  return { kept, open: () => ({ getItem: () => kept.text, setItem: (_, written) => (kept.text = written) }) };
}

function traced(...names) {
  const traces = new StoredTraces(storage().open);
  names.forEach((name, k) => traces.addRow(name, rowOf(k + 1)));
  return traces;
}

const VIEW = makeView({
  topics: ["spec/a/0/dbfs/", "spec/b/0/dbfs/"], layout: "over", axis: "mel", f0: 20, f1: 12345.678, t1: 1764256800123, lo: -90.5, hi: -3,
  ranges: [{ of: "mic", lo: -80, hi: 0 }], isLinked: false, map: "cividis_r", smoothing: 3, span: 86400, split: 55, holds: ["max", "mean"], decay: 1.5,
  holdTime: 2, timeConstant: 0.125, peaks: false, cursors: [1000, 2000.5], times: [1764256700000, 1764256750000], band: [100, 200],
  selection: { t0: 1764256700000, t1: 1764256750000, f0: 50, f1: 60 },
});

function state(more = {}) {
  const traces = traced("before", "after");
  traces.addLimits("NR", [[100, 70], [200, 60]], { unit: "dBFS", ref: "0 dBFS" });
  traces.subtract("before");
  traces.change("after", { isShown: false });
  return { name: "a", view: VIEW, zone: "UTC", ...traces.state, ...more };
}

test("a view with all that it may have is the same from its file, and in a link", () => {
  const text = viewText(state());
  const { made, note } = readView(text, "a.json");
  assert.equal(note, "");
  assert.deepEqual(made.view, VIEW);
  assert.deepEqual(JSON.parse(viewText(made)), JSON.parse(text));
  assert.deepEqual(parseFragment(formatFragment(made.view)), VIEW);
  const [shown, ...others] = made.traces;
  assert.deepEqual([shown.values, others.map(({ name, isShown }) => [name, isShown])], [[...rowOf(1).values], [["after", false], ["NR", true]]]);
  assert.deepEqual([made.difference, made.zone, made.name], ["before", "UTC", "a"]);
});

/** A file with another value, whose `path` is names of fields. */
function changed(path, value) {
  const given = JSON.parse(viewText(state()));
  const [last, ...before] = path.split(".").reverse();
  before.reverse().reduce((at, name) => at[name], given)[last] = value;
  return JSON.stringify(given);
}

const LONG = Array.from({ length: 65 }, (_, k) => k);
for (const [path, value, why] of [
  ["format", "x", "not a view that this page has saved"],
  ["version", 2, "version 2: this page reads version 1"],
  ["version", "1", 'version "1": this page reads version 1'],
  ["name", "", `name: "": must have 1 to ${VIEW_NAME_MAX} signs`],
  ["name", "x".repeat(VIEW_NAME_MAX + 1), `name: "${"x".repeat(39)}…: must have`],
  ["zone", "Europe/Berlin", 'zone: "Europe/Berlin": must be one of local, UTC, source'],
  ["view", null, "view: null: must be an object"],
  ["view", [1], "view: [1]: must be an object"],
  ["view.span", 0.5, "view.span: 0.5: must be 1 to 31622400 s"],
  ["view.span", "30", 'view.span: "30": must be 1'],
  ["view.axis", "cubic", 'view.axis: "cubic": no value that a view has'],
  ["view.map", "javascript", 'view.map: "javascript": must be one of '],
  ["view.map", ["viridis"], 'view.map: ["viridis"]: must be one of '],
  ["view.map", "constructor", 'view.map: "constructor": must be one of '],
  ["view.topics", { length: 1e9 }, 'view.topics: {"length":1000000000}: must be names of channels, 8 at most'],
  ["view.topics", ["x".repeat(513)], 'view.topics: ["x'],
  ["view.holds", LONG, "view.holds: [0,1,2"],
  ["view.ranges", [null], "view.ranges: [null]: no value"],
  ["view.cursors", [1, 2, 3], "view.cursors: [1,2,3]: must be frequencies in Hz, 2 at most"],
  ["view.selection", { t0: 1, t1: 2, f0: 3, f1: 4, more: "x" }, "view.selection: "],
  ["view.selection", "x", 'view.selection: "x": no value'],
  ["view.band", [2, 1], "view.band: [2,1]: no value"],
  ["view.isLinked", 1, "view.isLinked: 1: no value"],
  ["view.t1", -1, "view.t1: -1: must be a time"],
  ["traces", {}, "traces: must be a list of 8 spectra and limits at most"],
  ["traces", Array(9).fill({}), "traces: must be a list of 8"],
  ["traces.0", null, "traces: number 1 is no stored spectrum"],
  ["traces.1.name", "before", "traces: number 2 is no stored spectrum, or has the name of another"],
  ["traces.0.values.0", 65536, "traces: number 1 is"],
  ["traces.0.values", [1], "traces: number 1 is"],
  ["traces.0.description.enbw_hz", "x", "traces: number 1 is"],
  ["traces.0.description.slices", [{ first: 0, per_value: 1, values: 1e15 }], "traces: number 1 is"],
  ["difference", "NR", 'difference: "NR": must be the name of a spectrum in traces, or null'],
  ["difference", 7, "difference: 7: must be"],
]) {
  test(`a file whose ${path} is ${JSON.stringify(value).slice(0, 30)} is refused by the rule`, () => {
    assert.throws(() => readView(changed(path, value), "a.json"), (error) => error.message.startsWith(`a.json: ${why}`) && !error.message.includes("\n"));
  });
}

test("files that are no views, too long or deep are refused in a line", () => {
  for (const [text, why] of [["", "not JSON"], ["[".repeat(1e6), "not JSON"], ["[]", "not a view"], ["null", "not a view"], ["x".repeat(VIEW_CHARS_MAX + 1), "more than 2 MiB"]]) {
    assert.throws(() => readView(text, "a.json"), (error) => error.message.startsWith(`a.json: ${why}`));
  }
});

test("each of several wrong values is named, four at most", () => {
  const given = JSON.parse(viewText(state()));
  Object.assign(given.view, { axis: 1, layout: 2, statistic: 3, span: 4e9, decay: -1, peaks: 0 });
  assert.throws(() => readView(JSON.stringify(given), "a.json"), /^Error: a\.json: view\.[^;]*(; view\.[^;]*){3}; and 2 more$/);
});

test("fields of a later page are left out, which is said; no name reaches a prototype", () => {
  const text = viewText(state()).replace('"zone":', '"later":1,"__proto__":{"zone":"UTC"},"zone":').replace('"axis":', '"new":[2],"__proto__":{"polluted":1},"axis":');
  const { made, note } = readView(text, "a.json");
  assert.equal(note, "a.json: later; __proto__; view.new; view.__proto__: not known to this page, left out");
  assert.deepEqual(made.view, VIEW);
  assert.equal({}.polluted, undefined);
});

test("any value of any kind in any field of a view is taken as it is, or refused", () => {
  const next = random(17);
  const leaf = () => [null, true, false, 0, -1, 1e300, 1764256800000, "", "x", "max", "log"][Math.floor(11 * next())];
  const any = (depth) => (depth === 0 || next() < 0.4 ? leaf() : next() < 0.5 ? Array.from({ length: Math.floor(4 * next()) }, () => any(depth - 1)) : { t0: any(0), length: any(0), of: any(0) });
  let taken = 0;
  for (let n = 0; n < 3000; n += 1) {
    const names = Object.keys(DEFAULTS).filter(() => next() < 0.08);
    const view = Object.fromEntries(names.map((name) => [name, any(2)]));
    const text = JSON.stringify({ format: "spectrod-view", version: 1, name: "a", zone: "UTC", view });
    let made = null;
    try {
      ({ made } = readView(text, "a.json"));
    } catch (error) {
      assert.match(error.message, /^a\.json: view\./);
      continue;
    }
    taken += 1;
    for (const name of names) assert.equal(JSON.stringify(made.view[name]), JSON.stringify(view[name]));
    assert.deepEqual(made.view, makeView(made.view));
  }
  assert.ok(taken > 100, taken);
});

test("saved views are there in the next page and in other tabs, in their order, with names of their own", () => {
  const { open, kept } = storage();
  const [one, other] = [new Views(open), new Views(open)];
  assert.deepEqual([one.add(state()), other.add(state({ zone: "local" })), one.add(state({ name: " " }))], ["a", "a 2", "view"]);
  assert.deepEqual(one.entries.map(({ name, zone }) => [name, zone]), [["a", "UTC"], ["a 2", "local"], ["view", "UTC"]]);
  other.rename("a 2", "b");
  one.replace("a", state({ view: makeView({ span: 77 }) }));
  other.remove("view");
  const [a, b] = new Views(open).entries;
  assert.deepEqual([a.name, a.view.span, b.name, b.view.span], ["a", 77, "b", 86400]);
  assert.deepEqual(readView(viewText(b), "b").made, b);
  assert.equal(one.find("view"), null);
  assert.throws(() => one.rename("a", "b"), /^Error: b: another view has this name$/);
  assert.throws(() => one.rename("a", ""), /^Error: name: "": must have 1 to 60 signs$/);
  kept.text = `[7,null,{"name":"x"},${JSON.stringify(a)},${JSON.stringify(a)}]`;
  assert.deepEqual(one.entries.map(({ name }) => name), ["a"]);
  for (const text of ["{", "3", "null", '{"a":1}']) {
    kept.text = text;
    assert.deepEqual(one.entries, []);
  }
});

test(`at most ${VIEWS_MAX} views are saved, and a storage that is full or forbidden says so and keeps what it had`, () => {
  const { open } = storage();
  const views = new Views(open);
  for (let k = 0; k < VIEWS_MAX; k += 1) views.add(state());
  assert.equal(new Set(views.entries.map(({ name }) => name)).size, VIEWS_MAX);
  assert.throws(() => views.add(state()), /^Error: a: 32 views are saved; remove one first$/);
  const failing = (name) => new Views(() => ({ getItem: () => JSON.stringify([state()]), setItem: () => { throw Object.assign(new Error("x"), { name }); } }));
  assert.throws(() => failing("QuotaExceededError").add(state()), /^Error: a 2: not saved: the storage of this browser is full; remove views or stored spectra, or save it as a file$/);
  assert.throws(() => failing("SecurityError").replace("a", state()), /^Error: a: not saved: this browser keeps nothing, or save it as a file$/);
  assert.equal(failing("SecurityError").entries.length, 1);
});

test("a view shows its own stored spectra, stores those that are not there, and hides others", () => {
  const traces = traced("mine", "x", "after"); // x has the values of "after" of the view
  const { traces: given, difference } = state();
  assert.deepEqual(traces.showState({ traces: given, difference }), []);
  const found = traces.entries.map(({ name, isShown }) => [name, isShown]);
  assert.deepEqual(found, [["mine", true], ["x", false], ["after", false], ["NR", true]]);
  assert.equal(traces.difference, "mine");
  assert.deepEqual(traces.showState({ traces: given, difference }), []);
  assert.equal(traces.entries.length, 4);
  traces.showState({ traces: [], difference: null });
  assert.deepEqual([traces.entries.filter(({ isShown }) => isShown), traces.difference], [[], null]);
});

test("stored spectra of a view for which there is no room are named", () => {
  const traces = traced(..."abcdefg");
  const { traces: given } = traced("y", "z").state;
  const unlike = given.map((one, k) => ({ ...one, values: one.values.map(() => k) }));
  assert.deepEqual(traces.showState({ traces: unlike, difference: "z" }), ["z"]);
  assert.deepEqual([traces.entries.length, traces.entries[7].name, traces.difference], [8, "y", null]);
});

test("a link asks for a zone that the page has, or for none", () => {
  assert.deepEqual(["#v=1&zone=UTC", "v=1", "#zone=Mars/Base", "#zone=", "#zone=local", "#zone=source"].map(zoneOfLink), ["UTC", null, null, null, "local", "source"]);
});
