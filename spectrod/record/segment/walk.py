"""Walks the records of a segment, past whatever is damaged."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from spectrod.record.segment.frame import HEAD_BYTES, MAGIC, Framed, Head, parse_head

_SCAN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """An intact record.

    Attributes
    ----------
    offset : int
        Of its first byte in the file.
    head : Head
        What it says of itself.
    payload : bytes
        What it holds; empty where only heads are walked.
    n_bytes : int
        Its length, the head's included [bytes].
    """

    offset: int
    head: Head
    payload: bytes
    n_bytes: int

    @property
    def end(self) -> int:
        """Offset of the byte behind it."""
        return self.offset + self.n_bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no intact record.

    Attributes
    ----------
    offset, n_bytes : int
        Where, and how many.
    is_tail : bool
        Whether nothing intact follows: a record that was being written when all ended, or is being
        written now.
    """

    offset: int
    n_bytes: int
    is_tail: bool


class Walk:
    """Intact records from an offset on, in order; what lies between them is remembered as damage.

    A record counts if its checksums are right, it is of the recording, and its number is above the
    one before. After a damaged head the next intact one is searched for byte by byte; of a damaged
    payload the intact head says where the next record begins.

    Parameters
    ----------
    file : binary file
        Buffered, may be growing; its position is changed.
    offset : int
        Where to begin: at a record, or anywhere before.
    recording : int, optional
        The recording's number; by default that of the first record.
    heads_only : bool
        Whether payloads are passed over, and not checked.
    stop : int, optional
        The file counts as ended there [bytes].

    Attributes
    ----------
    damage : list of Damage
        Of what was walked so far; neighbours are one, and beyond 1000 the last one grows.
    """

    _DAMAGE_MAX = 1000

    def __init__(
        self,
        file: BinaryIO,
        offset: int = 0,
        recording: int | None = None,
        *,
        heads_only: bool = False,
        stop: int | None = None,
    ) -> None:
        self._file, self._offset = file, offset
        self._recording = recording
        self._heads_only, self._stop = heads_only, stop
        self._seq = -1
        self.damage: list[Damage] = []

    def __iter__(self) -> Iterator[Record]:
        while found := self._find(self._offset):
            offset, framed = found
            self._note(self._offset, offset)
            end = offset + framed.n_bytes
            if end > self._size():
                self._offset = offset
                break
            self._offset = end
            self._recording, self._seq = framed.head.recording, framed.head.seq
            payload = b"" if self._heads_only else self._read(offset + HEAD_BYTES, end)
            if self._heads_only or framed.holds(payload):
                yield Record(offset, framed.head, payload, framed.n_bytes)
            else:
                self._note(offset, end)
        self._note(self._offset, self._size(), is_tail=True)

    def _find(self, offset: int) -> tuple[int, Framed] | None:
        """Find the next head that counts, from here on."""
        if framed := self._accepted(self._read(offset, offset + HEAD_BYTES)):
            return offset, framed
        while offset < self._size():
            chunk = self._read(offset, offset + _SCAN_BYTES)
            last = len(chunk) - HEAD_BYTES
            place = chunk.find(MAGIC)
            while 0 <= place <= last:
                if framed := self._accepted(chunk[place : place + HEAD_BYTES]):
                    return offset + place, framed
                place = chunk.find(MAGIC, place + 1)
            if last < 0:
                return None
            # The next chunk begins at the first place from which this one has no whole head.
            offset += last + 1
        return None

    def _accepted(self, head: bytes) -> Framed | None:
        framed = parse_head(head)
        if framed is None or framed.head.seq <= self._seq:
            return None
        if self._recording not in (None, framed.head.recording):
            return None
        return framed

    def _read(self, start: int, stop: int) -> bytes:
        self._file.seek(start)
        return self._file.read(stop - start)

    def _size(self) -> int:
        size = os.fstat(self._file.fileno()).st_size
        return size if self._stop is None else min(size, self._stop)

    def _note(self, start: int, stop: int, *, is_tail: bool = False) -> None:
        if start >= stop:
            return
        if self.damage and (
            self.damage[-1].offset + self.damage[-1].n_bytes == start
            or len(self.damage) >= self._DAMAGE_MAX
        ):
            start = self.damage.pop().offset
        self.damage.append(Damage(start, stop - start, is_tail))
