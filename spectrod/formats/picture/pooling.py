"""Rows of any number into a bounded number of columns: by mean, largest or smallest power."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import InternalError
from spectrod.types import Int64Array, SpectrumBatch
from spectrod.units import Float32Array, Float64Array

Pooling = Literal["mean", "max", "min"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

_JOINS: dict[Pooling, tuple[np.ufunc, float]] = {
    "mean": (np.add, 0.0),
    "max": (np.maximum, 0.0),
    "min": (np.minimum, np.inf),
}
"""How powers come together, and what an empty column holds."""

_FLOAT32_ROWS = 32
"""Most rows of a column whose sums are float32: so few roundings are 2e-6 at most."""

_SPANS_AT_ONCE = 256
"""So that what is summed for them stays in a processor's cache."""


class ColumnPool:
    """Power of rows in evenly spaced columns, in bounded memory for any length.

    A row's *slot* is its distance from the first row in steps of ``hop``, to the nearest. A column
    holds ``rows_per_column`` slots, one at first; when more than ``max_columns`` columns would be
    needed, that number doubles and neighbours merge. Every row counts once; in a mean by its frames
    (see ``SpectrumBatch.cut_frames``).

    Memory: ``max_columns * channels * bins`` float32, touched only as far as columns are in use;
    sums are float64 from 64 rows a column on: a picture of months adds millions of rows into a
    column, and rounding to 24 bits at each addition would show. Thread: one at a time.

    Parameters
    ----------
    hop : int or float
        Samples from one row to the next, >= 1.
    max_columns : int
        >= 2.
    pooling : {"mean", "max", "min"}
        What a column shows of its rows.
    """

    def __init__(self, hop: float, max_columns: int, pooling: Pooling = "mean") -> None:
        self.hop = hop
        self.max_columns = max_columns
        self.pooling: Pooling = pooling
        self.rows_per_column = 1
        self.n_frames = 0
        """Rows added."""
        self.first_sample = 0
        """Absolute index of the first row's first sample."""
        self.last_sample = 0
        """Absolute index of the last row's first sample."""
        self.end_sample = 0
        """Absolute index after the last row's last sample."""
        self._join, self._empty = _JOINS[pooling]
        self._table: NDArray[Any] = np.zeros((0, 0, 0))
        self._counts: Int64Array = np.zeros(max_columns, np.int64)

    @property
    def n_slots(self) -> int:
        """Slots from the first row to the last, those of gaps included."""
        return self._slot(self.last_sample) + 1 if self.n_frames else 0

    @property
    def n_columns(self) -> int:
        """Columns in use; the last may be partly filled."""
        return -(-self.n_slots // self.rows_per_column)

    def _slot(self, sample_index: int) -> int:
        return int((sample_index - self.first_sample + self.hop // 2) // self.hop)

    def add(self, batch: SpectrumBatch) -> None:
        """Add every row of a batch to the column of its position.

        Parameters
        ----------
        batch : SpectrumBatch
            Linear power, of the same channels and bins each time, rows in ascending order and none
            before the first batch's first.

        Raises
        ------
        InternalError
            If the rows are out of order.
        """
        if batch.n_frames == 0:
            return
        if self.n_frames == 0:
            self._begin(batch)
        if batch.sample_index[0] < self.last_sample:
            raise InternalError(
                f"frame at sample {batch.sample_index[0]} after one at {self.last_sample}"
            )
        spec, n_each = batch.spec, batch.cut_frames or batch.spec.averaging_frames
        self.last_sample = int(batch.sample_index[-1])
        self.end_sample = self.last_sample + (n_each - 1) * spec.hop + spec.win_length
        self._make_room()
        since = batch.sample_index - self.first_sample
        slots = np.asarray((since + self.hop // 2) // self.hop, np.int64)
        columns = slots // self.rows_per_column
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        joined = batch.values
        if len(starts) < batch.n_frames:
            joined = self._join.reduceat(joined, starts, axis=0, dtype=self._table.dtype)
        if self.pooling == "mean" and n_each > 1:
            joined = joined * self._table.dtype.type(n_each)
        # Neighbours, as without gaps, are joined in place.
        used: Int64Array | slice = columns[starts]
        if columns[-1] - columns[0] + 1 == len(starts):
            used = slice(int(columns[0]), int(columns[-1]) + 1)
        self._table[used] = self._join(self._table[used], joined)
        self._counts[used] += n_each * np.diff(starts, append=batch.n_frames)
        self.n_frames += batch.n_frames

    def _begin(self, batch: SpectrumBatch) -> None:
        self.first_sample = self.last_sample = int(batch.sample_index[0])
        self._table = np.zeros((self.max_columns, *batch.values.shape[1:]), np.float32)
        if self._empty:
            self._table[:] = self._empty

    def _make_room(self) -> None:
        """Halve the columns until the last row's fits."""
        last_slot = self._slot(self.last_sample)
        while last_slot // self.rows_per_column >= self.max_columns:
            if self.pooling == "mean" and self.rows_per_column == _FLOAT32_ROWS:
                self._table = self._table.astype(np.float64)
            _merge(self._table, self._join, self._empty)
            _merge(self._counts, np.add, 0)
            self.rows_per_column *= 2

    def power(
        self, channel: int, lo: Float64Array, hi: Float64Array, bins: slice = slice(None)
    ) -> Float32Array:
        """Power in each span of columns.

        Parameters
        ----------
        channel : int
            From 0.
        lo, hi : (spans,) float64
            Span limits in columns, 0 <= lo < hi <= n_columns. Where a limit cuts a column, its
            frames count in a mean by the part that is inside; a maximum or minimum is over all.
        bins : slice
            Which of them; by default all.

        Returns
        -------
        power : (spans, bins) float32
            NaN where a span holds no row.
        """
        table = self._table[:, channel, bins]
        power = np.empty((len(lo), table.shape[1]), np.float32)
        for begin in range(0, len(lo), _SPANS_AT_ONCE):
            part = slice(begin, begin + _SPANS_AT_ONCE)
            power[part] = self._power(table, lo[part], hi[part])
        return power

    def _power(self, table: NDArray[Any], lo: Float64Array, hi: Float64Array) -> NDArray[Any]:
        first = lo.astype(np.int64)
        n_steps = int(np.max(np.ceil(hi) - first))
        columns = [np.minimum(first + step, self.n_columns - 1) for step in range(n_steps)]
        shares = [
            np.maximum(np.minimum(hi, first + step + 1) - np.maximum(lo, first + step), 0.0)
            for step in range(n_steps)
        ]
        dtype = np.float64 if self.pooling == "mean" else np.float32
        total = np.full((len(lo), table.shape[1]), self._empty, dtype)
        weight = np.zeros(len(lo))
        for share, column in zip(shares, columns, strict=True):
            weight += share * self._counts[column]
            if self.pooling == "mean":
                total += share[:, np.newaxis] * table[column]
            else:
                touched = share > 0.0
                total[touched] = self._join(total[touched], table[column[touched]])
        is_empty = weight == 0.0
        if self.pooling == "mean":
            total /= np.where(is_empty, 1.0, weight)[:, np.newaxis]
        total[is_empty] = np.nan
        return total


def _merge(table: NDArray[Any], join: np.ufunc, empty: float) -> None:
    """Join each odd row to the even one before it, close up, and clear the rest."""
    n_pairs = len(table) // 2
    n_kept = len(table) - n_pairs
    pairs = table[0 : 2 * n_pairs : 2]
    join(pairs, table[1::2], out=pairs)
    table[:n_kept] = table[::2]
    table[n_kept:] = empty
