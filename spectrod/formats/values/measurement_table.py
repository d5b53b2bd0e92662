"""Measurements as rows of a table: names and cells of columns, and what is said of all."""

from typing import Any

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.values.measurement_description import MeasurementDescription, flag_names
from spectrod.measure.levels import LevelRow
from spectrod.measure.measurement import Measurement

DURATION, FLAGS_NAME = "duration_s", "flags"


def time_name(about: MeasurementDescription) -> str:
    """Return the name of the column of times: UTC, or time since the first sample."""
    return "time" if about.has_utc else "elapsed_s"


def of_channels(about: MeasurementDescription, name: str) -> list[str]:
    """Return the names of a value's columns; of several channels, they end with ``@CHANNEL``."""
    if len(about.channels) == 1:
        return [name]
    return [f"{name}@{channel}" for channel in about.channels]


def number_names(about: MeasurementDescription) -> list[str]:
    """Return the names of the columns of ``numbers``.

    They are ``QUANTITY``, in bands ``QUANTITY_BAND``. Bands follow the quantities: all bands of the
    first quantity, then of the next.
    """
    names = []
    for one in about.quantities:
        names += [one.name] if one.is_of_all_channels else of_channels(about, one.name)
    for one in about.bands.named_quantities:
        names += of_channels(about, one.name)
    return names


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
    return ["|".join(flag_names(int(flags))) for flags in row.flags]


def header(about: MeasurementDescription) -> dict[str, Any]:
    """Return the metadata by name: text, numbers, and what JSON can hold."""
    quantities = (*about.quantities, *about.bands.quantities)
    found = about.attributes() | {"units": {one.name: about.unit(one) for one in quantities}}
    if about.bands.filters:
        found["bands_lower_centre_upper_hz"] = {
            one.name: [one.lower_hz, one.centre_hz, one.upper_hz] for one in about.bands.filters
        }
    return found
