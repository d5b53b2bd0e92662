"""The level of the power of all frequencies of a picture, from the mean powers of its values."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from spectrod.apps.web.history.axis import NOTHING, HistoryAxis, Int16Array, Pooling
from spectrod.apps.web.measure import DENSITY, power_unit
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array, power_to_level


@dataclass(frozen=True, slots=True, eq=False)
class PowerScale:
    """What values of rows count as powers.

    Attributes
    ----------
    axis : HistoryAxis
        Their bins or bands.
    unit : str
        Their unit.
    enbw_hz : float
        Noise bandwidth of the window [Hz]; of bands it does not count.
    """

    axis: HistoryAxis
    unit: str
    enbw_hz: float

    @classmethod
    def of_spec(cls, spec: SpectrumSpec) -> Self:
        """Return the scale of recorded rows."""
        return cls(HistoryAxis.of_spec(spec), spec.scale.unit, spec.enbw_hz)

    def weights(self, axis: HistoryAxis) -> Float64Array:
        """Return what the power of each bin or band of a part of the axis counts."""
        if self.unit.endswith(DENSITY):
            return axis.upper - axis.lower
        if axis.is_bands:
            return np.ones(len(axis))
        return (axis.upper - axis.lower) / self.enbw_hz


class BandLevel:
    """Sums up the powers of neighbouring bins or bands, each taken together by ``group``.

    Parameters
    ----------
    scale : PowerScale
        Bins or bands of the rows, and what their values are.
    first, stop : int
        Bins or bands that count; first is a multiple of group.
    group : int
        Neighbours that a value has, the last perhaps fewer.

    Attributes
    ----------
    axis : HistoryAxis
        Axis of the values.
    whole : HistoryAxis
        Axis of the level: one value.
    unit : str
        Unit of the level.

    Notes
    -----
    The power is the sum of n P bin_hz / enbw_hz over values of n bins with the mean power P, since
    a window spreads a component over as many bins as its noise bandwidth has; of densities it is
    that of S times the width, of bands that of n P [1]_.

    References
    ----------
    .. [1] G. Heinzel et al., "Spectrum and spectral density estimation by the DFT", 2002, sec. 9.
    """

    def __init__(self, scale: PowerScale, first: int, stop: int, group: int) -> None:
        whole = scale.axis
        cut = HistoryAxis(whole.lower[first:stop], whole.upper[first:stop], whole.is_bands)
        self.axis, self.whole = cut.grouped(group), cut.grouped(len(cut))
        firsts = np.arange(0, stop - first, group)
        self._weights = np.add.reduceat(scale.weights(cut), firsts)
        self.unit, self._reference = power_unit(scale.unit)

    def power(self, powers: Float64Array) -> Float64Array:
        """Return the power of each row, (rows, values) to (rows,); NaN without any value."""
        is_known = ~np.isnan(powers)
        total = np.where(is_known, powers, 0.0) @ self._weights
        total[~is_known.any(axis=1)] = np.nan
        return total

    def levels(self, power: Float64Array) -> Float64Array:
        """Return levels [``unit``] of powers that are summed up; NaN of NaN."""
        return np.asarray(power_to_level(power / self._reference), np.float64)


class LevelPooling(Pooling):
    """Takes all values of a source between the frequencies of a level together, for one value.

    Parameters
    ----------
    source : HistoryAxis
        Axis before.
    level : BandLevel
        What sums up its values.
    """

    def __init__(self, source: HistoryAxis, level: BandLevel) -> None:
        super().__init__(source, level.axis)
        self._level = level

    def greatest(self, codes: Int16Array) -> Int16Array:
        """Return no code of each row, (rows, values of span) to (rows, 1): levels are of means."""
        return np.full((len(codes), 1), NOTHING, np.int16)

    def mean(self, power: Float64Array) -> Float64Array:
        """Return the power of each row, (rows, values of span) to (rows, 1)."""
        return self._level.power(super().mean(power))[:, np.newaxis]
