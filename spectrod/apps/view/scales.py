"""Scales of frequency axes: where a frequency lies, and which frequencies are labelled."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from spectrod.dsp.bands import hz_to_mel, mel_to_hz
from spectrod.dsp.units import Float64Array

AxisKind = Literal["log", "octave", "mel", "linear"]
AXIS_KINDS: tuple[AxisKind, ...] = get_args(AxisKind)
"""Kinds of frequency axes: octaves with labels at 1, 2, 5; with labels at the mid-band frequencies
of octaves; Slaney's mel; hertz."""

LOWEST_HZ = 20.0
"""Lowest frequency of an axis in octaves [Hz]."""

_DECADES = range(-12, 11)  # of the 1-2-5 series, from below the bins of any spectrum to FS_MAX_HZ
_SERIES_HZ = [k * 10.0**e for e in _DECADES for k in (1, 2, 5)]
_OCTAVE_NAMES = (1.0, 2.0, 4.0, 8.0, 16.0, 31.5, 63.0, 125.0, 250.0, 500.0)
"""Nominal mid-band frequencies of ten octaves, 1000 times higher in the next ten (ISO 266)."""
_OCTAVES = range(-40, 24)  # from 1 kHz
_TICK_COLUMNS = 8  # for the label of a tick and the space beside it
_FEW_TICKS = 3
_MEL_DECADES = 1000.0


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A mapping of frequencies to positions, and back; both strictly rising."""

    forward: Callable[[Float64Array], Float64Array]
    inverse: Callable[[Float64Array], Float64Array]


_OCTAVE_SCALE = AxisScale(np.log2, np.exp2)
SCALES: Mapping[AxisKind, AxisScale] = {
    "log": _OCTAVE_SCALE,
    "octave": _OCTAVE_SCALE,
    "mel": AxisScale(hz_to_mel, mel_to_hz),
    "linear": AxisScale(np.asarray, np.asarray),
}


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A labelled frequency."""

    hz: float
    label: str


def find_ticks(kind: AxisKind, lowest_hz: float, highest_hz: float, columns: int) -> list[AxisTick]:
    """Return the labelled frequencies of a part of an axis, at most max(5, columns).

    Multiples of a 1-2-5 step on a linear axis and on a part of another one that has fewer than
    three of its own; else the 1-2-5 series, or the mid-band frequencies of octaves at the exact
    base-ten ones with the nominal one as label (IEC 61260-1).
    """
    if kind == "octave":
        own = [(1000.0 * 10.0 ** (0.3 * k), _octave_hz(k)) for k in _OCTAVES]
    elif kind == "linear":
        own = []
    elif kind == "mel":  # linear towards 0 Hz, where lower ones would share a column
        own = [(0.0, 0.0), *((f, f) for f in _SERIES_HZ if f >= highest_hz / _MEL_DECADES)]
    else:
        own = [(f, f) for f in _SERIES_HZ]
    ticks = [AxisTick(f, short_hz(name)) for f, name in own if lowest_hz <= f <= highest_hz]
    if len(ticks) >= _FEW_TICKS or (ticks and columns < _FEW_TICKS * _TICK_COLUMNS):
        return ticks
    step_hz = _step_hz(highest_hz - lowest_hz, columns)
    return [
        AxisTick(f, short_hz(f, step_hz))
        for f in _multiples(step_hz, lowest_hz, highest_hz, columns)
    ]


def _octave_hz(k: int) -> float:
    return _OCTAVE_NAMES[k % 10] * 1000.0 ** (k // 10 + 1)


def _step_hz(span_hz: float, columns: int) -> float:
    """Find the smallest 1-2-5 step that leaves room for labels."""
    most = max(2, columns // _TICK_COLUMNS)
    return next((s for s in _SERIES_HZ if span_hz <= s * most), math.inf)


def _multiples(step_hz: float, lowest_hz: float, highest_hz: float, columns: int) -> list[float]:
    """List the multiples of a step in range; only 0 Hz if the step is too large."""
    if not math.isfinite(step_hz):
        return [0.0] if lowest_hz <= 0.0 <= highest_hz else []
    first, last = math.ceil(lowest_hz / step_hz), math.floor(highest_hz / step_hz)
    # At most one per column, whatever a header claims.
    last = min(last, first + columns)
    return [k * step_hz for k in range(first, last + 1)]


def short_hz(frequency_hz: float, step_hz: float = 0.0) -> str:
    """Format a frequency with enough digits to distinguish multiples of a step, at least 6."""
    is_fine = frequency_hz and 0.0 < step_hz < abs(frequency_hz)
    n_digits = 1 + math.ceil(math.log10(abs(frequency_hz) / step_hz)) if is_fine else 0
    n_digits = min(15, max(6, n_digits))
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(frequency_hz) >= factor:
            return f"{frequency_hz / factor:.{n_digits}g}{suffix}"
    return f"{frequency_hz:.{n_digits}g}"
