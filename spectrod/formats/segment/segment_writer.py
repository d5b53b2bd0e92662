"""Writes a segment: readable at every moment, synchronised at intervals."""

import logging
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.part import PartFile
from spectrod.formats.segment.appending import AppendFile
from spectrod.formats.segment.frame import (
    ENGINES_MAX,
    PAYLOAD_BYTES_MAX,
    PAYLOADS_BYTES_MAX,
    Flag,
    Head,
    Kind,
    frame,
)
from spectrod.formats.segment.header import (
    Header,
    Place,
    encode_header,
    padded,
    row_bytes,
    value_dtype,
)
from spectrod.formats.segment.index import IndexEntry, SparseIndex
from spectrod.lib.errors import ConfigError, InputError, storage_error, storage_errors

_log = logging.getLogger(__name__)

FSYNC_S = 5.0
"""Default interval of synchronisation, the time that a power failure may cost."""
_RECORD_BYTES = 1 << 20
"""Payload limit of the records of a large batch, unless one row is larger."""


def make_segment(path: Path, description: Description, options: ExportOptions) -> "SegmentWriter":
    """Start a segment; see ``SegmentWriter`` for errors."""
    return SegmentWriter(path, description, is_copy=options.is_copy)


class SegmentWriter:
    """A ``RowWriter`` that appends records to ``PATH.part``, which ``finish`` renames to PATH.

    See ``PartFile`` for an existing file of that name.

    Rows of a completed ``write`` are in the system's page cache: killing the process loses none.
    ``write`` also synchronises them to the disk, ``fsync_s`` after the last time; if batches may
    arrive less often, call ``flush``.

    If the disk is full or fails, the file is cut back to its last valid length: ``write`` raises
    and has written nothing of the batch. Call it again with the same batch, or with a later one
    whose ``gap_samples`` contains the missing samples. It writes every batch immediately. Not
    thread-safe.

    Parameters
    ----------
    path : path-like or PartFile
        The final path. A ``PartFile`` is closed with the writer, also if the constructor fails.
    description : Description
        Description of the rows.
    fsync_s : float
        Interval of synchronisation [s]; 0 for every batch.
    place : Place, optional
        Position of the segment in its recording, ``next_place`` of the previous one; by default it
        starts a new recording.
    is_copy : bool
        Whether the rows also exist elsewhere: ``abort`` then leaves no file.
    record_bytes : int
        Size limit of a record, unless a single row is larger [bytes].

    Raises
    ------
    BusyError
        If another program is writing to a file of this name.
    ConfigError
        If the description cannot be stored.
    StorageError
        If the file cannot be created, or an unfinished one of this name exists.
    """

    cut_length = 0

    def __init__(
        self,
        path: str | os.PathLike[str] | PartFile,
        description: Description,
        fsync_s: float = FSYNC_S,
        place: Place | None = None,
        *,
        is_copy: bool = False,
        record_bytes: int = _RECORD_BYTES,
    ) -> None:
        self._record_bytes = record_bytes
        self._part = PartFile.of(path)
        self.description = description
        self.place = place or Place(secrets.randbits(64))
        try:
            self._start(fsync_s, is_copy=is_copy)
        except BaseException:
            self._part.close()
            raise

    def _start(self, fsync_s: float, *, is_copy: bool) -> None:
        description = self.description
        self._dtype = np.dtype(value_dtype(description.spec))
        self._row_bytes = row_bytes(description.spec)
        if self._row_bytes > PAYLOAD_BYTES_MAX:
            rule = f"must be at most {PAYLOAD_BYTES_MAX}"
            raise ConfigError(f"{self.path}: a row has {self._row_bytes} bytes: {rule}")
        self._fsync_s, self._is_copy = fsync_s, is_copy
        self._engines: dict[str, int] = {}
        self._index = SparseIndex()
        self._seq, self._row = 0, self.place.first_row
        header = Header(
            description, self.place, time.time_ns(), time.monotonic_ns(), self.path.name
        )
        encoded = padded(encode_header(header))
        if len(encoded) > PAYLOADS_BYTES_MAX[Kind.HEADER]:
            rule = f"must be at most {PAYLOADS_BYTES_MAX[Kind.HEADER]}"
            raise ConfigError(
                f"{self.path}: settings and attributes of {len(encoded)} bytes: {rule}"
            )
        self._file = self._make_file(encoded)
        self._synced_s = time.monotonic()

    def _make_file(self, header: bytes) -> AppendFile:
        file = AppendFile(self._part)
        try:
            # Write it twice: a single damaged block must not make all rows unreadable.
            for _ in range(2):
                head = Head(Kind.HEADER, self.place.recording, self._seq, self._row)
                file.append(frame(head, header))
                self._seq += 1
            file.synchronise()
            self._part.synchronise()
        except OSError as error:
            file.remove()
            raise storage_error(self.path, error) from error
        return file

    @property
    def path(self) -> Path:
        """The final path; after ``finish`` the one that the file actually has."""
        return self._part.path

    @property
    def part(self) -> Path:
        """Path of the unfinished file."""
        return self._part.part

    @property
    def n_frames(self) -> int:
        """Rows in this segment."""
        return self._index.rows

    @property
    def left_out_samples(self) -> int | None:
        """Samples that are in no row because they do not fill a frame; None if unknown.

        It is stored in the closing record, so set it before ``finish``.
        """
        return self._index.left_out_samples

    @left_out_samples.setter
    def left_out_samples(self, n_samples: int) -> None:
        self._index.left_out_samples = n_samples

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self._file.size

    @property
    def next_place(self) -> Place:
        """Position of the next segment."""
        place = self.place
        return Place(place.recording, place.number + 1, self.path.name, self._row)

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed, so that a new one is needed."""
        return self._file.is_open and self._file.is_gone

    def fits(self, batch: SpectrumBatch) -> bool:
        """Return whether a batch is of the segment's analysis."""
        return batch.spec == self.description.spec

    def write(self, batch: SpectrumBatch) -> None:
        """Append a batch.

        Raises
        ------
        ConfigError
            If its spec differs from the description's, or the type of its values is wrong.
        StorageError
            If it cannot be written or synchronised; nothing of the batch is in the file then.
        """
        if not self.fits(batch):
            raise ConfigError(f"{self.path}: the analysis has changed; a segment holds one kind")
        if batch.values.dtype != self._dtype:
            is_, must_be = batch.values.dtype, self._dtype
            raise ConfigError(f"{self.path}: values of {is_}: must be {must_be} with this spec")
        if batch.n_frames == 0:
            return
        if len(self._engines) == ENGINES_MAX and batch.engine not in self._engines:
            raise ConfigError(f"{self.path}: more than {ENGINES_MAX} engines")
        before = self._file.size, self._seq, self._row, len(self._engines)
        try:
            entries = self._append_batch(batch)
            self._synchronise_if_due()
        except OSError as error:
            self._undo(*before)
            raise storage_error(self.path, error) from error
        for entry, n_rows in entries:
            self._index.add(entry, n_rows)

    def flush(self) -> None:
        """Synchronise all written rows, so that they survive a power failure.

        Raises
        ------
        StorageError
            If that fails; rows written since the last synchronisation may be lost.
        """
        with storage_errors(self.path):
            self._file.synchronise()
        self._synced_s = time.monotonic()

    def finish(self) -> None:
        """Close the file and give it its final name.

        Raises
        ------
        InputError
            If there were no rows; no file is left then.
        StorageError
            If that fails; written rows stay in ``PATH.part``, except those of a copy.
        """
        if self.n_frames == 0:
            self.abort()
            need = self.description.spec.win_length
            raise InputError(f"{self.path}: nothing to write: fewer than {need} samples in a row")
        try:
            self._append_index()
            self._file.synchronise()
            self._part.publish()
        except OSError as error:
            if self._is_copy:
                self._file.remove()
            raise storage_error(self.path, error) from error
        finally:
            self._close()

    def abort(self) -> None:
        """Close the file unfinished, as ``PATH.part``; remove it if it has no rows, or is a copy.

        Other rows are kept: the file can be read and recovered.
        """
        if not self._file.is_open:
            return
        if self.n_frames == 0 or self._is_copy:
            self._file.remove()
        self._close()

    def _close(self) -> None:
        self._file.close()
        self._part.close()

    # ---- records

    def _append_batch(self, batch: SpectrumBatch) -> list[tuple[IndexEntry, int]]:
        """Write a batch's records; return their index entries."""
        engine = self._engine_number(batch.engine)
        gap_samples, skipped_rows = batch.gap_samples, batch.skipped_rows
        flags = Flag.DISCONTINUITY if batch.discontinuity else Flag(0)
        entries = []
        for rows in self._cut(batch.n_frames):
            offset, n_rows = self._file.size, rows.stop - rows.start
            checked = self._append_conditions(batch, rows)
            head = Head(
                Kind.ROWS,
                self.place.recording,
                self._seq,
                self._row,
                n_rows,
                int(batch.t_utc_ns[rows.start]),
                gap_samples,
                skipped_rows,
                flags | checked,
                engine,
                batch.cut_frames,
            )
            entries.append((IndexEntry(head.row, head.t_utc_ns, offset), n_rows))
            self._append(head, self._payload(batch, rows))
            gap_samples, skipped_rows, flags = 0, 0, Flag(0)
        return entries

    def _append_conditions(self, batch: SpectrumBatch, rows: slice) -> Flag:
        """Write a record of the rows' conditions, if there are any to write; return the flag."""
        if batch.conditions is None:
            return Flag(0)
        conditions = np.ascontiguousarray(batch.conditions[rows], np.uint8)
        if (conditions == Condition.CHECKED).all():
            return Flag.CHECKED
        self._append(
            Head(Kind.CONDITIONS, self.place.recording, self._seq, self._row), conditions.tobytes()
        )
        return Flag(0)

    def _cut(self, n_rows: int) -> Iterator[slice]:
        step = max(1, self._record_bytes // self._row_bytes)
        for first in range(0, n_rows, step):
            yield slice(first, min(first + step, n_rows))

    def _payload(self, batch: SpectrumBatch, rows: slice) -> bytes:
        times = (batch.sample_index, batch.t_mono_ns, batch.t_utc_ns)
        columns = [np.ascontiguousarray(one[rows], "<i8") for one in times]
        values = np.ascontiguousarray(batch.values[rows], self._dtype)
        levels = () if batch.broadband is None else (batch.broadband[rows].astype("<f4"),)
        return b"".join(one.tobytes() for one in (*columns, values, *levels))

    def _engine_number(self, name: str) -> int:
        """Return the number of an engine; write a record of it before the first of its rows."""
        number = self._engines.get(name)
        if number is None:
            number = len(self._engines)
            head = Head(Kind.ENGINE, self.place.recording, self._seq, self._row, engine=number)
            encoded = name.encode(errors="replace")[: PAYLOADS_BYTES_MAX[Kind.ENGINE]]
            self._append(head, encoded)
            self._engines[name] = number
        return number

    def _append_index(self) -> None:
        head = Head(Kind.CLOSE, self.place.recording, self._seq, self._row)
        before, index = self._file.size, self._index.encode(self._engines)
        if len(index) > PAYLOADS_BYTES_MAX[Kind.CLOSE]:
            _log.warning("%s: is slower to search: its index is too long", self.path)
            return
        try:
            self._append(head, index)
        except OSError as error:
            _log.warning("%s: is slower to search: no index: %s", self.path, error.strerror)
            self._file.cut(before)

    def _append(self, head: Head, payload: bytes) -> None:
        self._file.append(frame(head, payload))
        self._seq += 1
        self._row = head.next_row

    # ---- the disk

    def _synchronise_if_due(self) -> None:
        now_s = time.monotonic()
        if now_s - self._synced_s >= self._fsync_s:
            self._file.synchronise()
            self._synced_s = now_s

    def _undo(self, size: int, seq: int, row: int, n_engines: int) -> None:
        self._seq, self._row = seq, row
        while len(self._engines) > n_engines:
            self._engines.popitem()
        try:
            self._file.cut(size)
        except OSError as error:
            # The next append repeats it, and overwrites the rest.
            _log.debug("%s: cannot be cut yet: %s", self.path, error)
