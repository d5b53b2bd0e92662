"""Where frequencies and levels lie on a grid of characters."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectrod.units import Float64Array

_LOWEST_HZ = 20.0
_TICKS_HZ = [k * 10**e for e in range(-1, 7) for k in (1, 2, 5)]


@dataclass(frozen=True, slots=True)
class LevelRange:
    """The decibels from the foot of the picture to its top."""

    bottom_db: float
    top_db: float

    def fraction(self, level_db: Float64Array) -> Float64Array:
        """Height in the picture, 0 to 1."""
        height = (level_db - self.bottom_db) / (self.top_db - self.bottom_db)
        return np.clip(height, 0.0, 1.0)


def level_range(unit: str) -> LevelRange:
    """Choose what to show of levels in ``unit``."""
    return LevelRange(-160.0, -20.0) if unit.endswith("/Hz") else LevelRange(-120.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class FrequencyAxis:
    """A logarithmic axis of columns over a spectrum's bins; made by ``frequency_axis``."""

    lowest_hz: float
    highest_hz: float
    columns: int
    bounds: NDArray[np.int64]
    """First and last-plus-one bin of each column, flat, shape (2 * columns,)."""

    def reduce(self, levels: Float64Array) -> Float64Array:
        """Take each column's highest bin, so that no tone hides; shape (columns,) [as levels]."""
        padded = np.append(levels, -np.inf)  # reduceat wants a bin at the last bound, too
        return np.asarray(np.maximum.reduceat(padded, self.bounds)[::2])

    def column(self, frequency_hz: float) -> int:
        """Column in which a frequency lies."""
        octaves = math.log2(self.highest_hz / self.lowest_hz)
        position = math.log2(frequency_hz / self.lowest_hz) / octaves * self.columns
        return min(self.columns - 1, max(0, int(position)))

    def ticks(self) -> list[tuple[int, str]]:
        """Columns and labels of the 1-2-5 frequencies in range."""
        inside = [f for f in _TICKS_HZ if self.lowest_hz <= f <= self.highest_hz]
        return [(self.column(f), _short_hz(f)) for f in inside]


@lru_cache(maxsize=4)
def frequency_axis(fs: float, nfft: int, columns: int) -> FrequencyAxis:
    """Lay a logarithmic axis from 20 Hz, or the first bin if that is higher, to Nyquist.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    nfft : int
        Transform length.
    columns : int
        Width in characters, >= 1.
    """
    n_bins, delta_f = nfft // 2 + 1, fs / nfft
    highest_hz = fs / 2.0
    lowest_hz = min(max(_LOWEST_HZ, delta_f), highest_hz / 2.0)
    edges_hz = np.geomspace(lowest_hz, highest_hz, columns + 1)
    edges_hz[-1] += delta_f / 2.0  # the last bin belongs to the last column
    first, last = (np.ceil(edges_hz / delta_f).astype(np.int64)[s] for s in (np.s_[:-1], np.s_[1:]))
    # Where columns are narrower than bins, a column without a bin shows the nearest one.
    nearest = np.rint(np.sqrt(edges_hz[:-1] * edges_hz[1:]) / delta_f).astype(np.int64)
    first = np.minimum(np.where(first < last, first, nearest), n_bins - 1)
    last = np.clip(last, first + 1, n_bins)
    bounds = np.stack([first, last], axis=1).ravel()
    return FrequencyAxis(lowest_hz, highest_hz, columns, bounds)


def _short_hz(frequency_hz: float) -> str:
    for factor, suffix in ((1e6, "M"), (1e3, "k")):
        if frequency_hz >= factor:
            return f"{frequency_hz / factor:g}{suffix}"
    return f"{frequency_hz:g}"
