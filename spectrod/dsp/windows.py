"""Analysis windows in float64, with the sums that correct for them.

Named windows are periodic (DFT-even). Arrays are used unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.suggestions import did_you_mean

# Coefficients a_k of w[n] = sum_k (-1)^k a_k cos(2 pi k n / N).
# hann, hamming, blackman: Harris 1978; blackmanharris, nuttall (minimum 4-term): Nuttall 1981;
# flattop: the five-term window of D'Antona and Ferrero 2006, like scipy.signal.windows.flattop.
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


def window_derivative(name: str, n: int) -> Float64Array:
    """Return the derivative of a named window by the sample number, (n,) float64 [1/sample].

    Only windows that are sums of cosines and end near 0 have one.

    Raises
    ------
    ConfigError
        If the window is another one.
    """
    coefficients = _COSINE_SUMS.get(name, (1.0,))
    signs = (-1.0) ** np.arange(len(coefficients))
    if abs(float(np.dot(signs, coefficients))) > _END_MAX:
        smooth = [
            one
            for one, a in _COSINE_SUMS.items()
            if abs(a[0] - sum(a[1::2]) + sum(a[2::2])) <= _END_MAX
        ]
        raise ConfigError(
            f"reassignment needs a window that ends near 0, one of {', '.join(smooth)}", window=name
        )
    phase = 2.0 * np.pi * np.arange(n) / n
    terms = [
        -((-1) ** k) * a * k * (2.0 * np.pi / n) * np.sin(k * phase)
        for k, a in enumerate(coefficients)
    ]
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
        raise ConfigError("kaiser needs its beta, 0 to 700, as in kaiser:8.6", window=name)
    return lambda n: _kaiser(n, beta)


_END_MAX = 0.001
"""Largest magnitude at the end of a window that has a derivative everywhere."""

LENGTH_MAX = 1 << 20
"""Maximum length of an analysis window [samples]."""

CUSTOM = "custom"
"""Name of windows given as arrays."""

WindowLike = str | tuple[Any, ...] | ArrayLike
"""Name, (name, parameter) as in SciPy, or the samples."""

_NENBW_MIN = 1.0 - 1e-9
"""Lower bound of the noise bandwidth, with rounding: 1 bin, that of the rectangular window."""

WINDOW_NAMES: tuple[str, ...] = (*_COSINE_SUMS, "bartlett", "kaiser:BETA")


def _shape(name: str) -> Callable[[int], Float64Array]:
    if name in _COSINE_SUMS:
        return lambda n: _cosine_sum(_COSINE_SUMS[name], n)
    if name == "bartlett":
        return _bartlett
    if name.partition(":")[0] == "kaiser":
        return _parse_kaiser(name)
    suggestion = did_you_mean(name, WINDOW_NAMES)
    raise ConfigError(f"must be one of {', '.join(WINDOW_NAMES)}{suggestion}", window=name)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A window and its sums.

    Attributes
    ----------
    name : str
        Name as requested, for example ``"hann"`` or ``"kaiser:8.6"``; ``CUSTOM`` for an array.
    samples : (win_length,) float64
        The window, read-only. NaN for an array of unknown samples: files hold only the noise
        bandwidth.
    s1 : float
        Sum of the samples: corrects the height of a sine [1].
    s2 : float
        Sum of the squared samples: corrects the power of noise [1].
    """

    name: str
    samples: Float64Array
    s1: float
    s2: float

    def __eq__(self, other: object) -> bool:
        """Compare two windows; custom ones by their samples."""
        if not isinstance(other, Window):
            return NotImplemented
        if self is other:
            return True
        return self._key == other._key and (
            self.name != CUSTOM or np.array_equal(self.samples, other.samples, equal_nan=True)
        )

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, float, float]:
        return self.name, len(self.samples), self.s1, self.s2

    @property
    def nenbw_bins(self) -> float:
        """Equivalent noise bandwidth in bins of fs / win_length."""
        return len(self.samples) * self.s2 / self.s1**2

    def enbw_hz(self, fs: float) -> float:
        """Equivalent noise bandwidth [Hz] at sample rate ``fs`` [Hz]."""
        return fs * self.s2 / self.s1**2


@lru_cache(maxsize=32)
def get_window(name: str, win_length: int) -> Window:
    """Return the named periodic window.

    Parameters
    ----------
    name : str
        One of ``WINDOW_NAMES``; Kaiser's includes its beta, ``"kaiser:8.6"``.
    win_length : int
        Number of samples, >= 1.

    Returns
    -------
    window : Window
        Shared between callers and read-only.

    Raises
    ------
    ConfigError
        If the name is unknown or win_length < 1.

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


def make_window(window: WindowLike, win_length: int) -> Window:
    """Return a window from a name, a tuple or samples.

    Parameters
    ----------
    window : str, tuple or (win_length,) array-like
        A name as in ``get_window``; ``(name,)`` or ``("kaiser", beta)`` as in
        ``scipy.signal.get_window``; or real samples. Names mean periodic windows; samples are used
        unchanged, so those of ``scipy.signal.get_window`` are right by default (``fftbins=True``),
        and those of ``scipy.signal.windows`` with ``sym=False``.
    win_length : int
        Number of samples, >= 1.

    Returns
    -------
    window : Window

    Raises
    ------
    ConfigError
        If it is none of these; samples must be win_length finite numbers, whose sum is not 0 (to
        within rounding), because it corrects the height of a sine.
    """
    if isinstance(window, str):
        return get_window(window, win_length)
    if isinstance(window, tuple) and window and isinstance(window[0], str):
        return get_window(_name_of(window), win_length)
    samples = _samples_of(window)
    if len(samples) != win_length:
        raise ConfigError(
            f"window: {len(samples)} samples: must be as many as win_length={win_length}"
        )
    with np.errstate(over="ignore"):
        s1, s2 = float(samples.sum()), float(np.square(samples).sum())
        rounding = np.finfo(np.float64).eps * len(samples) * float(np.abs(samples).sum())
    if not (np.isfinite(s2) and s2 > 0.0 and abs(s1) > rounding):
        raise ConfigError(
            f"window: its sum is {s1:g}, of squares {s2:g}: must be finite, and not 0"
        )
    samples.setflags(write=False)
    return Window(CUSTOM, samples, s1, s2)


def window_length(window: WindowLike) -> int | None:
    """Return the number of samples of a window that is an array; None for names and tuples."""
    if isinstance(window, str) or (
        isinstance(window, tuple) and window and isinstance(window[0], str)
    ):
        return None
    return len(_samples_of(window))


def unknown_window(win_length: int, nenbw_bins: float) -> Window:
    """Return a custom window of known noise bandwidth and unknown samples.

    Parameters
    ----------
    win_length : int
        Number of samples, 1 to ``LENGTH_MAX``.
    nenbw_bins : float
        Equivalent noise bandwidth, >= 1 [bins of fs / win_length].

    Raises
    ------
    ConfigError
        If the bandwidth is not that of a window.
    """
    if not 1 <= win_length <= LENGTH_MAX:
        raise ConfigError(f"win_length={win_length}: must be 1 to {LENGTH_MAX}")
    if not _NENBW_MIN <= nenbw_bins < np.inf:
        raise ConfigError(f"nenbw_bins={nenbw_bins:g}: must be 1 or more, and finite")
    samples = np.broadcast_to(np.float64(np.nan), (win_length,))  # of 8 bytes
    return Window(CUSTOM, samples, 1.0, nenbw_bins / win_length)


def _name_of(window: tuple[Any, ...]) -> str:
    """Convert SciPy's tuples to the names used here."""
    name, *parameters = window
    if not parameters:
        return str(name)
    beta = parameters[0]
    is_number = isinstance(beta, (int, float, np.integer, np.floating))
    if name != "kaiser" or len(parameters) != 1 or not is_number:
        raise ConfigError(
            f"window={window!r}: must be ('kaiser', beta), the only name with a parameter; give "
            "others as an array, for example of scipy.signal.get_window"
        )
    return f"kaiser:{float(beta)!r}".removesuffix(".0")


def _samples_of(window: ArrayLike) -> Float64Array:
    """Copy the samples of a window; raises ConfigError if they are not real numbers in 1-D."""
    try:
        array = np.asarray(window)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) == 0:
        what = f"shape {array.shape}, dtype {array.dtype}"
        raise ConfigError(
            f"window of {what}: must be a name, ('kaiser', beta), or an array of win_length real "
            f"numbers; names are {', '.join(WINDOW_NAMES)}"
        )
    samples = array.astype(np.float64)
    if not np.isfinite(samples).all():
        k = int(np.argmin(np.isfinite(samples)))
        raise ConfigError(f"window: sample {k} is {samples[k]}: must be finite")
    return samples
