import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CODE_DROPPED,
  CODE_GAP,
  CODE_LEVEL_MAX,
  CODE_LEVEL_MIN,
  codeOf,
  codeTable,
  levelOf,
  levelOfCode,
  onceAScale,
} from "../../spectrod/apps/web/page/rows/levels.js";
import {
  codeColors,
  cssColour,
  makeLookup,
  MARKS,
  palettes,
  shadesOf,
} from "../../spectrod/apps/web/page/plot/palette.js";
import { description } from "./descriptions.js";

const rgb = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];

test("maps have their published ends, and _r reverses them", () => {
  const shades = shadesOf("viridis");
  assert.deepEqual([rgb(shades[0]), rgb(shades[255])], [[68, 1, 84], [253, 231, 37]]);
  assert.deepEqual(shadesOf("viridis_r"), shades.slice().reverse());
});

test("no map contains the colours of gaps and dropped rows", () => {
  for (const [name, table] of Object.entries(palettes)) {
    for (const color of Object.values(MARKS).flatMap(({ gap, dropped }) => [gap, dropped])) {
      for (let i = 0; i < 768; i += 3) {
        const distance = Math.hypot(...color.map((value, k) => value - table[i + k]));
        assert.ok(distance > 20, `${name} ${i / 3} is as ${color}`);
      }
    }
  }
});

/** Contrast of two colours (WCAG 2.2). */
function contrast(a, b) {
  const linear = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b_]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b_);
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

test("gaps and dropped rows stand out of no data, whose own hatching is faint", () => {
  for (const { none, stripe, gap, dropped } of Object.values(MARKS)) {
    for (const color of [gap, dropped]) assert.ok(contrast(color, none) > 3 && contrast(color, stripe) > 2);
    assert.ok(contrast(stripe, none) > 1.3 && contrast(stripe, none) < 2);
  }
});

test("colours of marks are CSS", () => {
  assert.equal(cssColour(MARKS.dark.gap), "rgb(170 170 255)");
});

test("levels run through the whole map between the ends, and stay at them beyond", () => {
  const colors = codeColors("grey", -120, -20);
  const greys = [-300, -120, -70, -20.2, -20, 0].map((level) => rgb(colors[codeOf(level)])[0]);
  assert.deepEqual(greys, [0, 0, 128, 255, 255, 255]);
  for (let code = CODE_LEVEL_MIN + 1; code <= CODE_LEVEL_MAX; code += 1) {
    assert.ok(rgb(colors[code])[0] >= rgb(colors[code - 1])[0]);
  }
});

test("no data and marks have their own colours, by the theme", () => {
  for (const marks of Object.values(MARKS)) {
    const colors = codeColors("magma", -100, 0, marks);
    const found = [0, 1, CODE_GAP, CODE_DROPPED].map((code) => rgb(colors[code]));
    assert.deepEqual(found, [marks.none, marks.stripe, marks.gap, marks.dropped]);
  }
});

test("the lookup of a stream gives each value the colour of its level", () => {
  const stream = description({ lo: -127, step: 0.5 });
  const lookup = makeLookup("cividis", -100, -10, stream);
  const colors = codeColors("cividis", -100, -10);
  for (let value = 1; value < 256; value += 1) {
    assert.equal(lookup[value], colors[codeOf(-127 + (value - 1) * 0.5)]);
  }
  assert.deepEqual(rgb(lookup[0]), MARKS.dark.none);
});

test("what cannot be drawn is refused by its name", () => {
  assert.throws(() => shadesOf("jet"), /palette=jet: must be one of viridis, .*grey, or one followed by _r/);
  assert.throws(() => shadesOf("constructor"), /palette=constructor: must be one of/);
  assert.throws(() => codeColors("grey", 0, 0), /levels from 0 to 0: must be finite and ascending/);
  assert.throws(() => codeColors("grey", NaN, 0), /levels from NaN to 0/);
  assert.throws(() => makeLookup("grey", -1, 0, description({ bits: 16 })), /stream of 16 bits: must be 8/);
});

test("a table is made once for all descriptions of a scale, and not for another one", () => {
  let made = 0;
  const tableOf = onceAScale(({ lo }) => [lo, (made += 1)]);
  const one = description({ bits: 16, lo: -327.67, step: 0.01 });
  assert.equal(tableOf(one), tableOf({ ...one, topic: "another" }));
  assert.equal(made, 1);
  for (const changes of [{ bits: 8 }, { lo: -300 }, { step: 0.1 }]) {
    const other = { ...one, ...changes };
    assert.notEqual(tableOf(other), tableOf(one));
    assert.equal(tableOf(other)[0], other.lo);
  }
  assert.equal(made, 4);
});

test("of many scales the last are kept, and a description keeps its own", () => {
  let made = 0;
  const tableOf = onceAScale(({ lo }) => [lo, (made += 1)]);
  const first = description({ lo: 0 });
  const table = tableOf(first);
  for (let lo = 1; lo <= 32; lo += 1) tableOf(description({ lo }));
  assert.equal(made, 33);
  tableOf(description({ lo: 32 }));
  assert.equal(made, 33);
  assert.equal(tableOf(first), table);
  assert.notEqual(tableOf(description({ lo: 0 })), table);
});

for (const stream of [description(), description({ bits: 16, lo: -327.67, step: 0.01 })]) {
  test(`values of ${stream.bits} bits keep their order and their level to half a hundredth`, () => {
    const table = codeTable(stream);
    for (let value = 0; value < table.length; value += 1) {
      const level = levelOf(stream, value);
      if (Number.isNaN(level)) assert.equal(table[value], 0);
      else if (level < 327) assert.ok(Math.abs(levelOfCode(table[value]) - level) <= 0.005 + 1e-9);
    }
    const none = stream.bits === 8 ? 0 : 65535;
    assert.equal(levelOf(stream, none), NaN);
    for (let value = 2; value < table.length; value += 1) {
      if (value !== none) assert.ok(table[value] >= table[value - 1]);
    }
  });
}
