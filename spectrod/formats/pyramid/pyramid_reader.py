"""Reads any time span of a pyramid as columns of a picture, from the cells that it needs."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array, Float64Array, Int64Array, power_to_level
from spectrod.formats.directory import Directory
from spectrod.formats.pyramid.cell import MAX, MEAN, MIN, to_levels, to_power
from spectrod.formats.pyramid.ladder import name_of
from spectrod.formats.pyramid.metadata import load
from spectrod.formats.pyramid.pyramid_store import CellStore
from spectrod.lib.errors import ConfigError, InputError, storage_error

COLUMNS_MAX = 1 << 16
TIME_MAX_NS = 4 * 10**18
"""Limit of times, in the year 2096; twice the value must fit into an int64."""

_CELLS_AT_ONCE = 512


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A span of time, reduced to columns.

    Attributes
    ----------
    least, mean, greatest : (columns, signals, values) float32
        Levels and means of power [``unit``]; NaN where rows are missing.
    effort_s : (columns,) float64
        Duration of the rows in each column [s].
    t_utc_ns : (columns + 1,) int64
        Limits of the columns [ns since 1970].
    f : (values,) float64
        Mean frequency of each value's bins or bands [Hz].
    unit : str
        Unit of the levels.
    cell_ns : (columns,) int64
        Length of the cells used for each column [ns].
    """

    least: Float32Array
    mean: Float32Array
    greatest: Float32Array
    effort_s: Float64Array
    t_utc_ns: Int64Array
    f: Float64Array
    unit: str
    cell_ns: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Written cells of one level, in order.

    Attributes
    ----------
    begin_utc_ns : (cells,) int64
        Begin of each cell [ns since 1970].
    effort_s : (cells,) float64
        Duration of the rows in each cell [s].
    mean, greatest : (cells, signals, values) int16
        Levels in steps of 0.01 dB.
    """

    begin_utc_ns: Int64Array
    effort_s: Float64Array
    mean: NDArray[np.int16]
    greatest: NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """Columns to be filled, possibly a part of all; values are combined as ``firsts`` gives."""

    levels: Float32Array
    effort_s: Float64Array
    cell_ns: Int64Array
    firsts: Int64Array
    counts: Int64Array

    def part(self, begin: int, end: int) -> "_Looked":
        """Return a slice of the columns, in the same memory."""
        return _Looked(
            self.levels[:, begin:end],
            self.effort_s[begin:end],
            self.cell_ns[begin:end],
            self.firsts,
            self.counts,
        )

    def put(self, column: int, slots: NDArray[Any]) -> None:
        """Fill a column from at least one cell."""
        codes, efforts = slots["codes"], slots["effort_ns"].astype(np.float64)
        self.effort_s[column] = efforts.sum() / 1e9
        for which, take in ((MIN, np.minimum), (MAX, np.maximum)):
            pooled = take.reduceat(take.reduce(codes[:, which], axis=0), self.firsts, axis=-1)
            self.levels[which, column] = to_levels(pooled)
        mean = np.tensordot(efforts / efforts.sum(), to_power(codes[:, MEAN]), axes=1)
        mean = np.add.reduceat(mean, self.firsts, axis=-1) / self.counts
        self.levels[MEAN, column] = power_to_level(mean)


class PyramidReader:
    """Reads a pyramid, also one that is being written. Not thread-safe.

    Parameters
    ----------
    folder : path-like or Directory
        Folder of a ``PyramidWriter``. A ``Directory`` is closed with the reader, also if the
        constructor fails.

    Raises
    ------
    InputError
        If there is no pyramid.
    StorageError
        If the pyramid cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str] | Directory) -> None:
        directory = folder if isinstance(folder, Directory) else _opened(Path(folder))
        with contextlib.ExitStack() as on_error:
            on_error.callback(directory.close)
            about = load(directory)
            if about is None:
                raise InputError(f"{directory.path}: holds no pyramid")
            on_error.pop_all()
        self.about = about
        self._store = CellStore(directory, about, is_writer=False)

    @property
    def path(self) -> Path:
        """The folder."""
        return self._store.folder.path

    @property
    def level_names(self) -> tuple[str, ...]:
        """Name of each level, finest first."""
        return tuple(name_of(cell_ns) for cell_ns in self.about.cells_ns)

    def columns(self, t0_utc_ns: int, t1_utc_ns: int, width: int, values_max: int = 0) -> Columns:
        """Read a span of time.

        The reader uses the coarsest level whose cells are not longer than a column, or else the
        finest; before the oldest file of that level, the next coarser one. A cell belongs to the
        column that contains its centre; columns narrower than a cell show the cell at their own
        centre.

        Parameters
        ----------
        t0_utc_ns, t1_utc_ns : int
            Ends of the span [ns since 1970].
        width : int
            Number of columns, 1 to 65536.
        values_max : int
            Largest number of values, combined from neighbouring ones; 0 for all.

        Returns
        -------
        columns : Columns
            Reads and memory are those of at most seven cells per column, or of all days in it.

        Raises
        ------
        ConfigError
            If the span or a number is not valid.
        StorageError
            If a file cannot be read.
        """
        if t1_utc_ns <= t0_utc_ns:
            raise ConfigError(f"t1_utc_ns={t1_utc_ns}: must be after t0_utc_ns={t0_utc_ns}")
        for name, t_ns in (("t0_utc_ns", t0_utc_ns), ("t1_utc_ns", t1_utc_ns)):
            if abs(t_ns) > TIME_MAX_NS:
                raise ConfigError(f"{name}={t_ns}: must be -{TIME_MAX_NS} to {TIME_MAX_NS}")
        if not 1 <= width <= COLUMNS_MAX:
            raise ConfigError(f"width={width}: must be 1 to {COLUMNS_MAX} columns")
        if values_max < 0:
            raise ConfigError(f"values_max={values_max}: must be at least 1, or 0 for all")
        span_ns = t1_utc_ns - t0_utc_ns
        edges = np.array([t0_utc_ns + span_ns * n // width for n in range(width + 1)], np.int64)
        group = -(-self.about.n_values // values_max) if values_max else 1
        firsts = np.arange(0, self.about.n_values, group)
        counts = np.diff([*firsts, self.about.n_values])
        looked = _Looked(
            np.full((3, width, len(self.about.signals), len(firsts)), np.nan, np.float32),
            np.zeros(width),
            np.zeros(width, np.int64),
            firsts,
            counts,
        )
        self._look(self._level(span_ns, width), edges, looked)
        return Columns(
            looked.levels[MIN],
            looked.levels[MEAN],
            looked.levels[MAX],
            looked.effort_s,
            edges,
            np.add.reduceat(self.about.frequencies(), firsts) / counts,
            self.about.level_unit,
            looked.cell_ns,
        )

    def cells(self, level: int, t0_utc_ns: int, t1_utc_ns: int) -> Iterator[Cells]:
        """Yield the written cells of a level that begin in a span of time, at most 512 at once.

        Raises
        ------
        StorageError
            If a file cannot be read.
        """
        cell_ns = self.about.cells_ns[level]
        for first, slots in self._store.read(
            level, -(-t0_utc_ns // cell_ns), -(-t1_utc_ns // cell_ns)
        ):
            found = np.flatnonzero(slots["mark"])
            there = slots[found]
            yield Cells(
                (first + found) * cell_ns,
                there["effort_ns"] / 1e9,
                there["codes"][:, MEAN],
                there["codes"][:, MAX],
            )

    def span_utc_ns(self, level: int) -> tuple[int, int] | None:
        """Return the begin of a level's oldest file, and a time after all its cells [ns].

        None if the level has no files. Cells near both ends may be missing.
        """
        begin, end = self._store.oldest_utc_ns(level), self._store.end_utc_ns(level)
        return None if begin is None or end is None else (begin, end)

    def cells_span(self, level: int) -> tuple[int, int] | None:
        """Return the number of a level's first written cell, and that after its last space.

        Cells are numbered from 1970 on. None if the level has no cells.

        Raises
        ------
        StorageError
            If a file cannot be read.
        """
        first, end_ns = self._store.first(level), self._store.end_utc_ns(level)
        if first is None or end_ns is None:
            return None
        return first, end_ns // self.about.cells_ns[level]

    def slots(self, level: int, numbers: Int64Array) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield consecutive cells of a level as they are stored, at most 512 at once.

        Parameters
        ----------
        level : int
            Number of the level, finest first.
        numbers : (n,) int64
            Numbers of cells, each the next of that before it.

        Yields
        ------
        places : slice
            Which of ``numbers`` follow.
        slots : (n,) structured
            See ``slot_dtype``; "mark" is 0 for missing ones.

        Raises
        ------
        StorageError
            If a file cannot be read.
        """
        for begin in range(0, len(numbers), _CELLS_AT_ONCE):
            part = numbers[begin : begin + _CELLS_AT_ONCE]
            yield (
                slice(begin, begin + len(part)),
                self._slots(level, int(part[0]), int(part[-1]) + 1),
            )

    def close(self) -> None:
        """Close all files. Idempotent."""
        self._store.close()

    def _level(self, span_ns: int, width: int) -> int:
        fitting = [n for n, cell in enumerate(self.about.cells_ns) if cell * width <= span_ns]
        return fitting[-1] if fitting else 0

    def _look(self, level: int, edges: Int64Array, out: _Looked) -> None:
        """Fill columns from a level, and those older than its files from coarser levels."""
        oldest = self._store.oldest_utc_ns(level)
        n_old = len(edges) - 1
        if level == len(self.about.cells_ns) - 1:
            n_old = 0
        elif oldest is not None:
            n_old = min(int(np.searchsorted(edges[1:], oldest, side="right")), n_old)
        if n_old:
            self._look(level + 1, edges[: n_old + 1], out.part(0, n_old))
        if n_old < len(edges) - 1:
            self._look_at(level, edges[n_old:], out.part(n_old, len(edges) - 1))

    def _look_at(self, level: int, edges: Int64Array, out: _Looked) -> None:
        cell_ns = self.about.cells_ns[level]
        out.cell_ns[:] = cell_ns
        starts, stops = _cells_of(edges, cell_ns)
        for begin, end in _runs(starts, stops):
            slots = self._slots(level, int(starts[begin]), int(stops[end - 1]))
            for column in range(begin, end):
                part = slots[starts[column] - starts[begin] : stops[column] - starts[begin]]
                part = part[part["mark"] != 0]
                if len(part):
                    out.put(column, part)

    def _slots(self, level: int, start: int, stop: int) -> NDArray[Any]:
        slots = np.zeros(stop - start, self._store.dtype)
        for first, found in self._store.read(level, start, stop):
            slots[first - start : first - start + len(found)] = found
        return slots


def _opened(path: Path) -> Directory:
    """Open the folder."""
    try:
        return Directory.open(path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: holds no pyramid") from error
    except OSError as error:
        raise storage_error(path, error) from error


def _cells_of(edges: Int64Array, cell_ns: int) -> tuple[Int64Array, Int64Array]:
    """Return the first cell of each column, and the one after its last; at least one cell."""
    # A cell's centre is at or after an edge if its index is at least edge / cell_ns - 1/2.
    limits = -((cell_ns - 2 * edges) // (2 * cell_ns))
    starts, stops = limits[:-1].copy(), limits[1:].copy()
    is_narrow = stops == starts
    middles = edges[:-1] + (edges[1:] - edges[:-1]) // 2
    starts[is_narrow] = middles[is_narrow] // cell_ns
    stops[is_narrow] = starts[is_narrow] + 1
    return starts, stops


def _runs(starts: Int64Array, stops: Int64Array) -> list[tuple[int, int]]:
    """Split the columns into runs with a limited number of cells each."""
    runs, begin = [], 0
    for column in range(1, len(starts) + 1):
        if column == len(starts) or stops[column] - starts[begin] > _CELLS_AT_ONCE:
            runs.append((begin, column))
            begin = column
    return runs
