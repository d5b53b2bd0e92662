// How a waterfall lies on the screen in each direction of time, and what follows from that.
import assert from "node:assert/strict";
import { test } from "node:test";

import { actionIn } from "../../spectrod/apps/web/page/panel/actions.js";
import { makeView, formatFragment, parseFragment } from "../../spectrod/apps/web/page/panel/view.js";
import { DIRECTIONS, Orientation, wayIn } from "../../spectrod/apps/web/page/plot/orientation.js";
import { random } from "./descriptions.js";

const SIZE = { width: 300, height: 200 };
const places = (direction) => new Orientation(direction, SIZE);
const near = (found, wanted) => Object.entries(wanted).forEach(([name, value]) => assert.ok(Math.abs(found[name] - value) < 1e-9, `${name}: ${found[name]} not ${value}`));

test("the newest row and the lowest frequency are where each direction has them", () => {
  const corners = { down: [0, 0], up: [0, 200], right: [300, 200] };
  assert.deepEqual(Object.keys(corners), [...DIRECTIONS]);
  for (const [direction, [x, y]] of Object.entries(corners)) near(places(direction).toScreen({ tone: 0, age: 0 }), { x, y });
  // Older by 10 and higher by 20.
  const steps = { down: [20, 10], up: [20, 190], right: [290, 180] };
  for (const [direction, [x, y]] of Object.entries(steps)) near(places(direction).toScreen({ tone: 20, age: 10 }), { x, y });
});

test("the frequency axis is as long as the box is high where time goes to the right", () => {
  assert.deepEqual(DIRECTIONS.map((direction) => [places(direction).breadth, places(direction).length, places(direction).isUpright]), [[300, 200, false], [300, 200, false], [200, 300, true]]);
});

test("a place of the screen is that of its tone and age and back, also beyond the box, and so is a way", () => {
  const next = random(3);
  for (const direction of DIRECTIONS) {
    for (let n = 0; n < 200; n += 1) {
      const [at, other] = Array.from({ length: 2 }, () => ({ x: 500 * next() - 100, y: 400 * next() - 100 }));
      const found = places(direction).fromScreen(at);
      near(places(direction).toScreen(found), at);
      const way = wayIn(direction, { x: other.x - at.x, y: other.y - at.y });
      near(places(direction).fromScreen(other), { tone: found.tone + way.tone, age: found.age + way.age });
    }
  }
});

test("each pixel of the screen has one column and one line of the waterfall for itself", () => {
  for (const direction of DIRECTIONS) {
    const one = new Orientation(direction, { width: 7, height: 5 });
    const seen = new Set();
    for (let y = 0; y < 5; y += 1) {
      for (let x = 0; x < 7; x += 1) {
        const { tone, age } = one.pixelAt({ x, y });
        assert.deepEqual(one.pixelAt({ x: x + 0.999, y: y + 0.999 }), { tone, age });
        assert.ok(tone >= 0 && tone < one.breadth && age >= 0 && age < one.length);
        seen.add(`${tone} ${age}`);
      }
    }
    assert.equal(seen.size, 35);
  }
});

test("what a canvas draws with the matrix lies where the places are", () => {
  for (const direction of DIRECTIONS) {
    const [a, b, c, d, e, f] = places(direction).matrix;
    for (const [tone, age] of [[0, 0], [17, 4], [200, 150]]) near(places(direction).toScreen({ tone, age }), { x: a * tone + c * age + e, y: b * tone + d * age + f });
  }
});

test("lines of a moment and a tone go all across, and a box has no negative sides", () => {
  assert.deepEqual(places("down").moment(30), { left: 0, top: 30, width: 300, height: 0 });
  assert.deepEqual(places("up").moment(30), { left: 0, top: 170, width: 300, height: 0 });
  assert.deepEqual(places("right").moment(30), { left: 270, top: 0, width: 0, height: 200 });
  assert.deepEqual(places("right").tone(30), { left: 0, top: 170, width: 300, height: 0 });
  assert.deepEqual(places("right").boxOf([10, 30], [5, 25]), { left: 275, top: 170, width: 20, height: 20 });
  assert.deepEqual(places("up").boxOf([30, 10], [25, 5]), { left: 10, top: 175, width: 20, height: 20 });
  assert.deepEqual(DIRECTIONS.map((direction) => places(direction).along(30)), [30, 170, 270]);
});

test("arrows move a cursor with a time to what is there on the screen, and leave the rest as it is", () => {
  const arrows = ["panLower", "panHigher", "levelsUp", "levelsDown"];
  const actions = (direction, times) => arrows.map((name) => actionIn(name, makeView({ cursors: [1], times, direction })));
  assert.deepEqual(actions("down", [5]), ["cursorLower", "cursorHigher", "timeLater", "timeEarlier"]);
  assert.deepEqual(actions("up", [5]), ["cursorLower", "cursorHigher", "timeEarlier", "timeLater"]);
  assert.deepEqual(actions("right", [5]), ["timeEarlier", "timeLater", "cursorHigher", "cursorLower"]);
  for (const direction of DIRECTIONS) assert.deepEqual(actions(direction, []), arrows);
  assert.deepEqual(["later", "earlier", "pause"].map((name) => actionIn(name, makeView({ direction: "right" }))), ["later", "earlier", "pause"]);
});

test("a link has each direction but the usual one; one that is none is the usual one", () => {
  for (const direction of DIRECTIONS) assert.equal(parseFragment(formatFragment(makeView({ direction }))).direction, direction);
  assert.equal(formatFragment(makeView({ direction: "right" })), "v=1&rows=right");
  assert.equal(parseFragment("v=1&rows=left").direction, "down");
});
