"""Constant-Q and variable-Q transforms: filters that are evenly spaced in octaves."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log2

import numpy as np

from spectrod.dsp.bands import (
    AUDIBLE_MIN_HZ,
    CONSTANT_Q_PREFIXES,
    Bands,
    exact_name,
    number_in_name,
)
from spectrod.dsp.units import Float64Array
from spectrod.dsp.windows import CUSTOM, get_window
from spectrod.lib.errors import ConfigError

PER_OCTAVE_MAX = 96
"""Largest number of filters in an octave."""
COEFFICIENTS_MAX = 1 << 24
"""Largest number of coefficients of all filters; each takes 8 bytes."""

_TUNING_HZ = 440.0
_GAMMA_PER_ALPHA = 24.7 / 0.108
"""Bandwidths of ``vqt`` are then proportional to those of the ear, 24.7 Hz + 0.108 f."""
_HALF_MAIN_LOBE = 0.75
"""Half of a Hann window's noise bandwidth [bins]: the highest filter ends this far below fs / 2."""


@dataclass(frozen=True, slots=True, eq=False)
class FilterGroup:
    """Neighbouring filters, as a matrix that multiplies the middle of a frame.

    Attributes
    ----------
    start : int
        Index in the frame of the first sample of the matrix.
    matrix : (samples, 2 * filters) float64
        Real parts of all filters, then imaginary parts; zero where a filter is shorter.
    """

    start: int
    matrix: Float64Array


def is_constant_q(name: str) -> bool:
    """Return whether bands are the filters of a constant-Q or variable-Q transform."""
    return name.startswith(CONSTANT_Q_PREFIXES)


@lru_cache(maxsize=16)
def constant_q_bands(name: str, fs: float, win_length: int, window: str) -> Bands:
    """Return the filters of a transform as bands.

    The centre frequencies are ``440 Hz * 2**(k / B)`` for whole k: notes for B = 12. A filter is
    the window times a complex exponential; its length is ``fs / bandwidth`` in samples [1]_, with
    ``bandwidth = alpha f + gamma`` of ``alpha = (r**2 - 1) / (r**2 + 1)``, ``r = 2**(1 / B)``. Of
    ``cqt:B`` gamma is 0; of ``vqt:B`` it is ``24.7 Hz * alpha / 0.108``, so that low filters are
    shorter [2]_.

    Filters longer than the window of the analysis are left out, and named from 20 Hz on; so are
    those of ``vqt`` below 20 Hz and those whose main lobe reaches beyond fs / 2.

    Parameters
    ----------
    name : str
        ``"cqt:B"`` or ``"vqt:B"``: B filters in an octave, 1 to ``PER_OCTAVE_MAX``.
    fs : float
        Sample rate [Hz].
    win_length : int
        Samples of a frame.
    window : str
        Name of the filters' window.

    Returns
    -------
    bands : Bands
        One or more; ``width`` is each filter's noise bandwidth [Hz]. There are no shares of bins.

    Raises
    ------
    ConfigError
        If a setting breaks a rule, no filter is left, or there are too many coefficients.

    References
    ----------
    .. [1] C. Schoerkhuber, A. Klapuri, "Constant-Q transform toolbox for music processing", SMC,
       2010.
    .. [2] C. Schoerkhuber et al., "A Matlab toolbox for efficient perfect reconstruction
       time-frequency transforms with log-frequency resolution", AES 53, 2014.
    """
    per_octave = number_in_name(name, name.partition(":")[2], PER_OCTAVE_MAX)
    if window == CUSTOM:
        raise ConfigError("needs a window with a name, for filters of any length", bands=name)
    centre = _centres(per_octave, fs, win_length)
    bandwidth = _bandwidths(name, per_octave, centre)
    if name.startswith("vqt:"):
        bandwidth, centre = bandwidth[centre >= AUDIBLE_MIN_HZ], centre[centre >= AUDIBLE_MIN_HZ]
    is_below = centre + _HALF_MAIN_LOBE * bandwidth < fs / 2.0
    is_long = fs / bandwidth > win_length
    kept, missed = is_below & ~is_long, is_below & is_long & (centre >= AUDIBLE_MIN_HZ)
    if not kept.any():
        raise ConfigError(
            f"no filter below fs/2={fs / 2:g} Hz is as short as win_length={win_length}",
            "win_length",
            bands=name,
        )
    _check_size(name, fs / bandwidth[kept], per_octave)
    f, half = centre[kept], 2.0 ** (0.5 / per_octave)
    lengths = [_whole_length(length) for length in fs / bandwidth[kept]]
    bands = Bands(
        f / half,
        f,
        f * half,
        np.array([get_window(window, length).enbw_hz(fs) for length in lengths]),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros(0),
        tuple(map(exact_name, f)),
        tuple(map(exact_name, centre[missed])),
        float(bandwidth[missed].min()) if missed.any() else 0.0,
    )
    for values in (bands.lower, bands.centre, bands.upper, bands.width):
        values.setflags(write=False)
    return bands


def filter_groups(name: str, fs: float, win_length: int, window: str) -> Iterator[FilterGroup]:
    """Make the filters of ``constant_q_bands``, an octave at a time, in their order.

    The sum of products of a filter with a tone of amplitude A at its centre has the magnitude
    ``A / 2``: the filters have the norm L1 [1]_.

    References
    ----------
    .. [1] B. McFee et al., "librosa: Audio and music signal analysis in Python", SciPy, 2015.
    """
    bands = constant_q_bands(name, fs, win_length, window)
    per_octave = number_in_name(name, name.partition(":")[2], PER_OCTAVE_MAX)
    lengths = fs / _bandwidths(name, per_octave, bands.centre)
    middle = (win_length + 1) // 2
    for first in range(0, len(bands), per_octave):
        here = slice(first, first + per_octave)
        # The first filter of an octave is the longest.
        start = middle - ceil(lengths[first] / 2.0)
        matrix = np.zeros((_whole_length(lengths[first]), 2, len(bands.centre[here])))
        for column, (f, length) in enumerate(zip(bands.centre[here], lengths[here], strict=True)):
            n = np.arange(-ceil(length / 2.0), floor(length / 2.0))
            taper = get_window(window, len(n))
            shape = taper.samples / taper.s1
            rows = slice(middle - start + n[0], middle - start + n[-1] + 1)
            phase = 2.0 * np.pi * f / fs * n
            matrix[rows, 0, column] = shape * np.cos(phase)
            matrix[rows, 1, column] = shape * np.sin(phase)
        yield FilterGroup(start, matrix.reshape(len(matrix), -1))


def win_length_from(name: str, fs: float, f_hz: float) -> int:
    """Return the window length that has all filters from a frequency > 0 on [samples]."""
    per_octave = number_in_name(name, name.partition(":")[2], PER_OCTAVE_MAX)
    return ceil(fs / float(_bandwidths(name, per_octave, np.array(f_hz))))


def _centres(per_octave: int, fs: float, win_length: int) -> Float64Array:
    """Return the centres of all filters that may fit, and of those missed from 20 Hz on [Hz]."""
    lowest_hz = min(AUDIBLE_MIN_HZ, fs / win_length)
    first = ceil(per_octave * log2(lowest_hz / _TUNING_HZ))
    last = floor(per_octave * log2(fs / 2.0 / _TUNING_HZ))
    return np.asarray(_TUNING_HZ * 2.0 ** (np.arange(first, last + 1) / per_octave))


def _bandwidths(name: str, per_octave: int, centre: Float64Array) -> Float64Array:
    ratio = 2.0 ** (2.0 / per_octave)
    alpha = (ratio - 1.0) / (ratio + 1.0)
    gamma = alpha * _GAMMA_PER_ALPHA if name.startswith("vqt:") else 0.0
    return np.asarray(alpha * centre + gamma)


def _whole_length(length: float) -> int:
    return ceil(length / 2.0) + floor(length / 2.0)


def _check_size(name: str, lengths: Float64Array, per_octave: int) -> None:
    n_filters = len(lengths)
    needed = sum(
        2 * _whole_length(float(lengths[first])) * min(per_octave, n_filters - first)
        for first in range(0, n_filters, per_octave)
    )
    if needed > COEFFICIENTS_MAX:
        raise ConfigError(
            f"{needed} coefficients, must be at most {COEFFICIENTS_MAX}: a "
            "shorter win_length or fewer filters an octave take fewer",
            bands=name,
        )
