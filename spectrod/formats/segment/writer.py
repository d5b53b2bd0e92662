"""Writes a segment: whole and readable at every moment, synchronised now and then."""

import logging
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from spectrod.errors import ConfigError, InputError, storage_error
from spectrod.formats.description import Description
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
from spectrod.formats.segment.index import Entry, SparseIndex
from spectrod.types import SpectrumBatch

_log = logging.getLogger(__name__)

FSYNC_S = 5.0
"""By default: what a power failure may cost."""
_RECORD_BYTES = 1 << 20
"""Payload of the records that a large batch is cut into, where a row is not larger."""


class SegmentWriter:
    """A ``RowWriter`` that appends records to ``PATH.part``, which ``finish`` renames to PATH.

    See ``PartFile`` for what happens to a file that has this name already.

    What ``submit`` has taken has been handed to the system: killing the process loses none of it.
    ``submit`` also makes it survive a power failure, ``fsync_s`` after the last time; where batches
    may stay away for longer, ``flush`` does.

    Where the disk is full or fails, the file is cut back to what was whole: ``submit`` raises and
    has taken nothing of the batch, and may be called again with it, or with a later one whose
    ``gap_samples`` says what is missing. Takes every batch at once, and holds nothing back. Not
    thread-safe.

    Parameters
    ----------
    path : path-like or PartFile
        The final name. A ``PartFile`` is closed with the writer, also where making that fails.
    description : Description
        Of the rows.
    fsync_s : float
        How often the file is synchronised [s]; 0 for with each batch.
    place : Place, optional
        Where in its recording the segment stands, ``next_place`` of the one before; by default it
        is the first of a new one.
    is_copy : bool
        Whether the rows are elsewhere too: ``abort`` then leaves nothing.
    record_bytes : int
        Most that a record has, unless one row has more [bytes].

    Raises
    ------
    BusyError
        If another program is writing a file of this name.
    ConfigError
        If the description cannot be stored.
    StorageError
        If the file cannot be made, or one that was not finished has this name.
    """

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
            # Twice: one damaged block would else take the meaning of all rows with it.
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
        """The final name; where that was taken, the one that ``finish`` has found."""
        return self._part.path

    @property
    def part(self) -> Path:
        """Where the file is until it is finished."""
        return self._part.part

    @property
    def n_frames(self) -> int:
        """Rows in this segment."""
        return self._index.rows

    @property
    def left_out_samples(self) -> int | None:
        """Samples that are in no row because they do not fill a frame; None if nobody knows.

        Goes into the closing record, so it must be set before ``finish``.
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
        """Where the segment stands that follows on this one."""
        place = self.place
        return Place(place.recording, place.number + 1, self.path.name, self._row)

    @property
    def is_gone(self) -> bool:
        """Whether somebody has removed the file: only a new one helps, ``submit`` never will."""
        return self._file.is_open and self._file.is_gone

    def submit(self, batch: SpectrumBatch) -> None:
        """Append a batch.

        Raises
        ------
        ConfigError
            If it is of another spec than the description's, or of another type.
        StorageError
            If it cannot be written or synchronised; nothing of it was taken then.
        """
        if batch.spec != self.description.spec:
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
            self._go_back(*before)
            raise storage_error(self.path, error) from error
        for entry, n_rows in entries:
            self._index.add(entry, n_rows)

    def flush(self) -> None:
        """Make all that was submitted survive a power failure.

        Raises
        ------
        StorageError
            If that fails; nothing is known then of what was submitted since the last time.
        """
        try:
            self._file.synchronise()
        except OSError as error:
            raise storage_error(self.path, error) from error
        self._synced_s = time.monotonic()

    def finish(self) -> None:
        """Close the file and give it its name.

        Raises
        ------
        InputError
            If there was not a single row; no file is left then.
        StorageError
            If that fails; what was submitted stays in ``PATH.part``, but for a copy.
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
        """Leave the file as it is, under ``PATH.part``; remove it if it has no rows, or is a copy.

        Else rows that were taken are not thrown away: the file can be read and made whole.
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

    def _append_batch(self, batch: SpectrumBatch) -> list[tuple[Entry, int]]:
        """Write a batch's records; return what the index is to know of them."""
        engine = self._engine_number(batch.engine)
        gap_samples, skipped_rows = batch.gap_samples, batch.skipped_rows
        flags = Flag.DISCONTINUITY if batch.discontinuity else Flag(0)
        entries = []
        for rows in self._cut(batch.n_frames):
            head = Head(
                Kind.ROWS,
                self.place.recording,
                self._seq,
                self._row,
                rows.stop - rows.start,
                int(batch.t_utc_ns[rows.start]),
                gap_samples,
                skipped_rows,
                flags,
                engine,
                batch.cut_frames,
            )
            entries.append((Entry(head.row, head.t_utc_ns, self._file.size), head.rows))
            self._append(head, self._payload(batch, rows))
            gap_samples, skipped_rows, flags = 0, 0, Flag(0)
        return entries

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
        """Give an engine a number; the file says so before the first of its rows."""
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

    def _go_back(self, size: int, seq: int, row: int, n_engines: int) -> None:
        self._seq, self._row = seq, row
        while len(self._engines) > n_engines:
            self._engines.popitem()
        try:
            self._file.cut(size)
        except OSError as error:
            # The next append tries again, and writes over what is there.
            _log.debug("%s: cannot be cut yet: %s", self.path, error)
