import assert from "node:assert/strict";
import { test } from "node:test";

import { FLAG_GAP } from "../../spectrod/apps/web/page/rows/decode.js";
import { LADDER_MS } from "../../spectrod/apps/web/page/rows/history.js";
import { JoinedRows } from "../../spectrod/apps/web/page/rows/past.js";
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

test("the newest recording stands for its period, but not for the time of live rows", () => {
  const given = rowsOf(upTo(5), { minutes: 2 });
  const ends = [
    [Infinity, 5 * PERIOD],
    [5 * PERIOD, 5 * PERIOD - 1],
    [4 * PERIOD + 5 * MINUTE, 4 * PERIOD + 5 * MINUTE - 1],
  ];
  for (const [seamMs, untilMs] of ends) {
    const [{ tMs, merged }] = byPeriods(given, "max", seamMs);
    assert.deepEqual([tMs, merged], [(4 * PERIOD + untilMs) / 2, (untilMs - 4 * PERIOD) / MINUTE]);
    const live = { length: 1, total: 1, at: () => ({ tMs: seamMs + MINUTE / 2, merged: 1, description }), timeAt: () => seamMs + MINUTE / 2 };
    assert.equal(new JoinedRows(seamMs < Infinity ? live : null, byPeriods(given, "max", seamMs)).at(seamMs < Infinity ? 1 : 0).tMs, tMs);
  }
  const joined = byPeriods(given, "max", 4 * PERIOD + 2 * MINUTE);
  assert.deepEqual(joined.slice(0, 2), given.slice(0, 2).map((row) => ({ ...row, flags: 0 })), "live rows continue it");
});

/** Rows of a recorder of a season, the newest first: those cells of a length that have sound. */
function cellsOf(cell, { on, period, days = 2 }) {
  const cells = new Set();
  for (let begin = 13; begin < days * 86_400; begin += period) {
    for (let n = Math.floor(begin / cell); n * cell < begin + on; n += 1) cells.add(n);
  }
  const rowOf = (n) => ({ tMs: 1000 * (n + 0.5) * cell, merged: 1, flags: 0, values: Uint16Array.of(1), description: { ...description, row_s: cell } });
  return [...cells].sort((a, b) => b - a).map(rowOf);
}

test("no column length makes stripes of a schedule, or rows much longer than its period and the columns", () => {
  const schedules = [[55, 600], [60, 300], [50, 240], [55, 900], [300, 720], [300, 1000], [30, 420], [120, 1200], [600, 3600]];
  for (const [on, period] of schedules) {
    for (const cell of LADDER_MS.map((ms) => ms / 1000).filter((s) => 6 * s > on && s <= 14_400)) {
      const rows = byPeriods(cellsOf(cell, { on, period }), "max");
      const edges = rows.map(({ tMs, merged }) => [tMs - 500 * merged * cell, tMs + 500 * merged * cell]);
      const what = `${on} s in ${period} s, columns of ${cell} s`;
      assert.ok(edges.every(([begin], n) => n + 1 === edges.length || begin - edges[n + 1][1] < 1), `${what}: a stripe`);
      const longest = Math.max(...rows.map(({ merged }) => merged * cell));
      assert.ok(longest <= period + 2 * cell, `${what}: a row of ${longest} s`);
    }
  }
});

test("a recording longer than a period keeps its rows", () => {
  const long = rowsOf([60, 61, 62], { minutes: 10 });
  const rows = byPeriods([...rowsOf([64]), ...long, ...rowsOf(upTo(50))], "max");
  assert.equal(rows.filter(({ merged }) => merged === 1).length, 30);
  assert.equal(at(rows, 615.5 * MINUTE).values[0], 61);
});
