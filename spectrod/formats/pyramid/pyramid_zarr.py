"""A pyramid as a Zarr store whose root names its levels as the convention ``multiscales`` does."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from spectrod.formats.export.attributes import DESCRIPTION, global_attributes, iso_time
from spectrod.formats.export.export_options import ExportOptions
from spectrod.formats.export.export_writer import CHUNK_BYTES
from spectrod.formats.export.layout import Variable
from spectrod.formats.export.zarr import (
    check_folder,
    codecs_of,
    consolidate,
    lost_value,
    make_array,
    whole_folder,
)
from spectrod.formats.pyramid.pyramid_level import (
    CELLS_MAX,
    CellColumn,
    PyramidLevel,
    describe,
    span_utc_ns,
)
from spectrod.formats.pyramid.pyramid_reader import PyramidReader
from spectrod.formats.whole_files import WholeFileWriter
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.optional_packages import need

CONVENTION = {
    "uuid": "d35379db-88df-4056-af3a-620245f8e347",
    "schema_url": "https://raw.githubusercontent.com/zarr-conventions/multiscales/refs/tags/v0.1/schema.json",
    "spec_url": "https://github.com/zarr-conventions/multiscales/blob/v0.1/README.md",
    "name": "multiscales",
    "description": "Multiscale layout of zarr datasets",
}
"""What the convention requires a store to say of it, word by word."""

_AXIS_CELLS = 1 << 16
"""Cells in a chunk of times or effort, rounded down to whole chunks of values."""


class PyramidZarrWriter(WholeFileWriter):
    """Copies levels of a pyramid to a Zarr store, one group each, finest first.

    The groups ``0``, ``1``, ... have the variables of the datasets of these levels. Chunks without
    a cell are not stored, and read as NaN. Memory is that of a few chunks of about ``CHUNK_BYTES``.
    ``finish`` synchronises the store to disk and gives it its name; a Zarr store of that name is
    replaced. Thread: one at a time.

    Parameters
    ----------
    folder : Path
        Folder with ``pyramid.json``.
    levels : sequence of PyramidLevel
        Which cells of it, finest level first; levels without cells are left out.
    path : Path
        Path of the store, in an existing folder.
    options : ExportOptions
        Compression and attributes; the rest does not apply.

    Raises
    ------
    ConfigError
        If a level has more than 2^26 cells.
    InputError
        If there are no cells.
    StorageError
        If the pyramid cannot be read, or no store can be made at this path.
    UnavailableError
        If zarr is not installed.
    """

    def __init__(
        self, folder: Path, levels: Sequence[PyramidLevel], path: Path, options: ExportOptions
    ) -> None:
        super().__init__(path)
        zarr = need("zarr", "zarr")
        self._levels = [_with_attributes(level, options) for level in levels if len(level)]
        _check(folder, self._levels)
        check_folder(path)
        with self._aborted_if_it_fails():
            self._reader = self._stack.enter_context(closing(PyramidReader(folder)))
            self._part = self._stack.enter_context(whole_folder(path))
            self._axis_codecs = codecs_of(options.compression)
            # The few thousand values that a chunk consists of are found again as wholes.
            self._codecs = codecs_of(options.compression, "noshuffle")
            self._root = zarr.open_group(self._part, mode="w-", zarr_format=3)

    @property
    def n_cells(self) -> int:
        """Cells of all levels, with those that are missing."""
        return sum(map(len, self._levels))

    def write(self) -> Iterator[int]:
        """Write all levels a piece at a time, and yield the number of cells in each.

        Raises
        ------
        StorageError
            If the pyramid cannot be read, or the store cannot be written; no store is left then.
        """
        for number, level in enumerate(self._levels):
            pieces = self._write_level(str(number), level)
            while True:
                with self._aborted_if_it_fails():
                    n_cells = next(pieces, None)
                if n_cells is None:
                    break
                yield n_cells

    def finish(self) -> None:
        """Publish the store, after all of ``write``; raises StorageError, with no store left."""
        with self._stack.pop_all():
            self._root.attrs.update(_root_attributes(self._levels))
            # Of each group too: a reader of one level opens that alone.
            for number in range(len(self._levels)):
                consolidate(self._part / str(number))
            consolidate(self._part)

    def _write_level(self, name: str, level: PyramidLevel) -> Iterator[int]:
        group = self._root.create_group(name, attributes=level.attributes())
        for variable in level.axes():
            assert variable.data is not None
            shape = variable.data.shape
            _make(group, variable, shape, shape, self._axis_codecs)[...] = variable.data
        n_rows = _chunk_rows(level)
        n_axis = min(len(level), max(n_rows, _AXIS_CELLS // n_rows * n_rows))
        effort, *spectra = level.columns()
        axes = self._make_axes(group, level, effort, n_axis)
        arrays = [(self._make_spectra(group, level, one, n_rows), one) for one in spectra]
        for begin in range(0, len(level), n_axis):
            rows = np.arange(begin, min(begin + n_axis, len(level)), dtype=np.int64)
            efforts = np.zeros(len(rows))
            for first in range(0, len(rows), n_rows):
                part = rows[first : first + n_rows]
                slots = self._slots(level, part)
                efforts[first : first + len(part)] = effort.of_slots(slots)
                if slots["mark"].any():
                    for array, one in arrays:
                        array[part[0] : part[-1] + 1] = one.of_slots(slots)
                yield len(part)
            end = begin + len(rows)
            found = (level.begins(begin, end), level.bounds(rows), efforts)
            for array, values in zip(axes, found, strict=True):
                array[begin:end] = values

    def _make_axes(
        self, group: Any, level: PyramidLevel, effort: CellColumn, n_cells: int
    ) -> list[Any]:
        found = []
        for one in (level.time, level.time_bounds, effort.variable):
            row = (2,) * (len(one.dims) - 1)
            shape, chunk = (len(level), *row), (n_cells, *row)
            found.append(_make(group, one, shape, chunk, self._axis_codecs))
        return found

    def _make_spectra(
        self, group: Any, level: PyramidLevel, column: CellColumn, n_cells: int
    ) -> Any:
        n_signals, n_values = column.row
        n_signals = min(n_signals, max(1, CHUNK_BYTES // (4 * n_values)))
        shape, chunk = (len(level), *column.row), (n_cells, n_signals, n_values)
        return _make(group, column.variable, shape, chunk, self._codecs)

    def _slots(self, level: PyramidLevel, rows: NDArray[np.int64]) -> NDArray[Any]:
        found = [slots for _, slots in self._reader.slots(level.number, level.first + rows)]
        return found[0] if len(found) == 1 else np.concatenate(found)


def _make(
    group: Any,
    variable: Variable,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    codecs: list[Any],
) -> Any:
    return make_array(group, variable, shape, chunk, codecs, lost_value(variable.dtype))


def multiscales(levels: Sequence[PyramidLevel]) -> dict[str, Any]:
    """Return the layout of levels, finest first, whose groups are named 0, 1, ...

    ``scale`` and ``translation`` are of the axes time, channel and frequency: cell ``n`` of a level
    begins where cell ``scale * n + translation`` of the level that it is derived from does.
    """
    layout = [_layout(0, levels[0], 1, 0)]
    for number, (finer, level) in enumerate(pairwise(levels), 1):
        ratio = level.cell_ns // finer.cell_ns
        derived = {"derived_from": str(number - 1), "resampling_method": "average"}
        made = _layout(number, level, ratio, level.first * ratio - finer.first)
        layout.append(made | derived)
    return {"layout": layout, "resampling_method": "average"}


def _layout(number: int, level: PyramidLevel, scale: int, translation: int) -> dict[str, Any]:
    transform = {"scale": [float(scale), 1.0, 1.0], "translation": [float(translation), 0.0, 0.0]}
    return {"asset": str(number), "transform": transform, "cells": level.name}


def _with_attributes(level: PyramidLevel, options: ExportOptions) -> PyramidLevel:
    attributes = level.about.attributes | options.attributes
    return replace(level, about=msgspec.structs.replace(level.about, attributes=attributes))


def _check(folder: Path, levels: Sequence[PyramidLevel]) -> None:
    """Refuse no cells, and more than axes of times have room for."""
    if not levels:
        raise InputError(f"{folder}: has no cells")
    for level in levels:
        if len(level) > CELLS_MAX:
            rule = f"must be at most {CELLS_MAX}; choose longer ones, or a shorter time"
            raise ConfigError(f"{folder}: {len(level)} cells of {level.name}: {rule}")


def _chunk_rows(level: PyramidLevel) -> int:
    """Return the number of cells in a chunk of spectra."""
    row_bytes = 4 * len(level.about.signals) * level.about.n_values
    return max(1, min(len(level), CHUNK_BYTES // row_bytes))


def _root_attributes(levels: Sequence[PyramidLevel]) -> dict[str, Any]:
    found = global_attributes(describe(levels[0].about), {})
    del found[DESCRIPTION]  # it is of recordings of rows
    begin_ns, end_ns = span_utc_ns(levels)
    return found | {
        "time_coverage_start": iso_time(begin_ns),
        "time_coverage_end": iso_time(end_ns),
        "zarr_conventions": [CONVENTION],
        "multiscales": multiscales(levels),
    }
