"""The bins of a spectrum's strongest peaks."""

import bisect
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import FLOOR_DBFS, Float64Array

PROMINENCE_DB = 6.0
"""Height of a peak above the higher of the two valleys that separate it from higher ones [dB]."""
ABOVE_FLOOR_DB = 10.0
"""Height of a peak above the median of the bins around it: 0.1 % of the bins of white noise without
averaging reach it [dB]."""

BELOW_HIGHEST_DB = 90.0
"""Depth below the highest bin at which bins are rounding noise of float32, and no peaks [dB]."""

_FLOOR_BINS = 128
_CANDIDATES = 256
"""Local maxima that are examined, the highest first."""


def find_peak_bins(levels: Float64Array, count: int) -> list[int]:
    """Find the highest peaks, the highest first.

    Parameters
    ----------
    levels : (n_bins,) float64
        Spectrum, without NaN; bins at ``FLOOR_DBFS`` are silent [dB].
    count : int
        Number of peaks, at least 0.

    Returns
    -------
    bins : list of int
        At most ``count``, neither the first nor the last bin; each at least ``PROMINENCE_DB``
        prominent, ``ABOVE_FLOOR_DB`` above the noise, and no more than ``BELOW_HIGHEST_DB`` below
        the highest bin.

    Notes
    -----
    Cost O(n_bins), and of each candidate the bins to the next higher ones.
    """
    if len(levels) < 3:
        return []
    candidates = _local_maxima(levels)
    least = np.maximum(
        _floor_at(levels, candidates) + ABOVE_FLOOR_DB, levels.max() - BELOW_HIGHEST_DB
    )
    candidates = candidates[levels[candidates] >= least]
    order = np.argsort(-levels[candidates], kind="stable")[:_CANDIDATES]
    higher: list[int] = []
    found: list[int] = []
    for k in candidates[order].tolist():
        if len(found) >= count:
            break
        if _prominence_db(levels, k, higher) >= PROMINENCE_DB:
            found.append(k)
        bisect.insort(higher, k)
    return found


def _local_maxima(levels: Float64Array) -> NDArray[np.int64]:
    """Return bins that exceed the one before and are not below the one after."""
    middle = levels[1:-1]
    is_peak = (middle > levels[:-2]) & (middle >= levels[2:]) & (middle > FLOOR_DBFS)
    return np.flatnonzero(is_peak) + 1


def _floor_at(levels: Float64Array, bins: NDArray[np.int64]) -> Float64Array:
    """Return the median of the block of bins that each bin is in."""
    n_blocks = max(1, len(levels) // _FLOOR_BINS)
    cut = n_blocks * _FLOOR_BINS
    if len(levels) < _FLOOR_BINS:
        return np.full(len(bins), np.median(levels))
    medians = np.median(levels[:cut].reshape(n_blocks, _FLOOR_BINS), axis=1)
    return np.asarray(medians[np.minimum(bins // _FLOOR_BINS, n_blocks - 1)])


def _prominence_db(levels: Float64Array, k: int, higher: Sequence[int]) -> float:
    """Return the height above the higher of the valleys towards higher peaks, or the ends."""
    at = bisect.bisect(higher, k)
    left = higher[at - 1] if at else 0
    right = higher[at] if at < len(higher) else len(levels) - 1
    valley = max(levels[left : k + 1].min(), levels[k : right + 1].min())
    return float(levels[k] - valley)
