"""Measurements as rows of a table: names and cells of columns, and what is said of all."""

from dataclasses import dataclass
from typing import Any

from spectrod.dsp.measurement_columns import FLAGS_BETWEEN, TIME, of_channels
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.values.measurement_description import MeasurementDescription, flag_names
from spectrod.measure.levels import LevelRow
from spectrod.measure.levels.level_units import unit_of
from spectrod.measure.measurement import Measurement


def time_name(about: MeasurementDescription) -> str:
    """Return the name of the column of times: UTC, or time since the first sample."""
    return TIME if about.has_utc else "elapsed_s"


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers: its name, its unit, and its channel, empty if it is of all."""

    name: str
    unit: str
    channel: str


def number_columns(about: MeasurementDescription) -> list[NumberColumn]:
    """Return the columns of ``numbers``.

    Their names are ``QUANTITY``, in bands ``QUANTITY_BAND``. Bands follow the quantities: all bands
    of the first quantity, then of the next.
    """
    columns = []
    for one in (*about.quantities, *about.bands.named_quantities):
        if one.is_of_all_channels:
            columns.append(NumberColumn(one.name, about.unit(one), ""))
            continue
        units = [unit_of(one, calibration) for calibration in about.calibrations]
        names = of_channels(about.channels, one.name)
        columns += [NumberColumn(*each) for each in zip(names, units, about.channels, strict=True)]
    return columns


def number_names(about: MeasurementDescription) -> list[str]:
    """Return the names of ``number_columns``."""
    return [one.name for one in number_columns(about)]


def numbers(about: MeasurementDescription, row: Measurement) -> list[float]:
    """Return the values of a row, but for those of bins."""
    found: list[float] = []
    for quantity, values in zip(about.quantities, row.values.tolist(), strict=True):
        found += values[:1] if quantity.is_of_all_channels else values
    if isinstance(row, LevelRow):
        found += row.band_values.ravel().tolist()
    return found


def begin_ns(about: MeasurementDescription, row: Measurement) -> int:
    """Return the time of a row's first sample [ns], of the column ``time_name``."""
    if about.has_utc:
        return row.begin_utc_ns or 0
    return round(row.first_sample * NS_PER_S / about.fs)


def flag_texts(row: Measurement) -> list[str]:
    """Return the names of the flags of each channel, with ``|`` between them."""
    return [FLAGS_BETWEEN.join(flag_names(int(flags))) for flags in row.flags]


def header(about: MeasurementDescription) -> dict[str, Any]:
    """Return the metadata by name: text, numbers, and what JSON can hold."""
    quantities = (*about.quantities, *about.bands.quantities)
    found = about.attributes() | {"units": {one.name: about.unit(one) for one in quantities}}
    if about.bands.filters:
        found["bands_lower_centre_upper_hz"] = {
            one.name: [one.lower_hz, one.centre_hz, one.upper_hz] for one in about.bands.filters
        }
    return found
