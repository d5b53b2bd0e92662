"""One segment's file: its header and its rows."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from spectrod.dsp.conditions import UInt8Array
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.segment.frame import HEAD_BYTES, PAYLOADS_BYTES_MAX, Head, Kind
from spectrod.formats.segment.header import Header, decode_header
from spectrod.formats.segment.index import StoredIndex, index_length
from spectrod.formats.segment.segment_rows import RowDecoder
from spectrod.formats.segment.walk import Damage, Record, Walk
from spectrod.lib.errors import InputError, StorageError, storage_errors
from spectrod.lib.output_formats import PART_SUFFIX
from spectrod.lib.regular_files import open_regular

_log = logging.getLogger(__name__)

_BUFFER_BYTES = 1 << 18
_TIMES_BUFFER_BYTES = 1 << 12
"""What is read at once where values are skipped."""
_HEADERS_BYTES_MAX = PAYLOADS_BYTES_MAX[Kind.HEADER]
"""Limit of the search for headers: a large file of another kind is not read to its end."""
_DAMAGE_LOGGED_MAX = 10
_UNKNOWN_ENGINE = "unknown"


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """Rows of a record, as they were written.

    Attributes
    ----------
    head : Head
        Head of the record.
    batch : SpectrumBatch
        The rows.
    """

    head: Head
    batch: SpectrumBatch


class Segment:
    """A readable segment; the file is open only during reads.

    Parameters
    ----------
    path : Path
        Path of an ``.spd``, or of an ``.spd.part``, which may be growing, or be finished meanwhile.
    descriptor : int, optional
        Descriptor of the file, which is read instead of opening the path, and stays open.

    Attributes
    ----------
    path : Path
        Path as given.
    header : Header
        Header of the segment.
    first : Head or None
        Head of the first intact record of rows; None if there is none yet.
    damage : list of Damage
        Damage that the last ``batches`` has skipped.

    Raises
    ------
    InputError
        If it is not a segment, or both copies of its header are damaged.
    StorageError
        If it cannot be read, or is of another version.
    """

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        self.path, self._descriptor = path, descriptor
        self.damage: list[Damage] = []
        with self._open() as file:
            self.header, self._begin = self._read_header(file)
            heads = self._heads(file, self._begin)
            self.first = next((one.head for one in heads if one.head.kind == Kind.ROWS), None)
        self._rows = RowDecoder(path, self.header)

    @contextlib.contextmanager
    def _open(self, buffer_bytes: int = _BUFFER_BYTES) -> Iterator[BinaryIO]:
        """Open the file; one that was finished meanwhile has lost its suffix."""
        path = self.path
        if self.is_part and self._descriptor is None and not path.exists():
            path = path.with_suffix("")
        with storage_errors(self.path):
            if self._descriptor is None:
                opened: BinaryIO = open_regular(path, buffer_bytes=buffer_bytes)
            else:
                opened = os.fdopen(os.dup(self._descriptor), "rb", buffer_bytes)
            with opened as file:
                yield file

    def _read_header(self, file: BinaryIO) -> tuple[Header, int]:
        for record in Walk(file, stop=_HEADERS_BYTES_MAX):
            if record.head.kind == Kind.HEADER:
                try:
                    return decode_header(record.payload), record.end
                except StorageError as error:
                    raise StorageError(f"{self.path}: {error}") from error
        raise InputError(f"{self.path}: must be a segment of spectrod's, with an intact header")

    @property
    def is_part(self) -> bool:
        """Whether the segment was unfinished when it was found."""
        return self.path.suffix == PART_SUFFIX

    @property
    def begin_utc_ns(self) -> int:
        """UTC of the first row, or of the segment's start if there are no rows yet [ns]."""
        return self.first.t_utc_ns if self.first else self.header.created_utc_ns

    def batches(self, start_utc_ns: int | None = None, start_row: int = 0) -> Iterator[StoredBatch]:
        """Yield records of rows in order, starting at or somewhat before the given start.

        Damage is skipped, stored in ``damage`` and logged.

        Parameters
        ----------
        start_utc_ns : int, optional
            The first row at this UTC [ns] or later is included.
        start_row : int
            This row of the recording is included, if it exists.

        Raises
        ------
        StorageError
            If the file cannot be read.
        """
        with self._open() as file:
            index = self._index(file)
            offset, engines = self._begin, {}
            if index:
                engines = dict(enumerate(index.engines))
                offset = max(offset, index.offset_of_row(start_row))
                if start_utc_ns is not None:
                    offset = max(offset, index.offset_of_time(start_utc_ns))
            walk = self._walk(file, offset)
            try:
                for record, engine, conditions in self._rows_of(walk, engines):
                    batch = self._rows.decode(record, engine)
                    yield StoredBatch(record.head, replace(batch, conditions=conditions))
            finally:
                self._report(walk.damage)

    def places(self, *, check: bool = False) -> Iterator[tuple[int, StoredBatch]]:
        """Yield the offset of each record of rows with its times.

        Values are zeros that take no memory; ``reading`` gives them by the offset.

        Parameters
        ----------
        check : bool
            Whether damaged records are left out, as ``batches`` does, and so all is read; otherwise
            ``reading`` finds the damage.

        Raises
        ------
        StorageError
            If the file cannot be read, or has times of rows that cannot be.
        """
        unread = () if check else (Kind.ROWS,)
        with self._open(_TIMES_BUFFER_BYTES) as file:
            index = self._index(file)
            engines = dict(enumerate(index.engines)) if index else {}
            place = self.header.place
            kept = Kind.ENGINE, Kind.CONDITIONS
            walk = Walk(file, self._begin, place.recording, heads_of=unread, kept=kept)
            for record, engine, conditions in self._rows_of(walk, engines):
                batch = self._rows.decode_times(record, file, engine)
                yield record.offset, StoredBatch(record.head, replace(batch, conditions=conditions))
        self._report(walk.damage)

    def _rows_of(
        self, walk: Walk, engines: dict[int, str]
    ) -> Iterator[tuple[Record, str, UInt8Array | None]]:
        """Yield each record of rows with its engine and its conditions; adds names to engines."""
        before = None
        for record in walk:
            head = record.head
            if head.kind == Kind.ENGINE:
                engines[head.engine] = record.payload.decode(errors="replace")
            elif head.kind == Kind.CONDITIONS:
                before = record
            elif head.kind == Kind.ROWS:
                engine = engines.get(head.engine, _UNKNOWN_ENGINE)
                yield record, engine, self._rows.conditions(head, before)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Callable[[int], SpectrumBatch]]:
        """Open the file; the function returns the rows of the record at an offset of ``places``.

        It raises StorageError if the record cannot be read, or is damaged.
        """
        with self._open() as file:
            yield lambda offset: self._at(file, offset)

    def _at(self, file: BinaryIO, offset: int) -> SpectrumBatch:
        record = next(iter(self._walk(file, offset)), None)
        if record is None or record.offset != offset or record.head.kind != Kind.ROWS:
            raise StorageError(f"{self.path}: record at {offset}: damaged")
        return self._rows.decode(record, _UNKNOWN_ENGINE)

    def last_utc_ns(self) -> int | None:
        """Return the UTC of the last row [ns]; None if there is none."""
        with self._open() as file:
            index = self._index(file)
            offset = index.offset_of_row((1 << 64) - 1) if index else 0
            last = None
            for record in self._heads(file, max(offset, self._begin)):
                if record.head.kind == Kind.ROWS:
                    last = record
            if last is None:
                return None
            for record in self._walk(file, last.offset):
                if record.head.kind == Kind.ROWS:
                    return int(self._rows.decode(record, "").t_utc_ns[-1])
        return last.head.t_utc_ns

    def left_out_samples(self) -> int | None:
        """Return the number of samples that are in no row; None if the segment does not say."""
        with self._open() as file:
            index = self._index(file)
        return index.left_out_samples if index else None

    def _walk(self, file: BinaryIO, offset: int) -> Walk:
        return Walk(file, offset, self.header.place.recording)

    def _heads(self, file: BinaryIO, offset: int) -> Walk:
        return Walk(file, offset, self.header.place.recording, heads_of=PAYLOADS_BYTES_MAX)

    def _index(self, file: BinaryIO) -> StoredIndex | None:
        """Read the index at the end, if it exists: a segment is complete without it."""
        size = file.seek(0, 2)
        file.seek(max(0, size - HEAD_BYTES))
        n_bytes = index_length(file.read(HEAD_BYTES))
        offset = size - n_bytes - HEAD_BYTES
        if not n_bytes or offset < self._begin:
            return None
        record = next(iter(self._walk(file, offset)), None)
        if record is None or record.head.kind != Kind.CLOSE or record.end != size:
            return None
        with contextlib.suppress(ValueError):
            return StoredIndex(record.payload)
        return None

    def _report(self, damage: list[Damage]) -> None:
        self.damage = damage
        for one in damage[:_DAMAGE_LOGGED_MAX]:
            if one.is_tail and self.is_part:
                _log.info("%s: ends within a record, as while it is written", self.path)
                continue
            text = "%s: %d bytes from %d on are damaged; intact records around them are read"
            _log.warning(text, self.path, one.n_bytes, one.offset)
        if len(damage) > _DAMAGE_LOGGED_MAX:
            _log.warning("%s: damaged at %d places", self.path, len(damage))
