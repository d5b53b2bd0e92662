// Files of figures: resolution of a PNG, bounds, sizes that a browser remembers, words that are wrapped.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";

import { Orientation } from "../../spectrod/apps/web/page/plot/orientation.js";
import { turnedPixels } from "../../spectrod/apps/web/page/plot/figureimage.js";
import { FIGURE_BOUNDS, pictureSize, withResolution } from "../../spectrod/apps/web/page/plot/figurefiles.js";
import { wrapped } from "../../spectrod/apps/web/page/plot/figurelook.js";
import { makePrefs } from "../../spectrod/apps/web/page/side/prefs.js";

/** Check sum of PNG, which gzip ends with: older versions of Node have no function for it. */
function crc32(body) {
  return gzipSync(body).subarray(-8).readUInt32LE();
}

function chunk(kind, content) {
  const body = Buffer.concat([Buffer.from(kind), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const IHDR = chunk("IHDR", Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]));
const REST = Buffer.concat([chunk("IDAT", deflateSync(Buffer.from([0, 255]))), chunk("IEND", Buffer.alloc(0))]);

test("a PNG has its resolution as a chunk of its own, with its check sum, before the picture", () => {
  const found = Buffer.from(withResolution(new Uint8Array(Buffer.concat([SIGNATURE, IHDR, REST])), 300));
  const about = Buffer.alloc(9);
  about.writeUInt32BE(11811, 0);
  about.writeUInt32BE(11811, 4);
  about[8] = 1;
  assert.deepEqual(found, Buffer.concat([SIGNATURE, IHDR, chunk("pHYs", about), REST]));
});

test("a picture that no browser draws is refused with its size and the rule", () => {
  assert.deepEqual(pictureSize([500.4, 200], { width: 605, scale: 3.125 }), { widthPx: 1891, heightPx: 2189 });
  for (const [heights, size] of [[[6000], { width: 100, scale: 3 }], [[3000], { width: 3000, scale: 3 }]]) {
    assert.throws(() => pictureSize(heights, size), /^Error: figure of \d+ x \d+ pixels: must have 16384 a side and 64 million at most/);
  }
});

test("sizes of figures that are remembered are whole numbers within their bounds, else the usual ones", () => {
  const usual = { widthMm: 160, plotsMm: 100, dpi: 300 };
  assert.deepEqual({ ...makePrefs({ figure: { widthMm: 80, plotsMm: 40, dpi: 600 } }).figure }, { widthMm: 80, plotsMm: 40, dpi: 600 });
  for (const figure of [undefined, null, 7, "x", [], { widthMm: 59 }, { widthMm: 1e9, plotsMm: "90", dpi: NaN }, { dpi: 300.5 }]) {
    assert.deepEqual({ ...makePrefs({ figure }).figure }, usual);
  }
  assert.deepEqual(Object.keys(FIGURE_BOUNDS), Object.keys(usual));
});

test("words are wrapped whole, and longer ones are cut into lines, with every sign kept", () => {
  const measure = (text) => text.length;
  assert.deepEqual(wrapped("ab cd ef", 5, measure), ["ab cd", "ef"]);
  assert.deepEqual(wrapped("a bcdefghij k", 4, measure), ["a", "bcde", "fghi", "j k"]);
  assert.deepEqual(wrapped("  ", 4, measure), []);
});

test("a waterfall of a figure goes down, up, or to the right with its lowest frequency at the bottom", () => {
  const pixels = Uint32Array.of(11, 12, 13, 21, 22, 23); // two lines of three pixels, the newest first
  const turned = (direction) => [...turnedPixels(pixels, new Orientation(direction, direction === "right" ? { width: 2, height: 3 } : { width: 3, height: 2 }))];
  assert.deepEqual(turned("down"), [11, 12, 13, 21, 22, 23]);
  assert.deepEqual(turned("up"), [21, 22, 23, 11, 12, 13]);
  assert.deepEqual(turned("right"), [23, 13, 22, 12, 21, 11]);
});
