"""Reads rows of a time span from one segment, without reading the rest of the file.

Records have no fixed length, and a growing file has no index. Since times ascend within a file, a
bisection over byte offsets finds the first record: from any offset on, the next record is found by
its checksums. A whole hour of spectra (1.4 GB) takes about 20 reads of 64 KiB.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from spectrod.apps.web.history.budget import Budget, counted_file
from spectrod.formats.segment.frame import NUMBER_MAX, PAYLOADS_BYTES_MAX, Head, Kind
from spectrod.formats.segment.header import Header, decode_header
from spectrod.formats.segment.segment import StoredBatch
from spectrod.formats.segment.segment_rows import RowDecoder
from spectrod.formats.segment.walk import Record, Walk
from spectrod.lib.errors import InputError, StorageError

_LINEAR_BYTES: Final = 1 << 18
"""Distance below which reading on is faster than another bisection."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the start of a segment says.

    Attributes
    ----------
    header : Header
        Header of the segment.
    begin : int
        Offset of the first record after the header [bytes].
    first : Head or None
        Head of the first record of rows; None if there is none yet.
    """

    header: Header
    begin: int
    first: Head | None


@contextmanager
def opened(descriptor: int, budget: Budget) -> Iterator[BinaryIO]:
    """Read a file within a budget; closes the descriptor."""
    with counted_file(descriptor, budget) as file:
        yield file


def read_beginning(path: Path, file: BinaryIO) -> Beginning:
    """Read the header of a segment, and the head of its first rows.

    Raises
    ------
    InputError
        If it is not a segment, or both copies of its header are damaged.
    StorageError
        If its header is of another version.
    SpentError
        If that takes more than the file's budget.
    """
    for record in Walk(file, stop=PAYLOADS_BYTES_MAX[Kind.HEADER]):
        if record.head.kind == Kind.HEADER:
            try:
                header = decode_header(record.payload)
            except StorageError as error:
                raise StorageError(f"{path}: {error}") from error
            first = _first_rows(file, record.end, header)
            return Beginning(header, record.end, first.head if first else None)
    raise InputError(f"{path}: must be a segment of spectrod's, with an intact header")


def rows_between(
    path: Path, file: BinaryIO, start: Beginning, t0_utc_ns: int, t1_utc_ns: int
) -> Iterator[StoredBatch]:
    """Yield records with rows of a time span, and some rows around it.

    Parameters
    ----------
    path : Path
        Path of the segment, for messages.
    file : binary file
        The segment, see ``opened``; it may be growing.
    start : Beginning
        What ``read_beginning`` returned.
    t0_utc_ns, t1_utc_ns : int
        First samples of the wanted rows: from the first time on, before the second [ns].

    Raises
    ------
    StorageError
        If a record is not one of rows.
    SpentError
        If that takes more than the file's budget.
    """
    decoder = RowDecoder(path, start.header)
    recording = start.header.place.recording
    for record in Walk(file, _offset_before(file, start, t0_utc_ns), recording):
        if record.head.kind != Kind.ROWS:
            continue
        if record.head.t_utc_ns >= t1_utc_ns:
            return
        batch = decoder.decode(record, "")
        if batch.last_utc_ns >= t0_utc_ns:
            yield StoredBatch(record.head, batch)


def last_row_utc_ns(path: Path, file: BinaryIO, start: Beginning) -> int:
    """Return the UTC of the last row's first sample [ns]; of the first without more rows.

    Raises as ``rows_between``.
    """
    decoder = RowDecoder(path, start.header)
    recording = start.header.place.recording
    last = start.first.t_utc_ns if start.first else start.header.created_utc_ns
    offset = _offset_before(file, start, NUMBER_MAX)
    for record in Walk(file, offset, recording, heads_of=PAYLOADS_BYTES_MAX):
        offset = record.offset if record.head.kind == Kind.ROWS else offset
    for record in Walk(file, offset, recording):
        if record.head.kind == Kind.ROWS:
            last = decoder.decode(record, "").last_utc_ns
    return last


def _offset_before(file: BinaryIO, start: Beginning, t_utc_ns: int) -> int:
    """Return the offset of a record that begins at or before a time, not far before it."""
    low, high = start.begin, os.fstat(file.fileno()).st_size
    while high - low > _LINEAR_BYTES:
        middle = low + (high - low) // 2
        found = _first_rows(file, middle, start.header)
        if found is None or found.offset >= high or found.head.t_utc_ns > t_utc_ns:
            high = middle
        else:
            low = found.offset
    return low


def _first_rows(file: BinaryIO, offset: int, header: Header) -> Record | None:
    """Return the first record of rows from an offset on."""
    walk = Walk(file, offset, header.place.recording, heads_of=PAYLOADS_BYTES_MAX)
    return next((record for record in walk if record.head.kind == Kind.ROWS), None)
