"""Everything of a picture but the data: texts, ticks and frames."""

from dataclasses import dataclass

from spectrod.record.picture.axes import Axis, FrequencyAxis
from spectrod.record.picture.colormaps import Uint8Array
from spectrod.record.picture.layout import (
    FOOTER_LINE,
    LABEL_GAP,
    LABEL_PX,
    MINOR_TICK,
    SMALL_PX,
    TICK,
    TITLE_PX,
    Box,
    Layout,
)
from spectrod.record.picture.lettering import SOFT_INK, Sheet, shorten

_HEADING_RISE = 17
"""From a plot's top edge up to the middle of the line above it [px]."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that is drawn, and where."""

    layout: Layout
    title: str
    f_axis: FrequencyAxis
    f_labels: Axis
    t_labels: Axis
    duration_s: float
    level_labels: Axis
    levels: tuple[float, float]


def draw(page: Page) -> Uint8Array:
    """Draw a page without its data.

    Returns
    -------
    coverage : (height, width) uint8
        Ink, 0 for paper to 255.
    """
    layout = page.layout
    sheet = Sheet(layout.width, layout.height)
    left = layout.plots[0].left
    if page.title:
        title = shorten(page.title, TITLE_PX, layout.text_width)
        sheet.text((left, layout.title_y), title, TITLE_PX)
    for number, box in enumerate(layout.plots):
        _draw_plot(sheet, page, box)
        if len(layout.plots) > 1:
            sheet.text((left, box.top - _HEADING_RISE), f"channel {number}", LABEL_PX)
    _draw_headings(sheet, page)
    _draw_time_labels(sheet, page)
    _draw_bar(sheet, page)
    for number, line in enumerate(layout.footer):
        y = layout.footer_y + number * FOOTER_LINE
        sheet.text((left, y), line, SMALL_PX, ink=SOFT_INK)
    return sheet.coverage()


def _draw_headings(sheet: Sheet, page: Page) -> None:
    """Units, above the labels that they belong to."""
    box, bar = page.layout.plots[0], page.layout.bar
    y = box.top - _HEADING_RISE
    f_at = (box.left - TICK - LABEL_GAP, y)
    sheet.text(f_at, page.f_labels.title, LABEL_PX, align=1.0, ink=SOFT_INK)
    sheet.text((bar.left, y), page.level_labels.title, LABEL_PX, ink=SOFT_INK)


def _draw_plot(sheet: Sheet, page: Page, box: Box) -> None:
    sheet.frame(box.left, box.top, box.width, box.height)
    edge = box.left - 2
    for tick in page.f_axis.minor():
        y = box.y(page.f_axis.fraction(tick.value))
        sheet.line((edge - MINOR_TICK + 1, y), (edge, y), SOFT_INK)
    for tick in page.f_labels.ticks:
        y = box.y(page.f_axis.fraction(tick.value))
        sheet.line((edge - TICK + 1, y), (edge, y), SOFT_INK)
        sheet.text((edge - TICK - LABEL_GAP + 1, y), tick.label, LABEL_PX, align=1.0)
    for tick in page.t_labels.ticks:
        x = box.x(tick.value / page.duration_s)
        sheet.line((x, box.bottom + 1), (x, box.bottom + TICK), SOFT_INK)


def _draw_time_labels(sheet: Sheet, page: Page) -> None:
    box = page.layout.plots[-1]
    y = box.bottom + TICK + LABEL_GAP + LABEL_PX // 2
    for tick in page.t_labels.ticks:
        at = (box.x(tick.value / page.duration_s), y)
        sheet.text(at, tick.label, LABEL_PX, align=0.5)
    middle = (box.left + box.width / 2.0, y + LABEL_PX + 6)
    sheet.text(middle, page.t_labels.title, LABEL_PX, align=0.5, ink=SOFT_INK)


def _draw_bar(sheet: Sheet, page: Page) -> None:
    bar = page.layout.bar
    sheet.frame(bar.left, bar.top, bar.width, bar.height)
    lo, hi = page.levels
    for tick in page.level_labels.ticks:
        y = bar.y((tick.value - lo) / (hi - lo))
        sheet.line((bar.right + 1, y), (bar.right + TICK, y), SOFT_INK)
        sheet.text((bar.right + TICK + LABEL_GAP, y), tick.label, LABEL_PX)
