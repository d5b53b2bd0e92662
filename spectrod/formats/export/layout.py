"""The variables of an exported file and their meaning, named as in CF 1.11.

NetCDF, Zarr, HDF5 and NPZ files hold the same variables under the same names.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.averaging import FLOOR, exceeded_percent
from spectrod.dsp.conditions import Condition, names_of
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S, REFERENCES, Float64Array, Int64Array, Scaling
from spectrod.dsp.value_names import KINDS, values_name
from spectrod.dsp.value_scale import ZERO_DB
from spectrod.formats.description import Description
from spectrod.formats.export.export_rows import COLUMNS, Rows

BROADBAND = "broadband"
"""Name of the variable with the power of all bins, stored beside bands."""

CONDITIONS = "conditions"
"""Name of the variable with what checks found in the samples of each row."""

ENGINES = "spectrod_engines"
EPOCH = "since 1970-01-01T00:00:00Z"

_AUXILIARY = {"coverage_content_type": "auxiliaryInformation"}
_QUALITY = {"coverage_content_type": "qualityInformation"}
_ELAPSED_TIME = {
    # CF has no standard name for a time with an unknown origin.
    "long_name": "time of a row's first sample since the beginning of the recording",
    "units": "s",
    "axis": "T",
    "bounds": "time_bnds",
    "coverage_content_type": "coordinate",
    "comment": "the date is unknown; t_utc_ns has the same to the nanosecond",
}
_METHODS = {"none": "mean", "mean": "mean", "max": "maximum", "min": "minimum"}


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """One array of a file.

    Attributes
    ----------
    name : str
        Name in the file.
    dims : tuple of str
        Names of the axes; the first may grow.
    dtype : str
        NumPy dtype; "str" for text.
    attributes : dict
        Attributes: text and numbers.
    data : ndarray or None
        The complete data; None if the array grows.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str
    attributes: dict[str, Any] = field(default_factory=dict)
    data: NDArray[Any] | None = None

    @property
    def grows(self) -> bool:
        """Whether rows are appended to it."""
        return self.data is None

    @property
    def json_attributes(self) -> dict[str, Any]:
        """The attributes with lists in the place of arrays."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self.attributes.items()
        }


def variables(description: Description) -> list[Variable]:
    """Return the variables of a recording; those that do not grow contain their data."""
    has_utc = description.has_utc
    grow = [_time(has_utc=has_utc), *_times(has_utc=has_utc), *_row_numbers(), *_gaps()]
    levels = [_broadband(description)] if description.spec.broadband else []
    return [*_axes(description), *grow, _conditions(), *levels, _values(description)]


def columns(rows: Rows, spec: SpectrumSpec) -> dict[str, NDArray[Any]]:
    """Return the part of every growing variable for these rows, by name."""
    levels = {} if rows.broadband is None else {BROADBAND: rows.broadband}
    t = rows.columns["t_utc_ns"] / NS_PER_S
    frames = frames_of(rows, spec)
    missing = rows.columns["gap_samples"]
    at = np.flatnonzero(missing)
    return {
        "time": t,
        "time_bnds": np.stack([t, t + row_span_s(spec, frames)], axis=1),
        "effort": row_effort_s(spec, frames),
        "gap_start": rows.columns["sample_index"][at] - missing[at],
        "gap_length": missing[at],
        **rows.columns,
        CONDITIONS: rows.conditions,
        **levels,
        values_name(spec): rows.values,
    }


def frames_of(rows: Rows, spec: SpectrumSpec) -> Int64Array:
    """Return the number of frames of each row: fewer than configured if an average was cut off."""
    cut = rows.columns["cut_frames"]
    return np.where(cut > 0, cut, spec.averaging_frames)


def row_span_s(spec: SpectrumSpec, frames: Int64Array) -> Float64Array:
    """Time from the first sample of rows with this many frames to after their last [s]."""
    span: Float64Array = ((frames - 1) * spec.hop + spec.win_length) / spec.fs
    return span


def row_effort_s(spec: SpectrumSpec, frames: Int64Array) -> Float64Array:
    """Duration of the samples in rows with this many frames [s].

    It is less than the span of the rows if frames skip samples.
    """
    if spec.hop <= spec.win_length:
        return row_span_s(spec, frames)
    effort: Float64Array = frames * spec.win_length / spec.fs
    return effort


def frequency_edges(spec: SpectrumSpec) -> Float64Array:
    """Lower and upper frequency of each value, shape (n_values, 2) [Hz].

    A bin extends half a bin width to both sides, limited to 0 Hz ... fs / 2 if one-sided.
    """
    bands = spec.band_table
    if bands is not None:
        return np.stack([bands.lower, bands.upper], axis=1)
    edges: Float64Array = spec.bin_frequencies[:, np.newaxis] + spec.delta_f * np.array([-0.5, 0.5])
    return edges if spec.iq else np.clip(edges, 0.0, spec.fs / 2.0)


def plain(text: str) -> str:
    """Replace characters that not every format can store.

    These are NUL, and lone surrogates, which stand for non-UTF-8 bytes of file names.
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def _axes(description: Description) -> list[Variable]:
    spec = description.spec
    frequency = {"units": "Hz", "bounds": "frequency_bnds", "coverage_content_type": "coordinate"}
    if spec.center_frequency_hz:
        frequency |= {"standard_name": "radiation_frequency", "long_name": "radio frequency"}
    elif spec.iq:
        frequency["long_name"] = "frequency from that of the receiver"
    else:
        frequency |= {"standard_name": "sound_frequency", "long_name": "frequency"}
    names = np.array([plain(name) for name in description.signals], dtype=object)
    found = [
        Variable("channel_name", ("channel",), "str", {"long_name": "name of the channel"}, names),
        Variable("frequency", ("frequency",), "<f8", frequency, spec.frequencies),
        Variable("frequency_bnds", ("frequency", "bnds"), "<f8", {}, frequency_edges(spec)),
    ]
    if band_names := names_of_bands(spec):
        nominal = np.array(band_names, dtype=object)
        about = {"long_name": "nominal frequency of the band"}
        found.append(Variable("band_name", ("frequency",), "str", about, nominal))
    return found


def names_of_bands(spec: SpectrumSpec) -> tuple[str, ...]:
    """Return the name of each fractional-octave band; empty for other bands and bins."""
    bands = spec.band_table
    return bands.names if bands else ()


def _time(*, has_utc: bool) -> Variable:
    if not has_utc:
        return Variable("time", ("time",), "<f8", dict(_ELAPSED_TIME))
    about = {
        "standard_name": "time",
        "long_name": "UTC of a row's first sample",
        "units": f"seconds {EPOCH}",
        "calendar": "standard",
        "units_metadata": "leap_seconds: none",
        "axis": "T",
        "bounds": "time_bnds",
        "coverage_content_type": "coordinate",
        "comment": "t_utc_ns has the same to the nanosecond",
    }
    return Variable("time", ("time",), "<f8", about)


def _times(*, has_utc: bool) -> list[Variable]:
    exact = {
        "long_name": "UTC of a row's first sample",
        "units": f"nanoseconds {EPOCH}",
        "calendar": "standard",
        "units_metadata": "leap_seconds: none",
        **_AUXILIARY,
    }
    if not has_utc:
        exact = {"long_name": _ELAPSED_TIME["long_name"], "units": "ns", **_AUXILIARY}
    monotonic = {"long_name": "monotonic clock at a row's first sample", "units": "ns"}
    effort = {"long_name": "duration of the samples that a row is made of", "units": "s"}
    return [
        Variable("time_bnds", ("time", "bnds"), "<f8"),
        Variable("t_utc_ns", ("time",), COLUMNS["t_utc_ns"], exact),
        Variable("t_mono_ns", ("time",), COLUMNS["t_mono_ns"], monotonic | _AUXILIARY),
        Variable("effort", ("time",), "<f8", effort | _QUALITY),
    ]


def _row_numbers() -> list[Variable]:
    about = {
        "sample_index": "index of a row's first sample; missing ones count",
        "gap_samples": "samples missing directly before a row",
        "skipped_rows": "rows directly before a row that were not computed",
        "cut_frames": "0, or frames of a row that is an average that a gap or the end cut off",
        "discontinuity": "1 where a row does not follow on the one before",
        "engine_index": f"which of {ENGINES} computed a row",
    }
    return [
        Variable(name, ("time",), COLUMNS[name], {"long_name": long_name, "units": "1"} | _QUALITY)
        for name, long_name in about.items()
    ]


def _gaps() -> list[Variable]:
    about = {"gap_start": "index of a gap's first sample", "gap_length": "samples of a gap"}
    return [
        Variable(name, ("gap",), "<i8", {"long_name": long_name, "units": "1"} | _QUALITY)
        for name, long_name in about.items()
    ]


def _conditions() -> Variable:
    about = {
        "standard_name": "status_flag",
        "long_name": "what checks found in the samples of a row",
        "flag_masks": np.array([one.value for one in Condition], np.uint8),
        "flag_meanings": " ".join(names_of(sum(Condition))),
        "comment": "without checked, some or all samples of the row were not checked",
        "coordinates": "channel_name",
        **_QUALITY,
    }
    return Variable(CONDITIONS, ("time", "channel"), "|u1", about)


def _units(spec: SpectrumSpec, scaling: Scaling) -> str:
    """Return the unit of power in the notation of UDUNITS."""
    if spec.scale.calibrated is None:
        is_iq_level = scaling == "dbfs" and spec.iq
        return "0.1 lg(re 1)" if is_iq_level else KINDS[spec.output, scaling][2]
    if spec.output == "complex":
        return spec.scale.unit
    reference = spec.scale.calibrated.reference
    if scaling == "dbfs":
        return f"0.1 lg(re {reference.udunits_power})"
    return f"{reference.udunits_squared}{' Hz-1' if scaling == 'density' else ''}"


def _values(description: Description) -> Variable:
    spec = description.spec
    name, kind, _ = KINDS[spec.output, spec.scaling]
    units = _units(spec, spec.scaling)
    about: dict[str, Any] = {
        # Plots use the long name as axis label, and few readers know the spelling of UDUNITS.
        "long_name": f"{kind} in {spec.scale.unit}",
        "units": units,
        "spectrod_unit": spec.scale.unit,
        "reference_level": spec.scale.reference,
        "calibration": description.cal_id or "none",
        **_cell_methods(spec, has_frequency=True),
        "coordinates": "channel_name band_name" if names_of_bands(spec) else "channel_name",
        "ancillary_variables": CONDITIONS,
        "coverage_content_type": "physicalMeasurement",
    }
    dtype = "<c8" if spec.output == "complex" else "<f4"
    return Variable(name, ("time", "channel", "frequency"), dtype, about)


def _broadband(description: Description) -> Variable:
    spec = description.spec
    scaling: Scaling = "dbfs" if spec.scaling == "dbfs" else "spectrum"
    kind, units = KINDS[spec.output, scaling][1], _units(spec, scaling)
    if spec.scale.calibrated is not None:
        reference = f"{ZERO_DB} = {spec.scale.calibrated.reference.name}"
    else:
        reference = REFERENCES["dbfs"] if scaling == "dbfs" else "FS = digital full scale (1.0)"
    about: dict[str, Any] = {
        **_pressure_level(spec),
        "long_name": f"broadband {kind} in {spec.scale.broadband_unit}",
        "units": units,
        "spectrod_unit": spec.scale.broadband_unit,
        "reference_level": reference,
        "calibration": description.cal_id or "none",
        **_cell_methods(spec, has_frequency=False),  # it is summed over
        "comment": "sum of the power of all bins from 0 Hz to half the sample rate, both included",
        "coordinates": "channel_name",
        "coverage_content_type": "physicalMeasurement",
    }
    return Variable(BROADBAND, ("time", "channel"), "<f4", about)


def _pressure_level(spec: SpectrumSpec) -> dict[str, str]:
    """Return CF's name of unweighted sound pressure levels over all frequencies; else nothing."""
    calibrated = spec.scale.calibrated
    if calibrated is None or spec.scaling != "dbfs" or spec.weighting != "Z" or spec.iq:
        return {}
    name = calibrated.reference.cf_level
    return {"standard_name": name} if name else {}


def _time_method(spec: SpectrumSpec) -> str:
    if spec.averaging == "exponential":
        return f"mean (exponential, of power, {spec.averaging_s:g} s)"
    if spec.averaging == "L50":
        return "median (of power)"
    return f"{_METHODS[spec.averaging]} (of power)"


def _cell_methods(spec: SpectrumSpec, *, has_frequency: bool) -> dict[str, str]:
    """Return ``cell_methods``, and what CF has no method for as a comment."""
    found, comment = [], {}
    percent = exceeded_percent(spec.averaging)
    if percent is None or spec.averaging == "L50":
        found.append(f"time: {_time_method(spec)}")
    elif spec.averaging == FLOOR:
        comment["statistic"] = f"noise floor over {spec.averaging_frames} frames"
    else:
        comment["statistic"] = (
            f"exceeded {percent:g} % of the time, of {spec.averaging_frames} frames"
        )
    if spec.bands and has_frequency:
        over = "mean" if spec.scaling == "density" else "sum"
        found.append(f"frequency: {over} (of power)")
    return ({"cell_methods": " ".join(found)} if found else {}) | comment
