"""Index of some records in a segment, so that a reader need not start at the first one."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Annotated

import msgspec

from spectrod.formats.segment.frame import PAYLOADS_BYTES_MAX, Kind
from spectrod.lib.json_text import decode_json

ENTRIES_MAX = 2048
"""Largest number of records in an index."""
_LENGTH_BYTES = 8

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class IndexEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record of rows: number and time of its first row, and its offset in the file [bytes]."""

    row: int
    t_utc_ns: int
    offset: _Count


class _Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """The index as stored in the file."""

    rows: _Count
    engines: tuple[str, ...]
    entries: tuple[IndexEntry, ...]
    left_out_samples: _Count | None = None


class SparseIndex:
    """Every n-th record of rows; n doubles at the limit, so that the size is bounded.

    Parameters
    ----------
    entries_max : int
        Largest number of entries, even.

    Attributes
    ----------
    rows : int
        Number of rows in the segment.
    left_out_samples : int or None
        Samples of the recording that are in no row because they do not fill a frame, at the end of
        the segment; None if unknown.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self.rows = 0
        self.left_out_samples: int | None = None
        self._entries: list[IndexEntry] = []
        self._every = 1
        self._records = 0

    def add(self, entry: IndexEntry, rows: int) -> None:
        """Add a record with this number of rows."""
        if self._records % self._every == 0:
            if len(self._entries) == self._entries_max:
                del self._entries[1::2]
                self._every *= 2
            self._entries.append(entry)
        self._records += 1
        self.rows += rows

    def encode(self, engines: Iterable[str]) -> bytes:
        """Encode the index and the engines' names as JSON, followed by the total length [bytes]."""
        stored = _Stored(self.rows, tuple(engines), tuple(self._entries), self.left_out_samples)
        text = msgspec.json.encode(stored)
        return text + (len(text) + _LENGTH_BYTES).to_bytes(_LENGTH_BYTES, "little")


class StoredIndex:
    """The index at the end of a finished segment.

    Parameters
    ----------
    payload : bytes
        Payload of the record, with a correct checksum.

    Attributes
    ----------
    rows : int
        Number of rows in the segment.
    engines : tuple of str
        Names of the engines, by number.
    left_out_samples : int or None
        See ``SparseIndex``.

    Raises
    ------
    ValueError
        If it is not an index.
    """

    def __init__(self, payload: bytes) -> None:
        stored = decode_json(payload[:-_LENGTH_BYTES], _Stored)
        self.rows, self.engines = stored.rows, stored.engines
        self.left_out_samples = stored.left_out_samples
        self._entries = stored.entries

    def offset_of_row(self, row: int) -> int:
        """Return an offset at or before the record of this row, if it exists."""
        return self._before(bisect_right(self._entries, row, key=lambda entry: entry.row))

    def offset_of_time(self, t_utc_ns: int) -> int:
        """Return an offset at or before the first row of this time or later."""
        # No bisection: times are out of order if the clock was set back.
        reached = (i for i, entry in enumerate(self._entries) if entry.t_utc_ns >= t_utc_ns)
        return self._before(next(reached, len(self._entries)))

    def _before(self, position: int) -> int:
        return self._entries[max(0, position - 1)].offset if self._entries else 0


def index_length(end: bytes) -> int:
    """Read the length of the last payload from a file's end [bytes]; 0 if it is not valid."""
    n_bytes = int.from_bytes(end[-_LENGTH_BYTES:], "little")
    return n_bytes if _LENGTH_BYTES < n_bytes <= PAYLOADS_BYTES_MAX[Kind.CLOSE] else 0
