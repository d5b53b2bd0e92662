import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeMessage, MESSAGE_BYTES_MAX } from "../../spectrod/apps/web/page/rows/decode.js";
import { random } from "./descriptions.js";

/** Encode blocks as docs/web-protocol.md says, written apart from the reader. */
function encode(blocks, number = 7) {
  const bytes = [1, 1, ...u16(blocks.length), ...u32(number)];
  for (const { stream, generation, bits, rows, dropped } of blocks) {
    bytes.push(...u16(stream), ...u16(generation), ...u16(rows.length), ...u16(bits));
    bytes.push(...u32(rows[0]?.values.length ?? 0), ...u32(dropped));
    for (const row of rows) {
      bytes.push(...u32(row.seq), ...u32(row.missed), ...u16(row.merged), ...u16(row.flags));
      bytes.push(...u32(0), ...f64(row.tMs), ...f64(row.gapSamples));
    }
    for (const row of rows) bytes.push(...row.values.flatMap(bits === 8 ? (v) => [v] : u16));
    while (bytes.length % 4 !== 0) bytes.push(0);
  }
  return Uint8Array.from(bytes).buffer;
}

const u16 = (value) => [value & 255, value >> 8];
const u32 = (value) => [0, 8, 16, 24].map((shift) => Math.floor(value / 2 ** shift) & 255);
const f64 = (value) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value, true);
  return [...new Uint8Array(view.buffer)];
};

const ROW = { seq: 4294967295, missed: 3, merged: 2, flags: 9, tMs: 1.7e12 + 0.25, gapSamples: 480 };
const BLOCKS = [
  { stream: 255, generation: 65535, bits: 8, dropped: 11, rows: [{ ...ROW, values: [0, 1, 255] }] },
  {
    ...{ stream: 2, generation: 1, bits: 16, dropped: 0 },
    rows: [
      { ...ROW, seq: 5, values: [65535, 0, 300] },
      { ...ROW, seq: 6, values: [1, 2, 3] },
    ],
  },
];

test("a message comes back as it was encoded", () => {
  const { message, kind, blocks } = decodeMessage(encode(BLOCKS, 4000000000));
  assert.deepEqual([message, kind, blocks.length], [4000000000, 1, 2]);
  blocks.forEach((block, i) => {
    assert.equal(block.stream, BLOCKS[i].stream);
    assert.equal(block.generation, BLOCKS[i].generation);
    assert.equal(block.bits, BLOCKS[i].bits);
    assert.equal(block.clientDropped, BLOCKS[i].dropped);
    const rows = block.rows.map((row) => ({ ...row, values: [...row.values] }));
    assert.deepEqual(rows, BLOCKS[i].rows);
  });
});

test("values are views of the message, which is not copied", () => {
  const buffer = encode(BLOCKS);
  for (const block of decodeMessage(buffer).blocks) {
    for (const row of block.rows) assert.equal(row.values.buffer, buffer);
  }
});

test("a message without blocks and a block without rows are empty", () => {
  assert.deepEqual(decodeMessage(encode([])).blocks, []);
  const [block] = decodeMessage(encode([{ ...BLOCKS[0], rows: [] }])).blocks;
  assert.deepEqual(block.rows, []);
});

test("a message that is cut anywhere is refused", () => {
  const buffer = encode(BLOCKS);
  for (let length = 0; length < buffer.byteLength; length += 1) {
    assert.throws(() => decodeMessage(buffer.slice(0, length)), /^Error: message of \d+ bytes ends within/);
  }
});

test("bytes after the last block are refused", () => {
  const longer = new Uint8Array([...new Uint8Array(encode(BLOCKS)), 0, 0, 0, 0]).buffer;
  assert.throws(() => decodeMessage(longer), /^Error: message has 4 bytes after its last block$/);
});

for (const [what, at, bytes, text] of [
  ["another version", 0, [2], /version 2: must be 1/],
  ["another kind", 1, [9], /kind 9: must be 1/],
  ["bits that do not exist", 14, [12, 0], /block of 12 bits: must be 8 or 16/],
  ["billions of values", 16, [255, 255, 255, 255], /ends within a block's values/],
  ["thousands of rows", 12, [255, 255], /ends within a block's rows/],
  ["thousands of blocks", 2, [255, 255], /ends within a block's header/],
  ["a row of no messages", 32, [0, 0], /merged=0: must be at least 1/],
  ["a time that is none", 40, f64(NaN), /t_ms=NaN: must be finite/],
  ["a gap that is endless", 48, f64(Infinity), /gap_samples=Infinity: must be finite/],
  ["a gap below nothing", 48, f64(-1), /gap_samples=-1: must be finite and at least 0/],
]) {
  test(`${what} is refused by its name`, () => {
    const message = new Uint8Array(encode(BLOCKS));
    message.set(bytes, at);
    assert.throws(() => decodeMessage(message.buffer), text);
  });
}

test("a message beyond the limit is refused unread", () => {
  assert.throws(() => decodeMessage(new ArrayBuffer(MESSAGE_BYTES_MAX + 1)), /at most 16777216/);
});

test("a message with any bytes changed is decoded or refused by a text, within its own bytes", () => {
  const next = random(1);
  for (let round = 0; round < 3000; round += 1) {
    const message = new Uint8Array(encode(BLOCKS));
    for (let n = 0; n < 3; n += 1) message[Math.floor(next() * message.length)] = Math.floor(next() * 256);
    try {
      const { blocks } = decodeMessage(message.buffer);
      const values = blocks.flatMap((block) => block.rows.map((row) => row.values.byteLength));
      assert.ok(values.reduce((sum, n) => sum + n, 0) <= message.length);
    } catch (error) {
      assert.match(error.message, /^(message|block|row) /);
    }
  }
});
