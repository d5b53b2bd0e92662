"""Columns of a picture of the past, summed up from several sources without counting time twice.

Levels are int16 codes of 0.01 dB as in pyramids, code 0 is 0 dB; ``NOTHING`` marks missing values.
On the wire the same codes are u16, 32767 higher, which makes ``NOTHING`` 65535.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.web.history.axis import NOTHING, Int16Array
from spectrod.dsp.units import Float32Array, Float64Array, Int64Array
from spectrod.formats.pyramid.cell import STEP_DB, level_codes, to_codes
from spectrod.formats.pyramid.ladder import CELLS_NS

_CODE_MAX: Final = 32767
WIRE_OFFSET: Final = _CODE_MAX
"""What is added to a code for the wire."""

POWERS: Final[Float64Array] = np.power(10.0, np.arange(-32768, 32768) * STEP_DB / 10.0)
"""Power of each code, at index code + 32768."""

WHOLE: Final = 0.95
"""Share of its length from which on a cell has sound of all its time."""

UInt16Array = NDArray[np.uint16]


def to_wire(codes: Int16Array) -> UInt16Array:
    """Convert codes to those of the wire."""
    return codes.view(np.uint16) + np.uint16(WIRE_OFFSET)  # modulo 2^16


def from_wire(codes: UInt16Array) -> Int16Array:
    """Convert codes of the wire; 65535 becomes ``NOTHING``."""
    return (codes - np.uint16(WIRE_OFFSET)).view(np.int16)  # modulo 2^16


def codes_of(power: Float64Array) -> Int16Array:
    """Convert powers to codes; NaN becomes ``NOTHING``."""
    codes = to_codes(power)
    codes[np.isnan(power)] = NOTHING
    return codes


def powers_of(codes: Int16Array) -> Float64Array:
    """Convert codes to powers; ``NOTHING`` becomes NaN."""
    power = POWERS[codes.astype(np.int32) + 32768]
    power[codes == NOTHING] = np.nan
    return power


def codes_of_levels(levels: Float64Array) -> Int16Array:
    """Convert levels [dB] to codes; NaN becomes ``NOTHING``."""
    codes = level_codes(levels)
    codes[np.isnan(levels)] = NOTHING
    return codes


def less_codes(codes: Int16Array, less: Int16Array) -> Int16Array:
    """Return differences of levels as codes; ``NOTHING`` where either is missing."""
    found = (codes.astype(np.int32) - less).clip(-_CODE_MAX, _CODE_MAX).astype(np.int16)
    found[(codes == NOTHING) | (less == NOTHING)] = NOTHING
    return found


def rounded(codes: Int16Array, step: int) -> Int16Array:
    """Return codes rounded to multiples of a step, in steps of codes; ``NOTHING`` stays."""
    if step == 1:
        return codes
    # One array: codes and steps are below 2^16, so quotients in float32 round as exact ones do.
    nearest = np.divide(codes, step, dtype=np.float32)
    np.rint(nearest, out=nearest)
    nearest *= step
    found = nearest.clip(-_CODE_MAX, _CODE_MAX, out=nearest).astype(np.int16)
    found[codes == NOTHING] = NOTHING
    return found


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Columns of equal length, each of whole cells.

    Attributes
    ----------
    t0_ns : int
        Begin of the first column [ns since 1970].
    column_ns : int
        Length of a column [ns].
    width : int
        Number of columns.
    """

    t0_ns: int
    column_ns: int
    width: int

    @classmethod
    def covering(cls, t0_ns: int, t1_ns: int, width_max: int) -> "TimeGrid":
        """Return at most width_max columns that cover a span.

        Columns begin with cells of the longest length of a pyramid's levels that is not longer
        than a column, or of the shortest.
        """
        wanted_ns = (t1_ns - t0_ns) / width_max
        cell_ns = max((cell for cell in CELLS_NS if cell <= wanted_ns), default=CELLS_NS[0])
        begin_ns = t0_ns // cell_ns * cell_ns
        column_ns = cell_ns * -(-(t1_ns - begin_ns) // (cell_ns * width_max))
        return cls(begin_ns, column_ns, -(-(t1_ns - begin_ns) // column_ns))

    @property
    def t1_ns(self) -> int:
        """End of the last column [ns since 1970]."""
        return self.t0_ns + self.column_ns * self.width


@dataclass(frozen=True, slots=True, eq=False)
class SourceRows:
    """Rows or cells of one length, on the axis of the picture.

    Attributes
    ----------
    middle_ns : (rows,) int64
        Middle of each [ns since 1970].
    length_ns : int
        Time from one to the next [ns].
    effort_s : (rows,) float64
        Duration of the sound in each [s].
    greatest : (rows, values) int16
        Codes of the greatest levels.
    mean : (rows, values) float64 or None
        Mean powers; None if they are not wanted.
    """

    middle_ns: Int64Array
    length_ns: int
    effort_s: Float64Array
    greatest: Int16Array
    mean: Float64Array | None


class ColumnSums:
    """Sums of columns.

    Sources are added one after the other, the best first. A row of a later source counts in a
    column that was empty before this source, or if it is later than all sources before it. So a
    column in which one source ends and another goes on has both parts, and no time counts twice.

    Parameters
    ----------
    grid : TimeGrid
        The columns.
    n_values : int
        Number of values of each.
    with_mean : bool
        Whether means are wanted.

    Attributes
    ----------
    effort_s : (width,) float64
        Duration of the sound in each column [s].
    until_ns : int
        End of what the sources so far know [ns since 1970].
    n_used : int
        Rows that have counted so far, in each column that they cover.
    """

    def __init__(self, grid: TimeGrid, n_values: int, *, with_mean: bool) -> None:
        shape = (grid.width, n_values)
        self.grid = grid
        self.with_mean = with_mean
        self.effort_s = np.zeros(grid.width)
        self.until_ns = grid.t0_ns
        self.n_used = 0
        self._greatest = np.full(shape, NOTHING, np.int16)
        self._energy = np.zeros(shape if with_mean else (0, 0))
        self._weight = np.zeros(shape if with_mean else (0, 0))
        self._is_open = np.ones(grid.width, np.bool_)

    def begin_source(self, least_empty_ns: int = 0) -> None:
        """Begin the rows of the next source, which fills spans that are empty for so long [ns]."""
        self._is_open = self.effort_s == 0.0
        for begin, end in self._empty():
            if (end - begin) * self.grid.column_ns < least_empty_ns:
                self._is_open[begin:end] = False

    def end_source(self, until_ns: int) -> None:
        """End the rows of a source, which has told all that it knows until a time."""
        self.until_ns = max(self.until_ns, min(until_ns, self.grid.t1_ns))

    def open_spans(self, n_max: int) -> list[tuple[int, int]]:
        """Return the longest spans of time that are still empty, at most n_max [ns].

        The time after all sources so far is one of them, if there is any.
        """
        grid = self.grid
        edges = self._empty() * grid.column_ns + grid.t0_ns
        spans = [(int(begin), int(end)) for begin, end in edges]
        tail_ns = self.until_ns
        if spans and spans[-1][1] == grid.t1_ns:
            tail_ns = min(tail_ns, spans.pop()[0])
        spans.sort(key=lambda span: span[0] - span[1])
        tail = [(tail_ns, grid.t1_ns)] if tail_ns < grid.t1_ns else []
        return tail + spans[: n_max - 1]

    def _empty(self) -> Int64Array:
        """Return the first column and the one after the last of each empty span, (spans, 2)."""
        bounded = np.concatenate([[False], self.effort_s == 0.0, [False]]).astype(np.int8)
        return np.flatnonzero(np.diff(bounded)).reshape(-1, 2).astype(np.int64)

    def add(self, rows: SourceRows) -> None:
        """Add rows of the present source."""
        column, row = self._places(rows)
        self.n_used += column.size
        if not column.size:
            return
        order = np.argsort(column, kind="stable")
        column, row = column[order], row[order]
        firsts = np.flatnonzero(np.diff(column, prepend=-1))
        columns = column[firsts]
        # Rows that follow each other, as nearly all do, are not copied.
        is_run = int(row[-1]) - int(row[0]) + 1 == row.size and bool(np.all(row[1:] > row[:-1]))
        own = rows.greatest[int(row[0]) : int(row[-1]) + 1] if is_run else rows.greatest[row]
        greatest = np.maximum.reduceat(own, firsts, axis=0)
        self._greatest[columns] = np.maximum(self._greatest[columns], greatest)
        effort_s = np.minimum(rows.effort_s, self.grid.column_ns / 1e9)[row]
        self.effort_s[columns] += np.add.reduceat(effort_s, firsts)
        if self.with_mean and rows.mean is not None:
            self._add_mean(rows.mean[row], effort_s, firsts, columns)

    def _add_mean(
        self, mean: Float64Array, effort_s: Float64Array, firsts: Int64Array, columns: Int64Array
    ) -> None:
        weight = np.where(np.isnan(mean), 0.0, effort_s[:, np.newaxis])
        energy = np.nan_to_num(mean, copy=False, nan=0.0) * weight
        self._energy[columns] += np.add.reduceat(energy, firsts, axis=0)
        self._weight[columns] += np.add.reduceat(weight, firsts, axis=0)

    def begins(self, middle_ns: Int64Array, length_ns: int) -> Int64Array:
        """Return the first row of each run of rows that count alike in the same column.

        Parameters
        ----------
        middle_ns : (rows,) int64
            Middle of each row [ns since 1970], at least one, ascending.
        length_ns : int
            Time from one row to the next [ns].
        """
        if self.grid.column_ns < length_ns:
            return np.arange(len(middle_ns), dtype=np.int64)
        column = (middle_ns - self.grid.t0_ns) // self.grid.column_ns
        is_later = middle_ns >= self.until_ns
        is_first = (np.diff(column, prepend=column[0] - 1) != 0) | np.diff(is_later, prepend=False)
        return np.flatnonzero(is_first).astype(np.int64)

    def _places(self, rows: SourceRows) -> tuple[Int64Array, Int64Array]:
        """Return pairs of a column and a row in it."""
        grid = self.grid
        since_ns = rows.middle_ns - grid.t0_ns
        if grid.column_ns >= rows.length_ns:
            column, row = since_ns // grid.column_ns, np.arange(len(since_ns))
            later = rows.middle_ns >= self.until_ns
        else:  # a row covers each column whose middle is in it
            half = rows.length_ns // 2
            begin = -((grid.column_ns - 2 * (since_ns - half)) // (2 * grid.column_ns))
            end = -(
                (grid.column_ns - 2 * (since_ns + rows.length_ns - half)) // (2 * grid.column_ns)
            )
            begin, end = np.clip(begin, 0, grid.width), np.clip(end, 0, grid.width)
            end = np.where(self._is_told(rows, begin, end), begin, end)
            row = np.repeat(np.arange(len(since_ns)), end - begin)
            offset = np.arange(len(row)) - np.repeat(
                np.cumsum(end - begin) - (end - begin), end - begin
            )
            column = begin[row] + offset
            later = np.zeros(len(row), np.bool_)
        inside = (column >= 0) & (column < grid.width)
        inside[inside] &= self._is_open[column[inside]] | later[inside]
        return column[inside], row[inside]

    def _is_told(self, rows: SourceRows, begin: Int64Array, end: Int64Array) -> NDArray[np.bool_]:
        """Return which cells of a part of their time say nothing more than columns that are there.

        Else the begin of what is known would be smeared over a cell.
        """
        n_closed = np.concatenate([[0], np.cumsum(~self._is_open)])
        is_part = rows.effort_s * 1e9 < WHOLE * rows.length_ns
        found: NDArray[np.bool_] = is_part & (n_closed[end] > n_closed[begin])
        return found

    def greatest(self) -> Int16Array:
        """Return the codes of the greatest levels, (width, values)."""
        return self._greatest

    def mean(self) -> Int16Array:
        """Return the codes of the mean powers, (width, values)."""
        return codes_of(self.mean_power())

    def mean_power(self) -> Float64Array:
        """Return the mean powers, (width, values); NaN where there are none."""
        out = np.full_like(self._energy, np.nan)
        return np.divide(self._energy, self._weight, out=out, where=self._weight > 0.0)

    def efforts(self) -> Float32Array:
        """Return the duration of the sound in each column [s], (width,)."""
        return self.effort_s.astype(np.float32)
