"""Range of levels of a picture's colour map."""

import numpy as np

from spectrod.formats.picture.options import PictureOptions
from spectrod.units import FLOOR_DBFS, Float32Array

_PERCENTILES = (5.0, 99.95)
_STEP_DB = 5.0
_MIN_DB, _MAX_DB = 30.0, 90.0
_SILENT_RANGE_DB = (-100.0, -20.0)
_LEAST_DB = 1.0
"""Smallest range between given percentiles, however flat the picture [dB]."""


def colour_range(levels: Float32Array, options: PictureOptions) -> tuple[float, float]:
    """Choose the colour map's range.

    Parameters
    ----------
    levels : (...) float32
        Levels of the data pixels; NaN for missing ones.
    options : PictureOptions
        ``levels`` are used unchanged. ``percentiles`` are rounded outwards to whole dB.
        ``dynamic_range_db`` is the exact distance of the low end from the high end.

    Returns
    -------
    lo, hi : float
        Without any of these options, the 5th and the 99.95th percentile, rounded outwards to
        multiples of 5 dB, and 30 to 90 dB apart (the high end stays). Digital silence is ignored;
        if there is nothing else, a usual range is returned.
    """
    if options.levels is not None:
        return options.levels
    audible = levels[levels > FLOOR_DBFS + 1.0]
    span = options.dynamic_range_db
    if audible.size == 0:
        lo, hi = _SILENT_RANGE_DB
    elif options.percentiles is not None:
        lo, hi = _rounded(audible, options.percentiles, 1.0)
        lo = min(lo, hi - _LEAST_DB)
    else:
        lo, hi = _rounded(audible, _PERCENTILES, _STEP_DB)
        lo = min(max(lo, hi - _MAX_DB), hi - _MIN_DB)
    return (lo if span is None else hi - span), hi


def _rounded(
    audible: Float32Array, percentiles: tuple[float, float], step_db: float
) -> tuple[float, float]:
    """Return two percentiles, the lower one rounded down, the higher one up."""
    quiet, loud = _percentiles(audible, percentiles)
    return (
        step_db * float(np.floor(quiet / step_db)),
        step_db * float(np.ceil(loud / step_db)),
    )


def _percentiles(values: Float32Array, percentiles: tuple[float, float]) -> list[float]:
    """Return percentiles like ``numpy.percentile``, whose first call imports for 10 ms.

    Changes the order of the values.
    """
    places = np.asarray(percentiles) / 100.0 * (values.size - 1)
    below = places.astype(np.intp)
    above = np.minimum(below + 1, values.size - 1)
    values.partition(np.concatenate((below, above)))
    low, high = values[below].astype(np.float64), values[above].astype(np.float64)
    found: list[float] = (low + (places - below) * (high - low)).tolist()
    return found
