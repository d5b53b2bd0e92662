"""Dataset of a recording of spectra: the variables of its NetCDF file, without the file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Int64Array
from spectrod.dsp.value_names import values_name
from spectrod.formats.dataset.lazy_array import RowArray, variable_of
from spectrod.formats.export.attributes import (
    CHECKED_ROWS,
    OF_A_FILE,
    Coverage,
    encode_engines,
    global_attributes,
)
from spectrod.formats.export.export_rows import Rows
from spectrod.formats.export.layout import BROADBAND, ENGINES, columns, variables
from spectrod.formats.export.site import with_site
from spectrod.formats.segment.segment_table import SegmentTable
from spectrod.lib.errors import InputError


def recording_dataset(path: Path, *, check: bool) -> Dataset:
    """Open segments as a dataset whose times and units are encoded as in NetCDF files.

    Parameters
    ----------
    path : Path
        An ``.spd``, an ``.spd.part`` or a folder of them.
    check : bool
        See ``SegmentTable``.

    Raises
    ------
    InputError
        If there are no rows, or several recordings that do not belong together.
    StorageError
        If a file cannot be read.
    """
    table = SegmentTable(path, check=check)
    if not len(table):
        raise InputError(f"{path}: has no rows")
    spec = table.description.spec
    rows = _without_values(table, spec)
    data: dict[str, Any] = {**columns(rows, spec), **_lazy(table, rows, spec)}
    found = {}
    about, attributes = table.description, _attributes(table, rows)
    for one in with_site(variables(about), attributes, about.source):
        part = one.data if one.data is not None else data[one.name]
        found[one.name] = variable_of(one.dims, part, one.attributes)
    return Dataset(found, attrs=attributes)


def _without_values(table: SegmentTable, spec: SpectrumSpec) -> Rows:
    """Return the columns of all rows, with zeros that take no memory as values."""
    dtype = np.complex64 if spec.output == "complex" else np.float32
    values = np.broadcast_to(dtype(0), (len(table), spec.n_signals, spec.n_values))
    levels = np.broadcast_to(np.float32(0), values.shape[:2]) if spec.broadband else None
    return Rows(values, table.columns, table.conditions, levels)


def _lazy(table: SegmentTable, rows: Rows, spec: SpectrumSpec) -> dict[str, RowArray]:
    found = {values_name(spec): (rows.values, "values")}
    if rows.broadband is not None:
        found[BROADBAND] = (rows.broadband, "broadband")
    return {
        name: RowArray(like.shape, like.dtype, partial(_read, table, field))
        for name, (like, field) in found.items()
    }


def _read(
    table: SegmentTable,
    field: str,
    numbers: Int64Array,
    put: Callable[[slice, NDArray[Any]], None],
) -> None:
    for places, batch, within in table.read(numbers):
        put(places, getattr(batch, field)[within])


def _attributes(table: SegmentTable, rows: Rows) -> dict[str, Any]:
    about = table.description
    found = global_attributes(about, {})
    for name in OF_A_FILE:
        if name not in about.attributes:
            del found[name]
    coverage = Coverage(about)
    coverage.add(rows)
    found |= coverage.attributes() | {CHECKED_ROWS: coverage.checked_rows}
    found[ENGINES] = encode_engines(table.engines)
    left_out = table.left_out_samples
    return found if left_out is None else found | {"left_out_samples": left_out}
