"""A level of a pyramid as rows with names, units and times, for datasets and Zarr stores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import NS_PER_S, Float32Array, Int64Array
from spectrod.dsp.value_names import values_name
from spectrod.formats.description import Description
from spectrod.formats.export.attributes import DESCRIPTION, global_attributes, iso_time
from spectrod.formats.export.layout import EPOCH, Variable, frequency_edges, variables
from spectrod.formats.pyramid.cell import MAX, MEAN, MIN, STEP_DB
from spectrod.formats.pyramid.ladder import name_of
from spectrod.formats.pyramid.metadata import NAME, PyramidMetadata
from spectrod.formats.pyramid.pyramid_reader import TIME_MAX_NS, PyramidReader
from spectrod.lib.errors import ConfigError, InputError, StorageError

PYRAMID = "pyramid"
"""Name of a recording's folder with its pyramid."""

CELLS_MAX = 1 << 26
"""Most cells of a level as rows: the axis of their times takes 8 bytes each."""

_CODES = np.arange(-(1 << 15), 1 << 15)
_STATISTICS = ((MEAN, "", "mean"), (MIN, "_least", "minimum"), (MAX, "_greatest", "maximum"))
"""Which of a cell's spectra has which suffix, and which method of CF."""
_EFFORT = {"long_name": "duration of the rows in a cell; 0 where there are none", "units": "s"}


def is_pyramid(path: Path) -> bool:
    """Return whether a path is the folder of a pyramid."""
    return (path / NAME).is_file()


def find_pyramid(path: Path) -> Path | None:
    """Return the folder of a pyramid: a path itself, or what it holds; None if there is none."""
    return next((folder for folder in (path, path / PYRAMID) if is_pyramid(folder)), None)


@dataclass(frozen=True, slots=True, eq=False)
class CellColumn:
    """A variable with a value, or spectra, for each cell.

    Attributes
    ----------
    variable : Variable
        Name, axes and attributes; it has no data.
    row : tuple of int
        Its shape without that of the cells.
    of_slots : callable
        Returns the values of (n,) slots, shape (n, *row): NaN, or an effort of 0, of missing ones.
    """

    variable: Variable
    row: tuple[int, ...]
    of_slots: Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class PyramidLevel:
    """The cells of a level as rows, with those in between that are missing.

    Attributes
    ----------
    about : PyramidMetadata
        Metadata of the pyramid.
    number : int
        Number of the level, 0 is the finest.
    first, stop : int
        Number of the first cell since 1970, and that after the last.
    """

    about: PyramidMetadata
    number: int
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first

    @property
    def cell_ns(self) -> int:
        """Length of a cell [ns]."""
        return self.about.cells_ns[self.number]

    @property
    def begin_ns(self) -> int:
        """Begin of the first cell [ns since 1970]."""
        return self.first * self.cell_ns

    @property
    def end_ns(self) -> int:
        """End of the last cell [ns since 1970]."""
        return self.stop * self.cell_ns

    @property
    def name(self) -> str:
        """Name of the level, such as ``1min``."""
        return name_of(self.cell_ns)

    @property
    def time(self) -> Variable:
        """The axis of times, without data: see ``begins``."""
        attributes = {
            "standard_name": "time",
            "long_name": f"UTC of the begin of a cell of {self.name}",
            "units": f"nanoseconds {EPOCH}",
            "calendar": "standard",
            "axis": "T",
            "bounds": "time_bnds",
        }
        return Variable("time", ("time",), "<i8", attributes)

    @property
    def time_bounds(self) -> Variable:
        """Begin and end of each cell, without data: see ``bounds``."""
        return Variable("time_bnds", ("time", "bnds"), "<i8")

    def between(self, start_utc_ns: int | None, stop_utc_ns: int | None) -> "PyramidLevel":
        """Return the cells that overlap a span of time, possibly none; None: no limit [ns]."""
        first, stop = self.first, self.stop
        if start_utc_ns is not None:
            first = max(first, start_utc_ns // self.cell_ns)
        if stop_utc_ns is not None:
            stop = min(stop, -(-stop_utc_ns // self.cell_ns))
        return replace(self, first=first, stop=max(first, stop))

    def begins(self, first: int, stop: int) -> Int64Array:
        """Return the begins of the rows from one to before another, shape (n,) [ns since 1970]."""
        return np.arange(self.first + first, self.first + stop, dtype=np.int64) * self.cell_ns

    def bounds(self, rows: Int64Array) -> Int64Array:
        """Return begin and end of cells by their row numbers, shape (n, 2) [ns since 1970]."""
        begins = (self.first + rows) * self.cell_ns
        return np.stack([begins, begins + self.cell_ns], axis=1)

    def axes(self) -> list[Variable]:
        """Return the variables without cells, with their data: channels and frequencies."""
        rows = {one.name: one for one in variables(describe(self.about))}
        starts = self.about.group_starts()
        edges = frequency_edges(self.about.spectrum_spec())
        last = np.append(starts[1:], len(edges)) - 1
        bounds = np.stack([edges[starts, 0], edges[last, 1]], axis=1)
        frequency = rows["frequency"].attributes
        return [
            rows["channel_name"],
            Variable("frequency", ("frequency",), "<f8", frequency, self.about.frequencies()),
            Variable("frequency_bnds", ("frequency", "bnds"), "<f8", {}, bounds),
        ]

    def columns(self) -> list[CellColumn]:
        """Return the effort of cells, and their mean, least and greatest."""
        effort = CellColumn(Variable("effort", ("time",), "<f8", _EFFORT), (), _effort_s)
        return [effort, *_statistics(self.about)]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the level."""
        return {
            **common_attributes(self.about),
            "time_coverage_start": iso_time(self.begin_ns),
            "time_coverage_end": iso_time(self.end_ns),
            "time_coverage_resolution": f"PT{self.cell_ns / NS_PER_S:.9f}S",
            "bins_of_a_value": self.about.group,
        }


def level_of(reader: PyramidReader, number: int) -> PyramidLevel | None:
    """Return a level from its first cell to its last; None if it has no cells.

    Raises
    ------
    StorageError
        If a file cannot be read, or its name is of a time that is out of range.
    """
    span, about = reader.cells_span(number), reader.about
    if span is None:
        return None
    for cell in span:
        if abs(cell * about.cells_ns[number]) > TIME_MAX_NS:
            name = name_of(about.cells_ns[number])
            raise StorageError(f"{reader.path / name}: must have cells of 1843 to 2096 only")
    return PyramidLevel(about, number, *span)


def levels_of(reader: PyramidReader, cells: str | None = None) -> list[PyramidLevel]:
    """Return the levels that have cells, finest first.

    Parameters
    ----------
    reader : PyramidReader
    cells : str, optional
        Name of the finest of them, such as ``1min``; by default that of the pyramid.

    Raises
    ------
    ConfigError
        If the pyramid has no level of this name.
    InputError
        If it has no cells.
    StorageError
        See ``level_of``.
    """
    names = reader.level_names
    if cells is not None and cells not in names:
        raise ConfigError(f"cells={cells!r}: must be one of {', '.join(names)}")
    finest = 0 if cells is None else names.index(cells)
    found = [level_of(reader, number) for number in range(finest, len(names))]
    levels = [level for level in found if level is not None]
    if not levels:
        which = f" of {cells} or longer" if cells else ""
        raise InputError(f"{reader.path}: has no cells{which}")
    return levels


def span_utc_ns(levels: Sequence[PyramidLevel]) -> tuple[int, int]:
    """Return the begin of the first cell and the end of the last, as exact as finer cells say.

    Parameters
    ----------
    levels : sequence of PyramidLevel
        At least one, finest first. Finer ones may begin later, as old cells are deleted.

    Returns
    -------
    begin_utc_ns, end_utc_ns : int
        The second is later.
    """
    begin_ns, end_ns = levels[-1].begin_ns, levels[-1].end_ns
    for coarser, level in pairwise(reversed(levels)):
        if level.begin_ns < begin_ns + coarser.cell_ns:
            begin_ns = level.begin_ns
        if level.end_ns > end_ns - coarser.cell_ns:
            end_ns = level.end_ns
    # Levels that have lost files may have no time in common.
    return begin_ns, max(end_ns, begin_ns + levels[0].cell_ns)


def describe(about: PyramidMetadata) -> Description:
    """Return the description of the rows of a pyramid."""
    return Description(
        about.spectrum_spec(),
        about.source,
        about.signals,
        about.software,
        about.cal_id,
        about.settings,
        about.attributes,
    )


def common_attributes(about: PyramidMetadata) -> dict[str, Any]:
    """Return the attributes of all levels."""
    found = global_attributes(describe(about), {})
    for name in (DESCRIPTION, "history", "date_created"):  # of files, and of rows
        if name not in about.attributes:
            del found[name]
    return found


def _statistics(about: PyramidMetadata) -> list[CellColumn]:
    spec = about.spectrum_spec()
    values = _value_attributes(about)
    found = []
    for which, suffix, method in _STATISTICS:
        attributes = values | {
            "long_name": f"{values['long_name']}, {method} of a cell",
            "cell_methods": f"time: {method} (of power)",
        }
        dims = ("time", "channel", "frequency")
        variable = Variable(values_name(spec) + suffix, dims, "<f4", attributes)
        of_slots = partial(_decoded, spec.scaling == "dbfs", which)
        found.append(CellColumn(variable, (len(about.signals), about.n_values), of_slots))
    return found


def _value_attributes(about: PyramidMetadata) -> dict[str, Any]:
    """Return the attributes of the values, those of rows but for what is of rows alone."""
    attributes = variables(describe(about))[-1].attributes
    own = {"statistic", "cell_methods", "ancillary_variables"}
    found = {name: one for name, one in attributes.items() if name not in own}
    return found | {"coordinates": "channel_name"}


def _effort_s(slots: NDArray[Any]) -> NDArray[Any]:
    return np.where(slots["mark"] != 0, slots["effort_ns"] / NS_PER_S, 0.0)


def _decoded(is_level: bool, which: int, slots: NDArray[Any]) -> NDArray[Any]:  # noqa: FBT001
    # Widened first: int16 would overflow.
    values = _values_of_codes(is_level=is_level)[
        slots["codes"][:, which].astype(np.int32) + (1 << 15)
    ]
    values[slots["mark"] == 0] = np.nan
    return np.asarray(values)


@cache
def _values_of_codes(*, is_level: bool) -> Float32Array:
    """Return the value of each code from -2^15 on: power, or level where rows have levels."""
    level = _CODES * STEP_DB
    return (level if is_level else 10.0 ** (level / 10.0)).astype(np.float32)
