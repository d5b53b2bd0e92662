// Files of figures: resolution of a PNG, bounds, sizes that a browser remembers, words that are wrapped.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";

import { drawLevelsOver } from "../../spectrod/apps/web/page/plot/figurelevels.js";
import { Orientation } from "../../spectrod/apps/web/page/plot/orientation.js";
import { turnedPixels } from "../../spectrod/apps/web/page/plot/figureimage.js";
import { pictureSize, withResolution } from "../../spectrod/apps/web/page/plot/figurefiles.js";
import { SvgPen } from "../../spectrod/apps/web/page/plot/figurepens.js";
import { wrapped } from "../../spectrod/apps/web/page/plot/figurelook.js";
import { FIGURE_BOUNDS, makePrefs } from "../../spectrod/apps/web/page/side/prefs.js";
import { LevelSeries } from "../../spectrod/apps/web/page/rows/levelseries.js";
import { random } from "./descriptions.js";

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

const [T0, SPAN_MS] = [Date.UTC(2026, 10, 23), 6e6];
const PLACE = Object.freeze({ left: 100, top: 50, width: 400, height: 300 });
const SPEC = { endpoint: "e", topic: "spec/mic/0/dbfs/", kind: "spec", source: "mic", channel: "0", product: "dbfs" };
const METER = { ...SPEC, topic: "levels/mic/0/meter/", kind: "levels", product: "meter" };

/** Runs of 5000 intervals of a second in a span of 100 minutes, each third hundred of which did not come. */
function seriesOf() {
  const next = random(5);
  const series = new LevelSeries();
  const values = new Map();
  for (let n = 0; n < 5000; n += 1) {
    if (Math.floor(n / 100) % 3 === 2) continue;
    values.set(n, -90 * next());
    series.take(METER, { t_ms: T0 + 1000 * n, interval_s: 1, names: ["LAeq"], units: ["dBFS"], values: [values.get(n)] });
  }
  return { column: series.column("meter/LAeq", SPEC, [SPEC, METER]), values };
}

/** Lines of a column that are drawn, each corner as a time [ms] and a level. */
function drawn(runs, direction, k = 0) {
  const pen = new SvgPen((text) => 6 * text.length);
  const strip = { newestMs: T0 + SPAN_MS, spanMs: SPAN_MS, times: [{ name: "A", tMs: T0 + 1e6 }], lines: [{ name: "meter/LAeq", stroke: "#0b57a4", dash: [], runs }] };
  drawLevelsOver(pen, { over: { lo: -90, hi: 0, text: "dBFS" }, strips: Array(k + 1).fill(strip), direction }, k, PLACE);
  const svg = pen.document({ width: 600, height: 400, title: "levels" });
  const places = new Orientation(direction, PLACE);
  const pathOf = (name) => svg.match(new RegExp(`class="level ${name}" d="([^"]*)"`))?.[1] ?? "";
  const linesOf = (name) => pathOf(name).split("M").slice(1).map((line) => line.split("L").map((point) => {
    const [x, y] = point.split(" ").map(Number);
    const { tone, age } = places.fromScreen({ x: x - PLACE.left, y: y - PLACE.top });
    return [T0 + SPAN_MS * (1 - age / places.length), -90 + (90 * tone) / places.breadth];
  }));
  return { lines: linesOf("meter/LAeq"), cursor: linesOf("cursor A"), texts: [...svg.matchAll(/>([^<]+)<\/text>/g)].map(([, text]) => text) };
}

for (const direction of ["down", "up", "right"]) {
  test(`levels over time of a figure are the numbers that came, gaps between them, with time ${direction}`, () => {
    const { column, values } = seriesOf();
    const { lines, cursor, texts } = drawn(column.runs(T0, T0 + SPAN_MS, 1), direction);
    assert.deepEqual(lines.map(({ length }) => length), Array(17).fill(400));
    lines.flat().forEach(([tMs, level], k) => {
      const n = [...values.keys()][Math.floor(k / 2)];
      assert.ok(Math.abs(tMs - T0 - 1000 * (n + (k % 2))) < 20 && Math.abs(level - values.get(n)) < 1e-3, `${direction} ${k}`);
    });
    assert.deepEqual(cursor.flat().map(([tMs]) => Math.round((tMs - T0) / 1000)), [1000, 1000]);
    assert.ok(["dBFS", "-80", "0"].every((text) => texts.includes(text)));
  });
}

test("intervals of less than a line of print keep their least and greatest levels; the scale is above the first waterfall alone", () => {
  const { column, values } = seriesOf();
  const { lines, texts } = drawn(column.runs(T0, T0 + SPAN_MS, 60_000), "down", 1);
  const levels = lines.flat().map(([, level]) => level);
  assert.ok(levels.length < 1000);
  for (const extreme of [Math.min, Math.max]) assert.ok(Math.abs(extreme(...levels) - extreme(...values.values())) < 1e-3);
  assert.deepEqual(texts, []);
});
