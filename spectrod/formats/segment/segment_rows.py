"""Decodes the rows of a record."""

import math
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.conditions import Condition, UInt8Array
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Int64Array
from spectrod.formats.segment.frame import HEAD_BYTES, NUMBER_MAX, Flag, Head
from spectrod.formats.segment.header import (
    TIMES_BYTES,
    Header,
    row_bytes,
    row_samples,
    value_dtype,
)
from spectrod.formats.segment.walk import Record
from spectrod.lib.errors import StorageError


class RowDecoder:
    """Decodes the records of rows of one segment.

    Parameters
    ----------
    path : Path
        Path of the segment, for messages.
    header : Header
        Header of the segment.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path, self._spec = path, header.description.spec
        self._dtype, self._row_bytes = value_dtype(self._spec), row_bytes(self._spec)
        self._row_ns = math.ceil(row_samples(self._spec) * 1e9 / self._spec.fs)

    def decode(self, record: Record, engine: str) -> SpectrumBatch:
        """Decode a record with its payload, computed by the named engine.

        Raises
        ------
        StorageError
            If its length, indices or times are not those of rows.
        """
        payload, spec, n = record.payload, self._spec, record.head.rows
        self._check_length(record, len(payload))
        numbers = np.frombuffer(payload, self._dtype, offset=TIMES_BYTES * n)
        n_values = n * spec.n_signals * spec.n_values
        values = numbers[:n_values].reshape(n, spec.n_signals, spec.n_values)
        broadband = numbers[n_values:].reshape(n, -1)
        return self._batch(record, payload[: TIMES_BYTES * n], engine, values, broadband)

    def decode_times(self, record: Record, file: BinaryIO, engine: str) -> SpectrumBatch:
        """Decode indices and times of a record in a file; its values are zeros without memory.

        Raises as ``decode``; the checksum is not compared.
        """
        spec, n = self._spec, record.head.rows
        self._check_length(record, record.n_bytes - HEAD_BYTES)
        file.seek(record.offset + HEAD_BYTES)
        times = file.read(TIMES_BYTES * n)
        zero = np.zeros((), self._dtype)
        values = np.broadcast_to(zero, (n, spec.n_signals, spec.n_values))
        broadband = np.broadcast_to(zero, (n, spec.n_signals))
        return self._batch(record, times, engine, values, broadband)

    def _batch(
        self,
        record: Record,
        times: bytes,
        engine: str,
        values: NDArray[Any],
        broadband: NDArray[Any],
    ) -> SpectrumBatch:
        head = record.head
        sample_index, t_mono_ns, t_utc_ns = np.frombuffer(times, "<i8").reshape(3, head.rows)
        self._check_times(record, sample_index, t_utc_ns)
        return SpectrumBatch(
            values,
            sample_index,
            t_mono_ns,
            t_utc_ns,
            self._spec,
            engine,
            head.gap_samples,
            bool(head.flags & Flag.DISCONTINUITY),
            head.skipped_rows,
            head.cut_frames,
            broadband if self._spec.broadband else None,
        )

    def conditions(self, head: Head, before: Record | None) -> UInt8Array | None:
        """Return the conditions of the rows of a record, (rows, signals); None if not checked.

        Parameters
        ----------
        head : Head
            Head of the record.
        before : Record or None
            The last record of conditions.

        Raises
        ------
        StorageError
            If that one is of these rows, and of another length.
        """
        n_signals = self._spec.n_signals
        if before is None or before.head.seq + 1 != head.seq or before.head.row != head.row:
            good = np.full((head.rows, n_signals), Condition.CHECKED, np.uint8)
            return good if head.flags & Flag.CHECKED else None
        if len(before.payload) != head.rows * n_signals:
            raise StorageError(
                f"{self._path}: record at {before.offset}: {len(before.payload)} bytes: must be "
                f"{head.rows} rows of {n_signals}"
            )
        return np.frombuffer(before.payload, np.uint8).reshape(head.rows, n_signals)

    def _check_length(self, record: Record, payload_bytes: int) -> None:
        n = record.head.rows
        if not n or payload_bytes != n * self._row_bytes:
            raise StorageError(
                f"{self._path}: record at {record.offset}: {payload_bytes} bytes: must be {n} rows "
                f"of {self._row_bytes}"
            )

    def _check_times(self, record: Record, sample_index: Int64Array, t_utc_ns: Int64Array) -> None:
        """Raise StorageError if indices do not increase, or times do not fit 64 bits."""
        first, last = int(sample_index[0]), int(sample_index[-1])
        where = f"{self._path}: record at {record.offset}"
        if not 0 <= first <= last <= NUMBER_MAX // 2 or (np.diff(sample_index) <= 0).any():
            rule = f"must go up, from 0 to {NUMBER_MAX // 2}"
            raise StorageError(f"{where}: sample_index of {first} to {last}: {rule}")
        earliest, latest = int(t_utc_ns.min()), int(t_utc_ns.max())
        if earliest < -NUMBER_MAX or latest > NUMBER_MAX - self._row_ns:
            rule = f"must be at least {-NUMBER_MAX}, and end before {NUMBER_MAX}"
            raise StorageError(f"{where}: t_utc_ns of {earliest} to {latest}: {rule}")
