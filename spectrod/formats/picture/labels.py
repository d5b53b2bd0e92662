"""Choice of the axis labels of a page: as many as fit without overlap."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain

import numpy as np

from spectrod.formats.picture.axes import Axis, FrequencyAxis, end_ticks, linear_ticks
from spectrod.formats.picture.lettering import text_width
from spectrod.formats.picture.page_layout import LABEL_PX, fitting
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.recorded_spans import Pauses
from spectrod.formats.picture.time_ticks import clock_axis, elapsed_axis

_SPACING = 6.0
"""Smallest space between labels above each other [px]."""
_KEPT = 64
"""Number of axes that are kept for further pictures."""


def _intervals(length: int, pixels_each: int) -> int:
    """Return the largest number of label intervals to try; 5 give any linear axis two labels."""
    return max(5, length // pixels_each)


def _stacked(
    candidates: Iterator[Axis], place: Callable[[float], float], spacing: float = _SPACING
) -> Axis:
    """Return the first axis whose labels fit above each other."""
    return fitting(candidates, place, lambda _: LABEL_PX, spacing)


@lru_cache(maxsize=_KEPT)
def frequency_labels(axis: FrequencyAxis, height: int) -> Axis:
    """Choose the labels of a frequency axis with this height [px]."""
    candidates = axis.candidates(_intervals(height, 40))
    return _stacked(candidates, lambda f_hz: axis.fraction(f_hz) * height)


@lru_cache(maxsize=_KEPT)
def level_labels(lo: float, hi: float, height: int, unit: str, spacing: float = _SPACING) -> Axis:
    """Choose the labels of a level axis from lo to hi with this height [px]."""
    counts = range(_intervals(height, 40), 0, -1)
    candidates = (Axis(linear_ticks(lo, hi, count), unit) for count in counts)
    ends = (Axis(end_ticks(lo, hi), unit),)
    return _stacked(
        chain(candidates, ends), lambda level: (level - lo) / (hi - lo) * height, spacing
    )


def _time_candidates(
    options: PictureOptions, width: int, begins: tuple[int, float], duration_s: float
) -> Iterator[Axis]:
    begin_utc_ns, begin_s = begins
    for count in range(_intervals(width, 80), 0, -1):
        if options.has_clock:
            yield clock_axis(begin_utc_ns, duration_s, count, options.zone)
        else:
            yield elapsed_axis(duration_s, count, begin_s)


def time_labels(
    options: PictureOptions, width: int, begins: tuple[int, float], duration_s: float
) -> Axis:
    """Choose the time axis; ``begins`` are UTC [ns] and elapsed time [s] at its low end."""
    return fitting(
        _time_candidates(options, width, begins, duration_s),
        lambda t_s: t_s / duration_s * width,
        lambda label: text_width(label, LABEL_PX),
        spacing=20.0,
    )


def overhang(t_labels: Axis, width: int, duration_s: float) -> int:
    """Return how far the labels extend beyond the plot's left edge [px]."""
    reaches = (
        text_width(tick.label, LABEL_PX) / 2.0 - tick.value / duration_s * width
        for tick in t_labels.ticks
    )
    return max(0, *(round(reach) for reach in reaches)) if t_labels.ticks else 0


def short_number(value: float) -> str:
    """Format four significant digits without an exponent; whole numbers without decimals."""
    if value >= 1000.0:
        return f"{value:.0f}"
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def gap_texts(gaps: int, missing_s: float, pauses: Pauses) -> Iterator[str]:
    """Yield texts on the pauses of a schedule, and on the gaps that it does not explain.

    Parameters
    ----------
    gaps : int
        Gaps, with the pauses.
    missing_s : float
        Their length, with that of the pauses [s].
    pauses : Pauses
        The pauses.
    """
    if pauses.n_pauses:
        yield f"{pauses.n_pauses} pauses of a schedule of {short_number(pauses.period_s)} s"
    if gaps > pauses.n_pauses:
        other_s = short_number(missing_s - pauses.duration_s)
        yield f"gaps: {gaps - pauses.n_pauses}, {other_s} s missing"
