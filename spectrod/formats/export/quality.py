"""Quality flags and sensitivity of daily files, as the archive SoundCoop of NOAA's NCEI has them.

Names, values and meanings are those of https://github.com/mbari-org/pbp/issues/56.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.bands import Bands
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.conditions import Condition
from spectrod.dsp.units import Float32Array

GOOD, NOT_EVALUATED, QUESTIONABLE, BAD = 1, 2, 3, 4

_FLAGS = {
    Condition.GAP: QUESTIONABLE,
    Condition.CLIPPING: QUESTIONABLE,
    Condition.DC: QUESTIONABLE,
    Condition.SUSPECTED: QUESTIONABLE,
    Condition.SILENT: BAD,
    Condition.MISSING: BAD,
    Condition.STUCK: BAD,
}
_LOBE_BINS = 2.0
"""Half the width of a Hann window's main lobe, in which an offset is [bins]."""

QUALITY: dict[str, Any] = {
    "standard_name": "quality_flag",
    "long_name": "Data quality flag",
    "flag_values": np.array([GOOD, NOT_EVALUATED, QUESTIONABLE, BAD], np.int8),
    "flag_meanings": "good not_evaluated questionable bad",
    "comment": "1 = Good, 2 = Not evaluated/Unknown, 3 = Compromised/Questionable, "
    "4 = Unusable/Bad",
    "coverage_content_type": "qualityInformation",
}


def quality_of_bands(
    conditions: int,
    bands: Bands,
    delta_f: float,
    calibration: ChannelCalibration | None = None,
) -> NDArray[np.int8]:
    """Return the quality of the bands of a minute of a signal.

    Parameters
    ----------
    conditions : int
        What was found in its samples, see ``Condition``. Without ``CHECKED`` bands are not
        evaluated, but what was found counts.
    bands : Bands
        The bands. An offset (``DC``) counts in those that reach into two bins from 0 Hz.
    delta_f : float
        Width of a bin [Hz].
    calibration : ChannelCalibration, optional
        Bands whose centre is outside its frequency response are not evaluated.

    Returns
    -------
    flags : (bands,) int8
    """
    flags = np.full(len(bands), GOOD if conditions & Condition.CHECKED else NOT_EVALUATED, np.int8)
    if calibration is not None and calibration.response_hz is not None:
        low, high = calibration.response_hz
        flags[(bands.centre < low) | (bands.centre > high)] = NOT_EVALUATED
    for condition, flag in _FLAGS.items():
        if conditions & condition:
            is_low = condition == Condition.DC
            where = bands.lower < _LOBE_BINS * delta_f if is_low else slice(None)
            flags[where] = np.maximum(flags[where], np.int8(flag))
    return flags


def quality_of_minute(conditions: int) -> int:
    """Return the worst flag of any band of a minute, see ``quality_of_bands``."""
    least = GOOD if conditions & Condition.CHECKED else NOT_EVALUATED
    return max([least, *(flag for one, flag in _FLAGS.items() if conditions & one)])


def sensitivity_of(calibration: ChannelCalibration | None, bands: Bands) -> Float32Array | None:
    """Return the sensitivity of the whole recording chain in bands.

    Returns
    -------
    sensitivity : (bands,) float32 or None
        Level of digital full scale, with its sign changed, plus the frequency response, which is
        0 dB where it is not known [dB re 1 FS per reference]. None without a calibration, and of a
        stored one, which has no response.
    """
    if calibration is None or not np.isfinite(calibration.full_scale_db):
        return None
    response = calibration.response
    if response is None and calibration.response_hz is not None:
        return None
    levels = 0.0 if response is None else np.nan_to_num(response.at(bands.centre))
    return np.full(len(bands), levels - calibration.full_scale_db, np.float32)


def sensitivity_attributes(calibration: ChannelCalibration) -> dict[str, Any]:
    """Return the attributes of the sensitivity: its unit, reference and calibration."""
    reference = calibration.reference
    return {
        "long_name": f"Sensitivity of the recording chain (dB re 1 FS/({reference.name}))",
        "units": f"0.1 lg(re 1/({reference.udunits_power}))",
        "spectrod_unit": f"dB re 1 FS/({reference.name})",
        "calibration": calibration.cal_id or "none",
        "comment": "FS = digital full scale (1.0). The frequency response is interpolated to the "
        "centres of bands; outside it the stated sensitivity stands",
        "coverage_content_type": "physicalMeasurement",
    }
