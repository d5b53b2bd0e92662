// Fingers and wheels become gestures; a surface is made up, so that each event is known.
import assert from "node:assert/strict";
import { test } from "node:test";

import { SurfaceInput } from "../../spectrod/apps/web/page/panel/input.js";

function surface({ isSelecting = false } = {}) {
  const listeners = new Map();
  const heard = [];
  const note = (name) => (...given) => heard.push([name, ...given]);
  const names = ["zoom", "zoomTime", "stretch", "drag", "tap", "doubleTap", "select", "selected", "point", "act"];
  const made = {
    addEventListener: (name, listener) => listeners.set(name, listener),
    getBoundingClientRect: () => ({ left: 100, top: 10 }),
    setPointerCapture: () => {},
  };
  new SurfaceInput(made, { ...Object.fromEntries(names.map((name) => [name, note(name)])), isSelecting: () => isSelecting });
  const send = (name, event) => listeners.get(name)({ button: 0, pointerId: 1, pointerType: "mouse", preventDefault: () => {}, ...event });
  const at = (x, y = 50, more = {}) => ({ clientX: 100 + x, clientY: 10 + y, timeStamp: 0, ...more });
  const told = (name) => heard.filter(([one]) => one === name).map(([, ...given]) => given);
  return { send, at, heard, told };
}

test("a pinch zooms about where its middle was, then moves with it", () => {
  const { send, at, heard, told } = surface();
  send("pointerdown", at(100));
  send("pointerdown", at(200, 50, { pointerId: 2 }));
  send("pointermove", at(300, 50, { pointerId: 2 }));
  assert.deepEqual(heard, [["stretch", { x: 2, y: null }, { x: 150, y: 50 }], ["drag", { x: 50, y: 0 }, { x: 150, y: 50 }]]);
  send("pointerup", at(300, 50, { pointerId: 2 }));
  send("pointermove", at(180));
  send("pointerup", at(180));
  assert.deepEqual([told("stretch").length, told("tap").length, told("drag").length], [1, 0, 1]);
});

test("what is under two fingers stays there, across and along", () => {
  const { send, at, heard } = surface();
  send("pointerdown", at(100, 50));
  send("pointerdown", at(200, 130, { pointerId: 2 }));
  heard.length = 0;
  send("pointermove", at(250, 210, { pointerId: 2 }));
  send("pointermove", at(90, 50));
  // The places of what was under the fingers at first, as zooms and drags have moved them.
  const places = { x: [100, 200], y: [50, 130] };
  const about = (name, factor, middle) => (places[name] = places[name].map((place) => middle + factor * (place - middle)));
  for (const [name, ...given] of heard) {
    for (const side of ["x", "y"]) {
      if (name === "stretch") about(side, given[0][side], given[1][side]);
      if (name === "drag") places[side] = places[side].map((place) => place + given[0][side]);
    }
  }
  const near = (found, wanted) => found.forEach((one, k) => assert.ok(Math.abs(one - wanted[k]) < 1e-9, `${found} not ${wanted}`));
  near(places.x, [90, 250]);
  near(places.y, [50, 210]);
});

test("fingers beside each other move the other direction and do not zoom it; fingers that meet zoom by no more than 20 px", () => {
  const { send, at, heard } = surface();
  send("pointerdown", at(100, 50));
  send("pointerdown", at(110, 150, { pointerId: 2 }));
  send("pointermove", at(140, 150, { pointerId: 2 }));
  assert.deepEqual(heard, [["stretch", { x: null, y: 1 }, { x: 105, y: 100 }], ["drag", { x: 15, y: 0 }, { x: 105, y: 100 }]]);
  heard.length = 0;
  send("pointermove", at(140, 51, { pointerId: 2 }));
  assert.deepEqual(heard[0].slice(0, 2), ["stretch", { x: null, y: 0.2 }]);
});

test("two taps near each other within 350 ms are one double tap, a third is a tap", () => {
  const { send, at, told } = surface();
  const tap = (x, timeStamp) => {
    send("pointerdown", at(x));
    send("pointerup", at(x, 50, { timeStamp }));
  };
  for (const [x, timeStamp] of [[50, 1000], [55, 1200], [55, 1300], [300, 1400], [300, 2000]]) tap(x, timeStamp);
  assert.equal(told("doubleTap").length, 1);
  assert.deepEqual(told("tap").map(([{ x }]) => x), [50, 55, 300, 300]);
});

test("the wheel zooms, sideways it pans, and with Shift it changes the time span in either direction", () => {
  const { send, at, heard } = surface();
  const turn = (more) => send("wheel", at(40, 50, { deltaX: 0, deltaY: 0, deltaMode: 0, ctrlKey: false, shiftKey: false, ...more }));
  turn({ deltaY: -100 });
  turn({ deltaX: 30 });
  turn({ deltaY: -100, shiftKey: true });
  turn({ deltaX: -100, shiftKey: true });
  const factor = 1.0025 ** 100;
  const place = { x: 40, y: 50 };
  assert.deepEqual(heard, [["zoom", factor, place], ["drag", { x: -30, y: 0 }, place], ["zoomTime", factor, place], ["zoomTime", factor, place]]);
});

test("a drag begins after 6 px and leaves none of its way out; with Shift, or where that is chosen, it selects", () => {
  const { send, at, told } = surface();
  send("pointerdown", at(50));
  for (const x of [54, 60, 75]) send("pointermove", at(x));
  send("pointerup", at(75));
  assert.deepEqual(told("drag"), [[{ x: 10, y: 0 }, { x: 50, y: 50 }], [{ x: 15, y: 0 }, { x: 50, y: 50 }]]);
  send("pointerdown", at(50, 50, { shiftKey: true }));
  send("pointermove", at(90));
  send("pointerup", at(90));
  assert.deepEqual(told("select"), [[{ x: 50, y: 50 }, { x: 90, y: 50 }]]);
  assert.equal(told("selected").length, 1);
  assert.equal(told("tap").length, 0);
  const chosen = surface({ isSelecting: true });
  chosen.send("pointerdown", at(50));
  chosen.send("pointermove", at(90, 80));
  chosen.send("pointerup", at(90, 80));
  assert.deepEqual(chosen.heard.map(([name]) => name), ["select", "point", "selected"]);
});
