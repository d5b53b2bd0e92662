/** Bands of frequency with names. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { BANDS_MAX, bandOfEnds, COMMON_BANDS, namedBands } from "../../spectrod/apps/web/page/rows/namedbands.js";

test("octave bands follow on each other about 1 kHz, as IEC 61260-1 has them", () => {
  const octaves = COMMON_BANDS.filter(({ name }) => name.startsWith("octave"));
  const middle = octaves.find(({ name }) => name === "octave of 1 kHz");
  assert.deepEqual([middle.f0, middle.f1], [707.946, 1412.54]);
  octaves.slice(1).forEach(({ f0 }, k) => assert.equal(f0, octaves[k].f1));
  assert.deepEqual([octaves[0].f0, octaves.at(-1).f1].map(Math.round), [22, 22387]);
});

test("bands of anything are each name once, within bounds, and as many as are kept", () => {
  const owl = { name: "owl", f0: 200, f1: 900 };
  const wrong = [null, 7, { ...owl, name: "" }, { ...owl, name: " owl" }, { ...owl, name: "x".repeat(41) }, { ...owl, name: 5 },
    { ...owl, name: "a", f0: 900 }, { ...owl, name: "b", f1: 1e13 }, { ...owl, name: "c", f0: NaN }, { ...owl, name: "d", f0: "1" }];
  assert.deepEqual(namedBands([...wrong, owl, { ...owl, f0: 1 }], 1e12), [owl]);
  assert.equal(namedBands(Array.from({ length: 99 }, (_, k) => ({ ...owl, name: `${k}` })), 1e12).length, BANDS_MAX);
  for (const given of [null, undefined, "owl", { length: 1 }]) assert.deepEqual(namedBands(given, 1e12), []);
});

test("a band is found by its ends, as a link has them", () => {
  const [speech] = COMMON_BANDS;
  assert.equal(bandOfEnds(COMMON_BANDS, 300, 3400), speech);
  assert.equal(bandOfEnds(COMMON_BANDS, 300.0000000001, 3400), speech);
  assert.equal(bandOfEnds(COMMON_BANDS, 300, 3401), null);
  assert.equal(bandOfEnds(COMMON_BANDS, null, null), null);
});
