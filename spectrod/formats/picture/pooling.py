"""Pooling of rows into a bounded number of columns: mean, largest or smallest power."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import Float32Array, Float64Array, Int64Array
from spectrod.lib.errors import InternalError

Pooling = Literal["mean", "max", "min"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

_JOINS: dict[Pooling, tuple[np.ufunc, float]] = {
    "mean": (np.add, 0.0),
    "max": (np.maximum, 0.0),
    "min": (np.minimum, np.inf),
}
"""Function that combines powers, and value of an empty column."""

_FLOAT32_ROWS = 32
"""Largest number of rows per column with float32 sums, whose rounding error is below 2e-6."""

_SPANS_AT_ONCE = 256
"""Chosen so that the sums fit into a processor's cache."""


class ColumnPool:
    """Power of rows in evenly spaced columns, in bounded memory for any length.

    A row's *slot* is its distance from the first row in steps of ``hop``, rounded. A column holds
    ``rows_per_column`` slots, one at first; when more than ``max_columns`` columns would be needed,
    that number doubles and neighbours are merged. Every row counts once; in a mean it is weighted
    by its frames (see ``SpectrumBatch.cut_frames``).

    Memory: ``max_columns * channels * bins`` float32, touched only as far as columns are in use.
    From 64 rows per column on, sums are float64: a picture of months adds millions of rows to a
    column, and rounding to 24 bits at each addition would be visible. Thread: one at a time.

    Parameters
    ----------
    hop : int or float
        Samples from one row to the next, >= 1.
    max_columns : int
        Largest number of columns, >= 2.
    pooling : {"mean", "max", "min"}
        How a column combines the power of its rows.
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
        self._n_clear = 0
        """Columns of the table that have values, or were cleared; the others have anything."""

    @property
    def n_slots(self) -> int:
        """Slots from the first row to the last, including those of gaps."""
        return self._slot(self.last_sample) + 1 if self.n_frames else 0

    @property
    def n_columns(self) -> int:
        """Columns in use; the last may be incomplete."""
        return -(-self.n_slots // self.rows_per_column)

    def _slot(self, sample_index: int) -> int:
        return int((sample_index - self.first_sample + self.hop // 2) // self.hop)

    def add(self, batch: SpectrumBatch) -> None:
        """Add every row of a batch to the column at its position.

        Parameters
        ----------
        batch : SpectrumBatch
            Linear power, always of the same channels and bins, with rows in ascending order and
            none before the first row of the first batch.

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
        # Adjacent columns, as without gaps, are combined in place.
        used: Int64Array | slice = columns[starts]
        if columns[-1] - columns[0] + 1 == len(starts):
            used = slice(int(columns[0]), int(columns[-1]) + 1)
        self._combine(used, int(columns[0]), int(columns[-1]) + 1, joined)
        self._counts[used] += n_each * np.diff(starts, append=batch.n_frames)
        self.n_frames += batch.n_frames

    def _combine(
        self, used: Int64Array | slice, first: int, stop: int, joined: NDArray[Any]
    ) -> None:
        """Combine columns with those of the table, from the first up to the last; clear new ones.

        Columns are cleared when they come into use: a short recording does not fill the table.
        """
        if isinstance(used, slice) and first >= self._n_clear:
            self._table[self._n_clear : first] = self._empty
            self._table[used] = joined
        else:
            self._table[self._n_clear : stop] = self._empty
            self._table[used] = self._join(self._table[used], joined)
        self._n_clear = max(self._n_clear, stop)

    def _begin(self, batch: SpectrumBatch) -> None:
        self.first_sample = self.last_sample = int(batch.sample_index[0])
        self._table = np.empty((self.max_columns, *batch.values.shape[1:]), np.float32)

    def _make_room(self) -> None:
        """Halve the number of columns until the last row fits."""
        last_slot = self._slot(self.last_sample)
        while last_slot // self.rows_per_column >= self.max_columns:
            n_clear = self._n_clear
            if self.pooling == "mean" and self.rows_per_column == _FLOAT32_ROWS:
                sums = np.empty(self._table.shape)
                sums[:n_clear] = self._table[:n_clear]
                self._table = sums
            _merge(self._table[:n_clear], self._join)
            self._n_clear = n_clear - n_clear // 2
            _merge(self._counts, np.add)
            self._counts[len(self._counts) - len(self._counts) // 2 :] = 0
            self.rows_per_column *= 2

    def power(
        self, channel: int, lo: Float64Array, hi: Float64Array, bins: slice = slice(None)
    ) -> Float32Array:
        """Return the power in each span of columns.

        Parameters
        ----------
        channel : int
            Index from 0.
        lo, hi : (spans,) float64
            Limits of the spans in columns, 0 <= lo < hi <= n_columns. If a limit cuts a column, a
            mean weights its frames by the part inside; a maximum or minimum uses all of them.
        bins : slice
            Selected bins; by default all.

        Returns
        -------
        power : (spans, bins) float32
            NaN where a span has no row. It may be the pool's own memory: do not write to it.
        """
        table = self._table[:, channel, bins]
        if self._are_rows(lo, hi):
            return table[_in_a_row(lo.astype(np.int64))]
        power = np.empty((len(lo), table.shape[1]), np.float32)
        for begin in range(0, len(lo), _SPANS_AT_ONCE):
            part = slice(begin, begin + _SPANS_AT_ONCE)
            power[part] = self._power(table, lo[part], hi[part])
        return power

    def _are_rows(self, lo: Float64Array, hi: Float64Array) -> bool:
        """Return whether each span is a single row, as in short recordings."""
        columns = lo.astype(np.int64)
        are_columns = (lo == columns).all() and (hi == columns + 1).all()
        return bool(
            are_columns and self._table.dtype == np.float32 and (self._counts[columns] == 1).all()
        )

    def _power(self, table: NDArray[Any], lo: Float64Array, hi: Float64Array) -> NDArray[Any]:
        first = lo.astype(np.int64)
        if (hi - lo == 1.0).all() and (first == lo).all():
            return self._column_power(table, first)
        n_steps = int(np.max(np.ceil(hi) - first))
        columns = [np.minimum(first + step, self.n_columns - 1) for step in range(n_steps)]
        shares = [
            np.maximum(np.minimum(hi, first + step + 1) - np.maximum(lo, first + step), 0.0)
            for step in range(n_steps)
        ]
        weight = np.zeros(len(lo))
        for share, column in zip(shares, columns, strict=True):
            weight += share * self._counts[column]
        is_empty = weight == 0.0
        if self.pooling == "mean":
            total = _weighted_sum(table, columns, shares)
            if (weight != 1.0).any():
                total /= np.where(is_empty, 1.0, weight)[:, np.newaxis]
        else:
            total = np.full((len(lo), table.shape[1]), self._empty, np.float32)
            for share, column in zip(shares, columns, strict=True):
                touched = share > 0.0
                total[touched] = self._join(total[touched], table[column[touched]])
        if is_empty.any():
            total[is_empty] = np.nan
        return total

    def _column_power(self, table: NDArray[Any], column: Int64Array) -> NDArray[Any]:
        """Return the power in spans that are one column each, as in short recordings."""
        values, counts = table[_in_a_row(column)], self._counts[column]
        if (counts == 1).all():
            return values
        if self.pooling == "mean":
            values = values / np.where(counts == 0, 1, counts)[:, np.newaxis]
        return np.where(counts[:, np.newaxis] == 0, np.nan, values)


def _weighted_sum(
    table: NDArray[Any], columns: list[Int64Array], shares: list[Float64Array]
) -> Float64Array:
    """Return the sum of some columns for each span in float64, each times its share."""
    total = np.empty((len(columns[0]), table.shape[1]))
    term = np.empty_like(total)
    for step, (column, share) in enumerate(zip(columns, shares, strict=True)):
        values = table[_in_a_row(column)]
        np.multiply(values, share[:, np.newaxis], out=term if step else total)
        if step:
            total += term
    return total


def _in_a_row(column: Int64Array) -> Int64Array | slice:
    """Return successive indices as a slice, whose values are not copied."""
    first, stop = int(column[0]), int(column[-1]) + 1
    return slice(first, stop) if (np.diff(column) == 1).all() else column


def _merge(table: NDArray[Any], join: np.ufunc) -> None:
    """Merge each odd row into the even one before it, and close the gaps."""
    n_pairs = len(table) // 2
    n_kept = len(table) - n_pairs
    pairs = table[0 : 2 * n_pairs : 2]
    join(pairs, table[1::2], out=pairs)
    table[:n_kept] = table[::2]
