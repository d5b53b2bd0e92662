/**
 * Binary messages of the server: rows of spectra (docs/web-protocol.md).
 *
 * Whatever a message says of lengths is checked against the bytes that are there before it is used,
 * so a message of n bytes never makes more than n bytes of views and n / 32 rows.
 */

const VERSION = 1;
const KIND_ROWS = 1;
const MESSAGE_BYTES = 8;
const BLOCK_BYTES = 16;
const ROW_BYTES = 32;

/** A message longer than this is refused unread [bytes]. */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Bits of a row's `flags`. */
export const FLAG_GAP = 1;
export const FLAG_NEW_EPOCH = 2;
export const FLAG_REPLAYED = 4;
export const FLAG_DROPPED = 8;

/**
 * @typedef {object} Row
 * @property {number} seq number of the newest message in the row, modulo 2^32
 * @property {number} missed messages lost between daemon and server before it
 * @property {number} merged messages taken together in it, at least 1
 * @property {number} flags `FLAG_...`
 * @property {number} tMs UTC of the row's middle since 1970 [ms]
 * @property {number} gapSamples samples missing before it
 * @property {Uint8Array|Uint16Array} values a view of the message, one level each
 */

/**
 * @typedef {object} Block
 * @property {number} stream the page's own number of the stream
 * @property {number} generation low 16 bits of the view's generation
 * @property {number} bits 8 or 16
 * @property {Row[]} rows oldest first
 * @property {number} clientDropped rows dropped for this client since it connected
 */

/**
 * Read one binary message.
 *
 * The values are views of `buffer` in the machine's byte order, which is little-endian wherever
 * there is a browser.
 *
 * @param {ArrayBuffer} buffer
 * @returns {{message: number, kind: number, blocks: Block[]}}
 * @throws {Error} if the message is not one of this version, is cut, or has bytes left over
 */
export function decodeMessage(buffer) {
  if (buffer.byteLength > MESSAGE_BYTES_MAX) {
    throw new Error(`message of ${buffer.byteLength} bytes: at most ${MESSAGE_BYTES_MAX}`);
  }
  const view = new DataView(buffer);
  need(view, 0, MESSAGE_BYTES, "its header");
  const version = view.getUint8(0);
  const kind = view.getUint8(1);
  if (version !== VERSION) throw new Error(`message of version ${version}: must be ${VERSION}`);
  if (kind !== KIND_ROWS) throw new Error(`message of kind ${kind}: must be ${KIND_ROWS} (rows)`);
  const blocks = [];
  let offset = MESSAGE_BYTES;
  for (let left = view.getUint16(2, true); left > 0; left -= 1) {
    const { block, end } = readBlock(view, offset);
    blocks.push(block);
    offset = end;
  }
  if (offset !== view.byteLength) {
    throw new Error(`message has ${view.byteLength - offset} bytes after its last block`);
  }
  return { message: view.getUint32(4, true), kind, blocks };
}

function need(view, offset, bytes, what) {
  if (offset + bytes > view.byteLength) {
    throw new Error(`message of ${view.byteLength} bytes ends within ${what}`);
  }
}

function readBlock(view, offset) {
  need(view, offset, BLOCK_BYTES, "a block's header");
  const nRows = view.getUint16(offset + 4, true);
  const bits = view.getUint16(offset + 6, true);
  const nValues = view.getUint32(offset + 8, true);
  if (bits !== 8 && bits !== 16) throw new Error(`block of ${bits} bits: must be 8 or 16`);
  const headers = offset + BLOCK_BYTES;
  const values = headers + nRows * ROW_BYTES;
  need(view, headers, nRows * ROW_BYTES, "a block's rows");
  const bytes = (nRows * nValues * bits) / 8;
  const padded = Math.ceil(bytes / 4) * 4;
  need(view, values, padded, "a block's values");
  const rows = [];
  for (let i = 0; i < nRows; i += 1) {
    const at = values + (i * nValues * bits) / 8;
    rows.push(readRow(view, headers + i * ROW_BYTES, valuesAt(view.buffer, at, nValues, bits)));
  }
  const block = {
    stream: view.getUint16(offset, true),
    generation: view.getUint16(offset + 2, true),
    bits,
    rows,
    clientDropped: view.getUint32(offset + 12, true),
  };
  return { block, end: values + padded };
}

function valuesAt(buffer, offset, count, bits) {
  return bits === 8 ? new Uint8Array(buffer, offset, count) : new Uint16Array(buffer, offset, count);
}

function readRow(view, offset, values) {
  const row = {
    seq: view.getUint32(offset, true),
    missed: view.getUint32(offset + 4, true),
    merged: view.getUint16(offset + 8, true),
    flags: view.getUint16(offset + 10, true),
    tMs: view.getFloat64(offset + 16, true),
    gapSamples: view.getFloat64(offset + 24, true),
    values,
  };
  if (row.merged < 1) throw new Error(`row ${row.seq}: merged=0: must be at least 1`);
  if (!Number.isFinite(row.tMs)) throw new Error(`row ${row.seq}: t_ms=${row.tMs}: must be finite`);
  if (!(row.gapSamples >= 0 && row.gapSamples < Infinity)) {
    throw new Error(`row ${row.seq}: gap_samples=${row.gapSamples}: must be finite and at least 0`);
  }
  return row;
}
