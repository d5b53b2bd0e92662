"""Ballistics of spectra: extremes that decay, and the exponential average."""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from spectrod.dsp.units import Float32Array, Float64Array

DECAY_MAX_DB_S: Final = 1000.0
"""Fastest decay of a hold [dB/s]."""
BALLISTICS_MAX_S: Final = 3600.0
"""Longest hold time, and longest time constant [s]."""


@dataclass(frozen=True, slots=True)
class Ballistics:
    """How holds and averages follow a spectrum.

    Attributes
    ----------
    decay_db_s : float
        Rate at which a max hold falls and a min hold rises; 0: never [dB/s].
    hold_s : float
        Time from an extreme until its decay begins [s].
    time_constant_s : float
        Time constant of the exponential average; 0: mean since the reset [s].
    """

    decay_db_s: float = 0.0
    hold_s: float = 0.0
    time_constant_s: float = 0.0


HOLD_FOREVER: Final = Ballistics()
"""No decay, and the mean since the reset."""


class _Clock:
    """Time of rows from the first one on; a clock that is set back does not stop it."""

    def __init__(self) -> None:
        self._last_s = math.nan
        self.now_s = 0.0

    def advance(self, t_s: float) -> float:
        """Take the time of a row; return the time since the row before it [s]."""
        elapsed_s = 0.0 if math.isnan(self._last_s) else max(0.0, t_s - self._last_s)
        self._last_s = t_s
        self.now_s += elapsed_s
        return elapsed_s


class DecayingExtreme:
    """The highest or lowest level of each bin, which decays to the newest one.

    Parameters
    ----------
    kind : str
        ``max`` or ``min``.
    ballistics : Ballistics
        Decay and hold time.

    Notes
    -----
    An extreme L of the time t is L - decay_db_s max(0, now - t - hold_s) for a maximum, the mirror
    image of that for a minimum, until a row exceeds it: it does not depend on how often rows come.
    """

    def __init__(self, kind: Literal["max", "min"], ballistics: Ballistics = HOLD_FOREVER) -> None:
        self._sign = 1.0 if kind == "max" else -1.0
        self._ballistics = ballistics
        self._clock = _Clock()
        self._extreme: Float64Array | None = None
        self._since_s: Float64Array = np.zeros(0)

    @property
    def size_bytes(self) -> int:
        """Memory of its bins [bytes]."""
        return 0 if self._extreme is None else self._extreme.nbytes + self._since_s.nbytes

    def push(self, levels: Float32Array | Float64Array, t_s: float) -> None:
        """Include a row; another number of bins starts again.

        Parameters
        ----------
        levels : (n_bins,) float32 or float64
            Levels; NaN: no data [dB].
        t_s : float
            Time of the row, of any epoch [s].
        """
        self._clock.advance(t_s)
        now_s, signed = self._clock.now_s, self._sign * levels.astype(np.float64)
        if self._extreme is None or self._extreme.shape != signed.shape:
            self._extreme, self._since_s = signed, np.full(signed.shape, now_s)
            return
        held = self._decayed(self._extreme)
        exceeds = (signed >= held) | np.isnan(held)
        self._extreme[exceeds] = signed[exceeds]
        self._since_s[exceeds] = now_s

    @property
    def levels(self) -> Float64Array | None:
        """Levels at the time of the newest row, (n_bins,) [dB]; None without a row."""
        return None if self._extreme is None else self._sign * self._decayed(self._extreme)

    def _decayed(self, extreme: Float64Array) -> Float64Array:
        rate_db_s, hold_s = self._ballistics.decay_db_s, self._ballistics.hold_s
        if not rate_db_s:
            return extreme
        return extreme - rate_db_s * np.maximum(self._clock.now_s - hold_s - self._since_s, 0.0)


class ExponentialMean:
    """The exponential average of the power of each bin.

    Parameters
    ----------
    time_constant_s : float
        Time constant, above 0; 0.125 s and 1 s are F and S of IEC 61672-1 [s].

    Notes
    -----
    A row of power p after the time dt moves the mean m to m + (1 - exp(-dt / tau)) (p - m).
    The first row is the mean.
    """

    def __init__(self, time_constant_s: float) -> None:
        self._time_constant_s = time_constant_s
        self._clock = _Clock()
        self.power: Float64Array | None = None
        """Mean power, (n_bins,), in the unit of the rows; None without a row."""

    @property
    def size_bytes(self) -> int:
        """Memory of its bins [bytes]."""
        return 0 if self.power is None else self.power.nbytes

    def push(self, power: Float64Array, t_s: float) -> None:
        """Include a row; another number of bins starts again.

        Parameters
        ----------
        power : (n_bins,) float64
            Powers; NaN: no data, which leaves the mean as it is.
        t_s : float
            Time of the row, of any epoch [s].
        """
        share = -math.expm1(-self._clock.advance(t_s) / self._time_constant_s)
        if self.power is None or self.power.shape != power.shape:
            self.power = power.copy()
            return
        # An infinite power makes the mean NaN, and the next row is the mean.
        with np.errstate(over="ignore", invalid="ignore"):
            moved = self.power + share * (power - self.power)
        kept = np.where(np.isnan(power), self.power, moved)
        self.power = np.where(np.isnan(self.power), power, kept)
