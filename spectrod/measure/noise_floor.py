"""The noise floor of rows: medians of neighbouring bins, which tones do not move."""

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.dsp.welch import effective_averages, frame_correlation

_BLOCK_MIN_BINS = 64
_BLOCK_LOBES = 8
"""Main lobes in a block of bins: a tone covers an eighth of one."""


def block_bins(lobe_bins: int, n_bins: int) -> int:
    """Return the number of bins under one median, for a main lobe of +-lobe_bins."""
    return min(n_bins, max(_BLOCK_MIN_BINS, _BLOCK_LOBES * 2 * lobe_bins))


def block_medians(power: Float64Array, n_block: int) -> Float64Array:
    """Return the medians of blocks of bins.

    Parameters
    ----------
    power : (..., bins) float64
        Powers.
    n_block : int
        Bins of a block, at most all.

    Returns
    -------
    medians : (..., blocks) float64
        Block b covers the bins from ``b * n_block`` on; the last block is the last n_block bins.
    """
    n_whole = power.shape[-1] // n_block
    blocks = power[..., : n_whole * n_block].reshape(*power.shape[:-1], n_whole, n_block)
    medians = np.median(blocks, axis=-1)
    if n_whole * n_block < power.shape[-1]:
        last = np.median(power[..., -n_block:], axis=-1, keepdims=True)
        medians = np.concatenate([medians, last], axis=-1)
    return np.asarray(medians)


def floor_at(
    medians: Float64Array, n_block: int, n_bins: int, bins: NDArray[np.int64]
) -> Float64Array:
    """Interpolate medians of one row at bins.

    Parameters
    ----------
    medians : (blocks,) float64
        From ``block_medians``.
    n_block, n_bins : int
        Bins of a block, and of the row.
    bins : (n,) int64
        Indices of bins.

    Returns
    -------
    floor : (n,) float64
        Interpolated linearly between the middles of the blocks.
    """
    middles = np.arange(len(medians)) * n_block + (n_block - 1) / 2.0
    middles[-1] = n_bins - (n_block + 1) / 2.0
    return np.interp(bins, middles, medians)


def mean_over_median(spec: SpectrumSpec) -> float:
    """Return the ratio of mean to median of a bin of Gaussian noise.

    A mean of K independent frames has a gamma distribution of shape K, whose median is the mean
    times about ``(1 - 1 / (9 K))**3`` [1]_. Other averages have no such ratio: 1.

    References
    ----------
    .. [1] E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", PNAS 17, 1931.
    """
    if spec.averaging not in ("none", "mean", "exponential"):
        return 1.0
    return float((1.0 - 1.0 / (9.0 * independent_frames(spec))) ** -3)


def independent_frames(spec: SpectrumSpec) -> float:
    """Return the number of independent frames that a row is worth."""
    if spec.averaging == "mean":
        return effective_averages(spec.taper, spec.hop, spec.averaging_frames)
    if spec.averaging == "none":
        return 1.0
    hop = float(spec.row_step) / spec.averaging_frames
    left = np.exp(-hop / (spec.fs * spec.averaging_s))
    squared = frame_correlation(spec.taper, max(1, int(hop))) ** 2
    overlap = 1.0 + 2.0 * left ** np.arange(1, len(squared) + 1) @ squared
    return max(1.0, float((1.0 + left) / (1.0 - left) / overlap))


def independent_values(spec: SpectrumSpec) -> Float64Array:
    """Return how many independent complex values the noise in each bin is worth, (bins,).

    It is 1, and 1/2 at 0 Hz and at Nyquist, where spectra of real samples are real. Noise that is
    white around a bin of frequency f has real and imaginary parts of variances ``(1 +- c) / 2``
    along some axes, where c is the magnitude of the transform of the squared window at 2 f over its
    sum. A gamma distribution with the mean and variance of its power has the shape
    ``1 / (1 + c**2)``. Spectra of I/Q samples, and of windows whose samples are not known, have 1.
    """
    if spec.iq or not np.all(np.isfinite(spec.taper.samples)):
        return np.ones(spec.n_bins)
    transform = np.fft.fft(spec.taper.samples**2, spec.nfft)
    at_twice = transform[2 * np.arange(spec.n_bins) % spec.nfft]
    return np.asarray(1.0 / (1.0 + np.abs(at_twice / spec.taper.s2) ** 2))


_SIDES_MIN = 16
"""Fewest bins of no tone from which the noise beside tones is estimated."""
_SIDE_VALUES = 1 << 20
"""Values that are sorted at a time."""


def floor_beside(
    rest: Float64Array,
    is_free: NDArray[np.bool_],
    bins: NDArray[np.int64],
    n_block: int,
    to_mean: float,
) -> Float64Array | None:
    """Estimate the noise beside tones from the bins that are nearest and of no tone.

    Parameters
    ----------
    rest : (bins,) float64
        Powers of one row without what tones leak, of either sign.
    is_free : (bins,) bool
        Bins outside the main lobes of tones.
    bins : (n,) int64
        Bins of the tones.
    n_block : int
        Bins for each tone.
    to_mean : float
        Ratio of mean to median of a bin of noise.

    Returns
    -------
    floor : (n,) float64 or None
        Mean power of the noise in a bin; None with too few free bins. It is at least the standard
        error of the estimate, which is large where leakage hides the noise: its cross terms with
        the noise, and the error of its model, scatter the rest.
    """
    free = np.flatnonzero(is_free)
    n = min(n_block, len(free))
    if n < _SIDES_MIN:
        return None
    first = np.clip(np.searchsorted(free, bins) - n // 2, 0, len(free) - n)
    step = max(1, _SIDE_VALUES // n)
    parts = [
        _robust_mean(rest[free[first[k : k + step, np.newaxis] + np.arange(n)]], to_mean)
        for k in range(0, len(bins), step)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _robust_mean(values: Float64Array, to_mean: float) -> Float64Array:
    """Return the mean of noise in each row, at least the standard error of its median."""
    middle = np.median(values, axis=-1)
    # Of normal values the median's standard error is 1.253 times that of the mean, and the median
    # absolute deviation is 1 / 1.4826 standard deviations.
    scatter = np.median(np.abs(values - middle[:, np.newaxis]), axis=-1)
    error = 1.253 * 1.4826 * scatter / np.sqrt(values.shape[-1])
    return np.asarray(np.maximum(middle * to_mean, error))
