"""Bins taken together: their maximum, or the mean of their power."""

from typing import Final, NamedTuple

import numpy as np

from spectrod.apps.web.quantize import Integers
from spectrod.dsp.units import Float32Array, Float64Array, level_to_power

PER_VALUE_MAX: Final = 1 << 20


class BinSlice(NamedTuple):
    """Adjacent values of a row, each of as many bins.

    Value j is of bins ``first + j per_value`` to ``first + (j + 1) per_value - 1``, as far as the
    topic has them.
    """

    first: int
    """First bin, a multiple of per_value."""
    per_value: int
    """Bins of a value, a power of two."""
    values: int
    """Number of values, at least 1."""


class MaxLevels:
    """Maxima of 1, 2, 4, ... adjacent integers, each computed once, when it is first needed.

    Parameters
    ----------
    integers : (n,) uint8 or uint16
        0 is no data.
    """

    def __init__(self, integers: Integers) -> None:
        self._levels = [integers]

    def pool(self, piece: BinSlice) -> Integers:
        """Return the maxima of a slice, (piece.values,) of the same dtype; not a copy."""
        k = piece.per_value.bit_length() - 1
        while len(self._levels) <= k:
            self._levels.append(_halve(self._levels[-1]))
        first = piece.first >> k
        return self._levels[k][first : first + piece.values]


def _halve(integers: Integers) -> Integers:
    n = len(integers)
    half = np.empty((n + 1) // 2, integers.dtype)
    np.maximum(integers[: n - 1 : 2], integers[1::2], out=half[: n // 2])
    if n % 2:
        half[-1] = integers[-1]
    return half


def to_power(levels: Float32Array) -> Float64Array:
    """Return powers of levels, (n,) float64, re the power of 0 dB; NaN stays NaN."""
    with np.errstate(over="ignore"):
        return level_to_power(levels.astype(np.float64))


def pool_mean(power: Float64Array, piece: BinSlice) -> Float64Array:
    """Return the mean power of each value of a slice.

    Parameters
    ----------
    power : (n,) float64
        Power of each bin; NaN: no data.
    piece : BinSlice
        Slice of these bins.

    Returns
    -------
    mean : (piece.values,) float64
        Of the bins with data; NaN without any.
    """
    bins = power[piece.first : piece.first + piece.per_value * piece.values]
    if piece.per_value == 1:
        return bins
    starts = np.arange(0, len(bins), piece.per_value)
    missing = np.isnan(bins)
    counts = np.add.reduceat(~missing, starts, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # 0 of 0 bins is NaN, no data
        sums = np.add.reduceat(np.where(missing, 0.0, bins), starts)
        return np.asarray(sums / counts)
