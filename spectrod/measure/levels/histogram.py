"""Distributions of levels in fixed classes: percentiles and gated means in bounded memory."""

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array

CLASS_DB = 0.01
"""Width of a class [dB]."""
LOWEST_DB, HIGHEST_DB = -204.0, 56.0
"""Range of the classes, re 1 FS^2 [dB]: from -201 dBFS. Levels outside count at its ends."""
N_CLASSES = round((HIGHEST_DB - LOWEST_DB) / CLASS_DB)

BYTES_PER_CHANNEL = 8 * N_CLASSES
"""Memory of the counts [bytes]: 208 kB."""


_ONE = np.int64(1)


def _classes(power: Float64Array) -> NDArray[np.int64]:
    floor = 10.0 ** (LOWEST_DB / 10.0)
    level = 10.0 * np.log10(np.maximum(power, floor))
    numbers = np.clip(np.floor((level - LOWEST_DB) / CLASS_DB), 0, N_CLASSES - 1)
    classes: NDArray[np.int64] = numbers.astype(np.int64)
    return classes


class LevelHistogram:
    """Counts of levels in classes of 0.01 dB, for several channels.

    Parameters
    ----------
    channels : int
        Number of channels.

    Attributes
    ----------
    counts : (channels, N_CLASSES) int64
    """

    def __init__(self, channels: int) -> None:
        self.counts = np.zeros((channels, N_CLASSES), np.int64)

    def add(self, power: Float64Array) -> None:
        """Count (channels, n) powers [FS^2]."""
        # NumPy counts fast where one flat index and a number of the counts' type are given.
        first = N_CLASSES * np.arange(len(power))[:, np.newaxis]
        np.add.at(self.counts.reshape(-1), (_classes(power) + first).reshape(-1), _ONE)

    def merge(self, other: "LevelHistogram") -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts

    def exceeded(self, percent: float) -> Float64Array:
        """Return the power that is exceeded a part of the time.

        Parameters
        ----------
        percent : float
            Part of the counted powers that exceed it, 0 to 100 [%].

        Returns
        -------
        power : (channels,) float64
            [FS^2]; its level is within one class, 0.01 dB, of the sorted levels' value of rank
            ``(1 - percent / 100) (n - 1)``. NaN without any counts.
        """
        totals = self.counts.sum(axis=1)
        found = [
            self._quantile(k, round((100.0 - percent) * (n - 1) / 100.0, 6)) if n else np.nan
            for k, n in enumerate(totals.tolist())
        ]
        power: Float64Array = 10.0 ** (np.array(found) / 10.0)
        return power

    def _quantile(self, channel: int, rank: float) -> float:
        """Return the level of a rank, counted from 0, that classes hold evenly spread [dB]."""
        counts = self.counts[channel]
        reached = np.cumsum(counts)
        k = int(np.searchsorted(reached, rank, side="right"))
        inside = (rank - (reached[k] - counts[k]) + 0.5) / counts[k]
        return float(LOWEST_DB + (k + min(inside, 1.0)) * CLASS_DB)


class PowerHistogram:
    """Counts and sums of powers in classes of 0.01 dB, for gated means and ranks.

    Only which classes a threshold divides is rounded to a class; sums are exact.

    Attributes
    ----------
    classes : dict of int to (int, float)
        Count and sum [FS^2] of each class that is not empty.
    """

    def __init__(self) -> None:
        self.classes: dict[int, tuple[int, float]] = {}

    def add(self, power: Float64Array) -> None:
        """Count (n,) powers [FS^2]."""
        for number, one in zip(_classes(power).tolist(), power.tolist(), strict=True):
            self._add(number, 1, one)

    def merge(self, other: "PowerHistogram") -> None:
        """Add the counts and sums of another histogram."""
        for number, (count, total) in other.classes.items():
            self._add(number, count, total)

    def _add(self, number: int, count: int, total: float) -> None:
        count_before, total_before = self.classes.get(number, (0, 0.0))
        self.classes[number] = (count_before + count, total_before + total)

    def mean_above(self, power: float) -> float:
        """Return the mean of the powers in classes whose mean is above a power; NaN without any."""
        above = self._above(power)
        n = sum(count for count, _ in above)
        return sum(total for _, total in above) / n if n else np.nan

    def ranked_above(self, power: float, percent: float) -> float:
        """Return the power of a percentile of those above a power; NaN without any.

        Of n sorted values it is number ``round((n - 1) percent / 100 + 1)``, counted from 1 [1]_.

        References
        ----------
        .. [1] EBU Tech 3342, annex: MATLAB implementation.
        """
        above = self._above(power)
        n = sum(count for count, _ in above)
        left = int(np.floor((n - 1) * percent / 100.0 + 1.5))
        for count, total in above:
            left -= count
            if left <= 0:
                return total / count
        return np.nan

    def _above(self, power: float) -> list[tuple[int, float]]:
        """Return counts and sums of the classes whose mean is above a power, in order."""
        ordered = (self.classes[number] for number in sorted(self.classes))
        return [(count, total) for count, total in ordered if total > power * count]
