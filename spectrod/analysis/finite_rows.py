"""Rows that show whether their samples are finite, so that samples need not be read for that.

Each value of a row depends on every sample of its frames, by sums and products only. A sample that
is NaN or infinite therefore leaves no finite value in its rows, whatever computes them. The reverse
does not hold: huge finite samples may have an infinite power.
"""

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.bands import is_host_only
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float32Array


def shows_finite(spec: SpectrumSpec) -> bool:
    """Return whether rows of a spec are not finite wherever a sample of their frames is not.

    Maxima and percentiles may leave out a NaN, filters shorter than a frame do not have all of its
    samples, and frames farther apart than their length not all of the signal's.
    """
    return (
        spec.averaging in {"none", "mean"}
        and spec.hop <= spec.win_length
        and spec.grid.is_even
        and not is_host_only(spec.bands)
    )


def are_finite(rows: NDArray[np.inexact]) -> bool:
    """Return whether no row, (rows, signals, values), has a sample that is not finite.

    False also if a power is beyond float32. One value of each row is read: the first one.
    """
    return bool(np.isfinite(rows[:, :, 0]).all())


def is_finite_around(samples: Float32Array, first: int, end: int) -> bool:
    """Return whether the (channels, n) samples before ``first`` and from ``end`` on are finite.

    These are less than two frames.
    """
    return bool(np.isfinite(samples[:, :first]).all() and np.isfinite(samples[:, end:]).all())
