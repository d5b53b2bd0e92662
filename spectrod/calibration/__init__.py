"""Calibration: from digital full scale to physical units.

A calibration file (``load_calibration``) states the sensitivity of each channel of a source. Of
each channel it gives a ``ChannelCalibration``: the level of digital full scale, the unit, and
optionally the frequency response.
"""

from spectrod.calibration.channel import ChannelCalibration, common_text
from spectrod.calibration.file import Calibration, CalibrationLike, calibration_of, load_calibration
from spectrod.calibration.reference import SPL_UNIT, Reference, parse_reference
from spectrod.calibration.response import Response

__all__ = [
    "SPL_UNIT",
    "Calibration",
    "CalibrationLike",
    "ChannelCalibration",
    "Reference",
    "Response",
    "calibration_of",
    "common_text",
    "load_calibration",
    "parse_reference",
]
