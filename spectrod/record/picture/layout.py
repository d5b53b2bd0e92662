"""Where everything stands on a picture."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from spectrod.record.picture.axes import Axis
from spectrod.record.picture.lettering import text_width, wrap

TITLE_PX, LABEL_PX, SMALL_PX = 17, 13, 12
"""Sizes of type."""

PAD = 18
TICK, MINOR_TICK = 5, 3
LABEL_GAP = 5
_TITLE_LINE, _HEADING_LINE, FOOTER_LINE = 26, 28, 17
_BAR_GAP, BAR_WIDTH = 20, 16
_X_LABELS = 44
"""Room below the plots for ticks, their labels and what they measure."""


@dataclass(frozen=True, slots=True)
class Box:
    """An area of pixels."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """First column after the area."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """First row after the area."""
        return self.top + self.height

    def x(self, fraction: float) -> int:
        """Column at a fraction of the way from the frame's left line to its right one."""
        return self.left - 1 + round(fraction * (self.width + 1))

    def y(self, fraction: float) -> int:
        """Row at a fraction of the way from the frame's bottom line to its top one."""
        return self.bottom - round(fraction * (self.height + 1))


@dataclass(frozen=True, slots=True)
class Layout:
    """Areas of a picture [px]: one plot a channel from the top, the colour bar, the page."""

    plots: tuple[Box, ...]
    bar: Box
    width: int
    height: int
    title_y: int
    footer_y: int
    footer: tuple[str, ...]
    """Lines below, the first at ``footer_y``, ``FOOTER_LINE`` apart."""

    @property
    def text_width(self) -> int:
        """Room for a line that begins at the plots' left edge."""
        return self.width - PAD - self.plots[0].left


def fitting(
    candidates: Iterable[Axis],
    position: Callable[[float], float],
    extent: Callable[[str], float],
    spacing: float,
) -> Axis:
    """Choose the first axis whose labels do not touch.

    Parameters
    ----------
    candidates : iterable of Axis
        The most wanted first; at least one.
    position : callable
        From a tick's value to its place along the axis [px], ascending.
    extent : callable
        From a label to its size along the axis [px].
    spacing : float
        Least room between two labels [px].

    Returns
    -------
    axis : Axis
        Without ticks if none fits.
    """
    title = ""
    for axis in candidates:
        title = axis.title
        places = [(position(tick.value), extent(tick.label) / 2.0) for tick in axis.ticks]
        if all(
            after - half_after - before - half_before >= spacing
            for (before, half_before), (after, half_after) in pairwise(places)
        ):
            return axis
    return Axis((), title)


def _widest(labels: Iterable[str]) -> int:
    return max((round(text_width(label, LABEL_PX)) for label in labels), default=0)


def arrange(
    plot_size: tuple[int, int],
    channels: int,
    f_axis: Axis,
    level_axis: Axis,
    footer: list[str],
    *,
    has_title: bool,
) -> Layout:
    """Place the parts of a picture.

    Parameters
    ----------
    plot_size : (int, int)
        Width and height of each channel's plot [px].
    channels : int
        >= 1.
    f_axis, level_axis : Axis
        Their labels make the margins.
    footer : list of str
        Pieces of the text below, joined into lines that fit.
    has_title : bool
        Whether there is a line above.

    Returns
    -------
    layout : Layout
        No text reaches over the page's edge or another part.
    """
    width, height = plot_size
    f_labels = [f_axis.title, *(tick.label for tick in f_axis.ticks)]
    left = PAD + _widest(f_labels) + LABEL_GAP + TICK
    top = PAD + _HEADING_LINE + (_TITLE_LINE if has_title else 0)
    step = height + _HEADING_LINE + 4
    plots = tuple(Box(left, top + n * step, width, height) for n in range(channels))
    bar = Box(left + width + _BAR_GAP, top, BAR_WIDTH, plots[-1].bottom - top)
    labels_end = bar.right + TICK + LABEL_GAP + _widest(tick.label for tick in level_axis.ticks)
    page_width = max(labels_end, bar.left + _widest([level_axis.title])) + PAD
    lines = tuple(wrap(footer, SMALL_PX, page_width - PAD - left))
    footer_y = plots[-1].bottom + _X_LABELS + FOOTER_LINE
    page_height = footer_y + (len(lines) - 1) * FOOTER_LINE + PAD
    return Layout(plots, bar, page_width, page_height, PAD + LABEL_GAP, footer_y, lines)
