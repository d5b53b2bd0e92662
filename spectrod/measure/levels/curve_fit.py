"""Two biquads that follow a curve of levels: damped least squares on the log magnitude."""

from dataclasses import dataclass
from math import exp, log, pi

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.measure.levels.recursive import Section

BAND_EDGE = 0.45
"""Highest frequency that is fitted, as a fraction of the sample rate."""

_NORMS = (2, 4, 10)
"""Norms of the error that are minimised in turn: the last is near the largest error."""
_STEPS_MAX = 60
_DAMPING, _DAMPING_MIN, _DAMPING_MAX = 1e-3, 1e-12, 1e8
_GAIN_ENOUGH = 1e-7
_STABLE = 0.9999
"""Largest magnitude of a product of two poles or zeros: they stay inside the unit circle."""

_DB = 20.0 / log(10.0)
_N = 9
"""Parameters: two coefficients for each of two numerators and denominators, and a gain [dB]."""
_SIGNS = (1.0, -1.0, 1.0, -1.0)


@dataclass(slots=True)
class _Guess:
    """Parameters (9,), with the error (n,) [dB] and its derivatives (n, 9)."""

    values: Float64Array
    error_db: Float64Array
    slopes: Float64Array


def fit_biquads(frequencies: Float64Array, goal_db: Float64Array) -> tuple[Section, Section]:
    """Fit two biquads to a smooth curve.

    Parameters
    ----------
    frequencies : (n,) float64
        Frequencies as fractions of the sample rate, between 0 and 0.5.
    goal_db : (n,) float64
        Levels of the curve [dB].

    Returns
    -------
    biquads : tuple of two Section
        Stable and of minimum phase; deterministic for a given curve.

    Notes
    -----
    Levenberg-Marquardt steps [1]_, weighted for the norms 2, 4 and 10 of the error in turn. The
    start is the double pole at 12.2 kHz of the curves A and C, for a sample rate of 48 kHz.

    References
    ----------
    .. [1] D. W. Marquardt, "An algorithm for least-squares estimation of nonlinear parameters",
       Journal of the SIAM 11, 1963.
    """
    delay = np.exp(-2j * pi * frequencies)
    pole = exp(-2.0 * pi * 12194.0 / 48e3)
    start = np.array([0.9, 0.2, -2.0 * pole, pole * pole, 0.3, 0.0, 0.3, 0.0, 0.0])
    guess = _guess(start, delay, goal_db)
    start[-1] = -float(np.mean(guess.error_db))
    guess = _guess(start, delay, goal_db)
    for norm in _NORMS:
        guess = _minimised(guess, norm, delay, goal_db)
    values = [float(value) for value in guess.values]
    gain = 10.0 ** (values[-1] / 20.0)
    first, second = (
        Section((1.0, values[k], values[k + 1]), (1.0, values[k + 2], values[k + 3]))
        for k in (0, 4)
    )
    return Section(tuple(gain * value for value in first.b), first.a), second


def _guess(values: Float64Array, delay: Float64Array, goal_db: Float64Array) -> _Guess:
    level = np.full(delay.shape, values[-1])
    slopes = np.ones((len(delay), _N))
    for k, sign in enumerate(_SIGNS):
        one, two = values[2 * k : 2 * k + 2]
        factor = 1.0 + one * delay + two * delay * delay
        level += sign * _DB * np.log(np.abs(factor))
        slopes[:, 2 * k] = sign * _DB * np.real(delay / factor)
        slopes[:, 2 * k + 1] = sign * _DB * np.real(delay * delay / factor)
    return _Guess(values, level - goal_db, slopes)


def _is_inside(values: Float64Array) -> bool:
    """Return whether all poles and zeros are inside the unit circle."""
    one, two = values[0:8:2], values[1:8:2]
    return bool(np.all(np.abs(two) < _STABLE) and np.all(np.abs(one) < _STABLE + two))


def _minimised(guess: _Guess, norm: int, delay: Float64Array, goal_db: Float64Array) -> _Guess:
    """Return the parameters that minimise a norm of the error, from a first guess."""
    scale = float(np.max(np.abs(guess.error_db))) or 1.0

    def cost(of: _Guess) -> float:
        return float(np.sum((np.abs(of.error_db) / scale) ** norm))

    least, damping = cost(guess), _DAMPING
    for _ in range(_STEPS_MAX):
        values: Float64Array = guess.values + _step(guess, norm, damping)
        tried = _guess(values, delay, goal_db) if _is_inside(values) else None
        cost_tried = np.inf if tried is None else cost(tried)
        if tried is None or not cost_tried < least:
            damping *= 5.0
            if damping > _DAMPING_MAX:
                break
            continue
        is_enough = least - cost_tried < _GAIN_ENOUGH * least
        guess, least, damping = tried, cost_tried, max(damping / 5.0, _DAMPING_MIN)
        if is_enough:
            break
    return guess


def _step(guess: _Guess, norm: int, damping: float) -> Float64Array:
    largest = float(np.max(np.abs(guess.error_db))) or 1.0
    weights = (np.abs(guess.error_db) / largest + 1e-9) ** (norm - 2)
    weighted: Float64Array = guess.slopes * weights[:, np.newaxis]
    curvature = weighted.T @ guess.slopes
    damped = curvature + damping * np.diag(np.diag(curvature) + 1e-12)
    # Newton's step of the norm p is the weighted one divided by p - 1.
    step: Float64Array = np.linalg.solve(damped, weighted.T @ guess.error_db) / (1 - norm)
    return step
