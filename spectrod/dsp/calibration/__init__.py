"""Calibration: from digital full scale to physical units.

A calibration file (``load_calibration``) states the sensitivity of each channel of a source. Of
each channel it gives a ``ChannelCalibration``: the level of digital full scale, the unit, and
optionally the frequency response.
"""

from spectrod.dsp.calibration.channel_calibration import ChannelCalibration, common_text
from spectrod.dsp.calibration.file import (
    Calibration,
    CalibrationLike,
    calibration_of,
    load_calibration,
)
from spectrod.dsp.calibration.response import Response
from spectrod.dsp.calibration.validity import Validity, common_validity, outside_validity
from spectrod.dsp.level_reference import SPL_UNIT, Reference, parse_reference

__all__ = [
    "SPL_UNIT",
    "Calibration",
    "CalibrationLike",
    "ChannelCalibration",
    "Reference",
    "Response",
    "Validity",
    "calibration_of",
    "common_text",
    "common_validity",
    "load_calibration",
    "outside_validity",
    "parse_reference",
]
