"""Axes of frequency and level on a grid of characters."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectrod.units import Float64Array

_LOWEST_HZ = 20.0
_DECADES = range(-12, 11)  # of the 1-2-5 series, from below the bins of any spectrum to FS_MAX_HZ
_TICKS_HZ = [k * 10.0**e for e in _DECADES for k in (1, 2, 5)]
_TICK_COLUMNS = 8  # of a linear axis for a label and the space beside it


Span = tuple[float, float]
"""Part of an axis, as fractions of its full width, 0 to 1."""
ALL: Span = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class LevelRange:
    """Levels from the bottom of the picture to its top [dB]."""

    bottom_db: float
    top_db: float

    def fraction(self, level_db: Float64Array) -> Float64Array:
        """Return the height in the picture, 0 to 1."""
        height = (level_db - self.bottom_db) / (self.top_db - self.bottom_db)
        return np.clip(height, 0.0, 1.0)


def level_range(unit: str) -> LevelRange:
    """Return the default range for levels in ``unit``."""
    return LevelRange(-160.0, -20.0) if unit.endswith("/Hz") else LevelRange(-120.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnAxis:
    """An axis of columns over a spectrum's bins; made by ``frequency_axis``."""

    lowest_hz: float
    highest_hz: float
    columns: int
    bounds: NDArray[np.int64]
    """First and last-plus-one value of each column, flat, shape (2 * columns,)."""
    is_linear: bool = False
    """False for a logarithmic axis."""

    def reduce(self, levels: Float64Array) -> Float64Array:
        """Return each column's highest bin: no tone is hidden; shape (columns,) [as levels]."""
        padded = np.append(levels, -np.inf)  # reduceat needs a bin at the last bound too
        return np.asarray(np.maximum.reduceat(padded, self.bounds)[::2])

    def column(self, frequency_hz: float) -> int:
        """Return the column of a frequency."""
        position = int(self._fraction(frequency_hz) * self.columns)
        return min(self.columns - 1, max(0, position))

    def _fraction(self, frequency_hz: float) -> float:
        if self.is_linear:
            return (frequency_hz - self.lowest_hz) / (self.highest_hz - self.lowest_hz)
        octaves = math.log2(self.highest_hz / self.lowest_hz)
        return math.log2(frequency_hz / self.lowest_hz) / octaves

    def ticks(self) -> list[tuple[int, str]]:
        """Return columns and labels of round frequencies in range."""
        step_hz = self._step_hz() if self.is_linear else 0.0
        round_hz = self._multiples(step_hz) if self.is_linear else _TICKS_HZ
        inside = [f for f in round_hz if self.lowest_hz <= f <= self.highest_hz]
        return [(self.column(f), _short_hz(f, step_hz)) for f in inside]

    def _step_hz(self) -> float:
        """Find the smallest 1-2-5 step that leaves room for labels."""
        span_hz, most = self.highest_hz - self.lowest_hz, max(2, self.columns // _TICK_COLUMNS)
        return next((s for s in _TICKS_HZ if span_hz <= s * most), math.inf)

    def _multiples(self, step_hz: float) -> list[float]:
        """List the multiples of a step on the axis; only 0 Hz if the step is too large."""
        first, last = math.ceil(self.lowest_hz / step_hz), math.floor(self.highest_hz / step_hz)
        # At most one per column, whatever a header claims.
        last = min(last, first + self.columns)
        return [k * step_hz for k in range(first, last + 1)] if math.isfinite(step_hz) else [0.0]


@lru_cache(maxsize=4)
def frequency_axis(
    fs: float,
    nfft: int,
    columns: int,
    first_bin: int = 0,
    span: Span = ALL,
    center_hz: float = 0.0,
) -> ColumnAxis:
    """Make an axis over a spectrum.

    Logarithmic from 20 Hz, or the first bin if that is higher, to Nyquist; linear for a two-sided
    spectrum.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    nfft : int
        Transform length.
    columns : int
        Width in characters, >= 1.
    first_bin : int
        Index of the first value's bin; negative for a two-sided spectrum.
    span : tuple of float
        Part of the axis that is shown.
    center_hz : float
        Frequency that 0 Hz of a two-sided spectrum represents [Hz].
    """
    delta_f = fs / nfft
    fractions = np.linspace(*span, columns + 1)
    if first_bin:
        edges_hz = (first_bin - 0.5 + fractions * nfft) * delta_f
        centres_hz, n_bins = (edges_hz[:-1] + edges_hz[1:]) / 2.0, nfft
    else:
        edges_hz = _octave_edges(fs, delta_f, fractions)
        centres_hz, n_bins = np.sqrt(edges_hz[:-1] * edges_hz[1:]), nfft // 2 + 1
    lowest_hz, highest_hz = float(edges_hz[0]), float(edges_hz[-1])
    if not first_bin and span[1] == 1.0:
        edges_hz[-1] += delta_f / 2.0  # the last bin belongs to the last column
    first, last = (
        np.ceil(edges_hz / delta_f).astype(np.int64)[s] - first_bin for s in (np.s_[:-1], np.s_[1:])
    )
    # A column without a bin, narrower than the bins, shows the nearest one.
    nearest = np.rint(centres_hz / delta_f).astype(np.int64) - first_bin
    first = np.clip(np.where(first < last, first, nearest), 0, n_bins - 1)
    last = np.clip(last, first + 1, n_bins)
    bounds = np.stack([first, last], axis=1).ravel()
    if first_bin:
        lowest_hz, highest_hz = lowest_hz + center_hz, highest_hz + center_hz
    return ColumnAxis(lowest_hz, highest_hz, columns, bounds, is_linear=bool(first_bin))


def _octave_edges(fs: float, delta_f: float, fractions: Float64Array) -> Float64Array:
    highest_hz = fs / 2.0
    lowest_hz = min(max(_LOWEST_HZ, delta_f), highest_hz / 2.0)
    edges_hz: Float64Array = lowest_hz * (highest_hz / lowest_hz) ** fractions
    edges_hz[fractions == 1.0] = highest_hz  # not a bit above
    return edges_hz


def _short_hz(frequency_hz: float, step_hz: float = 0.0) -> str:
    """Format a frequency with enough digits to distinguish multiples of a step, at least 6."""
    is_fine = frequency_hz and 0.0 < step_hz < abs(frequency_hz)
    n_digits = 1 + math.ceil(math.log10(abs(frequency_hz) / step_hz)) if is_fine else 0
    n_digits = min(15, max(6, n_digits))
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(frequency_hz) >= factor:
            return f"{frequency_hz / factor:.{n_digits}g}{suffix}"
    return f"{frequency_hz:.{n_digits}g}"
