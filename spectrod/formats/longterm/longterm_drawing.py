"""Draws the page of level statistics on a surface."""

import numpy as np

from spectrod.formats.longterm.longterm_page import LongTermPage
from spectrod.formats.longterm.longterm_view import SAMPLE_PX, Curve, curve_sample
from spectrod.formats.picture.drawing import (
    HEADING_RISE,
    draw_bar,
    draw_footer,
    draw_left_tick,
)
from spectrod.formats.picture.lettering import shorten
from spectrod.formats.picture.page_layout import (
    FOOTER_LINE,
    LABEL_GAP,
    LABEL_PX,
    MINOR_TICK,
    PAD,
    SMALL_PX,
    TICK,
    TITLE_PX,
    X_LABELS,
)
from spectrod.formats.picture.surface import SOFT_INK, Box, Surface

_LABEL_SPACING = 15
"""Distance between the middles of the curves' names [px]."""


def draw(page: LongTermPage, sheet: Surface) -> None:
    """Draw a page."""
    left = page.plots[0].left
    if page.title:
        room = page.width - PAD - left
        sheet.text((left, PAD + LABEL_GAP), shorten(page.title, TITLE_PX, room), TITLE_PX)
    for number, box in enumerate(page.plots):
        sheet.picture(box, page.entries[number])
        sheet.frame(box)
        _draw_left(page, sheet, box)
        _draw_bottom(page, sheet, box)
        _draw_names(page.curves[number], page.limits, sheet, box)
        if page.names:
            name = shorten(page.names[number], LABEL_PX, box.width // 2)
            sheet.text(
                (box.left + box.width // 2, box.top - HEADING_RISE), name, LABEL_PX, align=0.5
            )
    draw_bar(sheet, page.bar, page.bar_labels, (0.0, page.bar_limit))
    draw_footer(sheet, left, page.plots[-1].bottom + X_LABELS + FOOTER_LINE, page.footer)


def _draw_left(page: LongTermPage, sheet: Surface, box: Box) -> None:
    lo, hi = page.limits
    for tick in page.level_labels.ticks:
        draw_left_tick(sheet, box.left, box.y((tick.value - lo) / (hi - lo)), tick.label)
    sheet.text((PAD, box.top - HEADING_RISE), page.level_labels.title, LABEL_PX, ink=SOFT_INK)


def _draw_bottom(page: LongTermPage, sheet: Surface, box: Box) -> None:
    for tick in page.f_axis.minor():
        x = box.x(page.f_axis.fraction(tick.value))
        sheet.line((x, box.bottom + 1), (x, box.bottom + MINOR_TICK), SOFT_INK)
    is_last = box is page.plots[-1]
    y = box.bottom + TICK + LABEL_GAP + LABEL_PX // 2
    for tick in page.f_labels.ticks:
        x = box.x(page.f_axis.fraction(tick.value))
        sheet.line((x, box.bottom + 1), (x, box.bottom + TICK), SOFT_INK)
        if is_last:
            sheet.text((x, y), tick.label, LABEL_PX, align=0.5)
    if is_last:
        middle = (box.left + box.width / 2.0, y + LABEL_PX + 6)
        sheet.text(middle, page.f_labels.title, LABEL_PX, align=0.5, ink=SOFT_INK)


def _draw_names(curves: list[Curve], limits: tuple[float, float], sheet: Surface, box: Box) -> None:
    """Draw samples and names of the curves near their right ends, apart where they overlap."""
    lo, hi = limits

    def end(curve: Curve) -> tuple[float, str]:
        return float(np.clip((hi - curve.level[-1]) / (hi - lo), 0.0, 1.0)), curve.name

    ordered = sorted(curves, key=end)
    places = _apart([end(one)[0] * box.height for one in ordered], float(box.height))
    left = box.right + LABEL_GAP + 1
    for y, curve in zip(places, ordered, strict=True):
        sample = curve_sample(curve)
        sheet.picture(Box(left, box.top + round(y), SAMPLE_PX, len(sample)), sample)
        sheet.text((left + SAMPLE_PX + LABEL_GAP, box.top + y), curve.name, SMALL_PX)


def _apart(desired: list[float], height: float) -> list[float]:
    """Move ascending positions apart, near their original place and within the height."""
    places = list(desired)
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1] + _LABEL_SPACING)
    shift = float(np.mean(np.subtract(places, desired)))
    places = [place - shift for place in places]
    for n in range(len(places)):
        least = places[n - 1] + _LABEL_SPACING if n else 0.0
        places[n] = max(places[n], least)
    most = height
    for n in reversed(range(len(places))):
        places[n] = min(places[n], most)
        most = places[n] - _LABEL_SPACING
    return places
