"""Frequency weightings A, C and K as recursive filters at any sample rate."""

from functools import lru_cache
from math import exp, pi, tan
from typing import Literal

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.dsp.weighting import POLES_HZ, power_factors
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.curve_fit import BAND_EDGE, fit_biquads
from spectrod.measure.levels.recursive import Section, response

FitWeighting = Literal["A", "C"]

FS_MIN_HZ = 1000.0
"""Lowest sample rate of the weightings A, C and K [Hz]; K's shelf lies at 1.7 kHz, so that K needs
``K_FS_MIN_HZ``."""

K_FS_MIN_HZ = 8000.0

_ERROR_MAX_DB = 0.01
_CHECKED_FROM_HZ = 10.0
_REFERENCE_HZ = 1000.0
_REFERENCE_MAX = 0.4
"""Largest fraction of the sample rate at which 1 kHz is made exactly 0 dB."""


@lru_cache(maxsize=64)
def weighting_cascade(weighting: FitWeighting, fs: float) -> tuple[Section, ...]:
    """Return the filter of a frequency weighting.

    Parameters
    ----------
    weighting : {"A", "C"}
        Name of the curve of IEC 61672-1.
    fs : float
        Sample rate, at least ``FS_MIN_HZ`` [Hz].

    Returns
    -------
    cascade : tuple of Section
        Within 0.01 dB of the curve from 10 Hz to 0.45 fs, and 0 dB at 1 kHz.

    Raises
    ------
    ConfigError
        If the sample rate is lower, or no filter comes this close.

    Notes
    -----
    The zeros at 0 Hz and the poles below 1 kHz are those of the analog filter by the matched z
    transform. Two biquads, fitted by ``fit_biquads``, replace the double pole at 12.2 kHz and
    correct the rest.
    """
    if not fs >= FS_MIN_HZ:
        raise ConfigError(
            f"fs={fs:g}: the weighting {weighting} needs a sample rate of at least {FS_MIN_HZ:g} Hz"
        )
    f1, f2, f3, _ = POLES_HZ
    poles_hz = (f1, f1, f2, f3) if weighting == "A" else (f1, f1)
    low = tuple(_low_cut(pole_hz, fs) for pole_hz in poles_hz)
    frequencies = np.linspace(BAND_EDGE * fs / 256, BAND_EDGE * fs, 256)
    goal_db = _db(power_factors(weighting, frequencies) / response(low, frequencies, fs))
    cascade = _scaled((*low, *fit_biquads(frequencies / fs, goal_db)), fs)
    _require_close(weighting, cascade, fs)
    return cascade


def _low_cut(pole_hz: float, fs: float) -> Section:
    """Return a high-pass of first order: a zero at 0 Hz, and a pole by the matched z transform."""
    pole = exp(-2.0 * pi * pole_hz / fs)
    return Section((1.0, -1.0), (1.0, -pole))


def _scaled(cascade: tuple[Section, ...], fs: float) -> tuple[Section, ...]:
    """Return the cascade with a gain of exactly 1 at 1 kHz, if that is well below fs / 2."""
    if _REFERENCE_MAX * fs < _REFERENCE_HZ:
        return cascade
    gain = float(response(cascade, np.array([_REFERENCE_HZ]), fs)[0]) ** -0.5
    *before, last = cascade
    return (*before, Section(tuple(gain * value for value in last.b), last.a))


def _require_close(weighting: FitWeighting, cascade: tuple[Section, ...], fs: float) -> None:
    frequencies = np.geomspace(_CHECKED_FROM_HZ, BAND_EDGE * fs, 1000)
    goal = power_factors(weighting, frequencies)
    error_db = np.max(np.abs(_db(response(cascade, frequencies, fs) / goal)))
    if not error_db <= _ERROR_MAX_DB:
        raise ConfigError(
            f"fs={fs:g}: no filter for the weighting {weighting} at this rate "
            f"(closest: {error_db:.2g} dB)"
        )


def _db(power: Float64Array) -> Float64Array:
    level: Float64Array = 10.0 * np.log10(power)
    return level


@lru_cache(maxsize=64)
def k_cascade(fs: float) -> tuple[Section, ...]:
    """Return the K weighting of ITU-R BS.1770.

    Parameters
    ----------
    fs : float
        Sample rate, at least ``K_FS_MIN_HZ`` [Hz].

    Returns
    -------
    cascade : tuple of Section
        The shelf and the high-pass; at 48 kHz the coefficients of the recommendation [1]_ within
        1e-14.

    Raises
    ------
    ConfigError
        If the sample rate is lower.

    Notes
    -----
    Bilinear transforms of the analog filters of which the recommendation's coefficients are the
    transforms at 48 kHz, prewarped at their corner frequencies. At 44.1, 96 and 192 kHz the
    response is within 0.04 dB of the one at 48 kHz.

    References
    ----------
    .. [1] ITU-R BS.1770-5, annex 1, tables 1 and 2.
    """
    if not fs >= K_FS_MIN_HZ:
        raise ConfigError(f"fs={fs:g}: loudness needs a sample rate of at least {K_FS_MIN_HZ:g} Hz")
    return _k_shelf(fs), _k_high_pass(fs)


def _k_shelf(fs: float) -> Section:
    corner_hz, gain_db, q = 1681.974450955533, 3.999843853973347, 0.7071752369554196
    k = tan(pi * corner_hz / fs)
    high = 10.0 ** (gain_db / 20.0)
    middle = high**0.4996667741545416
    scale = 1.0 / (1.0 + k / q + k * k)
    b = (
        scale * (high + middle * k / q + k * k),
        scale * 2.0 * (k * k - high),
        scale * (high - middle * k / q + k * k),
    )
    return Section(b, _k_poles(k, q))


def _k_high_pass(fs: float) -> Section:
    corner_hz, q = 38.13547087602444, 0.5003270373238773
    # The recommendation does not normalise this numerator: -0.691 dB of its formula allows for it.
    return Section((1.0, -2.0, 1.0), _k_poles(tan(pi * corner_hz / fs), q))


def _k_poles(k: float, q: float) -> tuple[float, float, float]:
    scale = 1.0 / (1.0 + k / q + k * k)
    return 1.0, scale * 2.0 * (k * k - 1.0), scale * (1.0 - k / q + k * k)
