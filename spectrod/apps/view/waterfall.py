"""The waterfall: rows of levels over time, the newest on top."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.area import Area
from spectrod.apps.view.axes import ColumnAxis, LevelRange
from spectrod.apps.view.canvas import Canvas, Scrolled
from spectrod.apps.view.colour import BEHIND, N_SHADES, Style, shade
from spectrod.apps.view.glyphs import Glyphs
from spectrod.apps.view.history import HistoryRow
from spectrod.apps.view.pixels import PixelWaterfall, rows_per_line

_HALF = ord("▀")
_CHARACTERS = np.array([ord(character) for character in " .:-=+*#%@"], np.uint32)
_ROWS_PER_AGE = 5
_AGE_WIDTH = 6


@dataclass(frozen=True, slots=True, eq=False)
class WaterfallRows:
    """Rows to draw, the newest first, and when.

    Attributes
    ----------
    history : sequence of HistoryRow
    n_rows : int
        Number of rows since the start: rows keep their half of a character while they move.
    now_s : float
        Time of the picture [s].
    """

    history: Sequence[HistoryRow]
    n_rows: int
    now_s: float


def draw_waterfall(
    canvas: Canvas,
    area: Area,
    rows: WaterfallRows,
    axis: ColumnAxis,
    shown: LevelRange,
    style: Style,
) -> None:
    """Draw rows from the top of an area, with ages left of it.

    With colours and half blocks a character holds two rows, else one.
    """
    per_line = 2 if style.has_colour and style.glyphs.has_halves else 1
    n_skipped = -rows.n_rows % per_line  # an upper half whose row has not come yet
    n_shown = area.height * per_line - n_skipped
    history = list(islice(rows.history, n_shown))
    first_line = area.line
    canvas.scrolled = Scrolled(
        first_line, first_line + area.height, (rows.n_rows + n_skipped) // per_line
    )
    if not history:
        return
    levels = np.array([row.columns(axis) for row in history])
    shades = (shown.fraction(levels) * (N_SHADES - 1)).astype(np.int32)
    n_lines = -(-(len(history) + n_skipped) // per_line)
    cells = np.full((n_lines * per_line, area.width), -1, np.int32)
    cells[n_skipped : n_skipped + len(history)] = shades
    _draw_cells(canvas, area, cells.reshape(n_lines, per_line, area.width), style)
    newest = [history[max(0, line * per_line - n_skipped)] for line in range(n_lines)]
    _draw_ages(canvas, area, newest, rows.now_s, style.glyphs)


def draw_pixels(canvas: Canvas, picture: PixelWaterfall, now_s: float, glyphs: Glyphs) -> None:
    """Leave room for a waterfall of pixels, with ages left of it."""
    area = picture.area
    canvas.pixels = picture
    canvas.scrolled = Scrolled(
        area.line,
        area.line + area.height,
        picture.position,
        is_forced=picture.graphics.protocol == "sixel",
    )
    per_line = rows_per_line(picture.graphics)
    n_first = (picture.n_rows - 1) % per_line + 1  # rows in the uppermost line
    starts = [0, *range(n_first, len(picture.history), per_line)][: area.height]
    newest = [picture.history[start] for start in starts if start < len(picture.history)]
    _draw_ages(canvas, area, newest, now_s, glyphs)


def _draw_ages(
    canvas: Canvas, area: Area, newest: Sequence[HistoryRow], now_s: float, glyphs: Glyphs
) -> None:
    """Draw the scale of ages, from the newest row of each line."""
    for line, row in enumerate(newest):
        is_labelled = line % _ROWS_PER_AGE == 0
        age = f"{_age(now_s - row.t_s) if is_labelled else '':>{_AGE_WIDTH}}"
        canvas.text(area.line + line, area.column - 1 - _AGE_WIDTH, age + glyphs.vertical)


def _draw_cells(canvas: Canvas, area: Area, cells: NDArray[np.int32], style: Style) -> None:
    """Draw shades, shape (n_lines, rows in a line, width); -1 where there is no row."""
    lines, columns = area.slices
    lines = slice(lines.start, lines.start + len(cells))
    codes, pens = canvas.codes[lines, columns], canvas.pens[lines, columns]
    newest = cells[:, 0]
    if not style.has_colour:
        steps = np.maximum(newest, 0) * len(_CHARACTERS) // N_SHADES
        codes[:] = _CHARACTERS[steps]
    elif cells.shape[1] == 1:
        pens[:] = np.where(newest < 0, 0, BEHIND * (newest + shade(0)))
    else:
        older = cells[:, 1]
        codes[:] = _HALF
        upper = np.where(newest < 0, shade(0), newest + shade(0))
        lower = np.where(older < 0, shade(0), older + shade(0))
        pens[:] = upper + BEHIND * lower


def _age(age_s: float) -> str:
    if age_s < 99.95:
        return f"{age_s:.1f}s"
    return f"{age_s / 60.0:.1f}m" if age_s < 5999.0 else f"{age_s / 3600.0:.1f}h"
