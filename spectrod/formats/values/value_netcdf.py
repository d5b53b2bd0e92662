"""Measurements as NetCDF4, by CF 1.11; .h5 files have the same content."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.export.attributes import CONVENTIONS, VOCABULARY, iso_time
from spectrod.formats.export.disk import Disk
from spectrod.formats.export.layout import EPOCH, Variable, plain
from spectrod.formats.export.netcdf import NetcdfStore, need_netcdf
from spectrod.formats.export.site import with_numbers
from spectrod.formats.values.level_terms import level_terms
from spectrod.formats.values.measurement_description import FLAGS, MeasurementDescription
from spectrod.formats.values.measurement_table import begin_ns
from spectrod.formats.values.value_writer import ValueWriter
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_zones import offset_s
from spectrod.measure.levels import LevelRow
from spectrod.measure.measurement import Measurement, Quantity

_COMPRESSION = 1
_CHUNK_ROWS = 256
_CHUNK_VALUES = 1 << 20
"""Largest number of rows, and of their values of bins, that are written at a time."""
_OFFSET = "utc_offset"
_NAMED_MAX = 20
"""Most quantities that the summary names."""
_MEASURED = {"coverage_content_type": "physicalMeasurement"}
_AUXILIARY = {"coverage_content_type": "auxiliaryInformation"}
_QUALITY = {"coverage_content_type": "qualityInformation"}
_CF_UNITS = {"deg": "degree"}
"""Units of values of bins that UDUNITS knows, all others are 1: ``spectrod_unit`` has them."""


class ValueNetcdfWriter(ValueWriter):
    """Writes measurements to a NetCDF4 file; see ``ValueWriter`` for parameters and errors."""

    def _open(self, part: Path) -> None:
        if self.description.has_days:
            rule = "times ascend in it, so it has no days beside their intervals"
            raise ConfigError(f"{self.path}: {rule}; write .csv, .parquet or a figure")
        need_netcdf()
        disk = self._stack.enter_context(closing(Disk(part)))
        self._store = NetcdfStore(disk, _COMPRESSION)
        self._stack.callback(self._store.release)
        about = self.description
        sizes = {
            "channel": len(about.channels),
            "band": len(about.bands.filters),
            "frequency": len(about.frequencies),
        }
        n_values = len(about.channels) * max(1, len(about.frequencies) * len(about.spectra))
        self._chunk_rows = max(1, min(_CHUNK_ROWS, _CHUNK_VALUES // n_values))
        for variable in _variables(self.description):
            if variable.data is not None:
                self._store.create(variable, variable.data.shape, variable.data.shape[1:])
            else:
                row = tuple(sizes[name] for name in variable.dims[1:])
                self._store.create(variable, (self._chunk_rows, *row), row)
        self._store.annotate(with_numbers({**_acdd(about), **about.attributes()}))
        self._rows: list[Measurement] = []
        self._begin_ns: int | None = None
        self._end_ns = 0

    def _write(self, row: Measurement) -> None:
        self._rows.append(row)
        if len(self._rows) == self._chunk_rows:
            self._append()

    def _close(self) -> None:
        if self._rows:
            self._append()
        if self._begin_ns is not None:
            self._store.annotate(_covered(self.description, self._begin_ns, self._end_ns))
        self._store.close()

    def _append(self) -> None:
        about, rows = self.description, self._rows
        times_ns = [begin_ns(about, row) for row in rows]
        self._begin_ns = times_ns[0] if self._begin_ns is None else self._begin_ns
        self._end_ns = times_ns[-1] + round(rows[-1].duration_s * NS_PER_S)
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
        self._store.append(parts)
        self._rows = []


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


def _covered(about: MeasurementDescription, begin_ns: int, end_ns: int) -> dict[str, str]:
    """Return the covered time as attributes of ACDD."""
    found = {
        "time_coverage_duration": f"PT{(end_ns - begin_ns) / NS_PER_S:.9f}S",
        "time_coverage_resolution": f"PT{about.interval_s:.9f}S",
    }
    if about.has_utc:
        found["time_coverage_start"] = iso_time(begin_ns)
        found["time_coverage_end"] = iso_time(end_ns)
    return found


def _variables(about: MeasurementDescription) -> list[Variable]:
    names = np.array([plain(name) for name in about.channels], dtype=object)
    units = np.array([plain(unit) for unit in about.units], dtype=object)
    if about.has_utc:
        utc = {"calendar": "standard", "units_metadata": "leap_seconds: none"}
        time = {"standard_name": "time", "units": f"seconds {EPOCH}", **utc}
        exact = {"units": f"nanoseconds {EPOCH}", **utc}
    else:
        time, exact = {"units": "s", "comment": "the date is unknown"}, {"units": "ns"}
    what = "time of an interval's first sample"
    flags = {
        "long_name": "flags of the interval",
        "flag_masks": np.array([int(flag) for flag in FLAGS], np.uint8),
        "flag_meanings": " ".join(FLAGS.values()),
        "coordinates": "channel_name",
        **_QUALITY,
    }
    effort = {"long_name": "duration of the measured samples", "units": "s", **_QUALITY}
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
        Variable("effort", ("time",), "<f8", effort),
        Variable("flags", ("time", "channel"), "<u1", flags),
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
    unit = about.unit(quantity)
    return {
        "long_name": f"{quantity.name} in {unit}",
        # Channels may have several references: spectrod_unit has them.
        "units": "1",
        "spectrod_unit": unit,
        **_MEASURED,
    }


def _values(quantity: Quantity, about: MeasurementDescription) -> Variable:
    attributes = _attributes(quantity, about) | level_terms(quantity, about.calibrations)
    if quantity.is_of_all_channels:
        return Variable(_variable_name(quantity), ("time",), "<f8", attributes)
    attributes["coordinates"] = "channel_name channel_unit"
    return Variable(_variable_name(quantity), ("time", "channel"), "<f8", attributes)


def _variable_name(quantity: Quantity) -> str:
    """Return a name of letters, digits and underscores, as CF recommends."""
    return re.sub(r"\W", "_", quantity.name, flags=re.ASCII)
