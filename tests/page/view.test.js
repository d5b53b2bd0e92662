// The view and its text in the URL.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as views from "../../spectrod/apps/web/page/panel/view.js";
import { Clock } from "./clock.js";

const FULL = {
  topics: ["spec/mic/0/dbfs/", "bands/mic/1/third/@tcp://10.0.0.1:5556"],
  layout: "over",
  direction: "right",
  axis: "linear",
  f0: 20,
  f1: 20000.5,
  t1: 1792219000123,
  lo: -110.5,
  hi: -3,
  ranges: [{ of: "dB SPL 0 dB = 20 uPa", lo: 20, hi: 100 }],
  isLinked: false,
  map: "magma",
  statistic: "mean",
  smoothing: 6,
  bars: "third",
  span: 12.5,
  split: 70,
  holds: ["max", "mean"],
  decay: 7.5,
  holdTime: 2,
  timeConstant: 0.125,
  peaks: false,
  cursors: [440, 1000.25],
  times: [null, 1792219000000],
  harmonics: true,
  band: [100, 200],
  selection: { t0: 1792218990000, t1: 1792219000000, f0: 500, f1: 1500.5 },
  days: true,
  less: "spec/roof/0/dbfs/",
  lines: ["meter/LAeq", "per second/L90, fast"],
  bands: [{ name: "owl: hoots", f0: 200, f1: 900.25 }, { name: "IF", f0: -5e4, f1: 5e4 }],
  eventKind: "trigger",
  eventSource: "mic · left",
  eventWords: "hum & buzz ",
  eventOrder: "kind",
};

test("a view survives its own text", () => {
  const view = views.makeView(FULL);
  assert.deepEqual(views.parseFragment(`#${views.formatFragment(view)}`), view);
  assert.deepEqual({ ...view }, FULL);
});

test("the text of the default view is its version alone, and the empty text is the default view", () => {
  assert.equal(views.formatFragment(views.makeView()), "v=1");
  assert.deepEqual(views.parseFragment(""), views.makeView());
});

test("people can read the text: no escaped slashes, colons or commas", () => {
  const text = views.formatFragment(views.makeView(FULL));
  assert.match(text, /topic=spec\/mic\/0\/dbfs\/&topic=bands\/mic\/1\/third\/@tcp:\/\/10\.0\.0\.1:5556&/);
  assert.match(text, /&f=20:20000\.5&.*&c=440,1000\.25&ct=,1792219000000&harm=1&band=100:200&sel=1792218990000:1792219000000:500:1500\.5$/);
});

test("an escaped topic cannot add a field", () => {
  const view = views.makeView({ topics: ["a&map=gray#%"] });
  assert.deepEqual(views.parseFragment(views.formatFragment(view)), view);
  assert.equal(view.map, "viridis");
});

test("numbers are clamped to their bounds and ranges are put in order", () => {
  const view = views.makeView({ span: 1e9, split: 1, decay: 1e9, holdTime: -1, timeConstant: 1e9, f0: 5e12, f1: -5e12, lo: 3, hi: -3, t1: -1 });
  assert.equal(view.span, 366 * 86400);
  assert.equal(view.split, 10);
  assert.deepEqual([view.decay, view.holdTime, view.timeConstant], [1000, 0, 3600]);
  assert.deepEqual([view.f0, view.f1], [-1e12, 1e12]);
  assert.deepEqual([view.lo, view.hi], [-3, 3]);
  assert.equal(view.t1, 0);
});

for (const bad of [
  "decay=x", "holdtime=", "tau=NaN", "f=a:b", "f=1", "f=5:5", "f=Infinity:NaN", "f=1:2:3", "f=", "f=:", "db=0:0.5", "db=-:", "span=", "span=NaN",
  "split=x", "axis=constructor", "layout=__proto__", "map=../../x", `map=${"a".repeat(33)}`, "stat=sum", "smooth=2", "smooth=", "smooth=x", "bars=half", "bars=",
  "ct=1", "ct=,", "sel=1:2:3", "sel=1:2:3:4:5", "sel=5:5:1:2", "sel=1:2:3:3", "sel=-9:-1:1:2", "sel=:::", "hold=all", "c=x,,NaN", "band=1", "band=::", "t=yesterday", "topic=", "%", "%E0%A4%A", "&&&==", "v=2&axis=mel",
  `topic=${"x".repeat(9000)}`, `topic=${"x".repeat(513)}`,
]) {
  test(`the fragment ${bad.slice(0, 30)} changes nothing`, () => {
    assert.deepEqual(views.parseFragment(bad), views.makeView());
  });
}

test("smoothing and bars are of mean power, whatever the link says of bins in a pixel", () => {
  assert.equal(views.parseFragment("stat=max&smooth=3").statistic, "mean");
  assert.equal(views.parseFragment("stat=max&bars=third").statistic, "mean");
});

test("a colour map that there is not is the usual one: a plot could not be drawn in it", () => {
  for (const map of ["gray", "viridis_r_r", "toString", "_r", ""]) assert.equal(views.makeView({ map }).map, "viridis");
  for (const map of ["grey", "grey_r", "magma"]) assert.equal(views.parseFragment(`map=${map}`).map, map);
});

test("one bad field does not spoil the others", () => {
  const view = views.parseFragment("#v=1&f=x:y&axis=mel&db=-90:0");
  assert.equal(view.axis, "mel");
  assert.deepEqual([view.f0, view.lo, view.hi], [null, -90, 0]);
});

test("at most eight topics and two cursors are taken, each topic once", () => {
  const many = Array.from({ length: 20 }, (_, k) => `spec/a/${k % 10}/x/`);
  const view = views.makeView({ topics: many, cursors: [1, 2, 3] });
  assert.equal(view.topics.length, 8);
  assert.deepEqual(view.cursors, [1, 2]);
});

test("a fragment that is too long, or of another version, is not read, and why is said", () => {
  assert.equal(views.fragmentFault(""), "");
  assert.equal(views.fragmentFault("#v=1&c=100"), "");
  const long = `#v=1&c=100&topic=${"x".repeat(views.BOUNDS.fragment)}`;
  assert.equal(views.fragmentFault(long), "The link is not read: it has 8208 characters, more than 8192");
  assert.equal(views.fragmentFault(`#v=2${"\"".repeat(30)}&c=100`), `The link is not read: it is of version ${JSON.stringify(`2${"\"".repeat(19)}`)}, this page knows 1`);
  for (const fragment of [long, "#v=2&c=100"]) assert.deepEqual(views.parseFragment(fragment), views.makeView());
});

test("10000 random fragments never throw and give a view that survives its own text", () => {
  let state = 1;
  const random = (n) => {
    state = (state * 48271) % 2147483647;
    return state % n;
  };
  const names = ["v", "f", "db", "c", "band", "t", "span", "topic", "hold", "axis", "map", "ct", "sel", "x"];
  const values = ["1", "-1e400", "1e-320:2", "NaN", "1:2", ",,", "log", "%", "0:1e308", "live", "", "1e15", "3,4,5", "1:9:2:8"];
  for (let k = 0; k < 10000; k++) {
    const parts = Array.from({ length: random(6) }, () => `${names[random(14)]}=${values[random(14)]}`);
    const view = views.parseFragment(parts.join("&"));
    assert.deepEqual(views.parseFragment(views.formatFragment(view)), view, parts.join("&"));
  }
});

test("a thousand changes in a second are written at most three times, and the last one is", () => {
  const clock = new Clock();
  const written = [];
  const write = views.fragmentWriter((text) => written.push(text), clock);
  for (let k = 0; k < 1000; k++) {
    write(views.makeView({ f0: 10, f1: 100 + k }));
    clock.advance(1);
  }
  clock.advance(1000);
  assert.ok(written.length <= 4, `${written.length} writes`);
  assert.match(written.at(-1), /f=10:1099/);
});

test("a view that is written again does not touch the URL", () => {
  const clock = new Clock();
  const written = [];
  const write = views.fragmentWriter((text) => written.push(text), clock);
  for (let k = 0; k < 5; k++) {
    write(views.makeView());
    clock.advance(600);
  }
  assert.deepEqual(written, ["v=1"]);
});

test("a cursor has at most one time, and the time whose spectrum is shown is the first cursor's that has one", () => {
  const view = views.makeView({ cursors: [440], times: [5, 6], t1: 9 });
  assert.deepEqual(view.times, [5]);
  assert.equal(views.shownMs(view), 5);
  assert.equal(views.shownMs(views.makeView({ cursors: [440, 880], times: [null, 6], t1: 9 })), 6);
  assert.equal(views.shownMs(views.makeView({ cursors: [440], t1: 9 })), 9);
  assert.equal(views.shownMs(views.makeView()), null);
  assert.deepEqual(views.makeView({ cursors: [440, 880], times: [7, null] }).times, [7]);
});
