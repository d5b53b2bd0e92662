import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeHistory } from "../../spectrod/apps/web/page/rows/answer.js";
import { decodeMessage } from "../../spectrod/apps/web/page/rows/decode.js";
import { random } from "./descriptions.js";

const ROUNDS = 20_000;
const ODD_NUMBERS = [0, 1, 2, 7, 8, 255, 256, 32768, 65535, 2 ** 24, 2 ** 31, 2 ** 32 - 1];
const ODD_VALUES = [0, -1, 1, 2048, 2049, 12289, 1e9, 1e300, -0.5, null, true, "", "9", [], {}, [null], [{}], ["max", "mean"]];

/** A message of two blocks, of 8 and of 16 bits, as docs/web-protocol.md says. */
function message() {
  const view = new DataView(new ArrayBuffer(8 + (16 + 32 + 4) + (16 + 64 + 12)));
  [1, 1].forEach((value, at) => view.setUint8(at, value));
  view.setUint16(2, 2, true);
  let at = 8;
  for (const [bits, nRows, nValues] of [[8, 1, 3], [16, 2, 3]]) {
    [5, 1, nRows, bits].forEach((value, k) => view.setUint16(at + 2 * k, value, true));
    view.setUint32(at + 8, nValues, true);
    for (let row = 0; row < nRows; row += 1) {
      const begin = at + 16 + 32 * row;
      view.setUint16(begin + 8, 1, true);
      view.setFloat64(begin + 16, 1.7e12, true);
    }
    at += 16 + 32 * nRows + Math.ceil((nRows * nValues * bits) / 32) * 4;
  }
  assert.equal(at, view.byteLength);
  return new Uint8Array(view.buffer);
}

const HEADER = {
  ...{ topic: "spec/pond/0/dbfs/", kind: "spec", unit: "dBFS", cell_ms: 1000, t0: 0, t1: 4000, f0: 0, f1: 24000 },
  ...{ w: 4, h: 3, layers: ["max"], edges_hz: null, sources: ["ring"], first_hz: 0, bin_hz: 10, n_bins: 99 },
  slices: [{ first: 0, per_value: 2, values: 3 }],
};

/** An answer of `api/history` with a header, and the values that the one above has. */
function answer(header = HEADER) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const begin = Math.ceil((4 + text.length) / 4) * 4;
  const bytes = new Uint8Array(begin + 4 * 4 + 2 * 4 * 3);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  return bytes;
}

/** Change bytes: set, insert, remove, repeat, or write an odd number. */
function havoc(bytes, next) {
  const pick = (n) => Math.floor(next() * n);
  const at = pick(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + pick(16));
  const changed = Array.from(bytes);
  switch (pick(5)) {
    case 0: {
      changed[Math.min(at, bytes.length - 1)] = pick(256);
      break;
    }
    case 1: {
      changed.splice(at, 0, ...Array.from({ length: 1 + pick(8) }, () => pick(256)));
      break;
    }
    case 2: {
      changed.splice(at, end - at);
      break;
    }
    case 3: {
      changed.splice(at, 0, ...bytes.subarray(at, end), ...bytes.subarray(at, end));
      break;
    }
    default: {
      const number = ODD_NUMBERS[pick(ODD_NUMBERS.length)];
      for (let k = 0; k < 4 && at + k < changed.length; k += 1) changed[at + k] = Math.floor(number / 256 ** k) & 255;
    }
  }
  return Uint8Array.from(changed);
}

/** Change a member of a header, or of one of its slices. */
function otherHeader(next) {
  const pick = (list) => list[Math.floor(next() * list.length)];
  const header = structuredClone(HEADER);
  const table = next() < 0.3 ? header.slices[0] : header;
  const key = pick(Object.keys(table));
  if (next() < 0.2) delete table[key];
  else table[key] = pick(ODD_VALUES);
  return header;
}

/** Decode, and return what was decoded; null for what is refused with an error and a text. */
function decoded(decode, bytes) {
  try {
    return decode(bytes.buffer);
  } catch (error) {
    assert.ok(error instanceof Error && error.message.length > 0, `${error}`);
    assert.ok(!(error instanceof RangeError), `a view beyond the message: ${error.message}`);
    return null;
  }
}

test("mutated messages are decoded within their bytes, or refused with a text", () => {
  const next = random(14);
  let nDecoded = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    let bytes = message();
    for (let n = 0; n <= round % 3; n += 1) bytes = havoc(bytes, next);
    const found = decoded(decodeMessage, bytes);
    if (found === null) continue;
    nDecoded += 1;
    const rows = found.blocks.flatMap((block) => block.rows);
    assert.ok(32 * rows.length <= bytes.length);
    assert.ok(rows.reduce((sum, { values }) => sum + values.byteLength, 0) <= bytes.length);
  }
  assert.ok(nDecoded > ROUNDS / 50, `${nDecoded} of ${ROUNDS}`);
});

test("mutated answers of the past are decoded within their bytes, or refused with a text", () => {
  const next = random(15);
  let nDecoded = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const bytes = round % 2 ? havoc(answer(), next) : answer(otherHeader(next));
    const found = decoded(decodeHistory, bytes);
    if (found === null) continue;
    nDecoded += 1;
    assert.equal(found.effort.length, found.header.w);
    for (const layer of found.layers) assert.equal(layer.length, found.header.w * found.header.h);
  }
  assert.ok(nDecoded > ROUNDS / 50, `${nDecoded} of ${ROUNDS}`);
});
