"""Positions and labels of the ticks of frequency and level axes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from spectrod.dsp.bands import (
    bark_to_hz,
    erb_rate_to_hz,
    hz_to_bark,
    hz_to_erb_rate,
    hz_to_mel,
    mel_to_hz,
)
from spectrod.dsp.units import Float64Array

FrequencyScale = Literal["linear", "log", "mel", "octave", "bark", "erb"]
FREQUENCY_SCALES: tuple[FrequencyScale, ...] = get_args(FrequencyScale)

_UNITS = ((10e9, 1e9, "GHz"), (2e6, 1e6, "MHz"), (2e3, 1e3, "kHz"), (0.0, 1.0, "Hz"))
"""Units on a linear axis: from this frequency on, scale, name [Hz, Hz, -]."""

_THIRD_OCTAVES = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
"""Nominal mid-band frequencies of a decade in third octaves (IEC 61260-1, annex E)."""

_EAR_LABELS_HZ = (
    (
        *(0, 250, 500, 750, 1000, 1500, 2000, 3000, 4000, 6000, 8000),
        *(12000, 16000, 24000, 32000, 48000, 64000, 96000),
    ),
    (0, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000),
    (0, 1000, 4000, 16000, 64000),
)
"""Frequencies that are about evenly spaced on the scales of the ear, the closest first."""

_EAR_SCALES: tuple[FrequencyScale, ...] = ("mel", "bark", "erb")


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its value in the axis' unit, and its text; a minor one has none."""

    value: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """Ticks in ascending order, and the axis title."""

    ticks: tuple[Tick, ...]
    title: str


def nice_step(at_least: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is not below the argument, > 0."""
    power = 10.0 ** math.floor(math.log10(at_least))
    for factor in (1.0, 2.0, 5.0):
        # The margin keeps a step that rounding has put just below its exact value.
        if factor * power >= at_least * (1.0 - 1e-9):
            return factor * power
    return 10.0 * power


def multiples(lo: float, hi: float, step: float) -> list[float]:
    """Return the multiples of a step from lo to hi, both included, with a rounding margin."""
    first = math.ceil(lo / step - 1e-9)
    last = math.floor(hi / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def decimals_of(step: float) -> int:
    """Return the number of decimals that distinguish multiples of a nice step."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def linear_ticks(lo: float, hi: float, max_count: int, unit: float = 1.0) -> tuple[Tick, ...]:
    """Return ticks at multiples of a 1-2-5 step.

    Parameters
    ----------
    lo, hi : float
        Ends of the axis, lo < hi.
    max_count : int
        Largest number of intervals, >= 1.
    unit : float
        Unit of the labels, in the axis' own unit: 1000 labels Hz as kHz.

    Returns
    -------
    ticks : tuple of Tick
        Ascending, within the ends.
    """
    step = nice_step((hi - lo) / max_count / unit)
    decimals = decimals_of(step)
    values = multiples(lo / unit, hi / unit, step)
    return tuple(Tick(value * unit, f"{value:.{decimals}f}") for value in values)


def end_ticks(lo: float, hi: float, unit: float = 1.0) -> tuple[Tick, ...]:
    """Return ticks at both ends, for axes that are too short for round numbers.

    Labels have four digits, or as many as distinguish thousandths of the axis.
    """
    n_digits = max(4, math.ceil(math.log10(max(abs(lo), abs(hi)) / (hi - lo))) + 3)
    return tuple(Tick(value, f"{value / unit:.{n_digits}g}") for value in (lo, hi))


def _log_ticks(lo: float, hi: float, mantissas: tuple[int, ...]) -> tuple[float, ...]:
    decades = range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1)
    values = (mantissa * 10.0**decade for decade in decades for mantissa in mantissas)
    return tuple(v for v in values if lo * (1.0 - 1e-9) <= v <= hi * (1.0 + 1e-9))


def _metric(value_hz: float) -> str:
    return f"{value_hz / 1000.0:g}k" if value_hz >= 1000.0 else f"{value_hz:g}"


def _octave_ticks(lo: float, hi: float, thirds: int) -> tuple[float, ...]:
    """Return nominal mid-bands from lo to hi, this many thirds of an octave apart, with 1 kHz."""
    first, last = math.floor(10.0 * math.log10(lo)), math.ceil(10.0 * math.log10(hi))
    indices = (i for i in range(first, last + 1) if (i - 30) % thirds == 0)
    values = (_THIRD_OCTAVES[i % 10] * 10.0 ** (i // 10) for i in indices)
    return tuple(v for v in values if lo * (1.0 - 1e-9) <= v <= hi * (1.0 + 1e-9))


def _hertz(f_hz: Float64Array) -> Float64Array:
    return f_hz


_Warp = Callable[[Float64Array], Float64Array]

_WARPS: dict[FrequencyScale, tuple[_Warp, _Warp]] = {
    "linear": (_hertz, _hertz),
    "log": (np.log, np.exp),
    "mel": (hz_to_mel, mel_to_hz),
    "octave": (np.log2, np.exp2),
    "bark": (hz_to_bark, bark_to_hz),
    "erb": (hz_to_erb_rate, erb_rate_to_hz),
}
"""Functions from frequency to the position along the axis, and back."""


@dataclass(frozen=True, slots=True)
class FrequencyAxis:
    """A frequency axis from ``lo_hz`` to ``hi_hz``.

    Logarithmic and octave axes need ``lo_hz`` > 0; negative frequencies need a linear axis.
    """

    scale: FrequencyScale
    lo_hz: float
    hi_hz: float

    def _ends(self) -> tuple[float, float]:
        forward, _ = _WARPS[self.scale]
        lo, hi = forward(np.array([self.lo_hz, self.hi_hz]))
        return float(lo), float(hi)

    def at(self, fraction: Float64Array) -> Float64Array:
        """Return the frequency [Hz] at each fraction of the axis: 0 is the low end, 1 the high."""
        lo, hi = self._ends()
        _, back = _WARPS[self.scale]
        return back(lo + (hi - lo) * fraction)

    def fraction(self, f_hz: float) -> float:
        """Return the fraction of the axis at a frequency [Hz]: the inverse of ``at``."""
        lo, hi = self._ends()
        forward, _ = _WARPS[self.scale]
        return (float(forward(np.array(f_hz))) - lo) / (hi - lo)

    def edges(self, n_rows: int) -> Float64Array:
        """Return the limits of evenly spaced rows, shape (n_rows + 1,), ascending [Hz]."""
        edges = self.at(np.linspace(0.0, 1.0, n_rows + 1))
        edges[[0, -1]] = self.lo_hz, self.hi_hz  # forward and back may have rounding errors
        return edges

    def centres(self, n_rows: int) -> Float64Array:
        """Return the frequency at the centre of each row, shape (n_rows,), ascending [Hz]."""
        return self.at((np.arange(n_rows) + 0.5) / n_rows)

    def candidates(self, max_count: int) -> Iterator[Axis]:
        """Yield labelled axes, those with more ticks first; the first that fits is the best."""
        for values in self._named():
            yield Axis(tuple(Tick(value, _metric(value)) for value in values), "Hz")
        reaches_hz = max(abs(self.lo_hz), abs(self.hi_hz))
        unit, title = next((unit, name) for from_hz, unit, name in _UNITS if reaches_hz >= from_hz)
        for count in range(max_count, 0, -1):
            yield Axis(linear_ticks(self.lo_hz, self.hi_hz, count, unit), title)
        yield Axis(end_ticks(self.lo_hz, self.hi_hz, unit), title)

    def _named(self) -> Iterator[tuple[float, ...]]:
        """Yield the usual frequencies of this scale, if the range contains enough of them."""
        lo, hi = self.lo_hz, self.hi_hz
        if self.scale == "log" and hi / lo >= 10.0:
            yield _log_ticks(lo, hi, (1, 2, 5))
            yield _log_ticks(lo, hi, (1,))
        if self.scale == "octave" and hi / lo >= 2.0:
            if hi / lo <= 8.0:
                yield _octave_ticks(lo, hi, 1)
            for thirds in (3, 6, 9) if hi / lo >= 4.0 else ():
                yield _octave_ticks(lo, hi, thirds)
        if self.scale in _EAR_SCALES and hi - lo >= 2000.0:
            for values in _EAR_LABELS_HZ:
                yield tuple(float(value) for value in values if lo <= value <= hi)

    def minor(self) -> tuple[Tick, ...]:
        """Return unlabelled ticks between the labels of an axis that is not linear.

        They are 1 to 9 of each decade, third octaves, or for scales of the ear 1 to 9 of each
        decade from 100 Hz on.
        """
        lo, hi = self.lo_hz, self.hi_hz
        if self.scale == "linear":
            return ()
        if self.scale == "octave":
            return tuple(map(Tick, _octave_ticks(lo, hi, 1)))
        lowest_hz = max(lo, 100.0) if self.scale in _EAR_SCALES else lo
        return tuple(map(Tick, _log_ticks(lowest_hz, hi, tuple(range(1, 10)))))
