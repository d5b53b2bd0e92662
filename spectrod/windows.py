"""Analysis windows: periodic (DFT-even), named, in float64, with the sums that correct for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spectrod.errors import ConfigError
from spectrod.suggestions import did_you_mean
from spectrod.units import Float64Array

# Coefficients a_k of w[n] = sum_k (-1)^k a_k cos(2 pi k n / N).
# hann, hamming, blackman: Harris 1978; blackmanharris, nuttall (minimum 4-term): Nuttall 1981;
# flattop: the five-term window of D'Antona and Ferrero 2006, as scipy.signal.windows.flattop.
_COSINE_SUMS: dict[str, tuple[float, ...]] = {
    "rectangular": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}


def _cosine_sum(coefficients: tuple[float, ...], n: int) -> Float64Array:
    phase = 2.0 * np.pi * np.arange(n) / n
    terms = [(-1) ** k * a * np.cos(k * phase) for k, a in enumerate(coefficients)]
    return np.asarray(np.sum(terms, axis=0))


def _bartlett(n: int) -> Float64Array:
    return 1.0 - np.abs(2.0 * np.arange(n) / n - 1.0)


def _kaiser(n: int, beta: float) -> Float64Array:
    """Kaiser-Bessel window (Kaiser and Schafer 1980), the first n of n + 1 symmetric points."""
    return np.kaiser(n + 1, beta)[:n]


def _parse_kaiser(name: str) -> Callable[[int], Float64Array]:
    text = name.partition(":")[2]
    try:
        beta = float(text)
    except ValueError:
        beta = -1.0
    if not 0.0 <= beta <= 700.0:
        raise ConfigError(f"window={name!r}: kaiser needs its beta, 0 to 700, as in kaiser:8.6")
    return lambda n: _kaiser(n, beta)


WINDOW_NAMES: tuple[str, ...] = (*_COSINE_SUMS, "bartlett", "kaiser:BETA")


def _shape(name: str) -> Callable[[int], Float64Array]:
    if name in _COSINE_SUMS:
        return lambda n: _cosine_sum(_COSINE_SUMS[name], n)
    if name == "bartlett":
        return _bartlett
    if name.partition(":")[0] == "kaiser":
        return _parse_kaiser(name)
    suggestion = did_you_mean(name, WINDOW_NAMES)
    raise ConfigError(f"window={name!r}: must be one of {', '.join(WINDOW_NAMES)}{suggestion}")


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A window and its sums.

    Attributes
    ----------
    name : str
        As asked for, for example ``"hann"`` or ``"kaiser:8.6"``.
    samples : (win_length,) float64
        Periodic window, read-only.
    s1 : float
        Sum of the samples: corrects the height of a sine [1].
    s2 : float
        Sum of the squared samples: corrects the power of noise [1].
    """

    name: str
    samples: Float64Array
    s1: float
    s2: float

    @property
    def nenbw_bins(self) -> float:
        """Equivalent noise bandwidth in bins of fs / win_length."""
        return len(self.samples) * self.s2 / self.s1**2

    def enbw_hz(self, fs: float) -> float:
        """Equivalent noise bandwidth [Hz] at sample rate ``fs`` [Hz]."""
        return fs * self.s2 / self.s1**2


@lru_cache(maxsize=32)
def get_window(name: str, win_length: int) -> Window:
    """Make the named periodic window.

    Parameters
    ----------
    name : str
        One of ``WINDOW_NAMES``; Kaiser's is written with its beta, ``"kaiser:8.6"``.
    win_length : int
        Number of samples, >= 1.

    Returns
    -------
    window : Window
        Shared between callers and read-only.

    Raises
    ------
    ConfigError
        If the name is not known or win_length < 1.

    References
    ----------
    .. [1] F. J. Harris, "On the use of windows for harmonic analysis with the DFT", 1978.
    .. [2] A. H. Nuttall, "Some windows with very good sidelobe behavior", 1981.
    .. [3] G. Heinzel et al., "Spectrum and spectral density estimation by the DFT", 2002 (S1, S2).
    """
    if win_length < 1:
        raise ConfigError(f"win_length={win_length}: must be at least 1")
    samples = _shape(name)(win_length)
    samples.setflags(write=False)
    return Window(name, samples, float(samples.sum()), float(np.square(samples).sum()))
