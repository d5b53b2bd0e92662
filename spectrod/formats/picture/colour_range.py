"""Range of levels of a picture's colour map."""

import numpy as np

from spectrod.formats.picture.options import PictureOptions
from spectrod.formats.picture.peaks import PeakLevels
from spectrod.units import FLOOR_DBFS, Float32Array

_PERCENTILES = (5.0, 99.95)
_STEP_DB = 5.0
_MIN_DB, _MAX_DB = 30.0, 90.0
_SILENT_RANGE_DB = (-100.0, -20.0)
_LEAST_DB = 1.0
"""Smallest range between given percentiles, however flat the picture [dB]."""
_SAMPLE_STEP = 61
"""One of this many values is in the sample; a prime, so that pixels of all columns are in it."""
_DEVIATIONS = 5.0
"""Standard deviations of a rank in the sample that are searched."""


def colour_range(
    values: Float32Array, options: PictureOptions, scale: PeakLevels | None = None
) -> tuple[float, float]:
    """Choose the colour map's range.

    Parameters
    ----------
    values : (...) float32
        Levels of the data pixels, or powers if there is a scale; NaN for missing ones.
    options : PictureOptions
        ``levels`` are used unchanged. ``percentiles`` are rounded outwards to whole dB.
        ``dynamic_range_db`` is the exact distance of the low end from the high end.
    scale : PeakLevels, optional
        Levels of powers.

    Returns
    -------
    lo, hi : float
        Without any of these options, the 5th and the 99.95th percentile, rounded outwards to
        multiples of 5 dB, and 30 to 90 dB apart (the high end stays). Digital silence is ignored;
        if there is nothing else, a usual range is returned.
    """
    if options.levels is not None:
        return options.levels
    audible = _audible(values, scale)
    span = options.dynamic_range_db
    if audible.size == 0:
        lo, hi = _SILENT_RANGE_DB
    elif options.percentiles is not None:
        lo, hi = _rounded(audible, options.percentiles, 1.0, scale)
        lo = min(lo, hi - _LEAST_DB)
    else:
        lo, hi = _rounded(audible, _PERCENTILES, _STEP_DB, scale)
        lo = min(max(lo, hi - _MAX_DB), hi - _MIN_DB)
    return (lo if span is None else hi - span), hi


def _audible(values: Float32Array, scale: PeakLevels | None) -> Float32Array:
    """Return the values that are not missing and not digital silence, (n,) float32."""
    silent_db = FLOOR_DBFS + 1.0
    is_audible = values > silent_db if scale is None else values >= scale.least(silent_db)
    return values.reshape(-1) if is_audible.all() else values[is_audible]


def _rounded(
    audible: Float32Array,
    percentiles: tuple[float, float],
    step_db: float,
    scale: PeakLevels | None,
) -> tuple[float, float]:
    """Return two percentiles, the lower one rounded down, the higher one up."""
    quiet, loud = _percentiles(audible, percentiles, scale)
    return (
        step_db * float(np.floor(quiet / step_db)),
        step_db * float(np.ceil(loud / step_db)),
    )


def _percentiles(
    values: Float32Array, percentiles: tuple[float, float], scale: PeakLevels | None
) -> list[float]:
    """Return percentiles of levels like ``numpy.percentile``, which imports for 10 ms."""
    between, sample = [], np.sort(values[::_SAMPLE_STEP])
    for percentile in percentiles:
        place = percentile / 100.0 * (values.size - 1)
        below = int(place)
        pair = neighbours(values, below, sample)
        low, high = (pair if scale is None else scale(pair)).astype(np.float64)
        between.append(float(low + (place - below) * (high - low)))
    return between


def neighbours(
    values: Float32Array, place: int, sample: Float32Array | None = None
) -> Float32Array:
    """Return the values at an index, and at the next one, as if all values were sorted.

    A sorted sample shows between which values they are, and only the values there are sorted: a
    fifth of the time of ``numpy.partition``, which takes over where the sample is wrong.

    Parameters
    ----------
    values : (n,) float32
        Without NaN.
    place : int
        Index, 0 to n - 1; the next one is at most n - 1.
    sample : (samples,) float32, optional
        Sorted sample of the values, evenly spaced; by default it is taken here.

    Returns
    -------
    pair : (2,) float32
    """
    if sample is None:
        sample = np.sort(values[::_SAMPLE_STEP])
    middle = place / values.size * sample.size
    margin = 2.0 + _DEVIATIONS * np.sqrt(middle * (1.0 - middle / sample.size))
    first, last = int(middle - margin), int(middle + margin) + 1
    least = sample[first] if first >= 0 else -np.inf
    most = sample[last] if last < sample.size else np.inf
    is_near = values >= least
    n_below = values.size - int(np.count_nonzero(is_near))
    if most < np.inf:
        is_near &= values <= most
    near, rank = values[is_near], place - n_below
    if not 0 <= rank <= near.size - 2:
        near, rank = values.copy(), place
    both = [rank, min(rank + 1, near.size - 1)]
    near.partition(both)
    return near[both]
