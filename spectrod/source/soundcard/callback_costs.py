"""Distribution of the durations of PortAudio's callbacks."""

from bisect import bisect_right
from itertools import accumulate

_EDGES_NS = [*range(1, 33), *(n << shift for shift in range(1, 60) for n in range(17, 33))]
"""Upper edges of buckets: one for each ns up to 31, then sixteen for each power of two."""


class CallbackCosts:
    """Histogram of durations; one thread adds, any thread may ask for a quantile."""

    def __init__(self) -> None:
        self._counts = [0] * len(_EDGES_NS)

    def add(self, cost_ns: int) -> None:
        """Count the duration of a callback [ns]."""
        self._counts[bisect_right(_EDGES_NS, cost_ns)] += 1

    def quantile_us(self, quantile: float) -> float | None:
        """Return a quantile, 0 to 1, of the durations.

        Returns
        -------
        cost : float or None
            Upper edge of the bucket that contains the quantile, at most 1/16 too high [us]; None
            before the first callback.
        """
        counts = [*self._counts]
        rank = max(1.0, quantile * sum(counts))
        found = (edge for edge, n in zip(_EDGES_NS, accumulate(counts), strict=True) if n >= rank)
        edge_ns = next(found, None)
        return None if edge_ns is None else edge_ns * 1e-3
