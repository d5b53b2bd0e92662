"""Conversion of records to batches: selected rows, and gaps between them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.description import concatenated
from spectrod.formats.segment.frame import NUMBER_MAX, Head
from spectrod.formats.segment.header import row_samples
from spectrod.formats.segment.segment import StoredBatch
from spectrod.lib.errors import StorageError

_JOINED_BYTES = 1 << 20
_YEAR_S = 365.25 * 86400.0


@dataclass(slots=True)
class Range:
    """Selects rows by UTC [ns] and by number: from the start on, before the stop.

    Attributes
    ----------
    is_over : bool
        Whether the last record began at or after the stop.
    """

    start_utc_ns: int | None
    stop_utc_ns: int | None
    start_row: int
    stop_row: int | None
    is_over: bool = False

    @property
    def has_start(self) -> bool:
        """Whether the range excludes the beginning of the recording."""
        return self.start_utc_ns is not None or self.start_row > 0

    def starts_before(self, first: Head | None) -> bool:
        """Return whether no row before this record is wanted."""
        if first is None:
            return False
        if self.start_utc_ns is not None and first.t_utc_ns <= self.start_utc_ns:
            return True
        return 0 < first.row <= self.start_row

    def cut(self, stored: StoredBatch) -> StoredBatch | None:
        """Return the wanted rows of a record; None if there are none."""
        head, batch = stored.head, stored.batch
        first, stop = max(0, self.start_row - head.row), head.rows
        if self.stop_row is not None:
            stop = min(stop, self.stop_row - head.row)
        if self.start_utc_ns is not None:
            first = max(first, batch.index_at(self.start_utc_ns))
        if self.stop_utc_ns is not None:
            stop = min(stop, batch.index_at(self.stop_utc_ns))
        self.is_over = stop <= 0
        if first >= stop:
            return None
        if (first, stop) == (0, head.rows):
            return stored
        kept = replace(head, row=head.row + first, rows=stop - first)
        return StoredBatch(kept, batch.between(first, stop))


class Continuity:
    """Adds to each record the gap before it that the record itself does not report.

    If row numbers are missing, the sample indices give the gap; between recordings, and where
    indices go back, UTC gives it.

    Parameters
    ----------
    spec : SpectrumSpec
        Spec of the rows.
    is_part : bool
        Whether the first record is not the first of the recording.
    """

    def __init__(self, spec: SpectrumSpec, *, is_part: bool) -> None:
        self._fs, self._hop, self._row_samples = spec.fs, spec.hop, row_samples(spec)
        # With a fractional step, or with rows aligned to the clock, distances of rows differ.
        self._slack = self._row_samples // 500 + 2 if spec.rate_hz else 0
        self._is_part = is_part
        self._recording: int | None = None
        self._next_row = self._next_index = self._shift = self._end_utc_ns = 0
        self._last_index = -1

    def join(self, stored: StoredBatch) -> SpectrumBatch:
        """Complete the batch of the next record.

        Raises
        ------
        StorageError
            If it ends 292 years or more, or 2^62 samples, after the first one.
        """
        head, batch = stored.head, stored.batch
        if self._recording is None:
            if self._is_part:
                batch = batch.as_first()
        elif head.recording != self._recording or batch.sample_index[0] <= self._last_index:
            batch = self._of_another(batch)
        elif head.row != self._next_row:
            batch = self._behind_a_hole(batch)
        self._recording, self._next_row = head.recording, head.next_row
        n_samples = batch.cut_frames * self._hop or self._row_samples
        self._last_index = int(batch.sample_index[-1])
        self._next_index = self._last_index + n_samples
        self._check_span()
        self._end_utc_ns = int(batch.t_utc_ns[-1]) + round(n_samples * NS_PER_S / self._fs)
        if self._shift:
            return replace(batch, sample_index=batch.sample_index + self._shift)
        return batch

    def _check_span(self) -> None:
        """Raise StorageError if sample indices, their times, or sums of them do not fit 64 bits."""
        end = self._next_index + self._shift
        if end > min(NUMBER_MAX // 2, NUMBER_MAX * self._fs / NS_PER_S):
            years = end / self._fs / _YEAR_S
            raise StorageError(
                f"ends {years:.3g} years after the first sample, at sample {end}: must be at most "
                f"292 years, and sample {NUMBER_MAX // 2}"
            )

    def _behind_a_hole(self, batch: SpectrumBatch) -> SpectrumBatch:
        left_out = int(batch.sample_index[0]) - self._next_index
        left_out -= batch.skipped_rows * self._row_samples
        return replace(batch, gap_samples=max(batch.gap_samples, left_out), discontinuity=True)

    def _of_another(self, batch: SpectrumBatch) -> SpectrumBatch:
        pause_ns = int(batch.t_utc_ns[0]) - self._end_utc_ns
        gap_samples = max(0, round(pause_ns * self._fs / NS_PER_S))
        index, row_ns = int(batch.sample_index[0]), self._row_samples * NS_PER_S / self._fs
        is_next = self._next_index > 0 and abs(index - self._next_index) <= self._slack
        if is_next and abs(pause_ns) < row_ns:
            return batch  # the next file of the same run, with continuous indices
        self._shift += self._next_index + gap_samples - index
        return replace(batch, gap_samples=gap_samples, skipped_rows=0, discontinuity=True)


def joined(batches: Iterator[SpectrumBatch]) -> Iterator[SpectrumBatch]:
    """Join consecutive batches, up to about 1 MiB."""
    held: list[SpectrumBatch] = []
    n_bytes = 0
    for batch in batches:
        n_bytes += batch.values.nbytes
        if held and (n_bytes > _JOINED_BYTES or not _follows(held[0], batch)):
            yield _concatenated(held)
            held, n_bytes = [], batch.values.nbytes
        held.append(batch)
    if held:
        yield _concatenated(held)


def _follows(first: SpectrumBatch, batch: SpectrumBatch) -> bool:
    if batch.discontinuity or batch.gap_samples or batch.skipped_rows:
        return False
    if (batch.conditions is None) != (first.conditions is None):
        return False
    return batch.engine == first.engine and not (first.cut_frames or batch.cut_frames)


def _concatenated(held: list[SpectrumBatch]) -> SpectrumBatch:
    if len(held) == 1:
        return held[0]
    return replace(
        held[0],
        values=np.concatenate([one.values for one in held]),
        sample_index=np.concatenate([one.sample_index for one in held]),
        t_mono_ns=np.concatenate([one.t_mono_ns for one in held]),
        t_utc_ns=np.concatenate([one.t_utc_ns for one in held]),
        broadband=concatenated([one.broadband for one in held]),
        conditions=concatenated([one.conditions for one in held]),
    )
