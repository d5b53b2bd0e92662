"""The frame of a record in a segment: a head of 76 bytes with checksums.

CRC-32 is that of zlib: for these lengths CRC-32C detects no more errors, and Python lacks it.
"""

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

MAGIC = b"SPD\x01"
"""Start of every record, with the layout's version. As a float32 it is 3.6e-38, a rare value."""

_HEAD = struct.Struct("<4sIBBHIQQQqQQII")
_CRC = struct.Struct("<I")
HEAD_BYTES = _HEAD.size + _CRC.size
PAYLOAD_BYTES_MAX = 1 << 28
"""Limit of a record that a reader loads into memory; a row of 67 million values fits."""
ENGINES_MAX = 1 << 16
NUMBER_MAX = (1 << 63) - 1
"""Limit of numbers of records, rows and samples: sums of two still fit 64 bits."""


class Kind(IntEnum):
    """Content of a record. A reader skips unknown kinds."""

    HEADER = 1
    """Metadata of the whole segment, JSON: the first record, repeated as the second."""
    ROWS = 2
    """Rows: their sample indices and times, then their values."""
    ENGINE = 3
    """The name, UTF-8, of the engine that other records refer to by this number."""
    CLOSE = 4
    """The end: an index of some of the records."""
    CONDITIONS = 5
    """A byte of conditions for each row and signal of the next record; see ``Condition``."""


class Flag(IntFlag):
    """Properties of a record."""

    DISCONTINUITY = 1
    """The first row does not follow the one before."""
    CHECKED = 2
    """The samples of all rows were checked, and have no conditions."""


PAYLOADS_BYTES_MAX: Final[dict[int, int]] = {
    Kind.HEADER: 1 << 24,
    Kind.ROWS: PAYLOAD_BYTES_MAX,
    Kind.ENGINE: 1 << 12,
    Kind.CLOSE: 1 << 24,
    Kind.CONDITIONS: PAYLOAD_BYTES_MAX,
}
"""Limits for each kind; a longer payload is damage. Payloads of other kinds are not read."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head before the payload of a record.

    Attributes
    ----------
    kind : int
        See ``Kind``.
    recording : int
        Random number of the recording, below 2^64. It distinguishes records from blocks of other
        files, which a file system may leave in a file after a power failure.
    seq : int
        Number of the record in the segment, from 0.
    row : int
        Number of the record's first row in the recording, from 0, or of the next row.
    rows : int
        Number of rows in the record.
    t_utc_ns : int
        UTC of the first row [ns since 1970]; 0 without rows.
    gap_samples : int
        Samples missing directly before the record.
    skipped_rows : int
        Rows directly before that were not requested and so not computed; not counted in ``row``.
    flags : int
        See ``Flag``.
    engine : int
        Number of the engine that computed the rows.
    cut_frames : int
        Frames of a single row whose average was cut off; 0 for complete rows.
    """

    kind: int
    recording: int
    seq: int
    row: int
    rows: int = 0
    t_utc_ns: int = 0
    gap_samples: int = 0
    skipped_rows: int = 0
    flags: int = 0
    engine: int = 0
    cut_frames: int = 0

    @property
    def next_row(self) -> int:
        """Number of the next row."""
        return self.row + self.rows


@dataclass(frozen=True, slots=True)
class Framed:
    """A parsed head, with the length [bytes] and the CRC-32 of its payload."""

    head: Head
    payload_bytes: int
    payload_crc: int

    @property
    def n_bytes(self) -> int:
        """Length of the record [bytes]."""
        return HEAD_BYTES + self.payload_bytes

    @property
    def is_too_long(self) -> bool:
        """Whether the payload exceeds the limit of its kind."""
        return self.payload_bytes > PAYLOADS_BYTES_MAX.get(self.head.kind, self.payload_bytes)

    def holds(self, payload: bytes | memoryview) -> bool:
        """Return whether these bytes are the payload."""
        return len(payload) == self.payload_bytes and zlib.crc32(payload) == self.payload_crc


def frame(head: Head, payload: bytes) -> bytes:
    """Encode a record with a payload of at most ``PAYLOAD_BYTES_MAX``."""
    packed = _HEAD.pack(
        MAGIC,
        len(payload),
        head.kind,
        head.flags,
        head.engine,
        head.rows,
        head.recording,
        head.seq,
        head.row,
        head.t_utc_ns,
        head.gap_samples,
        head.skipped_rows,
        head.cut_frames,
        zlib.crc32(payload),
    )
    return b"".join((packed, _CRC.pack(zlib.crc32(packed)), payload))


def parse_head(data: bytes) -> Framed | None:
    """Read the head at the beginning of some bytes.

    Returns None if there is no intact head, or if a number exceeds ``NUMBER_MAX``, which cannot be
    reached by counting.
    """
    if len(data) < HEAD_BYTES or not data.startswith(MAGIC):
        return None
    if _CRC.unpack_from(data, _HEAD.size)[0] != zlib.crc32(data[: _HEAD.size]):
        return None
    _, n_bytes, kind, flags, engine, rows, recording, seq, row, *about, crc = _HEAD.unpack_from(
        data
    )
    t_utc_ns, gap, skipped, cut = about
    if max(seq, row, gap, skipped) > NUMBER_MAX:
        return None
    head = Head(kind, recording, seq, row, rows, t_utc_ns, gap, skipped, flags, engine, cut)
    return Framed(head, n_bytes, crc)
