"""Global attributes of exported files, named as in ACDD 1.3."""

import datetime as dt
import json
import time
from typing import Any

import numpy as np

from spectrod.dsp.calibration import common_validity
from spectrod.dsp.conditions import Condition
from spectrod.dsp.spectrum import SPEC_FIELDS, SpectrumSpec, chosen
from spectrod.dsp.units import NS_PER_S
from spectrod.dsp.value_names import long_name
from spectrod.formats.description import Description
from spectrod.formats.export.export_description import encode_description
from spectrod.formats.export.export_options import can_name
from spectrod.formats.export.export_rows import Rows
from spectrod.formats.export.layout import frames_of, plain, row_span_s
from spectrod.formats.export.site import with_numbers
from spectrod.lib.time_zones import offset_s, offset_text

CONVENTIONS = "CF-1.11, ACDD-1.3"
VOCABULARY = "CF Standard Name Table v93"
DESCRIPTION = "spectrod_description"
OF_A_FILE = ("history", "date_created")
"""Attributes that say when a file was written."""
CHECKED_ROWS = "checked_rows"
"""Name of the attribute of files with ``CONDITIONS``, see ``Coverage.checked_rows``."""


def global_attributes(description: Description, asked: dict[str, str]) -> dict[str, Any]:
    """Return the attributes of the whole file that are known from the start.

    Parameters
    ----------
    description : Description
        Description of the recording.
    asked : dict of str
        The operator's attributes. They replace those of the description, and both replace the
        defaults, but not those of the analysis. An attribute whose name is not valid in all formats
        is only in the description.
    """
    spec = description.spec
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kind = long_name(spec)
    texts = {
        "Conventions": CONVENTIONS,
        "title": f"{kind[0].upper()}{kind[1:]} of {description.source}",
        "summary": _summary(description),
        "keywords": "acoustics, sound, spectrum, spectrogram",
        "source": f"sound of {description.source}, analysed by {description.software}",
        "history": f"{now} written by {description.software}",
        "date_created": now,
        "standard_name_vocabulary": VOCABULARY,
        "cdm_data_type": "TimeSeries",
        **description.attributes,
        **asked,
        "software": description.software,
        "calibration": description.cal_id or "none: of digital full scale",
    }
    return {
        **with_numbers({name: plain(text) for name, text in texts.items() if can_name(name)}),
        **_analysis(spec),
        DESCRIPTION: encode_description(description),
    }


class Coverage:
    """The time covered by a file, from its first row to the end of its last row, and its checks.

    Attributes
    ----------
    begin_utc_ns, end_utc_ns : int
        Begin and end of the rows so far, UTC [ns]; -1 without rows.
    """

    def __init__(self, description: Description) -> None:
        self._spec, self._has_utc = description.spec, description.has_utc
        self.begin_utc_ns = self.end_utc_ns = -1
        self._n_rows = self._n_checked = 0

    def add(self, rows: Rows) -> None:
        """Extend the covered time by these rows, at least one."""
        t_utc_ns = rows.columns["t_utc_ns"]
        if self.begin_utc_ns < 0:
            self.begin_utc_ns = int(t_utc_ns[0])
        span_s = row_span_s(self._spec, frames_of(rows, self._spec))[-1]
        self.end_utc_ns = int(t_utc_ns[-1]) + round(span_s * NS_PER_S)
        self._n_rows += len(rows)
        self._n_checked += int(np.count_nonzero((rows.conditions & Condition.CHECKED).all(axis=1)))

    @property
    def checked_rows(self) -> str:
        """Which rows were checked in all signals: ``all``, ``some`` or ``no``."""
        if self._n_checked == self._n_rows:
            return "all"
        return "some" if self._n_checked else "no"

    def attributes(self) -> dict[str, str]:
        """Return the covered time as ACDD attributes."""
        found = coverage(self.begin_utc_ns, self.end_utc_ns, self._spec)
        if not self._has_utc:
            del found["time_coverage_start"], found["time_coverage_end"]
        return found


def coverage(begin_utc_ns: int, end_utc_ns: int, spec: SpectrumSpec) -> dict[str, str]:
    """Return a covered time as ACDD attributes."""
    return {
        "time_coverage_start": iso_time(begin_utc_ns),
        "time_coverage_end": iso_time(end_utc_ns),
        "time_coverage_duration": f"PT{max(0, end_utc_ns - begin_utc_ns) / NS_PER_S:.9f}S",
        "time_coverage_resolution": f"PT{spec.row_s:.9f}S",
    }


def elapsed_time(t_ns: int) -> str:
    """Format a time since the beginning of a recording in seconds, with nanoseconds."""
    sign = "-" if t_ns < 0 else ""
    return f"{sign}{abs(t_ns) // NS_PER_S}.{abs(t_ns) % NS_PER_S:09d}"


def iso_time(utc_ns: int, zone: dt.tzinfo | None = None) -> str:
    """Format a UTC [ns] as ISO 8601, with nanoseconds; in a time zone, with the zone's offset."""
    if zone is None:
        return f"{np.datetime64(utc_ns, 'ns')}Z"
    seconds = offset_s(utc_ns, zone)
    return f"{np.datetime64(utc_ns + seconds * NS_PER_S, 'ns')}{offset_text(seconds)}"


def decode_engines(text: str) -> list[str]:
    """Decode the engines' names, see ``encode_engines``; raises ValueError."""
    engines = json.loads(text)
    return [str(name) for name in engines]


def encode_engines(engines: list[str]) -> str:
    """Encode the engines' names, in order of their indices."""
    return json.dumps(engines)


def _calibration(spec: SpectrumSpec) -> dict[str, Any]:
    """Return where the response is known, the uncertainty of the sensitivity, and its dates."""
    found = [one for one in spec.calibration if one]
    ranges = [one.response_hz for one in found if one.response_hz]
    uncertainties = [one.uncertainty_db for one in found if one.uncertainty_db is not None]
    about: dict[str, Any] = {**common_validity(found).attributes}
    if ranges:  # of all channels: the part that all tables cover
        about["calibration_response_min_hz"] = max(low for low, _ in ranges)
        about["calibration_response_max_hz"] = min(high for _, high in ranges)
    if uncertainties:
        about["calibration_uncertainty_db"] = max(uncertainties)
    return about


_IN_OTHER_ATTRIBUTES = {
    *("fs", "win_length", "hop", "weighting"),  # by other names
    *("channels", "iq", "scaling", "output", "averaging_s", "product", "broadband"),  # by variables
}
"""Fields of an analysis that need no attribute of their own name."""


def _analysis(spec: SpectrumSpec) -> dict[str, Any]:
    found = {
        "sample_rate_hz": spec.fs,
        "window": spec.window,
        "window_length_samples": spec.win_length,
        "hop_samples": spec.hop,
        "nfft": spec.nfft,
        "enbw_hz": spec.enbw_hz,
        "frequency_weighting": spec.weighting,
        "bands": spec.bands or "none",
        **_unresolved(spec),
        "averaging": spec.averaging,
        "averaging_frames": spec.averaging_frames,
        **({"center_frequency_hz": spec.center_frequency_hz} if spec.iq else {}),
        **({"rate_hz": spec.rate_hz, "align": spec.align} if spec.rate_hz else {}),
        **_calibration(spec),
    }
    others = [name for name in SPEC_FIELDS if name not in _IN_OTHER_ATTRIBUTES | found.keys()]
    return found | chosen(spec, others)


def _unresolved(spec: SpectrumSpec) -> dict[str, Any]:
    bands = spec.band_table
    if bands is None or not bands.unresolved:
        return {}
    return {
        "unresolved_bands": ", ".join(bands.unresolved),
        "unresolved_bands_win_length": spec.resolving_win_length,
    }


def _summary(description: Description) -> str:
    spec = description.spec
    return (
        f"{long_name(spec)} in {spec.scale.unit}, {spec.scale.reference}; {spec.window} window of "
        f"{spec.win_length} samples every {spec.hop} at {spec.fs:.10g} Hz"
    )
