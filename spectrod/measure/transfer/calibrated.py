"""Calibrations of two channels: the unit that both have, and factors of their power."""

from collections.abc import Sequence

import numpy as np

from spectrod.dsp.calibration import ChannelCalibration
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError


def common_unit(calibrations: Sequence[ChannelCalibration | None]) -> str:
    """Return the unit of all channels, ``FS`` without calibrations.

    Raises
    ------
    ConfigError
        If they differ.
    """
    units = ["FS" if one is None else one.linear_unit for one in calibrations]
    if len(set(units)) > 1:
        raise ConfigError(f"calibration: both channels must have one unit, not {', '.join(units)}")
    return units[0]


def power_factors(
    calibration: ChannelCalibration | None, frequencies: Float64Array
) -> Float64Array:
    """Return the factors of a channel's power in FS^2 that make it calibrated, (bins,).

    A frequency response is corrected where it is known.
    """
    factors = np.ones(len(frequencies))
    if calibration is None:
        return factors
    if calibration.response is not None:
        factors *= calibration.response.power_factors(frequencies)
    return factors * calibration.full_scale**2
