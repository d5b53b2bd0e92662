"""Tables for the kernels, computed in float64 and rounded once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectrod.units import Float32Array, Float64Array

Complex64Array = NDArray[np.complex64]


def stft_twiddles(radices: Sequence[int]) -> Complex64Array:
    """Twiddle factors of a real transform that runs as a half-length complex one.

    Parameters
    ----------
    radices : sequence of int
        Of the passes, in their order; their product is ``half = nfft / 2``.

    Returns
    -------
    table : (half - 1 + half // 2 + 1,) complex64
        For each pass of radix R after transforms of length s: at ``s - 1 + (r - 1) s + k`` the
        factor ``exp(-2 pi i r k / (s R))``, r = 1 to R - 1, k = 0 to s - 1. The passes before one
        fill exactly the s - 1 places in front of it. From ``half - 1`` on, for the split into
        even and odd samples, ``exp(-2 pi i k / nfft)``, k = 0 to half // 2.

    References
    ----------
    .. [1] N. Govindaraju et al., "High performance discrete Fourier transforms on graphics
       processors", 2008 (Stockham passes).
    .. [2] H. Sorensen et al., "Real-valued fast Fourier transform algorithms", 1987.
    """
    turns: list[Float64Array] = []
    span = 1
    for radix in radices:
        r = np.arange(1, radix)[:, None]
        turns.append((r * np.arange(span) / (span * radix)).ravel())
        span *= radix
    turns.append(np.arange(span // 2 + 1) / (2 * span))
    table: Complex64Array = np.exp(-2j * np.pi * np.concatenate(turns)).astype(np.complex64)
    return table


def padded_window(samples: Float64Array, nfft: int) -> Float32Array:
    """Window with zeros up to nfft: (win_length,) float64 to (nfft,) float32 [1]."""
    table = np.zeros(nfft, np.float32)
    table[: len(samples)] = samples
    return table
