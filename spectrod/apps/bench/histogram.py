"""Histogram of times with logarithmic bins, and its plot for a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array

_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
_DECADES = range(-6, 2)
_BAR = 50

EDGES: Float64Array = np.array([step * 10.0**decade for decade in _DECADES for step in _STEPS])
"""Edges of the bins, 1 us to 70 s [s]; times beyond count in the first or the last bin."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Histogram of times.

    Attributes
    ----------
    edges : (n + 1,) float64
        Edges of the bins from the first to the last that is not empty [s].
    counts : (n,) int64
        Times per bin, its lower edge included.
    """

    edges: Float64Array
    counts: NDArray[np.int64]

    def lines(self) -> Iterator[str]:
        """Format one line per bin: from, to, percentage, bar."""
        total, most = self.counts.sum(), self.counts.max(initial=1)
        for low, high, count in zip(self.edges[:-1], self.edges[1:], self.counts, strict=True):
            bar = "#" * int(np.ceil(_BAR * count / most))
            yield f"{low * 1e3:8g} to {high * 1e3:5g} ms {count / total:7.2%} {bar}".rstrip()


def histogram(times: Float64Array) -> Histogram:
    """Return the histogram of at least one time [s]."""
    inside = np.clip(times, EDGES[0], np.nextafter(EDGES[-1], 0.0))
    counts, _ = np.histogram(inside, EDGES)
    used = np.flatnonzero(counts)
    first, last = used[0], used[-1] + 1
    return Histogram(EDGES[first : last + 1], counts[first:last].astype(np.int64))
