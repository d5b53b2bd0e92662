"""Frequency axes of recorded and live rows, and pooling from one to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.web.pooling import BinSlice
from spectrod.apps.web.slicing import AxisKind, TopicAxis, slices_of
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.wire.headers import BandsHeader, SpectrumHeader

Int16Array = NDArray[np.int16]
NOTHING: Final = -32768
"""Code of a missing level, less than all others."""
_TOLERANCE = 1e-6
"""Part of a value's width that edges of the same bins may differ by."""


def ascends(lower: Float64Array, upper: Float64Array) -> bool:
    """Return whether edges of bands (n,) are those of bands that ascend [Hz]."""
    return bool((lower < upper).all() and (np.diff([lower, upper]) > 0.0).all())


@dataclass(frozen=True, slots=True, eq=False)
class HistoryAxis:
    """The frequencies that each value of a row covers.

    Attributes
    ----------
    lower, upper : (values,) float64
        Edges [Hz]; both ascend.
    is_bands : bool
        Whether the edges must be listed; bins are equally wide.
    """

    lower: Float64Array
    upper: Float64Array
    is_bands: bool

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def of_bins(cls, first_hz: float, bin_hz: float, n_bins: int) -> Self:
        """Return the axis of bins, the first of which is at first_hz."""
        edges = first_hz + (np.arange(n_bins + 1, dtype=np.float64) - 0.5) * bin_hz
        return cls(edges[:-1], edges[1:], is_bands=False)

    @classmethod
    def of_spec(cls, spec: SpectrumSpec) -> Self:
        """Return the axis of the rows of an analysis."""
        bands = spec.band_table
        if bands is not None:
            return cls(bands.lower, bands.upper, is_bands=True)
        return cls.of_bins(float(spec.bin_frequencies[0]), spec.delta_f, spec.n_values)

    @classmethod
    def of_header(
        cls,
        header: SpectrumHeader | BandsHeader,
        edges_hz: Float64Array | tuple[Float64Array, Float64Array] | None = None,
    ) -> Self:
        """Return the axis of a message; the edges of bands are in its description.

        Raises
        ------
        ConfigError
            If the edges are not those of its bands, or do not ascend.
        """
        n_values = header.shape[0]
        if isinstance(header, SpectrumHeader):
            bin_hz = header.fs / header.nfft
            first_hz = header.center_frequency_hz + header.first_bin * bin_hz
            return cls.of_bins(first_hz, bin_hz, n_values)
        if edges_hz is None or any(len(edges) != n_values for edges in edges_hz):
            raise ConfigError(f"edges of bands {header.bands}: must be {n_values}")
        lower, upper = edges_hz
        if not ascends(lower, upper):
            raise ConfigError(f"edges of bands {header.bands}: must ascend")
        return cls(lower, upper, is_bands=True)

    def same(self, other: "HistoryAxis") -> bool:
        """Return whether both have the same edges."""
        return np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper)

    def grouped(self, group: int) -> "HistoryAxis":
        """Return the axis of values that each take this many neighbours together."""
        firsts = np.arange(0, len(self), group)
        lasts = np.minimum(firsts + group, len(self)) - 1
        return HistoryAxis(self.lower[firsts], self.upper[lasts], self.is_bands)

    def view(self, f0_hz: float, f1_hz: float, values_max: int, group: int) -> "HistoryAxis":
        """Return the axis of a picture: the fewest neighbours together that leave values_max.

        Parameters
        ----------
        f0_hz, f1_hz : float
            Frequencies that the axis covers at least, where there are values [Hz].
        values_max : int
            Largest number of values.
        group : int
            Neighbours that a source has taken together already: values do not split them.

        Raises
        ------
        ConfigError
            If no value is in this range.
        """
        first, stop = self.inside(f0_hz, f1_hz)
        first = first // group * group
        per_value = group * -(-(stop - first) // (group * values_max))
        cut = HistoryAxis(self.lower[first:stop], self.upper[first:stop], self.is_bands)
        return cut.grouped(per_value)

    def slices(
        self, f0_hz: float, f1_hz: float, px: int, kind: AxisKind, group: int
    ) -> tuple[BinSlice, ...]:
        """Return the slices of a stream for a page's axis, in values of this one.

        Parameters
        ----------
        f0_hz, f1_hz : float
            Ends of the page's axis [Hz].
        px : int
            Its pixels.
        kind : str
            Its kind.
        group : int
            Neighbours that a source has taken together already: values do not split them. With 1
            the slices are those of live rows.

        Raises
        ------
        ConfigError
            If no value is in this range.
        """
        self.inside(f0_hz, f1_hz)
        units = self.grouped(group)
        width_hz = float(self.upper[0] - self.lower[0])
        first_hz = float(self.lower[0]) + group * width_hz / 2.0
        edges = np.stack([units.lower, units.upper]) if self.is_bands else None
        topic = TopicAxis(len(units), first_hz, group * width_hz, edges)
        found = slices_of(topic, f0_hz, f1_hz, px, kind)
        return tuple(
            BinSlice(one.first * group, one.per_value * group, one.values) for one in found
        )

    def sliced(self, slices: Sequence[BinSlice]) -> "HistoryAxis":
        """Return the axis of the values of slices; the last may have fewer neighbours."""
        firsts = np.concatenate(
            [one.first + one.per_value * np.arange(one.values) for one in slices]
        )
        counts = np.concatenate([np.full(one.values, one.per_value) for one in slices])
        lasts = np.minimum(firsts + counts, len(self)) - 1
        return HistoryAxis(self.lower[firsts], self.upper[lasts], self.is_bands)

    def inside(self, f0_hz: float, f1_hz: float) -> tuple[int, int]:
        """Return the first value in a range of frequencies and the one after the last.

        Raises
        ------
        ConfigError
            If there is none.
        """
        inside = np.flatnonzero((self.upper > f0_hz) & (self.lower < f1_hz))
        if not inside.size:
            ends = f"{self.lower[0]:g} to {self.upper[-1]:g} Hz"
            raise ConfigError(f"f0={f0_hz:g}, f1={f1_hz:g}: must overlap the topic's {ends}")
        return int(inside[0]), int(inside[-1]) + 1

    @property
    def ends_hz(self) -> tuple[float, float]:
        """Ends of the axis [Hz]; of bins as if the last value had all its bins, too."""
        if self.is_bands:
            return float(self.lower[0]), float(self.upper[-1])
        width = float(self.upper[0] - self.lower[0])
        return float(self.lower[0]), float(self.lower[0]) + len(self) * width


class Pooling:
    """Takes the values of a source together for the values of another axis.

    A value of the target is made of all values of the source that overlap it; so where the source
    is coarser, its values repeat, and where it has none, there is no value.

    Parameters
    ----------
    source, target : HistoryAxis
        Axes before and after.

    Attributes
    ----------
    span : slice
        The source's values that count; the methods take only these.
    """

    def __init__(self, source: HistoryAxis, target: HistoryAxis) -> None:
        slack = _TOLERANCE * np.minimum(
            target.upper - target.lower, np.min(source.upper - source.lower)
        )
        first = np.searchsorted(source.upper, target.lower + slack, side="right")
        stop = np.searchsorted(source.lower, target.upper - slack, side="left")
        self._found = np.flatnonzero(stop > first)
        self._n_values = len(target)
        found = self._found
        self.span = slice(int(first[found[0]]), int(stop[found[-1]])) if found.size else slice(0, 0)
        self._first, self._stop = first[found] - self.span.start, stop[found] - self.span.start
        self._is_single = bool((self._stop - self._first == 1).all())
        # reduceat reduces between pairs of indices, of which the even results are the wanted ones.
        self._pairs = np.stack([self._first, self._stop], axis=1).ravel()

    def greatest(self, codes: Int16Array) -> Int16Array:
        """Return the greatest code of each value.

        Parameters
        ----------
        codes : (rows, values of span) int16
            Levels; ``NOTHING`` where a value is missing.

        Returns
        -------
        codes : (rows, target values) int16
        """
        out = np.full((len(codes), self._n_values), NOTHING, np.int16)
        if self._is_single:
            out[:, self._found] = codes[:, self._first]
        elif self._found.size:
            pairs, n_codes = self._pairs, codes.shape[1]
            if int(pairs[:-1].max()) >= n_codes:  # an end that is none of the indices of codes
                codes = np.pad(codes, ((0, 0), (0, 1)), constant_values=NOTHING)
            elif int(pairs[-1]) == n_codes:  # the last value reaches to the end by itself
                pairs = pairs[:-1]
            out[:, self._found] = np.maximum.reduceat(codes, pairs, axis=1)[:, ::2]
        return out

    def mean(self, power: Float64Array) -> Float64Array:
        """Return the mean power of each value; NaN where the source has none.

        Parameters
        ----------
        power : (rows, values of span) float64
            Powers.

        Returns
        -------
        power : (rows, target values) float64
        """
        out = np.full((len(power), self._n_values), np.nan)
        if self._is_single:
            out[:, self._found] = power[:, self._first]
        elif self._found.size:
            padded = np.pad(power, ((0, 0), (0, 1)))
            sums = np.add.reduceat(padded, self._pairs, axis=1)[:, ::2]
            out[:, self._found] = sums / (self._stop - self._first)
        return out
