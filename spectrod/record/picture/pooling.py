"""Frames of any number into a bounded number of columns, by mean power."""

import numpy as np

from spectrod.errors import InternalError
from spectrod.types import Int64Array, SpectrumBatch
from spectrod.units import Float32Array, Float64Array


class ColumnPool:
    """Mean power of frames in evenly spaced columns, in bounded memory for any length.

    A frame's *slot* is its distance from the first frame in hops, to the nearest. A column holds
    ``frames_per_column`` slots, one at first; when more than ``max_columns`` columns would be
    needed, that number doubles and neighbours merge. Every frame counts once, with its weight.

    Memory: ``max_columns * channels * bins`` float64, touched only as far as columns are in use.
    Float32 would not do: a picture of months adds millions of frames into a column, and rounding
    to 24 bits at each addition would show. Thread: one at a time.

    Parameters
    ----------
    hop : int
        Samples from one frame to the next, >= 1.
    max_columns : int
        >= 2.
    """

    def __init__(self, hop: int, max_columns: int) -> None:
        self.hop = hop
        self.max_columns = max_columns
        self.frames_per_column = 1
        self.n_frames = 0
        """Frames added."""
        self.first_sample = 0
        """Absolute index of the first frame's first sample."""
        self.last_sample = 0
        """Absolute index of the last frame's first sample."""
        self._sums: Float64Array = np.zeros((0, 0, 0))
        self._counts: Int64Array = np.zeros(max_columns, np.int64)

    @property
    def n_slots(self) -> int:
        """Slots from the first frame to the last, those of gaps included."""
        return self._slot(self.last_sample) + 1 if self.n_frames else 0

    @property
    def n_columns(self) -> int:
        """Columns in use; the last may be partly filled."""
        return -(-self.n_slots // self.frames_per_column)

    def _slot(self, sample_index: int) -> int:
        return (sample_index - self.first_sample + self.hop // 2) // self.hop

    def add(self, batch: SpectrumBatch) -> None:
        """Add every frame of a batch to the column of its position.

        Parameters
        ----------
        batch : SpectrumBatch
            Linear power, of the same channels and bins each time, frames in ascending order and
            none before the first batch's first.

        Raises
        ------
        InternalError
            If the frames are out of order.
        """
        if batch.n_frames == 0:
            return
        if self.n_frames == 0:
            self._begin(batch)
        if batch.sample_index[0] < self.last_sample:
            raise InternalError(
                f"frame at sample {batch.sample_index[0]} after one at {self.last_sample}"
            )
        self.last_sample = int(batch.sample_index[-1])
        self._make_room()
        slots = (batch.sample_index - self.first_sample + self.hop // 2) // self.hop
        columns = slots // self.frames_per_column
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        sums = np.add.reduceat(batch.values, starts, axis=0, dtype=np.float64)
        self._sums[columns[starts]] += sums
        self._counts[columns[starts]] += np.diff(starts, append=batch.n_frames)
        self.n_frames += batch.n_frames

    def _begin(self, batch: SpectrumBatch) -> None:
        self.first_sample = self.last_sample = int(batch.sample_index[0])
        self._sums = np.zeros((self.max_columns, *batch.values.shape[1:]))
        self.n_frames = 0

    def _make_room(self) -> None:
        """Halve the columns until the last frame's fits."""
        last_slot = self._slot(self.last_sample)
        while last_slot // self.frames_per_column >= self.max_columns:
            for table in (self._sums, self._counts):
                _merge_neighbours(table)
            self.frames_per_column *= 2

    def mean(
        self, channel: int, lo: Float64Array, hi: Float64Array, bins: slice = slice(None)
    ) -> Float32Array:
        """Mean power of the frames in each span of columns.

        Parameters
        ----------
        channel : int
            From 0.
        lo, hi : (spans,) float64
            Span limits in columns, 0 <= lo < hi <= n_columns. Where a limit cuts a column, its
            frames count by the part that is inside.
        bins : slice
            Which of them; by default all.

        Returns
        -------
        power : (spans, bins) float32
            Weighted by frames; NaN where a span holds none.
        """
        first = lo.astype(np.int64)
        sums = self._sums[:, channel, bins]
        total = np.zeros((len(lo), sums.shape[1]))
        weight = np.zeros(len(lo))
        for offset in range(int(np.max(np.ceil(hi) - first))):
            column = np.minimum(first + offset, self.n_columns - 1)
            inside = np.minimum(hi, first + offset + 1) - np.maximum(lo, first + offset)
            share = np.maximum(inside, 0.0)
            total += share[:, np.newaxis] * sums[column]
            weight += share * self._counts[column]
        empty = weight == 0.0
        total /= np.where(empty, 1.0, weight)[:, np.newaxis]
        total[empty] = np.nan
        return total.astype(np.float32)


def _merge_neighbours(table: Float64Array | Int64Array) -> None:
    """Add each odd row to the even one before it, close up, and clear the rest."""
    n_pairs = len(table) // 2
    n_kept = len(table) - n_pairs
    table[0 : 2 * n_pairs : 2] += table[1::2]
    table[:n_kept] = table[::2]
    table[n_kept:] = 0
