import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { decodeMessage } from "../../spectrod/apps/web/page/rows/decode.js";
import { levelOf } from "../../spectrod/apps/web/page/rows/levels.js";

const FOLDER = new URL("golden/", import.meta.url);
const NAMES = readdirSync(FOLDER).filter((name) => name.endsWith(".bin"));

function read(name) {
  const bytes = readFileSync(new URL(name, FOLDER));
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const expected = JSON.parse(readFileSync(new URL(name.replace(".bin", ".json"), FOLDER)));
  return { found: decodeMessage(buffer), expected };
}

function descriptionOf(expected, row) {
  return expected.descriptions.find((d) => d.id === row.stream && d.generation === row.generation);
}

test("there are messages of the server", () => {
  assert.ok(NAMES.length >= 7);
});

for (const name of NAMES) {
  test(`${name} is read as the server means it`, () => {
    const { found, expected } = read(name);
    const rows = found.blocks.flatMap(({ stream, generation, clientDropped, rows: of }) =>
      of.map((row) => ({ ...row, stream, generation, clientDropped, values: [...row.values] })),
    );
    assert.equal(found.message, expected.message);
    assert.deepEqual(
      rows,
      expected.rows.map(({ levels: _, ...row }) => row),
    );
  });

  test(`${name} has the levels that were measured`, () => {
    const { expected } = read(name);
    for (const row of expected.rows) {
      const description = descriptionOf(expected, row);
      row.values.forEach((value, i) => {
        const level = levelOf(description, value);
        if (row.levels[i] === null) assert.ok(Number.isNaN(level));
        else assert.ok(Math.abs(level - row.levels[i]) <= description.step / 2 + 0.0051);
      });
    }
  });
}
