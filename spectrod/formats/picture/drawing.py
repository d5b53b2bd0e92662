"""Draws a picture on a surface: plots, texts, ticks, frames and strips."""

from collections.abc import Sequence

import numpy as np

from spectrod.formats.picture.axes import Axis
from spectrod.formats.picture.lettering import shorten
from spectrod.formats.picture.page import Page, PageFrame
from spectrod.formats.picture.page_layout import (
    FOOTER_LINE,
    LABEL_GAP,
    LABEL_PX,
    MINOR_TICK,
    SMALL_PX,
    TICK,
    TITLE_PX,
)
from spectrod.formats.picture.strip_view import StripView
from spectrod.formats.picture.surface import FAINT_INK, SOFT_INK, Box, Surface
from spectrod.formats.picture.theme import N_LEVELS

HEADING_RISE = 17
"""Distance from a plot's top edge up to the middle of the line above it [px]."""


def draw(page: Page, sheet: Surface) -> None:
    """Draw a page."""
    draw_content(page, sheet)
    draw_frame(page.frame, sheet)


def draw_content(page: Page, sheet: Surface) -> None:
    """Draw the part that differs from picture to picture: plots, strips and title."""
    layout = page.layout
    for box, entries in zip(layout.plots, page.entries, strict=True):
        sheet.picture(box, entries)
    if page.frame.is_bare:
        return
    if page.title:
        title = shorten(page.title, TITLE_PX, layout.text_width)
        sheet.text((layout.plots[0].left, layout.title_y), title, TITLE_PX)
    for channel, boxes in enumerate(layout.strips):
        for view, along in zip(page.strips, boxes, strict=True):
            _draw_strip(sheet, page, view, channel, along)


def draw_frame(frame: PageFrame, sheet: Surface) -> None:
    """Draw axes, names, colour bars and footer."""
    layout = frame.layout
    if frame.is_bare:
        return
    left = layout.plots[0].left
    for channel, box in enumerate(layout.plots):
        _draw_plot(sheet, frame, box)
        if frame.names:
            y = layout.top(channel) - HEADING_RISE
            name = shorten(frame.names[channel], LABEL_PX, layout.plots[0].width)
            sheet.text((left, y), name, LABEL_PX)
    _draw_time_labels(sheet, frame)
    for bar in layout.bars:
        draw_bar(sheet, bar, frame.level_labels, frame.levels)
    draw_footer(sheet, left, layout.footer_y, layout.footer)


def draw_footer(sheet: Surface, left: int, y: int, lines: Sequence[str]) -> None:
    """Draw the lines of a footer, the first at ``y``."""
    for number, line in enumerate(lines):
        sheet.text((left, y + number * FOOTER_LINE), line, SMALL_PX, ink=SOFT_INK)


def _draw_plot(sheet: Surface, frame: PageFrame, box: Box) -> None:
    sheet.frame(box)
    edge = box.left - 2
    for tick in frame.f_axis.minor():
        y = box.y(frame.f_axis.fraction(tick.value))
        sheet.line((edge - MINOR_TICK + 1, y), (edge, y), SOFT_INK)
    for tick in frame.f_labels.ticks:
        draw_left_tick(sheet, box.left, box.y(frame.f_axis.fraction(tick.value)), tick.label)
    if box.top == frame.layout.plots[0].top or frame.layout.strips[0]:
        f_at = (box.left - TICK - LABEL_GAP, box.top - HEADING_RISE)
        sheet.text(f_at, frame.f_labels.title, LABEL_PX, align=1.0, ink=SOFT_INK)
    _draw_time_ticks(sheet, frame, box)


def draw_left_tick(sheet: Surface, left: int, y: int, label: str) -> None:
    """Draw a labelled tick at the left edge of a plot."""
    edge = left - 2
    sheet.line((edge - TICK + 1, y), (edge, y), SOFT_INK)
    sheet.text((edge - TICK - LABEL_GAP + 1, y), label, LABEL_PX, align=1.0)


def _draw_time_ticks(sheet: Surface, frame: PageFrame, box: Box) -> None:
    for tick in frame.t_labels.ticks:
        x = box.x(tick.value / frame.duration_s)
        sheet.line((x, box.bottom + 1), (x, box.bottom + TICK), SOFT_INK)


def _draw_strip(sheet: Surface, page: Page, view: StripView, channel: int, box: Box) -> None:
    lo, hi = view.limits
    scale = np.float32(1.0 / (hi - lo))
    for number, (low, high) in enumerate(view.bands):
        is_last = number == len(view.bands) - 1
        below, above = (np.clip((curve[channel] - lo) * scale, 0.0, 1.0) for curve in (low, high))
        sheet.band(box, below, above, SOFT_INK if is_last else FAINT_INK)
    sheet.gaps(box, np.isnan(view.bands[-1][1][channel]))
    sheet.frame(box)
    for tick in view.labels.ticks:
        draw_left_tick(sheet, box.left, box.y((tick.value - lo) / (hi - lo)), tick.label)
    x = page.layout.bars[0].left
    for number, line in enumerate(view.heading):
        y = box.top + LABEL_PX // 2 + number * (LABEL_PX + 4)
        sheet.text((x, y), line, LABEL_PX, ink=SOFT_INK)
    _draw_time_ticks(sheet, page.frame, box)


def _draw_time_labels(sheet: Surface, frame: PageFrame) -> None:
    box = frame.layout.plots[0]
    y = frame.layout.bottom + TICK + LABEL_GAP + LABEL_PX // 2
    for tick in frame.t_labels.ticks:
        at = (box.x(tick.value / frame.duration_s), y)
        sheet.text(at, tick.label, LABEL_PX, align=0.5)
    middle = (box.left + box.width / 2.0, y + LABEL_PX + 6)
    sheet.text(middle, frame.t_labels.title, LABEL_PX, align=0.5, ink=SOFT_INK)


def draw_bar(sheet: Surface, bar: Box, axis: Axis, limits: tuple[float, float]) -> None:
    """Draw a colour bar whose ends stand for these limits."""
    ramp = np.linspace(N_LEVELS - 1, 0, bar.height).round().astype(np.uint8)
    sheet.picture(bar, ramp[:, np.newaxis])
    sheet.frame(bar)
    y = bar.top - HEADING_RISE
    sheet.text((bar.left, y), axis.title, LABEL_PX, ink=SOFT_INK)
    lo, hi = limits
    for tick in axis.ticks:
        y = bar.y((tick.value - lo) / (hi - lo))
        sheet.line((bar.right + 1, y), (bar.right + TICK, y), SOFT_INK)
        sheet.text((bar.right + TICK + LABEL_GAP, y), tick.label, LABEL_PX)
