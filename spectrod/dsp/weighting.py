"""Frequency weightings of sound: A, C, and Z (none)."""

from collections.abc import Callable
from math import sqrt
from typing import Literal, get_args

import numpy as np

from spectrod.dsp.units import Float64Array

Weighting = Literal["Z", "A", "C"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)

# Defining frequencies of the curves in IEC 61672-1 [Hz]: where they are 0 dB, where C is -3 dB, and
# the additional cut-off of A.
_REFERENCE_HZ = 1000.0
_LOW_HZ, _HIGH_HZ = 10.0**1.5, 10.0**3.9
_A_HZ = 10.0**2.45


def _double_poles() -> tuple[float, float]:
    """Return the squares of the frequencies of C's two double poles, f1 and f4 [Hz^2]."""
    d, low, high = sqrt(0.5), _LOW_HZ**2, _HIGH_HZ**2
    b = (_REFERENCE_HZ**2 + low * high / _REFERENCE_HZ**2 - d * (low + high)) / (1.0 - d)
    root = sqrt(b * b - 4.0 * low * high)
    return (-b - root) / 2.0, (-b + root) / 2.0


_F1, _F4 = _double_poles()
_F2, _F3 = (((3.0 + sign * sqrt(5.0)) / 2.0 * _A_HZ) ** 2 for sign in (-1.0, 1.0))

POLES_HZ: tuple[float, float, float, float] = (sqrt(_F1), sqrt(_F2), sqrt(_F3), sqrt(_F4))
"""Pole frequencies f1 to f4 of IEC 61672-1 [Hz]: f1 and f4 are double, f2 and f3 are A's alone."""


def _c_curve(f2: Float64Array) -> Float64Array:
    return np.square(_F4 * f2 / ((f2 + _F1) * (f2 + _F4)))


def _a_curve(f2: Float64Array) -> Float64Array:
    return _c_curve(f2) * f2 * f2 / ((f2 + _F2) * (f2 + _F3))


_CURVES: dict[Weighting, Callable[[Float64Array], Float64Array]] = {
    "Z": np.ones_like,
    "A": _a_curve,
    "C": _c_curve,
}


def power_factors(weighting: Weighting, frequencies: Float64Array) -> Float64Array:
    """Evaluate a weighting's design goal.

    Parameters
    ----------
    weighting : {"Z", "A", "C"}
        Name of the curve.
    frequencies : (...) float64
        Frequencies of any sign [Hz].

    Returns
    -------
    factors : (...) float64
        Factors of power, 1 at 1 kHz [1]; those of A and C are 0 at 0 Hz.

    References
    ----------
    .. [1] IEC 61672-1:2013, 5.5.2 and annex E: the poles from their defining frequencies, and the
       analytical expressions of the C and A weightings.
    """
    curve = _CURVES[weighting]
    factors: Float64Array = curve(np.square(frequencies)) / curve(np.array(_REFERENCE_HZ**2))
    return factors
