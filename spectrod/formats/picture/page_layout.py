"""Positions of all parts of a picture."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from spectrod.formats.picture.axes import Axis
from spectrod.formats.picture.lettering import text_width, wrap
from spectrod.formats.picture.picture_settings import Strip
from spectrod.formats.picture.surface import Box

TITLE_PX, LABEL_PX, SMALL_PX = 17, 13, 12
"""Font sizes."""

PAD = 18
TICK, MINOR_TICK = 5, 3
LABEL_GAP = 5
TITLE_LINE, HEADING_LINE, FOOTER_LINE = 26, 28, 17
_BAR_GAP, BAR_WIDTH = 20, 16
STRIP_HEIGHT = 72
_ABOVE_PLOT, _BELOW_PLOT = 36, 18
"""Space between a plot and its strips: the one above also has the plot's units."""
_BELOW_CHANNEL, _BELOW_STRIP = 4, 12
X_LABELS = 44
"""Height below the plots for ticks, tick labels and the axis title."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Areas of a picture [px]."""

    plots: tuple[Box, ...]
    """One per channel, from the top."""
    strips: tuple[tuple[Box, ...], ...]
    """Strips of each channel, in the requested order."""
    bars: tuple[Box, ...]
    """Colour bars: one along all plots, or one beside each plot if there are strips."""
    width: int
    height: int
    title_y: int = 0
    footer_y: int = 0
    footer: tuple[str, ...] = ()
    """Lines of the footer, the first at ``footer_y``, ``FOOTER_LINE`` apart."""

    @property
    def text_width(self) -> int:
        """Available width of a line that begins at the plots' left edge."""
        return self.width - PAD - self.plots[0].left

    def top(self, channel: int) -> int:
        """Return the uppermost row of a channel's plot and strips."""
        return min(box.top for box in (self.plots[channel], *self.strips[channel]))

    @property
    def bottom(self) -> int:
        """First row below the last channel's plot and strips."""
        return max(box.bottom for box in (self.plots[-1], *self.strips[-1]))


@dataclass(frozen=True, slots=True)
class Margins:
    """Texts around the plots, which determine the margins."""

    left: tuple[str, ...]
    """Texts to the left of plots and strips."""
    bar: tuple[str, ...]
    """Texts to the right of the colour bar."""
    right: tuple[str, ...]
    """Texts above and below the colour bar, from its left edge on."""
    overhang: int
    """Extent of the first time label beyond the plot's left edge [px]."""
    footer: tuple[str, ...]
    """Pieces of the footer, which are joined into lines that fit."""
    has_title: bool
    """Whether there is a title line."""


def fitting(
    candidates: Iterable[Axis],
    position: Callable[[float], float],
    extent: Callable[[str], float],
    spacing: float,
) -> Axis:
    """Choose the first axis with at least two labels, none of which overlap.

    Parameters
    ----------
    candidates : iterable of Axis
        Candidates in order of preference; at least one.
    position : callable
        Maps a tick's value to its position along the axis [px], ascending.
    extent : callable
        Maps a label to its size along the axis [px].
    spacing : float
        Smallest space between two labels [px].

    Returns
    -------
    axis : Axis
        One label if no axis with two fits; no ticks if none fits.
    """
    axis, best = Axis((), ""), Axis((), "")
    for axis in candidates:
        places = [(position(tick.value), extent(tick.label) / 2.0) for tick in axis.ticks]
        if all(
            after - half_after - before - half_before >= spacing
            for (before, half_before), (after, half_after) in pairwise(places)
        ):
            if len(axis.ticks) > 1:
                return axis
            best = best if best.ticks else axis
    return best if best.ticks else Axis((), axis.title)


def widest(labels: Iterable[str]) -> int:
    """Return the width of the widest label, 0 without any [px]."""
    return max((round(text_width(label, LABEL_PX)) for label in labels), default=0)


@lru_cache(maxsize=64)
def arrange(
    plot_size: tuple[int, int], channels: int, strips: tuple[Strip, ...], margins: Margins
) -> PageLayout:
    """Arrange the parts of a picture.

    Parameters
    ----------
    plot_size : (int, int)
        Width and height of each channel's plot [px].
    channels : int
        Number of channels, >= 1.
    strips : tuple of {"waveform", "level"}
        The waveform is above its plot, the level below.
    margins : Margins
        Texts that need space.

    Returns
    -------
    layout : PageLayout
        No text overlaps the page's edge or another part.
    """
    width, height = plot_size
    left = PAD + max(widest(margins.left) + LABEL_GAP + TICK, margins.overhang)
    # A waveform at the top has no units above it; it needs space only for a channel's name.
    heading = HEADING_LINE if channels > 1 or "waveform" not in strips else LABEL_GAP
    top = PAD + heading + (TITLE_LINE if margins.has_title else 0)
    plots: list[Box] = []
    along: list[tuple[Box, ...]] = []
    bottom = top
    for _ in range(channels):
        places: dict[Strip, Box] = {}
        if "waveform" in strips:
            places["waveform"] = Box(left, top, width, STRIP_HEIGHT)
            top += STRIP_HEIGHT + _ABOVE_PLOT
        plots.append(Box(left, top, width, height))
        top += height
        if "level" in strips:
            places["level"] = Box(left, top + _BELOW_PLOT, width, STRIP_HEIGHT)
            top += _BELOW_PLOT + STRIP_HEIGHT
        along.append(tuple(places[strip] for strip in strips))
        bottom, top = top, top + HEADING_LINE + (_BELOW_STRIP if strips else _BELOW_CHANNEL)
    bar_left = left + width + _BAR_GAP
    bar_ends = zip(plots, plots, strict=True) if strips else [(plots[0], plots[-1])]
    bars = tuple(
        Box(bar_left, first.top, BAR_WIDTH, last.bottom - first.top) for first, last in bar_ends
    )
    labels_end = bars[0].right + TICK + LABEL_GAP + widest(margins.bar)
    page_width = max(labels_end, bar_left + widest(margins.right)) + PAD
    lines = tuple(wrap(list(margins.footer), SMALL_PX, page_width - PAD - left))
    footer_y = bottom + X_LABELS + FOOTER_LINE
    page_height = footer_y + (len(lines) - 1) * FOOTER_LINE + PAD
    return PageLayout(
        tuple(plots),
        tuple(along),
        bars,
        page_width,
        page_height,
        PAD + LABEL_GAP,
        footer_y,
        lines,
    )


def bare(plot_size: tuple[int, int], channels: int) -> PageLayout:
    """Arrange the plots alone, directly above each other."""
    width, height = plot_size
    plots = tuple(Box(0, n * height, width, height) for n in range(channels))
    return PageLayout(plots, ((),) * channels, (), width, channels * height)


def page_limits(plot_size: tuple[int, int], channels: int, strips: int) -> tuple[int, int]:
    """Return upper limits of the page's width and height [px] for such plots."""
    width, height = plot_size
    return width + 600, channels * (height + 2 * HEADING_LINE + strips * STRIP_HEIGHT + 40) + 800
