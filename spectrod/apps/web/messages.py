"""Texts and binary messages of the server, version 1, as ``docs/web-protocol.md`` defines them."""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

VERSION: Final = 1

GAP: Final = 1
"""Flag of a row: samples are missing before it."""
NEW_EPOCH: Final = 2
"""The daemon has restarted before it."""
REPLAYED: Final = 4
"""It was lost, and requested again."""
DROPPED: Final = 8
"""The server has dropped rows for this client before it."""

_KIND_ROWS = 1
_U32 = (1 << 32) - 1
_MESSAGE = struct.Struct("<BBHI")
_BLOCK = struct.Struct("<HHHHII")
_ROW = struct.Struct("<IIHHIdd")
ROW_BYTES: Final = _ROW.size
"""Size of a row without its values [bytes]."""
ROWS_OF_BLOCK_MAX: Final = 0xFFFF
MERGED_MAX: Final = 0xFFFF

_encoder = msgspec.json.Encoder()


class StreamRow(NamedTuple):
    """A row for one client."""

    seq: int
    """Number of the newest message in it."""
    missed: int
    """Messages lost between daemon and server before it."""
    merged: int
    """Messages in it."""
    flags: int
    t_ms: float
    """Middle of the row [ms since 1970, UTC]."""
    gap_samples: int
    data: bytes
    """The values as the wire has them."""


class RowsBlock(NamedTuple):
    """Rows of one stream that have one description."""

    stream: int
    generation: int
    values: int
    """Values of each row."""
    bits: int
    """Bits of a value, 8 or 16."""
    rows: Sequence[StreamRow]


def encode_text(op: str, **fields: Any) -> str:
    """Return a text of the server; NaN and infinity become null."""
    return _encoder.encode({"op": op, **fields}).decode()


def encode_rows(number: int, blocks: Sequence[RowsBlock], client_dropped: int) -> bytes:
    """Return a binary message.

    Parameters
    ----------
    number : int
        Number of the message; its low 32 bits are sent.
    blocks : sequence of RowsBlock
        At least one.
    client_dropped : int
        Rows dropped for this client since it connected.
    """
    parts = [_MESSAGE.pack(VERSION, _KIND_ROWS, len(blocks), number & _U32)]
    for block in blocks:
        rows = block.rows
        head = (block.stream, block.generation & 0xFFFF, len(rows), block.bits, block.values)
        parts.append(_BLOCK.pack(*head, min(client_dropped, _U32)))
        parts.extend(_row_header(row) for row in rows)
        parts.extend(row.data for row in rows)
        parts.append(bytes(-sum(len(row.data) for row in rows) % 4))
    return b"".join(parts)


def _row_header(row: StreamRow) -> bytes:
    missed, merged = min(row.missed, _U32), min(row.merged, MERGED_MAX)
    return _ROW.pack(row.seq & _U32, missed, merged, row.flags, 0, row.t_ms, float(row.gap_samples))
