"""The band table of hybrid-millidecade minutes, to half the sample rate."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.bands import Bands, millidecade_limits
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError


@lru_cache(maxsize=16)
def minute_bands(fs: float, nfft: int, n_bands: int | None = None) -> Bands:
    """Return the bands of the published table [1]_, with their shares of bins.

    The first is from -0.5 to 0.5 Hz: its density is the power of both halves over 1 Hz. The last
    ends at fs / 2, and its centre is at most there. Each bin extends half a bin width to both
    sides, so half of the bin at fs / 2 is in the last band. ``spectrod.bands`` differs in these
    two: it has whole bands alone, and the first from 0 Hz.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    nfft : int
        Transform length, at least fs.
    n_bands : int or None
        Number of bands, from the lowest; None for all.

    Raises
    ------
    ConfigError
        If bins are wider than 1 Hz.

    References
    ----------
    .. [1] S. B. Martin et al., JASA Express Letters 1(1), 011203, 2021, and its published code,
       which PyPAM 1.0 follows.
    """
    if fs > nfft:
        raise ConfigError(
            f"bins of {fs / nfft:g} Hz: must be 1 Hz or less for the millidecade profile: "
            f"nfft={nfft} must be at least fs={fs:g}"
        )
    limits = millidecade_limits(fs / 2.0)
    is_kept = np.flatnonzero(limits[0] < fs / 2.0)[:n_bands]
    lower, centre, upper = (np.minimum(values[is_kept], fs / 2.0) for values in limits)
    delta_f = fs / nfft
    first = np.maximum(0, np.floor(lower / delta_f + 0.5).astype(np.int64))
    past = np.minimum(nfft // 2 + 1, np.ceil(upper / delta_f + 0.5).astype(np.int64))
    count = past - first
    k = _bins_of(first, count)
    band = np.repeat(np.arange(len(first)), count)
    begins, ends = (k - 0.5) * delta_f, (k + 0.5) * delta_f
    overlap = np.minimum(ends, upper[band]) - np.maximum(begins, lower[band])
    shares = np.maximum(0.0, overlap) / delta_f  # without rounding errors
    return Bands(lower, centre, upper, upper - lower, first, count, shares)


def to_bands(density: Float64Array, bands: Bands, delta_f: float) -> Float64Array:
    """Average densities over bands, (..., bins) to (..., bands), weighted by each bin's share."""
    starts = np.cumsum(bands.count) - bands.count
    k = _bins_of(bands.first, bands.count)
    sums: Float64Array = np.add.reduceat(density[..., k] * bands.shares, starts, axis=-1)
    return sums * delta_f / bands.width


def _bins_of(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bins of all bands, band after band."""
    starts = np.cumsum(count) - count
    return np.repeat(first - starts, count) + np.arange(int(count.sum()))
