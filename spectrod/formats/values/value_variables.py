"""Measurements as variables by CF 1.11: axes, rows of intervals, attributes of all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.interval_flags import FLAG_ATTRIBUTES
from spectrod.dsp.level_terms import level_terms
from spectrod.dsp.measurement_columns import EFFORT_ATTRIBUTES, value_attributes, variable_name
from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.attributes import CONVENTIONS, VOCABULARY, iso_time
from spectrod.formats.export.layout import EPOCH, Variable, plain
from spectrod.formats.export.site import with_numbers
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.measurement_table import begin_ns
from spectrod.lib.time_zones import offset_s
from spectrod.measure.levels import LevelRow
from spectrod.measure.measurement import Measurement, Quantity

_OFFSET = "utc_offset"
_NAMED_MAX = 20
"""Most quantities that the summary names."""
_MEASURED = {"coverage_content_type": "physicalMeasurement"}
_AUXILIARY = {"coverage_content_type": "auxiliaryInformation"}
_CF_UNITS = {"deg": "degree"}
"""Units of values of bins that UDUNITS knows, all others are 1: ``spectrod_unit`` has them."""


def axis_lengths(about: MeasurementDescription) -> dict[str, int]:
    """Return the length of each axis but that of time."""
    return {
        "channel": len(about.channels),
        "band": len(about.bands.filters),
        "frequency": len(about.frequencies),
    }


def global_attributes(about: MeasurementDescription) -> dict[str, Any]:
    """Return the attributes of a file, but for the covered time."""
    return with_numbers({**_acdd(about), **about.attributes()})


def growing_parts(
    about: MeasurementDescription, rows: Sequence[Measurement]
) -> dict[str, NDArray[Any]]:
    """Return rows as arrays by the names of the growing variables, at least one row."""
    times_ns = [begin_ns(about, row) for row in rows]
    values = np.array([row.values for row in rows])
    parts = {
        "time": np.array(times_ns) / NS_PER_S,
        "t_utc_ns": np.array(times_ns, np.int64),
        "effort": np.array([row.duration_s for row in rows]),
        "flags": np.array([row.flags for row in rows]),
    }
    if about.zone is not None:
        offsets = [offset_s(t_ns, about.zone) for t_ns in times_ns]
        parts[_OFFSET] = np.array(offsets, np.int32)
    for k, one in enumerate(about.quantities):
        parts[_variable_name(one)] = values[:, k, 0] if one.is_of_all_channels else values[:, k]
    bands = [row.band_values for row in rows if isinstance(row, LevelRow)]
    for k, one in enumerate(about.bands.quantities):
        parts[_band_variable_name(one)] = np.array([values[k] for values in bands])
    for k, name in enumerate(about.spectra):
        parts[name] = np.array([[table[k] for table in row.tables] for row in rows])
    return parts


def end_ns(about: MeasurementDescription, row: Measurement) -> int:
    """Return the end of a row's measured time, as ``begin_ns`` [ns]."""
    return begin_ns(about, row) + round(row.duration_s * NS_PER_S)


def _acdd(about: MeasurementDescription) -> dict[str, str]:
    """Return the attributes of ACDD that files of spectra have as well, but for the time."""
    names = ", ".join([one.name for one in about.quantities[:_NAMED_MAX]] or about.spectra)
    more = ", ..." if len(about.quantities) > _NAMED_MAX else ""
    return {
        "Conventions": CONVENTIONS,
        "summary": plain(
            f"{names}{more} of {about.source}, in intervals of {about.interval_s:g} s"
        ),
        "keywords": "acoustics, sound",
        "standard_name_vocabulary": VOCABULARY,
        "cdm_data_type": "TimeSeries",
    }


def covered(about: MeasurementDescription, begin_ns: int, end_ns: int) -> dict[str, str]:
    """Return the covered time as attributes of ACDD: UTC, or time since the first sample [ns]."""
    found = {
        "time_coverage_duration": f"PT{(end_ns - begin_ns) / NS_PER_S:.9f}S",
        "time_coverage_resolution": f"PT{about.interval_s:.9f}S",
    }
    if about.has_utc:
        found["time_coverage_start"] = iso_time(begin_ns)
        found["time_coverage_end"] = iso_time(end_ns)
    return found


def variables(about: MeasurementDescription) -> list[Variable]:
    """Return the variables of a file; those that do not grow contain their data."""
    names = np.array([plain(name) for name in about.channels], dtype=object)
    units = np.array([plain(unit) for unit in about.units], dtype=object)
    if about.has_utc:
        utc = {"calendar": "standard", "units_metadata": "leap_seconds: none"}
        time = {"standard_name": "time", "units": f"seconds {EPOCH}", **utc}
        exact = {"units": f"nanoseconds {EPOCH}", **utc}
    else:
        time, exact = {"units": "s", "comment": "the date is unknown"}, {"units": "ns"}
    what = "time of an interval's first sample"
    return [
        Variable("channel_name", ("channel",), "str", {"long_name": "name of the channel"}, names),
        Variable(
            "channel_unit",
            ("channel",),
            "str",
            {"long_name": "unit of the channel's levels"},
            units,
        ),
        Variable("time", ("time",), "<f8", {"long_name": what, "axis": "T", **time}),
        Variable("t_utc_ns", ("time",), "<i8", {"long_name": what, **exact, **_AUXILIARY}),
        *_offsets(about),
        Variable("effort", ("time",), "<f8", EFFORT_ATTRIBUTES),
        Variable("flags", ("time", "channel"), "<u1", FLAG_ATTRIBUTES),
        *(_values(one, about) for one in about.quantities),
        *_band_variables(about),
        *_spectra(about),
    ]


def _offsets(about: MeasurementDescription) -> list[Variable]:
    """Return the variable of local time, which CF has none of; none in UTC."""
    if about.zone is None:
        return []
    what = f"add to the time for local time of {about.time_zone}"
    return [Variable(_OFFSET, ("time",), "<i4", {"long_name": what, "units": "s"})]


def _spectra(about: MeasurementDescription) -> list[Variable]:
    """Return the variables of values of bins, and their axis; none without any."""
    if not about.spectra:
        return []
    attributes = {"standard_name": "sound_frequency", "long_name": "frequency", "units": "Hz"}
    axis = Variable("frequency", ("frequency",), "<f8", attributes, about.frequencies)
    rows = [
        Variable(
            name,
            ("time", "channel", "frequency"),
            "<f8",
            {
                "long_name": f"spectral {name}",
                "units": _CF_UNITS.get(unit, "1"),
                "spectrod_unit": unit,
                "coordinates": "channel_name",
                **_MEASURED,
            },
        )
        for name, unit in zip(about.spectra, about.spectra_units, strict=True)
    ]
    return [axis, *rows]


def _band_variables(about: MeasurementDescription) -> list[Variable]:
    if not about.bands.filters:
        return []
    names = np.array([one.name for one in about.bands.filters], dtype=object)
    found = [Variable("band_name", ("band",), "str", {"long_name": "nominal frequency"}, names)]
    for name, what in (
        ("lower_hz", "lower band-edge frequency"),
        ("centre_hz", "exact mid-band frequency"),
        ("upper_hz", "upper band-edge frequency"),
    ):
        values = np.array([getattr(one, name) for one in about.bands.filters])
        attributes = {"long_name": what, "units": "Hz"}
        found.append(Variable(f"band_{name}", ("band",), "<f8", attributes, values))
    for quantity in about.bands.quantities:
        attributes = _attributes(quantity, about)
        attributes["coordinates"] = "channel_name channel_unit band_name band_centre_hz"
        dims = ("time", "band", "channel")
        found.append(Variable(_band_variable_name(quantity), dims, "<f8", attributes))
    return found


def _band_variable_name(quantity: Quantity) -> str:
    """Return the name of a quantity in bands, which may be there for the whole as well."""
    return f"{_variable_name(quantity)}_bands"


def _attributes(quantity: Quantity, about: MeasurementDescription) -> dict[str, Any]:
    return value_attributes(quantity.name, about.unit(quantity))


def _values(quantity: Quantity, about: MeasurementDescription) -> Variable:
    references = [None if one is None else one.reference for one in about.calibrations]
    attributes = _attributes(quantity, about) | level_terms(quantity.name, references)
    if quantity.is_of_all_channels:
        return Variable(_variable_name(quantity), ("time",), "<f8", attributes)
    attributes["coordinates"] = "channel_name channel_unit"
    return Variable(_variable_name(quantity), ("time", "channel"), "<f8", attributes)


def _variable_name(quantity: Quantity) -> str:
    return variable_name(quantity.name)
