"""Range of levels of a picture's colour map."""

from functools import cached_property

import numpy as np

from spectrod.dsp.units import FLOOR_DBFS, Float32Array
from spectrod.formats.picture.peak_entries import PeakLevels
from spectrod.formats.picture.picture_settings import PictureOptions

_PERCENTILES = (5.0, 99.95)
_STEP_DB = 5.0
_MIN_DB, _MAX_DB = 30.0, 90.0
_SILENT_RANGE_DB = (-100.0, -20.0)
_LEAST_DB = 1.0
"""Smallest range between given percentiles, however flat the picture [dB]."""
_SAMPLE_STEP = 61
"""One of this many values is in the sample; a prime, so that pixels of all columns are in it."""


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
    levels = _RankedLevels(values, scale)
    span = options.dynamic_range_db
    if levels.n == 0:
        lo, hi = _SILENT_RANGE_DB
    elif options.percentiles is not None:
        lo, hi = levels.range(options.percentiles, 1.0)
        lo = min(lo, hi - _LEAST_DB)
    else:
        lo, hi = levels.range(_PERCENTILES, _STEP_DB)
        lo = min(max(lo, hi - _MAX_DB), hi - _MIN_DB)
    return (lo if span is None else hi - span), hi


class _RankedLevels:
    """Levels of the values that are not missing and not digital silence, by their rank.

    Parameters
    ----------
    values : (...) float32
        Levels, or powers if there is a scale; NaN for missing ones.
    scale : PeakLevels or None
        Levels of powers.
    """

    def __init__(self, values: Float32Array, scale: PeakLevels | None) -> None:
        self._values, self._scale = values.reshape(-1), scale
        self._silent = self._greatest(FLOOR_DBFS + 1.0)
        self._n_silent, self.n = 0, self._values.size
        if not self._values.min(initial=np.inf) > self._silent:  # also for NaN
            self._n_silent = int(np.count_nonzero(self._values <= self._silent))
            self.n = int(np.count_nonzero(self._values > self._silent))

    @cached_property
    def _sample(self) -> Float32Array:
        """Some of the values, sorted."""
        sample = self._values[::_SAMPLE_STEP]
        return np.sort(sample[sample > self._silent])

    def _greatest(self, level: float) -> np.float32:
        """Return the greatest value whose level is not above the given one."""
        if self._scale is None:
            return np.float32(level)
        return np.float32(np.nextafter(self._scale.least(level), np.float32(0.0)))

    def _count(self, level: float) -> int:
        """Return the number of levels that are not above the given one."""
        value = self._greatest(level)
        if value <= self._silent:
            return 0
        return int(np.count_nonzero(self._values <= value)) - self._n_silent

    def range(self, percentiles: tuple[float, float], step_db: float) -> tuple[float, float]:
        """Return two percentiles, the lower one rounded down, the higher one up."""
        quiet, loud = percentiles
        return self.rounded(quiet, step_db, up=False), self.rounded(loud, step_db, up=True)

    def rounded(self, percentile: float, step_db: float, *, up: bool) -> float:
        """Return a percentile, as ``numpy.percentile``'s, rounded to a multiple of a step.

        Counts show between which multiples it is, without sorting the values. A sample suggests
        the multiples; where it misleads, or a multiple is next to the percentile, the values are
        sorted.
        """
        place, sample = percentile / 100.0 * (self.n - 1), self._sample
        if sample.size:
            guess = sample[int(percentile / 100.0 * (sample.size - 1))]
            least = int(np.floor(self._level(guess) / step_db))
            # What is rounded up to a multiple may be equal to it, what is rounded down is below.
            for low in (least, least - 1, least + 1):
                low_db, high_db = (
                    multiple * step_db if up else _next_below(multiple * step_db)
                    for multiple in (low, low + 1)
                )
                if self._are_between(int(place), low_db, high_db):
                    return step_db * (low + up)
        level = self._percentile(place) / step_db
        return step_db * float(np.ceil(level) if up else np.floor(level))

    def _are_between(self, rank: int, low_db: float, high_db: float) -> bool:
        """Return whether the levels of a rank and of the next are above one, not above another."""
        return self._count(low_db) <= rank and self._count(high_db) >= min(rank + 2, self.n)

    def _percentile(self, place: float) -> float:
        """Return the level at a place between two ranks."""
        audible = self._values[self._values > self._silent]
        both = [int(place), min(int(place) + 1, self.n - 1)]
        audible.partition(both)
        low, high = (float(self._level(value)) for value in audible[both])
        return low + (place - both[0]) * (high - low)

    def _level(self, value: np.float32) -> np.float32:
        return value if self._scale is None else self._scale(np.array([value]))[0]


def _next_below(level: float) -> float:
    """Return the greatest level below the given one."""
    return float(np.nextafter(np.float32(level), np.float32(-np.inf)))
