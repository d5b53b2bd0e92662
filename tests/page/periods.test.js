import assert from "node:assert/strict";
import { test } from "node:test";

import { FLAG_GAP } from "../../spectrod/apps/web/page/rows/decode.js";
import { byPeriods } from "../../spectrod/apps/web/page/rows/periods.js";
import { rowAt } from "../../spectrod/apps/web/page/rows/rowat.js";

const MINUTE = 60_000;
const PERIOD = 10 * MINUTE;
const description = Object.freeze({ bits: 16, lo: -327.67, step: 0.01, row_s: 60, fs: 1 });

/** Rows of recordings of some minutes each ten, the newest first; their value is the number of the recording. */
function rowsOf(numbers, { minutes = 1, values = (n) => [n] } = {}) {
  const rows = numbers.flatMap((n) =>
    Array.from({ length: minutes }, (_, k) => ({
      tMs: n * PERIOD + (k + 0.5) * MINUTE,
      merged: 1,
      missed: 0,
      gapSamples: 0,
      flags: k === 0 && n > 0 ? FLAG_GAP : 0,
      values: Uint16Array.from(values(n, k)),
      description,
    })),
  );
  return rows.reverse();
}

const upTo = (count, lost = []) => Array.from({ length: count }, (_, n) => n).filter((n) => !lost.includes(n));
const at = (rows, tMs) => rowAt({ length: rows.length, at: (i) => rows[i], timeAt: (i) => rows[i].tMs }, tMs, MINUTE);

test("rows stand for the period of their recording, and a lost one stays a gap", () => {
  const rows = byPeriods(rowsOf(upTo(50, [20, 30, 31])), "max");
  assert.equal(rows.length, 47);
  for (let minute = 0; minute < 490; minute += 1) {
    const n = Math.floor(minute / 10);
    const found = at(rows, (minute + 0.5) * MINUTE);
    assert.equal(found?.values[0] ?? null, [20, 30, 31].includes(n) ? null : n, `minute ${minute}`);
  }
  const flagged = rows.filter(({ flags }) => flags & FLAG_GAP).map(({ values }) => values[0]);
  assert.deepEqual(flagged, [32, 21]);
  assert.deepEqual([...new Set(rows.slice(1).map(({ merged, soundMs }) => `${merged} ${soundMs}`))], ["10 60000"]);
});

test("rows of a recording are one: the greatest, or the mean power", () => {
  const values = (n, k) => [32_767 + 1000 * k, k === 0 ? 65_535 : 40_000, 65_535];
  const given = rowsOf(upTo(5), { minutes: 2, values });
  assert.deepEqual([...byPeriods(given, "max")[2].values], [33_767, 40_000, 65_535]);
  assert.deepEqual([...byPeriods(given, "mean")[2].values], [32_767 + 740, 40_000, 65_535]);
  assert.equal(given[0].values[0], 33_767, "what is kept in tiles stays as it is");
});

test("without a schedule, and where recordings can be read, rows stay as they are", () => {
  const [one, two] = [rowsOf([0, 3]), rowsOf([0, 1, 7, 9, 30, 33])];
  const long = rowsOf(upTo(9), { minutes: 8 });
  const all = rowsOf(upTo(9), { minutes: 10 });
  for (const rows of [[], one, two, long, all]) assert.equal(byPeriods(rows, "max"), rows);
});

test("a recording longer than a period keeps its rows", () => {
  const long = rowsOf([60, 61, 62], { minutes: 10 });
  const rows = byPeriods([...rowsOf([64]), ...long, ...rowsOf(upTo(50))], "max");
  assert.equal(rows.filter(({ merged }) => merged === 1).length, 31);
  assert.equal(at(rows, 615.5 * MINUTE).values[0], 61);
});
