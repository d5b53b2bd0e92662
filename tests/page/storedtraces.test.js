// Stored spectra and limits: what is kept, differences, limits from CSV.
import assert from "node:assert/strict";
import { test } from "node:test";

import { differenceOf } from "../../spectrod/apps/web/page/rows/difference.js";
import { levelOf } from "../../spectrod/apps/web/page/rows/levels.js";
import { LIMITS_BYTES_MAX, limitAt, POINTS_MAX, readLimits } from "../../spectrod/apps/web/page/rows/limits.js";
import { NAME_MAX, STORED_MAX, StoredTraces } from "../../spectrod/apps/web/page/side/storedtraces.js";
import { description, random } from "./descriptions.js";

const BINS = 64;
const binned = (slices, more = {}) => description({ bits: 16, lo: -327.67, step: 0.01, n_bins: BINS, unit: "dBFS", ref: "0 dBFS", statistic: "max", slices, ...more });
const FINE = binned([{ first: 0, per_value: 1, values: BINS }]);
const code = (level) => Math.round((level + 327.67) * 100);

/** A row that pools levels of bins as its description says. */
function rowOf(levels, about) {
  const values = about.slices.flatMap(({ first, per_value, values: count }) =>
    Array.from({ length: count }, (_, j) => {
      const found = levels.slice(first + j * per_value, first + (j + 1) * per_value).filter((level) => !Number.isNaN(level));
      if (found.length === 0) return 65535;
      const mean = 10 * Math.log10(found.reduce((sum, level) => sum + 10 ** (level / 10), 0) / found.length);
      return code(about.statistic === "mean" ? mean : Math.max(...found));
    }),
  );
  return { values: Uint16Array.from(values), description: about };
}

const next = random(11);
const noise = () => Array.from({ length: BINS }, () => -100 + Math.round(6000 * next()) / 100);

for (const statistic of ["max", "mean"]) {
  test(`the difference of rows that pool other bins is that of both in their common cells: ${statistic}`, () => {
    const a = binned([{ first: 0, per_value: 1, values: 16 }, { first: 16, per_value: 4, values: 12 }], { statistic });
    const b = binned([{ first: 0, per_value: 2, values: 16 }, { first: 32, per_value: 8, values: 4 }], { statistic });
    const cells = binned([{ first: 0, per_value: 2, values: 8 }, { first: 16, per_value: 4, values: 4 }, { first: 32, per_value: 8, values: 4 }], { statistic });
    const [levelsA, levelsB] = [noise(), noise()];
    levelsA.fill(NaN, 32, 40);
    const found = differenceOf(rowOf(levelsA, a), rowOf(levelsB, b));
    assert.deepEqual(found.description.slices, cells.slices);
    const [pooledA, pooledB] = [levelsA, levelsB].map((levels) => rowOf(levels, cells));
    const tolerance = statistic === "max" ? 0.0051 : 0.016; // a step, and those of what was pooled before
    found.values.forEach((value, k) => {
      const expected = levelOf(cells, pooledA.values[k]) - levelOf(cells, pooledB.values[k]);
      const level = levelOf(found.description, value);
      assert.ok(Number.isNaN(expected) ? Number.isNaN(level) : Math.abs(level - expected) <= tolerance, `${k}: ${level} ${expected}`);
    });
  });
}

test("there is no difference of other bins, nor of the greatest of bins to their mean power", () => {
  const row = rowOf(noise(), FINE);
  const pooled = { ...FINE, slices: [{ first: 0, per_value: 4, values: 16 }] };
  assert.equal(differenceOf(row, rowOf(noise(), { ...FINE, bin_hz: 10 })), null);
  assert.equal(differenceOf(row, rowOf(noise(), { ...FINE, n_bins: 65 })), null);
  assert.equal(differenceOf(rowOf(noise(), pooled), rowOf(noise(), { ...pooled, statistic: "mean" })), null);
  assert.notEqual(differenceOf(row, rowOf(noise(), { ...FINE, statistic: "mean" })), null, "of single bins both are the same");
  assert.equal(differenceOf(rowOf(noise(), { ...FINE, slices: [{ first: 0, per_value: 1, values: 8 }] }), rowOf(noise(), { ...FINE, slices: [{ first: 32, per_value: 1, values: 8 }] })), null);
});

test("limits are read with points or commas, a head of names, and comments", () => {
  assert.deepEqual(readLimits("# NR 50\nhz,db\n63,75\n125, 65.5\n", "a.csv"), [[63, 75], [125, 65.5]]);
  assert.deepEqual(readLimits("\uFEFF31,5;93\r\n63;78,5\r\n", "a.csv"), [[31.5, 93], [63, 78.5]]);
  assert.deepEqual(readLimits("100\t-3\n200\t-4", "a.csv"), [[100, -3], [200, -4]]);
});

for (const [text, why] of [
  ["", "a.csv: must have two lines of a frequency and a level at least"],
  ["100,1", "a.csv: must have two lines"],
  ["100,1\nx,y", "a.csv, line 2: x,y: must be a frequency above 0 Hz and a level of -1000 to 1000 dB"],
  ["100,1\n\n200", "a.csv, line 3: 200: must be"],
  ["0,1\n200,1", "a.csv, line 1: 0,1: must be"],
  ["100,1\n200,1e9", "a.csv, line 2: 200,1e9: must be"],
  ["100,1\n100,2", "a.csv, line 2: 100,2: frequencies must ascend"],
  [Array.from({ length: POINTS_MAX + 1 }, (_, k) => `${k + 1},0`).join("\n"), `a.csv: more than ${POINTS_MAX} lines`],
  ["#".repeat(LIMITS_BYTES_MAX + 1), "a.csv: more than 256 KiB"],
]) {
  test(`limits of ${JSON.stringify(text.slice(0, 20))} are refused by the rule`, () => {
    assert.throws(() => readLimits(text, "a.csv"), (error) => error.message.startsWith(why));
  });
}

test("limits are straight over the logarithm of frequency, and end with their points", () => {
  const points = [[100, 70], [10000, 30]];
  assert.deepEqual([100, 1000, 10000].map((hz) => Math.round(limitAt(points, hz))), [70, 50, 30]);
  assert.ok(Number.isNaN(limitAt(points, 99)) && Number.isNaN(limitAt(points, 10001)));
});

function storage(text = null) {
  const kept = { text };
  return { kept, open: () => ({ getItem: () => kept.text, setItem: (_, written) => (kept.text = written) }) };
}

test("a stored spectrum is there again in the next page, with its levels, name and place", () => {
  const { kept, open } = storage();
  const row = rowOf(noise(), FINE);
  const first = new StoredTraces(open);
  assert.equal(first.addRow("before", { ...row, tMs: 5 }), true);
  first.addLimits("NR", [[100, 70], [200, 60]], { unit: "dBFS", ref: "0 dBFS" });
  const [trace, limits] = new StoredTraces(open).entries;
  assert.deepEqual(trace.row.values, row.values);
  assert.deepEqual(trace.row.description.slices, FINE.slices);
  assert.deepEqual([trace.name, trace.isShown, limits.points[1]], ["before", true, [200, 60]]);
  assert.ok(kept.text.length < 4000);
});

test("a row of 8 bits is stored with the same levels", () => {
  const stored = new StoredTraces(storage().open);
  const about = binned([{ first: 0, per_value: 1, values: 3 }], { bits: 8, lo: -120, step: 0.5, n_bins: 3 });
  stored.addRow("a", { values: Uint8Array.of(0, 1, 201), description: about });
  const { values, description: made } = stored.entries[0].row;
  assert.deepEqual([...values].map((value) => levelOf(made, value)).map((level) => Math.round(100 * level)), [NaN, -12000, -2000]);
});

test("a spectrum is shown over levels of its unit and reference alone", () => {
  const stored = new StoredTraces(storage().open);
  stored.addRow("a", rowOf(noise(), FINE));
  assert.equal(stored.shownOver({ unit: "dBFS", ref: "0 dBFS" }).length, 1);
  for (const other of [{ unit: "dB SPL", ref: "0 dBFS" }, { unit: "dBFS", ref: "other" }, { unit: "dBFS" }]) assert.deepEqual(stored.shownOver(other), []);
  stored.subtract("a");
  assert.equal(stored.subtractedFrom({ unit: "dBFS", ref: "0 dBFS" }).name, "a");
  assert.equal(stored.subtractedFrom({ unit: "dB SPL", ref: "0 dBFS" }), null);
  stored.change("a", { isShown: false });
  assert.deepEqual(stored.shownOver({ unit: "dBFS", ref: "0 dBFS" }), []);
});

test("names are unique, may change, and what is removed is no longer subtracted", () => {
  const { open } = storage();
  const stored = new StoredTraces(open);
  for (let k = 0; k < 2; k += 1) stored.addRow("a", rowOf(noise(), FINE));
  assert.deepEqual(stored.entries.map(({ name }) => name), ["a", "a 2"]);
  stored.subtract("a");
  stored.change("a", { name: "a 2" });
  stored.change("a", { name: "" });
  stored.change("none", { name: "x" });
  stored.change("a", { name: "b" });
  assert.deepEqual([stored.entries.map(({ name }) => name), stored.difference], [["b", "a 2"], "b"]);
  stored.remove("b");
  assert.deepEqual([stored.entries.length, stored.difference, new StoredTraces(open).entries.length], [1, null, 1]);
  stored.addRow("x".repeat(500), rowOf(noise(), FINE));
  assert.ok(stored.entries[1].name.length <= NAME_MAX);
});

test(`at most ${STORED_MAX} are stored, and a full or forbidden storage keeps them for the page`, () => {
  const stored = new StoredTraces(() => {
    throw new Error("forbidden");
  });
  for (let k = 0; k < STORED_MAX; k += 1) assert.equal(stored.addRow("a", rowOf(noise(), FINE)), false);
  assert.throws(() => stored.addRow("a", rowOf(noise(), FINE)), /^Error: a: 8 spectra and limits are stored; remove one first$/);
  assert.equal(stored.entries.length, STORED_MAX);
});

test("whatever the storage has, nothing that could not be drawn is taken, and nothing is thrown", () => {
  const { kept, open } = storage();
  new StoredTraces(open).addRow("a", rowOf(noise(), FINE));
  const [good] = JSON.parse(kept.text);
  const bad = [
    null, 3, [], {}, { ...good, name: 5 }, { ...good, name: "" }, { ...good, name: "x".repeat(100) }, { ...good, unit: null }, { ...good, values: [1] },
    { ...good, values: good.values.map(() => -1) }, { ...good, values: good.values.map(() => 1e9) }, { ...good, values: {} }, { ...good, description: null },
    ...[
      { n_bins: 1e12 }, { n_bins: -1 }, { bin_hz: 0 }, { bin_hz: null }, { first_hz: "0" }, { statistic: "sum" }, { edges_hz: [[1], [2]] }, { edges_hz: 5 }, { slices: [] },
      { slices: [{ first: 0, per_value: 0, values: BINS }] }, { slices: [{ first: 9, per_value: 1, values: BINS }] }, { slices: [null] },
      { slices: Array.from({ length: 65 }, () => ({ first: 0, per_value: 1, values: 1 })) }, { slices: [{ first: 32, per_value: 1, values: 32 }, { first: 0, per_value: 1, values: 32 }] },
    ].map((part) => ({ ...good, description: { ...good.description, ...part } })),
    { ...good, points: [] }, { ...good, points: [[1, 2]] }, { ...good, points: [[2, 1], [1, 1]] }, { ...good, points: [[1, "2"], [2, 2]] },
  ];
  for (const one of bad) assert.deepEqual(new StoredTraces(storage(JSON.stringify([one])).open).entries, [], JSON.stringify(one)?.slice(0, 80));
  for (const text of ["", "{", "null", "3", '{"a":1}', "x".repeat(5_000_000)]) assert.deepEqual(new StoredTraces(storage(text).open).entries, []);
  const many = Array.from({ length: 50 }, (_, k) => ({ ...good, name: `n${k}` }));
  assert.equal(new StoredTraces(storage(JSON.stringify(many)).open).entries.length, STORED_MAX);
});
