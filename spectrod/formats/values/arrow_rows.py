"""Measurements in Arrow's memory: a row for each interval, a typed column for each value."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from spectrod.dsp.measurement_columns import DURATION, FLAGS_NAME, of_channels
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import (
    NumberColumn,
    begin_ns,
    flag_texts,
    header,
    number_columns,
    numbers,
    time_name,
)
from spectrod.lib.arrow_table import as_texts, field_metadata
from spectrod.lib.errors import ConfigError
from spectrod.lib.optional_packages import need
from spectrod.measure.measurement import Measurement


class RowGroup:
    """Rows that wait to become a batch of Arrow; 8 bytes for each value.

    Parameters
    ----------
    about : MeasurementDescription
        Description of the rows.
    """

    def __init__(self, about: MeasurementDescription) -> None:
        self._about = about
        self._times_ns, self._durations_s = array("q"), array("d")
        self._flags: list[list[str]] = []
        self._numbers, self._bins = array("d"), array("d")

    def __len__(self) -> int:
        return len(self._times_ns)

    def append(self, row: Measurement) -> None:
        """Add a row."""
        about = self._about
        self._times_ns.append(begin_ns(about, row))
        self._durations_s.append(row.duration_s)
        self._flags.append(flag_texts(row))
        self._numbers.extend(numbers(about, row))
        for k in range(len(about.spectra)):
            for table in row.tables:
                self._bins.frombytes(np.ascontiguousarray(table[k], np.float64).tobytes())

    def arrays(self) -> list[Any]:
        """Return times, durations, flags, numbers and values of bins, rows first."""
        about, n = self._about, len(self)
        bins = len(about.spectra) * len(about.channels)
        return [
            np.array(self._times_ns, np.int64),
            np.array(self._durations_s, np.float64),
            np.array(self._flags, np.str_).reshape(n, len(about.channels)),
            np.array(self._numbers, np.float64).reshape(n, len(number_columns(about))),
            np.array(self._bins, np.float64).reshape(n, bins, len(about.frequencies)),
        ]


def batch(about: MeasurementDescription, arrays: Sequence[Any]) -> Any:
    """Return the arrays of a group as a batch of Arrow, with unit and channel in its fields."""
    core = need("arro3.core", "parquet")
    times, durations, flags, values, bins = arrays
    if about.has_utc:
        moments = core.Array(times).cast(core.DataType.timestamp("ns", tz=about.time_zone or "UTC"))
    else:
        moments = core.Array(times / NS_PER_S)
    cells = [moments, core.Array(durations)]
    text = core.DataType.string()
    cells += [core.Array(column.tolist(), type=text) for column in flags.T]
    cells += [core.Array(np.ascontiguousarray(column)) for column in values.T]
    for column in range(bins.shape[1]):
        flat = core.Array(np.ascontiguousarray(bins[:, column]).ravel())
        cells.append(core.fixed_size_list_array(flat, bins.shape[2]))
    fields = [
        core.Field(one.name, cell.type, metadata=field_metadata(one.unit, one.channel))
        for one, cell in zip(_columns(about), cells, strict=True)
    ]
    return core.RecordBatch.from_arrays(cells, schema=core.Schema(fields))


def metadata(about: MeasurementDescription) -> dict[str, str]:
    """Return what is said of all rows, what is no text as JSON."""
    found = header(about)
    if about.spectra:
        units = dict(zip(about.spectra, about.spectra_units, strict=True))
        found |= {"units": found["units"] | units, "frequency_hz": about.frequencies.tolist()}
    return as_texts(found)


def check_names(about: MeasurementDescription, what: object) -> None:
    """Raise ConfigError if two columns of a table have one name."""
    names = [one.name for one in _columns(about)]
    if twice := [name for name in names if names.count(name) > 1]:
        rule = "two columns of a table must not have one name: name the channels apart"
        raise ConfigError(f"{what}: {twice[0]}: {rule}")


def _columns(about: MeasurementDescription) -> list[NumberColumn]:
    time = time_name(about)
    flags = zip(of_channels(about.channels, FLAGS_NAME), about.channels, strict=True)
    bins = [
        NumberColumn(name, unit, channel)
        for one, unit in zip(about.spectra, about.spectra_units, strict=True)
        for name, channel in zip(of_channels(about.channels, one), about.channels, strict=True)
    ]
    return [
        NumberColumn(time, "" if about.has_utc else "s", ""),
        NumberColumn(DURATION, "s", ""),
        *(NumberColumn(name, "", channel) for name, channel in flags),
        *number_columns(about),
        *bins,
    ]
