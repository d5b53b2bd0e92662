"""Third-octave bands of a line spectrum, computed from the rows that it is of."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LOWEST, _HIGHEST = -20, 15
SHARE_MIN: Final = 1e-9


def edges_of(slices: list[dict[str, int]], n_bins: int, bin_hz: float) -> tuple[Floats, Floats]:
    """Return lower and upper edges of the values of slices (n_values,) [Hz]."""
    starts, stops = bins_of(slices, n_bins)
    return (starts - 0.5) * bin_hz, (stops - 0.5) * bin_hz


def bins_of(slices: list[dict[str, int]], n_bins: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first bin of each value of slices, and that after its last (n_values,)."""
    starts = np.concatenate(
        [one["first"] + one["per_value"] * np.arange(one["values"]) for one in slices]
    )
    counts = np.concatenate([np.full(one["values"], one["per_value"]) for one in slices])
    return starts, np.minimum(starts + counts, n_bins)


def bands_within(f0: float, f1: float, bin_hz: float) -> list[tuple[float, float]]:
    """Return the edges of the bands of base ten that lie within frequencies and are a bin wide."""
    found = []
    for k in range(_LOWEST, _HIGHEST):
        lower, upper = (1000.0 * 10.0 ** ((k + half) / 10.0) for half in (-0.5, 0.5))
        if lower >= f0 and upper <= f1 and upper - lower >= bin_hz:
            found.append((lower, upper))
    return found


def band_level(
    power: Floats, edges: tuple[Floats, Floats], band: tuple[float, float], enbw_hz: float
) -> float:
    """Return the level of a band [dB].

    Parameters
    ----------
    power : (n_values,) float64
        Mean power of each value, a bin on an edge counts by its share.
    edges : (lower, upper)
        Edges of the values [Hz].
    band : (lower, upper)
        Edges of the band [Hz].
    enbw_hz : float
        Noise bandwidth of a bin [Hz].
    """
    overlap = np.minimum(edges[1], band[1]) - np.maximum(edges[0], band[0])
    return 10.0 * math.log10(float((power * np.clip(overlap, 0.0, None)).sum()) / enbw_hz)
