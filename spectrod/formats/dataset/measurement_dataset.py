"""Dataset of measurements in memory, as of a NetCDF file of them."""

from collections.abc import Sequence

from xarray import Dataset, Variable, decode_cf

from spectrod.formats.export.attributes import OF_A_FILE
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import begin_ns
from spectrod.formats.values.value_variables import (
    covered,
    end_ns,
    global_attributes,
    growing_parts,
    variables,
)
from spectrod.lib.errors import InputError
from spectrod.measure.levels import LevelRow
from spectrod.measure.measurement import Measurement


def measurement_dataset(about: MeasurementDescription, rows: Sequence[Measurement]) -> Dataset:
    """Return rows as the dataset that ``xarray.open_dataset`` reads from a NetCDF file of them.

    Parameters
    ----------
    about : MeasurementDescription
        Description of all rows.
    rows : sequence of Measurement
        At least one.

    Raises
    ------
    InputError
        If there are no rows, or local days beside shorter intervals.
    """
    if not rows:
        raise InputError("no rows: a dataset has at least one")
    if len({isinstance(row, LevelRow) and row.is_day for row in rows}) > 1:
        rule = "times of a dataset ascend, so it has no days beside their intervals"
        raise InputError(f"rows of days and of shorter intervals: {rule}")
    parts = growing_parts(about, rows)
    found = {
        one.name: Variable(
            one.dims,
            parts[one.name].astype(one.dtype, copy=False) if one.data is None else one.data,
            one.attributes,
        )
        for one in variables(about)
    }
    attributes = global_attributes(about) | covered(
        about, begin_ns(about, rows[0]), end_ns(about, rows[-1])
    )
    for name in OF_A_FILE:
        if name not in about.extra:
            del attributes[name]
    return decode_cf(Dataset(found, attrs=attributes))
