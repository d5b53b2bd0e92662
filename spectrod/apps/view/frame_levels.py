"""Levels of a received spectrum in decibels."""

import numpy as np

from spectrod.dsp.units import FLOOR_DBFS, Float64Array, power_to_level
from spectrod.wire.schema import Frame, SpectrumHeader

_CEILING_DB = 1000.0  # no level of anything, and its power is a finite number


def levels_db(frame: Frame) -> Float64Array:
    """Return a frame's values in decibels, shape (n_bins,) [``level_unit``].

    NaN and silence become the floor, -200 dB; what is above 1000 dB, infinity too, becomes that.
    """
    values = frame.values.astype(np.float64)
    if not frame.header.unit.startswith("dB"):
        values = power_to_level(np.fmax(values, 0.0), floor_db=FLOOR_DBFS)
    return np.clip(np.fmax(values, FLOOR_DBFS), FLOOR_DBFS, _CEILING_DB)


def level_unit(header: SpectrumHeader) -> str:
    """Return the unit of ``levels_db``."""
    return header.unit if header.unit.startswith("dB") else f"dB re {header.unit}"
