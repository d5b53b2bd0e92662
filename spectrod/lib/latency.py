"""Latency histograms with fixed buckets: one thread adds, any thread reads."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

BOUNDS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Upper bounds of the buckets [s]; a last bucket has no bound."""


@dataclass(frozen=True, slots=True)
class LatencyCounts:
    """A snapshot of a histogram.

    Attributes
    ----------
    counts : tuple of int
        Observations in each bucket of ``BOUNDS_S``, and above the last bound.
    sum_s : float
        Sum of all observations [s].
    """

    counts: tuple[int, ...]
    sum_s: float


class LatencyHistogram:
    """Counts durations; ``add`` takes below a microsecond and no lock."""

    __slots__ = ("_counts", "_sum_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def add(self, duration_s: float) -> None:
        """Count a duration [s]; a negative one, of a clock that is corrected, counts as 0."""
        duration_s = max(0.0, duration_s)
        self._counts[bisect_left(BOUNDS_S, duration_s)] += 1
        self._sum_s += duration_s

    def snapshot(self) -> LatencyCounts:
        """Return the counts so far; the sum may lack an observation that is being added."""
        return LatencyCounts(tuple(self._counts), self._sum_s)
