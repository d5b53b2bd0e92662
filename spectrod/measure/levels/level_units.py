"""Units of levels."""

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.measure.measurement import Quantity

UNCALIBRATED = "dBFS"
"""Unit of levels without a calibration: 0 dBFS is a full-scale sine."""

_UNCALIBRATED_EXPOSURE = "dB re 0.5 FS^2 s"
"""A full-scale sine of 1 s: its mean square is half of full scale squared."""


def level_unit(calibration: ChannelCalibration | None) -> str:
    """Return the unit of a channel's levels, such as ``dB SPL``."""
    return UNCALIBRATED if calibration is None else calibration.unit


def unit_of(quantity: Quantity, calibration: ChannelCalibration | None) -> str:
    """Return the unit of a quantity of a channel.

    An exposure is an integral of squares over time, so its level refers to a square times 1 s, such
    as (20 uPa)^2 s (IEC 61672-1:2013, 3.12).
    """
    if quantity.unit == "level":
        return level_unit(calibration)
    if quantity.unit != "exposure":
        return quantity.unit
    if calibration is None:
        return _UNCALIBRATED_EXPOSURE
    return calibration.reference.exposure_level_unit
