"""Where records lie in a segment: some of them, so that a reader need not walk from the first."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Annotated

import msgspec

from spectrod.formats.segment.frame import PAYLOADS_BYTES_MAX, Kind

ENTRIES_MAX = 2048
"""Records that an index has a place of."""
_LENGTH_BYTES = 8

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record of rows: number and time of its first row, its offset in the file [bytes]."""

    row: int
    t_utc_ns: int
    offset: _Count


class _Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands in the file."""

    rows: _Count
    engines: tuple[str, ...]
    entries: tuple[Entry, ...]
    left_out_samples: _Count | None = None


class SparseIndex:
    """Every n-th record of rows; n doubles when there would be too many, so it is bounded.

    Parameters
    ----------
    entries_max : int
        The bound, even.

    Attributes
    ----------
    rows : int
        In the segment.
    left_out_samples : int or None
        Samples of the recording that are in no row because they do not fill a frame, as of the end
        of the segment; None if nobody knows.
    """

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self.rows = 0
        self.left_out_samples: int | None = None
        self._entries: list[Entry] = []
        self._every = 1
        self._records = 0

    def add(self, entry: Entry, rows: int) -> None:
        """Count a record of so many rows."""
        if self._records % self._every == 0:
            if len(self._entries) == self._entries_max:
                del self._entries[1::2]
                self._every *= 2
            self._entries.append(entry)
        self._records += 1
        self.rows += rows

    def encode(self, engines: Iterable[str]) -> bytes:
        """Write it, and the engines by their numbers, as JSON and the length of all [bytes]."""
        stored = _Stored(self.rows, tuple(engines), tuple(self._entries), self.left_out_samples)
        text = msgspec.json.encode(stored)
        return text + (len(text) + _LENGTH_BYTES).to_bytes(_LENGTH_BYTES, "little")


class StoredIndex:
    """An index as it stands at the end of a finished segment.

    Parameters
    ----------
    payload : bytes
        Of the record, whose checksum is right.

    Attributes
    ----------
    rows : int
        In the segment.
    engines : tuple of str
        By their numbers.
    left_out_samples : int or None
        As ``SparseIndex`` has it.

    Raises
    ------
    ValueError
        If it is none.
    """

    def __init__(self, payload: bytes) -> None:
        try:
            stored = msgspec.json.decode(payload[:-_LENGTH_BYTES], type=_Stored)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error
        self.rows, self.engines = stored.rows, stored.engines
        self.left_out_samples = stored.left_out_samples
        self._entries = stored.entries

    def offset_of_row(self, row: int) -> int:
        """Find where to begin so that this row, if it is there, and all later ones are met."""
        return self._before(bisect_right(self._entries, row, key=lambda entry: entry.row))

    def offset_of_time(self, t_utc_ns: int) -> int:
        """Find where to begin so that the first row of this time or later is met."""
        # Not by bisection: a clock that was set back leaves times out of order.
        reached = (i for i, entry in enumerate(self._entries) if entry.t_utc_ns >= t_utc_ns)
        return self._before(next(reached, len(self._entries)))

    def _before(self, position: int) -> int:
        return self._entries[max(0, position - 1)].offset if self._entries else 0


def index_length(end: bytes) -> int:
    """Read the length of the last payload from the end of a file [bytes]; 0 if that is none."""
    n_bytes = int.from_bytes(end[-_LENGTH_BYTES:], "little")
    return n_bytes if _LENGTH_BYTES < n_bytes <= PAYLOADS_BYTES_MAX[Kind.CLOSE] else 0
