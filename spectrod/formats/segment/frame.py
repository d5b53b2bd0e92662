"""The frame of a record in a segment: 76 bytes that say what follows, and its checksums.

CRC-32 is zlib's: CRC-32C finds no more errors of the lengths at hand, and Python brings none.
"""

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final

MAGIC = b"SPD\x01"
"""Of every record, with the version of the layout. As a float32 it is 3.6e-38: rare as a value."""

_HEAD = struct.Struct("<4sIBBHIQQQqQQII")
_CRC = struct.Struct("<I")
HEAD_BYTES = _HEAD.size + _CRC.size
PAYLOAD_BYTES_MAX = 1 << 28
"""Of a record that a reader takes into memory; a row of 67 million values fits."""
ENGINES_MAX = 1 << 16
NUMBER_MAX = (1 << 63) - 1
"""Of records, rows and samples: sums of two such numbers still fit into the 64 bits of a head."""


class Kind(IntEnum):
    """What a record holds. A reader passes over kinds that it does not know."""

    HEADER = 1
    """What holds for all of the segment, JSON: the first record, and once more the second."""
    ROWS = 2
    """Rows: their sample indices and times, then their values."""
    ENGINE = 3
    """The name, UTF-8, of the engine that the records with this number are from."""
    CLOSE = 4
    """The end: where some of the records are."""


class Flag(IntFlag):
    """What is special about a record."""

    DISCONTINUITY = 1
    """The first row does not follow on the one before."""


PAYLOADS_BYTES_MAX: Final[dict[int, int]] = {
    Kind.HEADER: 1 << 24,
    Kind.ROWS: PAYLOAD_BYTES_MAX,
    Kind.ENGINE: 1 << 12,
    Kind.CLOSE: 1 << 24,
}
"""Of each kind; a longer one is damage. Of other kinds nothing is read."""


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the payload of a record.

    Attributes
    ----------
    kind : int
        See ``Kind``.
    recording : int
        The random number of the recording, below 2^64: blocks of another file that a file system
        leaves behind after a power failure are not taken for this one's.
    seq : int
        Number of the record in the segment, from 0.
    row : int
        Number of the first of the rows in the recording, from 0, or of the next.
    rows : int
        How many there are.
    t_utc_ns : int
        UTC of the first of the rows [ns since 1970]; 0 where there are none.
    gap_samples : int
        Samples missing directly before.
    skipped_rows : int
        Rows directly before that nobody wanted, so that they were not computed; not in ``row``.
    flags : int
        See ``Flag``.
    engine : int
        Number of what computed the rows.
    cut_frames : int
        Frames of the only row, an average that was cut off; 0 where rows are whole.
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
        """Number of the row that comes next."""
        return self.row + self.rows


@dataclass(frozen=True, slots=True)
class Framed:
    """A head as it was found, with the length and the CRC-32 of its payload [bytes]."""

    head: Head
    payload_bytes: int
    payload_crc: int

    @property
    def n_bytes(self) -> int:
        """Length of the record [bytes]."""
        return HEAD_BYTES + self.payload_bytes

    @property
    def is_too_long(self) -> bool:
        """Whether the payload is longer than any of its kind."""
        return self.payload_bytes > PAYLOADS_BYTES_MAX.get(self.head.kind, self.payload_bytes)

    def holds(self, payload: bytes | memoryview) -> bool:
        """Whether these bytes are the payload."""
        return len(payload) == self.payload_bytes and zlib.crc32(payload) == self.payload_crc


def frame(head: Head, payload: bytes) -> bytes:
    """Make the bytes of a record, of a payload of at most ``PAYLOAD_BYTES_MAX``."""
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

    None if there is no intact one, or one with numbers above ``NUMBER_MAX``, which nobody reaches
    by counting.
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
