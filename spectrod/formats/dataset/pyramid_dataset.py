"""Dataset of a pyramid: the cells of one level as rows, with least, mean and greatest."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset, Variable

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S, Float32Array, Int64Array
from spectrod.dsp.value_names import values_name
from spectrod.formats.dataset.lazy_array import RowArray, variable_of
from spectrod.formats.description import Description
from spectrod.formats.export.attributes import DESCRIPTION, global_attributes, iso_time
from spectrod.formats.export.layout import EPOCH, frequency_edges, variables
from spectrod.formats.pyramid.cell import MAX, MEAN, MIN, STEP_DB
from spectrod.formats.pyramid.metadata import NAME, PyramidMetadata
from spectrod.formats.pyramid.pyramid_reader import PyramidReader
from spectrod.lib.errors import ConfigError, InputError

PYRAMID = "pyramid"
"""Name of a recording's folder with its pyramid."""

_CELLS_DEFAULT = 100_000
"""Most cells of the level that is opened if none is named: a day of 1 s, two months of 1 min."""
_CELLS_MAX = 1 << 26
"""Most cells of a dataset: the axis of their times takes 8 bytes each."""
_CODES = np.arange(-(1 << 15), 1 << 15)
_STATISTICS = ((MEAN, "", "mean"), (MIN, "_least", "minimum"), (MAX, "_greatest", "maximum"))
"""Which of a cell's spectra has which suffix, and which method of CF."""


def find_pyramid(path: Path) -> Path | None:
    """Return the folder of a pyramid: a path itself, or what it holds; None if there is none."""
    for folder in (path, path / PYRAMID):
        if (folder / NAME).is_file():
            return folder
    return None


@dataclass(frozen=True, slots=True)
class _CellRange:
    """The cells of a level that a dataset has: numbers from 1970 on, from first to before stop."""

    folder: Path
    number: int
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first

    def read(
        self,
        part: Callable[[NDArray[Any]], NDArray[Any]],
        missing: float,
        numbers: Int64Array,
        put: Callable[[slice, NDArray[Any]], None],
    ) -> None:
        """Read cells by their numbers in the dataset, see ``RowsOf``."""
        with closing(PyramidReader(self.folder)) as reader:  # a reader is of one thread
            for start, stop in _runs(numbers):
                for places, slots in reader.slots(self.number, self.first + numbers[start:stop]):
                    values = part(slots)
                    values[slots["mark"] == 0] = missing
                    put(slice(start + places.start, start + places.stop), values)


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
        about, name = reader.about, reader.level_names[level.number]
    begins = np.arange(level.first, level.stop, dtype=np.int64) * about.cells_ns[level.number]
    time = Variable(("time",), begins, _time(name))
    efforts = RowArray((len(level),), np.dtype(np.float64), partial(level.read, _effort, 0.0))
    found = {
        **_axes(about),
        "time": time,
        "time_bnds": _time_bounds(level, about.cells_ns[level.number]),
        "effort": variable_of(("time",), efforts, _EFFORT),
        **_statistics(about, level),
    }
    return Dataset(found, attrs=_attributes(about, level))


def _chosen(reader: PyramidReader, folder: Path, cells: str | None) -> _CellRange:
    """Return the level of a name, or the finest with few cells."""
    if cells is not None and cells not in reader.level_names:
        raise ConfigError(f"cells={cells!r}: must be one of {', '.join(reader.level_names)}")
    limit = _CELLS_DEFAULT if cells is None else _CELLS_MAX
    for number, name in enumerate(reader.level_names):
        span = reader.cells_span(number) if cells in (None, name) else None
        if span is None:
            continue
        level = _CellRange(folder, number, *span)
        if len(level) <= limit:
            return level
        if cells is not None:
            rule = f"must be at most {limit}; name longer ones"
            raise ConfigError(f"cells={cells!r}: {len(level)} cells: {rule}")
    raise InputError(f"{folder}: has no cells" + (f" of {cells}" if cells else ""))


def _statistics(about: PyramidMetadata, level: _CellRange) -> dict[str, Variable]:
    """Return mean, least and greatest, of which values are read when they are used."""
    spec = about.spectrum_spec()
    table, values = _values_of_codes(spec), _values(about)
    shape = (len(level), len(about.signals), about.n_values)
    found = {}
    for which, suffix, method in _STATISTICS:
        read = partial(level.read, partial(_decoded, table, which), np.nan)
        attributes = values | {
            "long_name": f"{values['long_name']}, {method} of a cell",
            "cell_methods": f"time: {method} (of power)",
        }
        array = RowArray(shape, np.dtype(np.float32), read)
        dims = ("time", "channel", "frequency")
        found[values_name(spec) + suffix] = variable_of(dims, array, attributes)
    return found


def _runs(numbers: Int64Array) -> list[tuple[int, int]]:
    """Split numbers where one is not the next of that before it."""
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    limits = [0, *ends.tolist(), len(numbers)] if len(numbers) else [0]
    return list(pairwise(limits))


def _effort(slots: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(slots["effort_ns"] / NS_PER_S)


def _decoded(table: Float32Array, which: int, slots: NDArray[Any]) -> NDArray[Any]:
    # Widened first: int16 would overflow.
    return np.asarray(table[slots["codes"][:, which].astype(np.int32) + (1 << 15)])


def _values_of_codes(spec: SpectrumSpec) -> Float32Array:
    """Return the value of each code from -2^15 on: power, or level where rows have levels."""
    level = _CODES * STEP_DB
    return (level if spec.scaling == "dbfs" else 10.0 ** (level / 10.0)).astype(np.float32)


_EFFORT = {"long_name": "duration of the rows in a cell; 0 where there are none", "units": "s"}


def _time(name: str) -> dict[str, Any]:
    return {
        "standard_name": "time",
        "long_name": f"UTC of the begin of a cell of {name}",
        "units": f"nanoseconds {EPOCH}",
        "calendar": "standard",
        "axis": "T",
        "bounds": "time_bnds",
    }


def _time_bounds(level: _CellRange, cell_ns: int) -> Variable:
    """Return begin and end of each cell, which are computed when they are used."""
    rows = partial(_put_time_bounds, level.first, cell_ns)
    array = RowArray((len(level), 2), np.dtype(np.int64), rows)
    return variable_of(("time", "bnds"), array, {})


def _put_time_bounds(
    first: int, cell_ns: int, numbers: Int64Array, put: Callable[[slice, NDArray[Any]], None]
) -> None:
    begins = (first + numbers) * cell_ns
    put(slice(0, len(numbers)), np.stack([begins, begins + cell_ns], axis=1))


def _description(about: PyramidMetadata) -> Description:
    return Description(
        about.spectrum_spec(),
        about.source,
        about.signals,
        about.software,
        about.cal_id,
        about.settings,
        about.attributes,
    )


def _values(about: PyramidMetadata) -> dict[str, Any]:
    """Return the attributes of the values, those of rows but for what makes a row."""
    attributes = variables(_description(about))[-1].attributes
    own = {"statistic", "cell_methods"}
    found = {name: one for name, one in attributes.items() if name not in own}
    return found | {"coordinates": "channel_name"}


def _axes(about: PyramidMetadata) -> dict[str, Variable]:
    rows = {one.name: one for one in variables(_description(about))}
    starts = about.group_starts()
    edges = frequency_edges(about.spectrum_spec())
    last = np.append(starts[1:], len(edges)) - 1
    bounds = np.stack([edges[starts, 0], edges[last, 1]], axis=1)
    names = rows["channel_name"]
    return {
        "channel_name": variable_of(names.dims, names.data, names.attributes),
        "frequency": Variable("frequency", about.frequencies(), rows["frequency"].attributes),
        "frequency_bnds": Variable(("frequency", "bnds"), bounds),
    }


def _attributes(about: PyramidMetadata, level: _CellRange) -> dict[str, Any]:
    found = global_attributes(_description(about), {})
    for name in (DESCRIPTION, "history", "date_created"):  # of files, and of rows
        if name not in about.attributes:
            del found[name]
    cell_ns = about.cells_ns[level.number]
    return found | {
        "time_coverage_start": iso_time(level.first * cell_ns),
        "time_coverage_end": iso_time(level.stop * cell_ns),
        "time_coverage_resolution": f"PT{cell_ns / NS_PER_S:.9f}S",
        "bins_of_a_value": about.group,
    }
