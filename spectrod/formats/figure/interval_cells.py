"""Values of many intervals in bounded memory: neighbours are joined, extremes stay."""

from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.measure.intervals import period_at
from spectrod.measure.levels.level_quantities import PERIODS

CELLS_MAX: Final = 4096
"""All extremes stay, and gaps that are longer than this part of the whole time."""

_DOT_SHARE = 1.0 / 400.0
"""Length of a cell that is hardly seen, as a share of the whole time [1]."""


class CellExtremes(NamedTuple):
    """Spans of time, ascending, and the extremes of the values in each.

    Attributes
    ----------
    begin_ns, end_ns : (cells,) int64
        Time of the first sample, and after the last one [ns].
    lowest, highest : (cells, values) float64
        Extremes; NaN where no interval of the cell has a finite value.
    """

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    lowest: Float64Array
    highest: Float64Array

    @property
    def gaps_ns(self) -> NDArray[np.int64]:
        """Time between successive cells, (cells - 1,) [ns]."""
        return self.begin_ns[1:] - self.end_ns[:-1]

    def joined(self, width_ns: float) -> "CellExtremes":
        """Return the cells with those joined that begin in the same part of this width."""
        part = (self.begin_ns - self.begin_ns[0]) // width_ns
        starts = np.flatnonzero(np.diff(part, prepend=-1.0))
        return CellExtremes(
            self.begin_ns[starts],
            self.end_ns[np.append(starts[1:], len(part)) - 1],
            np.fmin.reduceat(self.lowest, starts),
            np.fmax.reduceat(self.highest, starts),
        )


class IntervalCells:
    """Takes intervals one by one and keeps at most ``3 * CELLS_MAX`` cells and intervals.

    Parameters
    ----------
    n_values : int
        Values of an interval.
    gap_min_ns : float
        Time without samples from which on there is a gap between two intervals [ns].
    """

    def __init__(self, n_values: int, gap_min_ns: float) -> None:
        self._gap_min_ns = gap_min_ns
        self._end_ns, self._missing_ns = 0, 0
        times, values = np.empty(0, np.int64), np.empty((0, n_values))
        self._cells = CellExtremes(times, times, values, values)
        self._new: list[tuple[int, int, Float64Array]] = []

    def add(self, begin_ns: int, end_ns: int, values: Float64Array, missing_ns: int = 0) -> None:
        """Add an interval after the others.

        The one before lasts until this one begins if no more is missing between the two than within
        one of them, as in the pauses of a schedule.

        Parameters
        ----------
        begin_ns, end_ns : int
            Time of its first sample, and after its last one [ns].
        values : (values,) float64
        missing_ns : int
            Time without samples between these two [ns].
        """
        is_first = not self._new and not len(self._cells.end_ns)
        explained_ns = max(missing_ns, self._missing_ns) + self._gap_min_ns
        if not is_first and begin_ns - self._end_ns <= explained_ns:
            self._lengthen_last(begin_ns)
        self._end_ns, self._missing_ns = end_ns, missing_ns
        self._new.append((begin_ns, end_ns, values))
        if len(self._new) == CELLS_MAX:
            self.cells()

    def _lengthen_last(self, end_ns: int) -> None:
        if self._new:
            begin_ns, _, values = self._new[-1]
            self._new[-1] = begin_ns, end_ns, values
        else:
            self._cells.end_ns[-1] = end_ns

    def cells(self) -> CellExtremes:
        """Return all intervals, or what is kept of more than ``2 * CELLS_MAX``."""
        if self._new:
            begins_ns, ends_ns, rows = zip(*self._new, strict=True)
            self._new = []
            values = np.array(rows)
            values[~np.isfinite(values)] = np.nan
            new = (np.array(begins_ns), np.array(ends_ns), values, values)
            self._cells = CellExtremes(*map(np.concatenate, zip(self._cells, new, strict=True)))
        if len(self._cells.begin_ns) > 2 * CELLS_MAX:
            span_ns = self._cells.end_ns[-1] - self._cells.begin_ns[0]
            self._cells = self._cells.joined(span_ns / CELLS_MAX)
        return self._cells

    def line(self, value: int) -> tuple[Float64Array, Float64Array]:
        """Return the points of a line through one value, which breaks at gaps.

        Parameters
        ----------
        value : int
            Index of the value.

        Returns
        -------
        times_ns, values : (points,) float64
            Of each cell its begin with the lowest and its end with the highest value, which are the
            same for a single interval; NaN between two cells with a gap between them.
        """
        cells = self.cells()
        times = np.stack([cells.begin_ns, cells.end_ns], axis=1).astype(np.float64).ravel()
        values = np.stack([cells.lowest[:, value], cells.highest[:, value]], axis=1).ravel()
        breaks = 2 * (np.flatnonzero(cells.gaps_ns > self._gap_min_ns) + 1)
        return np.insert(times, breaks, np.nan), np.insert(values, breaks, np.nan)


def dots(times_ns: Float64Array, values: Float64Array) -> list[int]:
    """Return which points of a line need a dot: single cells between gaps that are hardly seen.

    Parameters
    ----------
    times_ns, values : (points,) float64
        See ``IntervalCells.line``.
    """
    is_outside = np.concatenate([[True], np.isnan(values), [True]])
    begins = np.flatnonzero(is_outside[:-1] & ~is_outside[1:])
    ends = np.flatnonzero(~is_outside[:-1] & is_outside[1:])
    single = begins[ends - begins == 2]
    span_ns = np.nanmax(times_ns) - np.nanmin(times_ns)
    lengths_ns = times_ns[single + 1] - times_ns[single]
    return list(map(int, single[lengths_ns < _DOT_SHARE * span_ns]))


def only_within(
    times_ns: Float64Array, values: Float64Array, part: str, zone: ZoneInfo
) -> tuple[Float64Array, Float64Array]:
    """Return the points of a line in one part of the local days alone.

    Parameters
    ----------
    times_ns, values : (points,) float64
        See ``IntervalCells.line``.
    part : {"day", "evening", "night"}
    zone : ZoneInfo

    Returns
    -------
    times_ns, values : (points,) float64
        NaN between two parts.
    """
    kept: list[tuple[float, float]] = []
    is_point = ~np.isnan(times_ns)
    points = np.stack([times_ns[is_point], values[is_point]], axis=1).reshape(-1, 4)
    for begin, lowest, end, highest in points.tolist():
        at = int(begin)
        while at < end:
            found, stop = period_at(at, zone)
            if PERIODS[found] == part:
                kept += [(at, lowest), (min(stop, end), highest), (np.nan, np.nan)]
            at = stop
    found_points = np.array(kept or [(np.nan, np.nan)], np.float64)
    return found_points[:, 0], found_points[:, 1]
