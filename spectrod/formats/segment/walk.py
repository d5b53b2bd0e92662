"""Iterates over the records of a segment, and skips damage."""

import errno
import os
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from spectrod.formats.segment.frame import (
    HEAD_BYTES,
    MAGIC,
    PAYLOADS_BYTES_MAX,
    Framed,
    Head,
    parse_head,
)

_SCAN_FIRST_BYTES, _SCAN_BYTES = 1 << 12, 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """An intact record.

    Attributes
    ----------
    offset : int
        Offset of its first byte in the file.
    head : Head
        Head of the record.
    payload : bytes
        Payload; empty if only heads are read, and for kinds that are not kept.
    n_bytes : int
        Length including the head [bytes].
    """

    offset: int
    head: Head
    payload: bytes
    n_bytes: int

    @property
    def end(self) -> int:
        """Offset of the byte after the record."""
        return self.offset + self.n_bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not an intact record.

    Attributes
    ----------
    offset, n_bytes : int
        Offset and number of the bytes.
    is_tail : bool
        Whether no intact record follows: the record was being written at a crash, or is being
        written now.
    """

    offset: int
    n_bytes: int
    is_tail: bool


class Walk:
    """Iterates over intact records from an offset on, in order; collects the damage between them.

    A record is valid if its checksums are correct, it is of the recording, and its number is above
    the one before. After a damaged head the next intact one is searched byte by byte; after a
    damaged payload the intact head gives the position of the next record. A payload longer than the
    limit of its kind is damage. Records of unknown kinds are skipped without reading their
    payloads.

    Time is proportional to the length of the file without its holes. Memory is that of one kept
    payload, at most ``PAYLOADS_BYTES_MAX``, and otherwise 1 MiB.

    Parameters
    ----------
    file : binary file
        Buffered file, which may be growing; its position is changed.
    offset : int
        Start of the search: at a record, or anywhere before it.
    recording : int, optional
        Number of the recording; by default that of the first record.
    heads_of : container of int
        Kinds of records whose payloads are skipped without a check.
    kept : container of int
        Kinds of records that get their payloads; payloads of others are only checked, in parts.
    stop : int, optional
        Offset that counts as the end of the file [bytes].

    Attributes
    ----------
    damage : list of Damage
        Damage so far; adjacent parts are merged, and beyond 1000 entries the last one grows.
    """

    _DAMAGE_MAX = 1000

    def __init__(
        self,
        file: BinaryIO,
        offset: int = 0,
        recording: int | None = None,
        *,
        heads_of: Container[int] = (),
        kept: Container[int] = PAYLOADS_BYTES_MAX,
        stop: int | None = None,
    ) -> None:
        self._file, self._offset = file, offset
        self._recording, self._kept = recording, kept
        self._heads_of, self._stop = heads_of, stop
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
            payload = self._payload(framed, offset + HEAD_BYTES, end)
            if payload is None:
                self._note(offset, end)
            else:
                yield Record(offset, framed.head, payload, framed.n_bytes)
        self._note(self._offset, self._size(), is_tail=True)

    def _find(self, offset: int) -> tuple[int, Framed] | None:
        """Return the next valid head from an offset on."""
        if framed := self._accepted(self._read(offset, offset + HEAD_BYTES)):
            return offset, framed
        n_bytes = min(_SCAN_FIRST_BYTES, _SCAN_BYTES)
        while (offset := self._next_data(offset)) < self._size():
            # Records often follow soon after damage: large reads pay only for distant ones.
            chunk = self._read(offset, offset + n_bytes)
            n_bytes = min(2 * n_bytes, _SCAN_BYTES)
            last = len(chunk) - HEAD_BYTES
            place = chunk.find(MAGIC)
            while 0 <= place <= last:
                if framed := self._accepted(chunk[place : place + HEAD_BYTES]):
                    return offset + place, framed
                place = chunk.find(MAGIC, place + 1)
            if last < 0:
                return None
            # The next chunk begins at the first offset whose head does not fit into this one.
            offset += last + 1
        return None

    def _next_data(self, offset: int) -> int:
        """Return the offset of the first byte from an offset on that is not in a hole."""
        descriptor = self._file.fileno()
        position = os.lseek(descriptor, 0, os.SEEK_CUR)  # the buffer depends on it
        try:
            return os.lseek(descriptor, offset, os.SEEK_DATA)
        except OSError as error:
            # ENXIO: only holes follow. Other errors: the system does not report holes.
            return self._size() if error.errno == errno.ENXIO else offset
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)

    def _payload(self, framed: Framed, begin: int, end: int) -> bytes | None:
        """Read the payload of a record as far as it is needed; None if it is damaged."""
        kind = framed.head.kind
        if kind not in PAYLOADS_BYTES_MAX:
            return b""
        if framed.is_too_long:
            return None
        if kind in self._heads_of:
            return b""
        if kind in self._kept:
            payload = self._read(begin, end)
            return payload if framed.holds(payload) else None
        crc = 0
        for start in range(begin, end, _SCAN_BYTES):
            crc = zlib.crc32(self._read(start, min(start + _SCAN_BYTES, end)), crc)
        return b"" if crc == framed.payload_crc else None

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
