"""Marks in a picture: frames around ranges of times and frequencies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.colormaps import Uint8Array
from spectrod.formats.picture.page import Plots
from spectrod.formats.picture.theme import GAP, N_LEVELS

_PAPER, _INK = N_LEVELS, GAP - 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A range of times and frequencies of one signal.

    Attributes
    ----------
    signal : int
        Number of the signal.
    first_sample, end_sample : int
        Its first sample, and the one after its last.
    low_hz, high_hz : float
        Its ends [Hz].
    """

    signal: int
    first_sample: int
    end_sample: int
    low_hz: float
    high_hz: float


def with_marks(
    plots: Plots, marks: Sequence[Mark], f_axis: FrequencyAxis, begin_sample: int
) -> Plots:
    """Return the plots of all signals with frames around the marks, a line of ink in one of paper.

    Parts of a frame outside the plot are not drawn. Levels in ``values`` stay as they are.

    Parameters
    ----------
    plots : Plots
        The data of a picture.
    marks : sequence of Mark
        What is marked.
    f_axis : FrequencyAxis
        Frequency axis of the plots.
    begin_sample : int
        Sample at which the first column begins.
    """
    if not marks:
        return plots
    entries = plots.entries.copy()
    _, height, width = entries.shape
    for mark in marks:
        left, right = (
            round((sample - begin_sample) / plots.n_samples * width)
            for sample in (mark.first_sample, mark.end_sample)
        )
        top, bottom = (
            round((1.0 - f_axis.fraction(max(hz, f_axis.lo_hz))) * height)
            for hz in (mark.high_hz, mark.low_hz)
        )
        _frame(entries[mark.signal], (left - 2, top - 2, right + 1, bottom + 1), _PAPER)
        _frame(entries[mark.signal], (left - 1, top - 1, right, bottom), _INK)
    return replace(plots, entries=entries)


def _frame(plot: Uint8Array, corners: tuple[int, int, int, int], entry: int) -> None:
    """Draw a frame one pixel wide through two corners, as far as it lies in the plot."""
    left, top, right, bottom = corners
    height, width = plot.shape
    columns = slice(max(left, 0), max(right + 1, 0))
    rows = slice(max(top, 0), max(bottom + 1, 0))
    for y in (top, bottom):
        if 0 <= y < height:
            plot[y, columns] = entry
    for x in (left, right):
        if 0 <= x < width:
            plot[rows, x] = entry
