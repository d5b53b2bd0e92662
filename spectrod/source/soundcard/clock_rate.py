"""The sample rate by the monotonic clock: a robust line through the soonest arrivals."""

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.source.soundcard.clock_times import Line

_POINTS = 256
_MERGED_MAX = 8
_POINTS_MIN = 12
_LEVEL_POINTS = 16
_HUBER = 1.345
_ROUNDS = 6
_MAD_TO_SIGMA = 1.4826
_MAX_CORRELATION = 0.97
_RATIO_MAX = 1e4
_REFIT_POINTS = 8
_RUN, _SHIFT = 2, 3


@dataclass(frozen=True, slots=True)
class Rate:
    """A measured sample rate."""

    period_ns: float
    error_ppm: float
    """Measured over nominal rate, minus one [1e-6]."""
    uncertainty_ppm: float
    """Half width of its 95 % interval [1e-6]."""


class _Point(NamedTuple):
    """A soonest arrival, with the number of breaks, and of shifts and breaks, before it."""

    sample: int
    t_ns: int
    run: int
    shift: int


class RateFit:
    """A line through the soonest arrivals of each half window, in constant memory.

    Points: at first one per half window (0.5 s). At 256 points, merge pairs, keeping the sooner
    arrival, up to 4 s per point; after that drop the oldest, so the fit spans 9 to 17 minutes.

    Slope: least squares with Huber's weights (c = 1.345 times the scaled median absolute residual,
    reweighted 6 times; Huber & Ronchetti, Robust Statistics, 2nd ed. 2009, section 7.8). Points of
    one run share an intercept; each break, step or loss starts another run, so its size does not
    bend the rate. A second fit treats each shift the same way. Where shifts are part of a slow saw
    tooth, as when a timer fetches samples, the second fit is wrong and differs from the first by
    more than twice the random error; otherwise it is better, and it is used.

    Random uncertainty: Huber's covariance estimate (same, section 7.6, with its correction),
    times (1 + r) / (1 - r) for the residuals' correlation r from one point to the next (the
    variance of a mean of an AR(1) process), times Student's 97.5 % quantile by its expansion
    z + (z^3 + z) / 4 dof (Abramowitz & Stegun 26.7.5). Unseen uncertainty: where a timer fetches
    deliveries, their delay can drift by as much as ``unseen_ns`` while all look punctual; over the
    span of the fit that is a slope. The two are added in quadrature.
    """

    def __init__(self, fs: float) -> None:
        self._nominal_ns = 1e9 / fs
        self.period_ns = self._nominal_ns
        self.rate: Rate | None = None
        self._points: deque[_Point] = deque(maxlen=_POINTS)
        self._merged = 1
        self._merging: list[tuple[int, int]] = []
        self._run = self._shift = 0
        self._level: deque[tuple[int, int]] = deque(maxlen=_LEVEL_POINTS)
        self._unfitted = 0

    def add(self, index: int, t_ns: int, unseen_ns: float) -> Line:
        """Add the soonest arrival of a half window; returns the updated line.

        The soonest possible arrival may lie up to ``unseen_ns`` before it.
        """
        self._level.append((index, t_ns))
        self._merging.append((index, t_ns))
        if len(self._merging) >= self._merged:
            soonest = self._soonest(self._merging)
            self._points.append(_Point(*soonest, self._run, self._shift))
            self._merging.clear()
            if len(self._points) == _POINTS and self._merged < _MERGED_MAX:
                self._halve()
        self._unfitted += 1
        if self._unfitted >= min(_REFIT_POINTS, 1 + len(self._points) // 16):
            self._unfitted = 0
            self._fit(unseen_ns)
        return self._line(index, t_ns)

    def break_run(self) -> None:
        """Start another run: later points lie on a line of the same slope, at another level."""
        self._run += 1
        self.shift()

    def shift(self) -> None:
        """Record a shift of the level, smaller than a loss causes."""
        self._shift += 1
        self._merging.clear()
        self._level.clear()

    def _soonest(self, points: list[tuple[int, int]]) -> tuple[int, int]:
        first = Line(*points[0], self.period_ns)
        return min(points, key=lambda point: first.delay_ns(*point))

    def _halve(self) -> None:
        points = list(self._points)
        self._points.clear()
        for one, other in zip(points[::2], points[1::2], strict=True):
            same = one.shift == other.shift
            sooner = self._soonest([one[:2], other[:2]]) if same else one[:2]
            self._points.append(_Point(*sooner, *one[2:]))
        self._merged *= 2

    def _line(self, index: int, t_ns: int) -> Line:
        """Return the line through the median of the latest points, to follow rate drift."""
        here = Line(index, t_ns, self.period_ns)
        delays = sorted(here.delay_ns(*point) for point in self._level)
        return Line(index, t_ns + round(delays[len(delays) // 2]), self.period_ns)

    def _fit(self, unseen_ns: float) -> None:
        if len(self._points) < _POINTS_MIN:
            return
        points = np.array(self._points, np.int64)
        x = (points[:, 0] - points[-1, 0]) * (self._nominal_ns * 1e-9)
        y = (points[:, 1] - points[-1, 1]) * 1e-9 - x
        plain = _robust_slope(x, y, points[:, _RUN], unseen_ns * 1e-9)
        if plain is None:
            return  # after this many breaks the old rate is better
        shifting: _Slope | None = plain
        if np.ptp(points[:, _SHIFT]) > np.ptp(points[:, _RUN]):
            shifting = _robust_slope(x, y, points[:, _SHIFT], unseen_ns * 1e-9)
        slope, half_width = _better(plain, shifting)
        ratio = min(max(1.0 + slope, 1 / _RATIO_MAX), _RATIO_MAX)
        self.period_ns = self._nominal_ns * ratio
        self.rate = Rate(self.period_ns, (1 / ratio - 1) * 1e6, half_width / ratio * 1e6)


class _Slope(NamedTuple):
    """A slope, and the half widths of its 95 % interval."""

    value: float
    by_chance: float
    by_unseen: float

    @property
    def half_width(self) -> float:
        return math.hypot(self.by_chance, self.by_unseen)


def _better(plain: _Slope, shifting: _Slope | None) -> tuple[float, float]:
    """Use the fit with an intercept per shift, if it agrees with the plain one."""
    if shifting is None or abs(shifting.value - plain.value) > 2 * plain.by_chance:
        return plain.value, plain.half_width
    reach = plain.half_width + abs(shifting.value - plain.value)
    return shifting.value, min(shifting.half_width, reach)


def _robust_slope(
    x: Float64Array, y: Float64Array, label: NDArray[np.int64], unseen: float
) -> _Slope | None:
    """Fit a slope of y over x, with an intercept for each label."""
    labels, run = np.unique(label, return_inverse=True)
    if len(x) - len(labels) < _POINTS_MIN - 1:
        return None
    weights = np.ones_like(x)
    for _ in range(_ROUNDS):
        x0 = x - _run_means(x, weights, run)
        spread = float(weights @ x0**2)
        slope = float((weights * x0) @ y) / spread
        residuals = y - slope * x
        residuals -= _run_means(residuals, weights, run)
        scale = max(_MAD_TO_SIGMA * float(np.median(np.abs(residuals))), 1e-9)
        weights = _HUBER / np.maximum(np.abs(residuals) / scale, _HUBER)
    by_chance = _half_width(x0, weights * residuals, weights == 1.0, len(labels) + 1)
    span = math.sqrt(12 * float(x0 @ x0) / len(x0))  # of points evenly spread
    return _Slope(slope, by_chance, unseen / span)


def _half_width(
    x0: Float64Array, pulls: Float64Array, inside: NDArray[np.bool_], n_parameters: int
) -> float:
    """95 % of the slope lies within this; ``pulls`` are residuals, clipped by their weights."""
    n = len(x0)
    dof = max(1, n - n_parameters)
    share = max(float(inside.mean()), 0.1)
    correction = 1 + n_parameters / n * (1 - share) / share
    variance = float(pulls @ pulls) / dof / float(x0 @ x0) * (correction / share) ** 2
    r = _correlation(pulls)
    z = 1.96
    quantile = z + (z**3 + z) / (4 * dof)
    return quantile * math.sqrt(variance * (1 + r) / (1 - r))


def _correlation(residuals: Float64Array) -> float:
    """From one to the next, >= 0, with the bias of a short series and of a fitted line undone."""
    n = len(residuals)
    power = float(residuals @ residuals)
    r = float(residuals[1:] @ residuals[:-1]) / power if power > 0.0 else 0.0
    return min(max(0.0, r + (2 + 4 * r) / n), _MAX_CORRELATION)


def _run_means(values: Float64Array, weights: Float64Array, run: NDArray[np.int64]) -> Float64Array:
    means = np.bincount(run, weights * values) / np.maximum(np.bincount(run, weights), 1e-300)
    return means[run]
