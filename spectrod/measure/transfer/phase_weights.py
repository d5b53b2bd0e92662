"""Weights of the frequencies whose phases a delay is measured from."""

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.measure.transfer.transfer_function import TransferFunction

ENERGY_MIN = 1e-12
"""Smallest magnitude of a bin of the cross spectrum that counts, over the largest [1]: -120 dB of
either channel."""

_COHERENCE_MAX = 0.99
"""Highest coherence that counts: the weight of better bins is the same."""
_SINGLE_EXPONENT = 0.3
"""Exponent of the magnitude of bins of a single frame, whose coherence is unknown: 0 would be a
whole phase transform, in which the noise of empty bands counts as much as a weak signal, and 1 none
at all [1]_.

.. [1] K. D. Donohue, J. Hannemann and H. G. Dietz, "Performance of phase transform for detecting
   sound sources with microphone arrays in reverberant and noisy environments", Signal Processing
   87, 2007.
"""


def averaged_weights(found: TransferFunction, window: Float64Array, nfft: int) -> Float64Array:
    """Return the weights of averaged spectra.

    Parameters
    ----------
    found : TransferFunction
        Averages of uncalibrated channels.
    window : (n,) float64
        Window of the frames.
    nfft : int
        Transform length.

    Returns
    -------
    weights : (bins,) float64
        g / (1 - g) with the coherence g without its bias, at most 0.99: the inverse of the variance
        of the phase [1]_. 0 where a channel has only what its window leaks there.

    References
    ----------
    .. [1] C. H. Knapp and G. C. Carter, "The generalized correlation method for estimation of time
       delay", IEEE Trans. ASSP 24(4), 1976: the processor of Hannan and Thomson.
    """
    chosen = _own_power(np.abs(found.gxy), (found.gxx, found.gyy), window, nfft)
    coherence = np.nan_to_num(found.coherence)
    by_chance = 1.0 / found.n_averages
    corrected = np.clip((coherence - by_chance) / (1.0 - by_chance), 0.0, _COHERENCE_MAX)
    return np.where(chosen, corrected / (1.0 - corrected), 0.0)


def single_weights(
    x: NDArray[np.complex128], y: NDArray[np.complex128], window: Float64Array, nfft: int
) -> Float64Array:
    """Return the weights of the spectra of a single frame, (bins,) complex128 each.

    They are the magnitude of the cross spectrum to the power of 0.3, and 0 where a channel has only
    what its window leaks there.
    """
    size = np.abs(x) * np.abs(y)
    chosen = _own_power(size, (np.abs(x) ** 2, np.abs(y) ** 2), window, nfft)
    return np.where(chosen, (size / max(size.max(), 1e-300)) ** _SINGLE_EXPONENT, 0.0)


def leakage(power: Float64Array, window: Float64Array, nfft: int) -> tuple[Float64Array, float]:
    """Return what a window leaks into each bin from the others.

    Parameters
    ----------
    power : (nfft // 2 + 1,) float64
        One-sided powers of frames; that of a bin counts as spread evenly over it.
    window : (n,) float64
        Window of the frames, at most nfft samples.
    nfft : int
        Transform length.

    Returns
    -------
    leakage : (nfft // 2 + 1,) float64
        Power from bins that are half a bin of the unpadded transform away, or more.
    share : float
        Share of a bin's energy that is leakage to others.
    """
    halves = np.abs(np.fft.fft(window, 2 * nfft)) ** 2
    kernel = 0.5 * halves[::2] + 0.25 * (halves[1::2] + np.roll(halves, 1)[::2])
    kernel /= kernel.sum()
    n_near = nfft // (2 * len(window))
    kernel[: n_near + 1] = 0.0
    kernel[nfft - n_near :] = 0.0
    two_sided = np.concatenate((power, power[1 : (nfft + 1) // 2][::-1]))
    leaked = np.fft.irfft(np.fft.rfft(two_sided) * np.fft.rfft(kernel), nfft)
    return np.maximum(leaked[: len(power)], 0.0), float(kernel.sum())


def _own_power(
    size: Float64Array,
    powers: tuple[Float64Array, Float64Array],
    window: Float64Array,
    nfft: int,
) -> NDArray[np.bool_]:
    """Return the bins, 0 Hz not among them, in which both channels have power of their own.

    A bin without any has at most what leaks there, and a bin of white noise 1 / share times that.
    """
    chosen = size > ENERGY_MIN * size.max()
    chosen[0] = False
    for power in powers:
        leaked, share = leakage(power, window, nfft)
        chosen &= power > 0.5 * (1.0 + 1.0 / max(share, 1e-6)) * leaked
    found: NDArray[np.bool_] = chosen
    return found
