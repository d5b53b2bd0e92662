"""Axes of frequency and level on a grid of characters or pixels."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.scales import LOWEST_HZ, SCALES, AxisKind, AxisTick, find_ticks
from spectrod.dsp.units import Float64Array

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
    kind: AxisKind = "log"

    def reduce(self, levels: NDArray[np.floating]) -> Float64Array:
        """Return each column's highest bin: no tone is hidden; shape (columns,) [as levels]."""
        padded = np.append(levels, -np.inf)  # reduceat needs a bin at the last bound too
        return np.asarray(np.maximum.reduceat(padded, self.bounds)[::2], dtype=np.float64)

    def column(self, frequency_hz: float) -> int:
        """Return the column of a frequency."""
        position = int(self._fraction(frequency_hz) * self.columns)
        return min(self.columns - 1, max(0, position))

    def _fraction(self, frequency_hz: float) -> float:
        hz = np.array([frequency_hz, self.lowest_hz, self.highest_hz])
        here, lowest, highest = SCALES[self.kind].forward(hz).tolist()
        return float((here - lowest) / (highest - lowest))

    def ticks(self) -> list[tuple[int, str]]:
        """Return columns and labels of round frequencies in range."""
        ticks: list[AxisTick] = find_ticks(self.kind, self.lowest_hz, self.highest_hz, self.columns)
        return [(self.column(tick.hz), tick.label) for tick in ticks]


@lru_cache(maxsize=16)
def frequency_axis(  # noqa: PLR0913, PLR0917 - the values by which axes are kept
    fs: float,
    nfft: int,
    columns: int,
    first_bin: int = 0,
    span: Span = ALL,
    center_hz: float = 0.0,
    kind: AxisKind = "log",
) -> ColumnAxis:
    """Make an axis over a spectrum.

    From 0 Hz, or in octaves from 20 Hz or the first bin if that is higher, to Nyquist. A two-sided
    spectrum has a linear axis, whatever the kind.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    nfft : int
        Transform length.
    columns : int
        Width in characters, or in parts of them, >= 1.
    first_bin : int
        Index of the first value's bin; negative for a two-sided spectrum.
    span : tuple of float
        Part of the axis that is shown.
    center_hz : float
        Frequency that 0 Hz of a two-sided spectrum represents [Hz].
    kind : {"log", "octave", "mel", "linear"}
        Scale of a one-sided spectrum.
    """
    delta_f = fs / nfft
    fractions = np.linspace(*span, columns + 1)
    if first_bin:
        edges_hz = (first_bin - 0.5 + fractions * nfft) * delta_f
        centres_hz, n_bins = (edges_hz[:-1] + edges_hz[1:]) / 2.0, nfft
    else:
        edges_hz, centres_hz = _one_sided(fs, delta_f, fractions, kind)
        n_bins = nfft // 2 + 1
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
    return ColumnAxis(lowest_hz, highest_hz, columns, bounds, "linear" if first_bin else kind)


def _one_sided(
    fs: float, delta_f: float, fractions: Float64Array, kind: AxisKind
) -> tuple[Float64Array, Float64Array]:
    """Return the edges and the centres of columns [Hz]."""
    highest_hz = fs / 2.0
    is_octaves = kind in ("log", "octave")
    lowest_hz = min(max(LOWEST_HZ, delta_f), highest_hz / 2.0) if is_octaves else 0.0
    scale = SCALES[kind]
    ends = scale.forward(np.array([lowest_hz, highest_hz]))
    positions = ends[0] + fractions * (ends[1] - ends[0])
    edges_hz = np.array(scale.inverse(positions), dtype=np.float64)
    # Not a bit off, which would leave out a bin or a label.
    edges_hz[fractions == 0.0], edges_hz[fractions == 1.0] = lowest_hz, highest_hz
    return edges_hz, np.asarray(scale.inverse((positions[:-1] + positions[1:]) / 2.0))
