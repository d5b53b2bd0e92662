"""Holds: the highest, lowest and mean level of each bin since a reset."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np

from spectrod.units import FLOOR_DBFS, Float64Array, power_to_level

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


class Extreme:
    """The highest or lowest level of each bin."""

    def __init__(self, choose: Callable[[Float64Array, Float64Array], Float64Array]) -> None:
        self._choose = choose
        self.levels: Float64Array | None = None
        """Levels so far, (n_bins,) [dB]; None without a row."""

    def push(self, levels: Float64Array) -> None:
        """Add a row of levels, (n_bins,) [dB]; another number of bins starts again."""
        held = self.levels
        is_first = held is None or held.shape != levels.shape
        self.levels = levels if is_first or held is None else self._choose(held, levels)


_MAKERS: Mapping[HoldKind, Callable[[], MeanPower | Extreme]] = {
    "max": lambda: Extreme(np.maximum),
    "min": lambda: Extreme(np.minimum),
    "mean": MeanPower,
}


class Holds:
    """The holds that are switched on."""

    def __init__(self) -> None:
        self._holds: dict[HoldKind, MeanPower | Extreme] = {}

    def switch(self, kinds: frozenset[HoldKind]) -> None:
        """Start and stop holds, so that these are on; others that are on go on."""
        self._holds = {
            kind: self._holds.get(kind) or _MAKERS[kind]() for kind in HOLD_KINDS if kind in kinds
        }

    def reset(self) -> None:
        """Forget all rows."""
        self._holds = {kind: _MAKERS[kind]() for kind in self._holds}

    def push(self, levels: Float64Array) -> None:
        """Add a row of levels, (n_bins,) [dB]."""
        for hold in self._holds.values():
            hold.push(levels)

    def levels(self) -> dict[HoldKind, Float64Array]:
        """Return the levels of each hold that has a row, (n_bins,) [dB]."""
        return {kind: hold.levels for kind, hold in self._holds.items() if hold.levels is not None}
