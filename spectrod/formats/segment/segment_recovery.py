"""Recovers an unfinished segment after a crash, a kill or a power failure."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from spectrod.formats.directory import Directory
from spectrod.formats.segment.appending import lock
from spectrod.formats.segment.frame import (
    HEAD_BYTES,
    MAGIC,
    PAYLOADS_BYTES_MAX,
    Head,
    Kind,
    frame,
)
from spectrod.formats.segment.header import HEADERS_BYTES_MIN, Header, row_bytes
from spectrod.formats.segment.index import IndexEntry, SparseIndex
from spectrod.formats.segment.segment import Segment
from spectrod.formats.segment.walk import Record, Walk
from spectrod.lib.errors import BusyError, InputError, StorageError, storage_errors
from spectrod.lib.output_formats import PART_SUFFIX

_log = logging.getLogger(__name__)

DAMAGED_SUFFIX = ".damaged"


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """Result of a recovery.

    Attributes
    ----------
    path : Path or None
        The file under its final name, or set aside as ``NAME.part.damaged`` if it has no intact
        header or no intact row. None if it never had rows and was removed.
    rows : int
        Number of intact rows.
    cut_bytes : int
        Bytes cut off the end, without any intact record.
    damaged_bytes : int
        Damaged bytes that stay before intact records; readers skip them.
    """

    path: Path | None
    rows: int
    cut_bytes: int
    damaged_bytes: int

    @property
    def summary(self) -> str:
        """Summary of the kept and cut parts, for messages."""
        damaged = f", {self.damaged_bytes} damaged" if self.damaged_bytes else ""
        return f"{self.rows} rows kept, {self.cut_bytes} bytes cut{damaged}"


def recover(path: str | os.PathLike[str], directory: Directory | None = None) -> RecoveredSegment:
    """Cut a torn tail off an ``.spd.part``, close it and give it its final name.

    Every record is checked, and no intact one is lost, wherever damage is. The result is logged.

    Parameters
    ----------
    path : path-like
        Path of the ``.spd.part``, which must not be a link.
    directory : Directory, optional
        Directory in which the last part of the path is looked up; by default opened from the path.

    Returns
    -------
    recovered : RecoveredSegment

    Raises
    ------
    BusyError
        If a program is writing to it.
    InputError
        If its name has another suffix.
    StorageError
        If it cannot be read or changed, or a file of the final name exists.
    """
    part = Path(path)
    if part.suffix != PART_SUFFIX:
        raise InputError(f"{part}: must end in {PART_SUFFIX}")
    with (
        storage_errors(part),
        directory.duplicate() if directory else Directory.open(part.parent) as folder,
    ):
        return _recover_in(folder, part)


def _recover_in(folder: Directory, part: Path) -> RecoveredSegment:
    final = part.with_suffix("")
    if folder.find(final.name) is not None:
        raise StorageError(f"{part}: {final.name} exists and is not replaced")
    descriptor = folder.open_file(part.name, os.O_RDWR)
    try:
        if not lock(descriptor):
            raise BusyError(f"{part}: another program is writing it")
        return _recover(folder, part, descriptor)
    finally:
        os.close(descriptor)


def _recover(folder: Directory, part: Path, descriptor: int) -> RecoveredSegment:
    size, final = os.fstat(descriptor).st_size, part.with_suffix("")
    try:
        found = _Found(part, descriptor, Segment(part, descriptor).header)
    except InputError:
        found = None
    if found is None or found.index.rows == 0:
        is_empty = _has_no_headers(descriptor, size) if found is None else size == found.end
        return _remove(folder, part, size) if is_empty else _set_aside(folder, part, size)
    closing = b"" if found.is_closed else found.closing_record()
    # All checks are done; the file is changed from here on.
    os.ftruncate(descriptor, found.end)
    _append(descriptor, closing, found.end)
    os.fdatasync(descriptor)
    folder.rename_noreplace(part.name, final.name)
    folder.synchronise()
    recovered = RecoveredSegment(final, found.index.rows, size - found.end, found.damaged_bytes)
    text = "%s: %d rows are whole; %d bytes of a torn end cut off, %d damaged ones left between"
    _log.info(text, final, recovered.rows, recovered.cut_bytes, recovered.damaged_bytes)
    return recovered


def _has_no_headers(descriptor: int, size: int) -> bool:
    """Return whether a file is a segment that ended before its headers were written."""
    if size > HEADERS_BYTES_MIN:
        return False
    content = os.pread(descriptor, size, 0)
    return content.startswith(MAGIC) or not content.strip(b"\0")


def _remove(folder: Directory, part: Path, size: int) -> RecoveredSegment:
    folder.remove(part.name)
    _log.warning("%s: had no rows in its %d bytes, and was removed", part, size)
    return RecoveredSegment(None, 0, size, 0)


def _set_aside(folder: Directory, part: Path, size: int) -> RecoveredSegment:
    aside = part.with_name(folder.publish(part.name, part.name + DAMAGED_SUFFIX))
    _log.warning("%s: nothing intact in its %d bytes; now %s", part, size, aside.name)
    return RecoveredSegment(aside, 0, 0, size)


class _Found:
    """The content of an unfinished segment."""

    def __init__(self, part: Path, descriptor: int, header: Header) -> None:
        self._part, self._row_bytes = part, row_bytes(header.description.spec)
        self.index = SparseIndex()
        self._conditions: Record | None = None
        self._engines: dict[int, str] = {}
        self.end, self.is_closed = 0, False
        self._head = Head(Kind.HEADER, header.place.recording, 0, header.place.first_row)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            walk = Walk(file, recording=header.place.recording, kept=(Kind.ENGINE,))
            for record in walk:
                self._head, self.end = record.head, record.end
                self._take(record)
        self.damaged_bytes = sum(one.n_bytes for one in walk.damage if not one.is_tail)

    def _take(self, record: Record) -> None:
        head = record.head
        self.is_closed = head.kind == Kind.CLOSE
        if head.kind == Kind.ENGINE:
            self._engines[head.engine] = record.payload.decode(errors="replace")
        elif head.kind == Kind.CONDITIONS:
            self._conditions = record
        elif head.kind == Kind.ROWS:
            n_bytes = record.n_bytes - HEAD_BYTES
            if not head.rows or n_bytes != head.rows * self._row_bytes:
                raise StorageError(
                    f"{self._part}: record at {record.offset}: {n_bytes} bytes: must be "
                    f"{head.rows} rows of {self._row_bytes}"
                )
            before = self._conditions
            first = before if before and before.head.seq + 1 == head.seq else record
            self.index.add(IndexEntry(head.row, head.t_utc_ns, first.offset), head.rows)

    def closing_record(self) -> bytes:
        """Return the final record of a finished segment; nothing if it would be too long."""
        last = self._head
        n_engines = max(self._engines, default=-1) + 1
        engines = [self._engines.get(number, "unknown") for number in range(n_engines)]
        head = Head(Kind.CLOSE, last.recording, last.seq + 1, last.next_row)
        payload = self.index.encode(engines)
        return frame(head, payload) if len(payload) <= PAYLOADS_BYTES_MAX[Kind.CLOSE] else b""


def _append(descriptor: int, record: bytes, offset: int) -> None:
    """Write the closing record, or nothing if there is no space: it is optional."""
    try:
        n_written = os.pwrite(descriptor, record, offset)
    except OSError as error:
        n_written = 0
        _log.warning("no index, which only makes searching slower: %s", error.strerror)
    if n_written < len(record):
        os.ftruncate(descriptor, offset)
