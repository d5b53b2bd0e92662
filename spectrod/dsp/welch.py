"""Averages over overlapping frames: how many independent frames they are worth."""

from functools import lru_cache

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.dsp.windows import Window


@lru_cache(maxsize=16)
def frame_correlation(window: Window, hop: int) -> Float64Array:
    """Return the correlation of white noise in one bin of successive frames.

    Parameters
    ----------
    window : Window
        Window of known samples.
    hop : int
        Samples from one frame to the next, >= 1.

    Returns
    -------
    correlation : (n,) float64
        Of frames 1, 2, ... hops apart, as long as they overlap; read-only. Powers of Gaussian noise
        have its square.
    """
    n = len(window.samples)
    spectrum = np.fft.rfft(window.samples, 2 * n)
    products = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, 2 * n)[:n]
    correlation: Float64Array = products[hop::hop] / window.s2
    correlation.setflags(write=False)
    return correlation


def effective_averages(window: Window, hop: int, n_frames: int) -> float:
    """Return the number of independent frames with the variance of a mean over overlapping ones.

    Parameters
    ----------
    window : Window
        Window of known samples.
    hop : int
        Samples from one frame to the next, >= 1.
    n_frames : int
        Frames in the mean, >= 1.

    Returns
    -------
    n : float
        1 to n_frames; a mean of powers of Gaussian noise has ``2 n`` degrees of freedom, and half
        as many at 0 Hz and Nyquist.

    References
    ----------
    .. [1] P. D. Welch, "The use of fast Fourier transform for the estimation of power spectra",
       IEEE Trans. Audio Electroacoustics 15(2), 1967.
    """
    squared = frame_correlation(window, hop)[: n_frames - 1] ** 2
    weights = 1.0 - np.arange(1, len(squared) + 1) / n_frames
    return float(n_frames / (1.0 + 2.0 * weights @ squared))


def decaying_averages(window: Window, hop: int, n_frames: int, decay: float) -> float:
    """Return the number of independent frames with the variance of an exponential average.

    Parameters
    ----------
    window, hop, n_frames
        See ``effective_averages``.
    decay : float
        Weight of a frame over that of the next one, above 0 and below 1.

    Returns
    -------
    n : float
        1 to n_frames, and with many frames at most (1 + decay) / (1 - decay).

    Notes
    -----
    With weights w, which sum to 1, the variance is that of one frame times the sum of w[i] w[j]
    rho[j - i]^2; Welch's formula is the case of equal weights.
    """
    squared = frame_correlation(window, hop)[: n_frames - 1] ** 2
    lags = np.arange(len(squared) + 1)
    total = (1.0 - decay**n_frames) / (1.0 - decay)
    products = decay**lags * (1.0 - decay ** (2.0 * (n_frames - lags))) / (1.0 - decay**2)
    return float(total**2 / (products[0] + 2.0 * products[1:] @ squared))
