"""Dataset of a pyramid: the cells of one level as rows, with least, mean and greatest."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset, Variable

from spectrod.dsp.units import Int64Array
from spectrod.formats.dataset.lazy_array import RowArray, variable_of
from spectrod.formats.export import layout
from spectrod.formats.pyramid.pyramid_level import CELLS_MAX, PyramidLevel, level_of
from spectrod.formats.pyramid.pyramid_reader import PyramidReader
from spectrod.lib.errors import ConfigError, InputError

_CELLS_DEFAULT = 100_000
"""Most cells of the level that is opened if none is named: a day of 1 s, two months of 1 min."""


def pyramid_dataset(folder: Path, cells: str | None) -> Dataset:
    """Open a level of a pyramid as a dataset; only names and lengths of its files are read.

    Parameters
    ----------
    folder : Path
        Folder with ``pyramid.json``.
    cells : str, optional
        Name of a level, such as ``1min``; by default the finest with at most 100 000 cells.

    Raises
    ------
    ConfigError
        If the pyramid has no such level, or the level more than 2^26 cells.
    InputError
        If it has no cells.
    StorageError
        If it cannot be read.
    """
    with closing(PyramidReader(folder)) as reader:
        level = _chosen(reader, folder, cells)
    time = level.time
    bounds = partial(_put_bounds, level)
    found = {
        **{one.name: variable_of(one.dims, one.data, one.attributes) for one in level.axes()},
        time.name: variable_of(time.dims, level.begins(0, len(level)), time.attributes),
        "time_bnds": _lazy(level, level.time_bounds, (2,), bounds),
    }
    for column in level.columns():
        rows_of = partial(_put_cells, folder, level, column.of_slots)
        found[column.variable.name] = _lazy(level, column.variable, column.row, rows_of)
    return Dataset(found, attrs=level.attributes())


def _chosen(reader: PyramidReader, folder: Path, cells: str | None) -> PyramidLevel:
    """Return the level of a name, or the finest with few cells."""
    if cells is not None and cells not in reader.level_names:
        raise ConfigError(f"cells={cells!r}: must be one of {', '.join(reader.level_names)}")
    limit = _CELLS_DEFAULT if cells is None else CELLS_MAX
    for number, name in enumerate(reader.level_names):
        level = level_of(reader, number) if cells in (None, name) else None
        if level is None:
            continue
        if len(level) <= limit:
            return level
        if cells is not None:
            rule = f"must be at most {limit}; name longer ones"
            raise ConfigError(f"cells={cells!r}: {len(level)} cells: {rule}")
    raise InputError(f"{folder}: has no cells" + (f" of {cells}" if cells else ""))


def _lazy(
    level: PyramidLevel,
    variable: layout.Variable,
    row: tuple[int, ...],
    rows_of: Callable[[Int64Array, Callable[[slice, NDArray[Any]], None]], None],
) -> Variable:
    """Return a variable whose values are computed or read when they are used."""
    array = RowArray((len(level), *row), np.dtype(variable.dtype), rows_of)
    return variable_of(variable.dims, array, variable.attributes)


def _put_cells(
    folder: Path,
    level: PyramidLevel,
    of_slots: Callable[[NDArray[Any]], NDArray[Any]],
    numbers: Int64Array,
    put: Callable[[slice, NDArray[Any]], None],
) -> None:
    """Read cells by their row numbers, see ``RowsOf``."""
    with closing(PyramidReader(folder)) as reader:  # a reader is of one thread
        for start, stop in _runs(numbers):
            for places, slots in reader.slots(level.number, level.first + numbers[start:stop]):
                put(slice(start + places.start, start + places.stop), of_slots(slots))


def _runs(numbers: Int64Array) -> list[tuple[int, int]]:
    """Split numbers where one is not the next of that before it."""
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    limits = [0, *ends.tolist(), len(numbers)] if len(numbers) else [0]
    return list(pairwise(limits))


def _put_bounds(
    level: PyramidLevel, numbers: Int64Array, put: Callable[[slice, NDArray[Any]], None]
) -> None:
    put(slice(0, len(numbers)), level.bounds(numbers))
