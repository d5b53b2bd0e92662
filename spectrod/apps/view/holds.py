"""Holds: the highest, lowest and average level of each bin."""

from typing import Literal, get_args

import numpy as np

from spectrod.dsp.ballistics import HOLD_FOREVER, Ballistics, DecayingExtreme, ExponentialMean
from spectrod.dsp.units import FLOOR_DBFS, Float64Array, power_to_level

HoldKind = Literal["max", "min", "mean"]
HOLD_KINDS: tuple[HoldKind, ...] = get_args(HoldKind)


class MeanPower:
    """The mean power of rows."""

    def __init__(self) -> None:
        self._sum: Float64Array | None = None
        self.n_rows = 0

    def push(self, levels: Float64Array) -> None:
        """Add a row of levels, (n_bins,) [dB]; another number of bins starts again."""
        power = 10.0 ** (levels / 10.0)
        if self._sum is None or self._sum.shape != power.shape:
            self._sum, self.n_rows = power, 1
        else:
            self._sum += power
            self.n_rows += 1

    @property
    def levels(self) -> Float64Array | None:
        """Levels of the mean power, (n_bins,) [dB]; None without a row."""
        if self._sum is None:
            return None
        return np.asarray(power_to_level(self._sum / self.n_rows, floor_db=FLOOR_DBFS))


class ExponentialLevel:
    """The level of the exponential average of rows."""

    def __init__(self, time_constant_s: float) -> None:
        self._mean = ExponentialMean(time_constant_s)

    def push(self, levels: Float64Array, t_s: float) -> None:
        """Add a row of levels, (n_bins,) [dB], of a time [s]."""
        self._mean.push(10.0 ** (levels / 10.0), t_s)

    @property
    def levels(self) -> Float64Array | None:
        """Levels of the average, (n_bins,) [dB]; None without a row."""
        power = self._mean.power
        return None if power is None else power_to_level(power, floor_db=FLOOR_DBFS)


class Holds:
    """The holds that are switched on.

    Parameters
    ----------
    ballistics : Ballistics
        Decay of the extremes and time constant of the average.
    """

    def __init__(self, ballistics: Ballistics = HOLD_FOREVER) -> None:
        self._ballistics = ballistics
        self._holds: dict[HoldKind, DecayingExtreme | ExponentialLevel | MeanPower] = {}

    def switch(self, kinds: frozenset[HoldKind]) -> None:
        """Start and stop holds, so that these are on; others that are on go on."""
        self._holds = {
            kind: self._holds.get(kind) or self._make(kind) for kind in HOLD_KINDS if kind in kinds
        }

    def reset(self) -> None:
        """Forget all rows."""
        self._holds = {kind: self._make(kind) for kind in self._holds}

    def push(self, levels: Float64Array, t_s: float) -> None:
        """Add a row of levels, (n_bins,) [dB], of a time [s]."""
        for hold in self._holds.values():
            if isinstance(hold, MeanPower):
                hold.push(levels)
            else:
                hold.push(levels, t_s)

    def levels(self) -> dict[HoldKind, Float64Array]:
        """Return the levels of each hold that has a row, (n_bins,) [dB]."""
        found = {kind: hold.levels for kind, hold in self._holds.items()}
        return {kind: levels for kind, levels in found.items() if levels is not None}

    def _make(self, kind: HoldKind) -> DecayingExtreme | ExponentialLevel | MeanPower:
        if kind != "mean":
            return DecayingExtreme(kind, self._ballistics)
        time_constant_s = self._ballistics.time_constant_s
        return ExponentialLevel(time_constant_s) if time_constant_s else MeanPower()
