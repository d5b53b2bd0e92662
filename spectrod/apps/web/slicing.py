"""The slices of a row that a view needs: at least one value for each of its pixels."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from spectrod.apps.web.pooling import PER_VALUE_MAX, BinSlice
from spectrod.dsp.bands import hz_to_mel, mel_to_hz
from spectrod.dsp.units import Float64Array

AxisKind = Literal["linear", "log", "mel", "octave"]
"""Axes of a page; ``octave`` is ``log`` with other marks."""

_MEL_LINEAR_TO_HZ = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class TopicAxis:
    """Frequencies of a topic's values.

    Attributes
    ----------
    n_bins : int
        Number of bins or bands.
    first_hz, bin_hz : float
        Bin k is at ``first_hz + k bin_hz`` [Hz].
    edges_hz : (2, n_bins) float64 or None
        Lower and upper edges of bands; None for bins [Hz].
    """

    n_bins: int
    first_hz: float
    bin_hz: float
    edges_hz: Float64Array | None = None

    def indices(self, f0: float, f1: float) -> tuple[int, int]:
        """Return the first bin and the one after the last that a range touches; at least one."""
        if self.edges_hz is None:
            first = math.floor((f0 - self.first_hz) / self.bin_hz)
            end = math.ceil((f1 - self.first_hz) / self.bin_hz) + 1
        else:
            first = int(np.searchsorted(self.edges_hz[1], f0, "right"))
            end = int(np.searchsorted(self.edges_hz[0], f1, "left"))
        first = min(max(first, 0), self.n_bins - 1)
        return first, min(max(end, first + 1), self.n_bins)

    def centre_hz(self, k: int) -> float:
        """Return the frequency of a bin, or of a band the geometric mean of its edges [Hz]."""
        if self.edges_hz is None:
            return self.first_hz + k * self.bin_hz
        lower, upper = self.edges_hz[:, k].tolist()
        return math.sqrt(lower) * math.sqrt(upper) if min(lower, upper) > 0.0 else upper / 2.0


def slices_of(
    topic: TopicAxis, f0: float, f1: float, px: int, kind: AxisKind
) -> tuple[BinSlice, ...]:
    """Return the slices for a range of frequencies on an axis.

    Parameters
    ----------
    topic : TopicAxis
        Axis of the row.
    f0, f1 : float
        Ends of the range, f0 < f1 [Hz].
    px : int
        Pixels of the range, at least 1.
    kind : str
        Axis of the page. A slice per octave where pixels are not of one width.

    Returns
    -------
    slices : tuple of BinSlice
        Adjacent, ascending. On average at most two values a pixel on a linear axis, three on
        others, where the topic's bins are finer than pixels.
    """
    if topic.edges_hz is not None:
        first, end = topic.indices(f0, f1)
        return (_slice(first, end, _power_of_two((end - first) / px)),)
    if kind != "linear":
        f0 = max(f0, topic.bin_hz, topic.first_hz)
        f1 = max(f1, f0 * (1.0 + 1e-9))
    ends_hz = _segments(f0, f1, kind)
    steps = [_power_of_two(_pixel_hz(f, f0, f1, px, kind) / topic.bin_hz) for f in ends_hz[:-1]]
    return _align(topic, ends_hz, steps)


def _align(topic: TopicAxis, ends_hz: list[float], steps: list[int]) -> tuple[BinSlice, ...]:
    """Return adjacent slices, the start of each a multiple of its step; steps do not decrease."""
    first, end = topic.indices(ends_hz[0], ends_hz[-1])
    bounds = [first // steps[0] * steps[0]]
    for hertz, step in zip(ends_hz[1:-1], steps[1:], strict=True):
        bound = math.ceil(topic.indices(hertz, hertz)[0] / step) * step
        bounds.append(min(max(bound, bounds[-1]), end))
    found = []
    for (start, stop), step in zip(pairwise([*bounds, end]), steps, strict=True):
        if stop > start:
            found.append(_slice(start, stop, step))
    return tuple(found)


def _slice(first: int, end: int, step: int) -> BinSlice:
    first = first // step * step
    return BinSlice(first, step, -((first - end) // step))


def _segments(f0: float, f1: float, kind: AxisKind) -> list[float]:
    """Return the ends of segments within which a pixel's width at most doubles."""
    if kind == "linear":
        return [f0, f1]
    hertz, ends = f0, [f0]
    if kind == "mel" and f0 < _MEL_LINEAR_TO_HZ < f1:
        hertz = _MEL_LINEAR_TO_HZ
        ends.append(hertz)
    if kind == "mel" and f1 <= _MEL_LINEAR_TO_HZ:
        return [f0, f1]
    while (hertz := hertz * 2.0) < f1:
        ends.append(hertz)
    return [*ends, f1]


def _pixel_hz(hertz: float, f0: float, f1: float, px: int, kind: AxisKind) -> float:
    """Return the width of a pixel at a frequency [Hz]."""
    if kind == "linear":
        return (f1 - f0) / px
    if kind == "mel":
        low, high, here = (float(hz_to_mel(np.array(f))) for f in (f0, f1, hertz))
        return float(mel_to_hz(np.array(here + (high - low) / px))) - hertz
    return hertz * math.expm1(math.log(f1 / f0) / px)


def _power_of_two(bins: float) -> int:
    """Return the greatest power of two that is not above, from 1 to ``PER_VALUE_MAX``."""
    return 1 << int(math.log2(min(max(bins, 1.0), PER_VALUE_MAX)))
