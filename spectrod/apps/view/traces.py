"""Spectra as bars and lines on a canvas."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.area import Area
from spectrod.apps.view.axes import ColumnAxis, LevelRange
from spectrod.apps.view.canvas import Canvas
from spectrod.apps.view.colour import BEHIND, N_SHADES, Style, shade
from spectrod.dsp.units import Float64Array

_BRAILLE = 0x2800
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bits of the dots of a braille pattern, by line and column (Unicode 1.1, block U+2800)."""
_DOT_LINES, _DOT_COLUMNS = _DOTS.shape
_FULL = ord("█")


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A line over the frequencies.

    Attributes
    ----------
    name : str
        Name in the legend.
    levels : (n_bins,) float64
        Spectrum [dB].
    pen : int
        Colour of the line.
    mark : str
        One ASCII character that draws it where there is no finer way.
    """

    name: str
    levels: Float64Array
    pen: int
    mark: str


def uses_dots(traces: Sequence[Trace], style: Style) -> bool:
    """Return whether lines are drawn with braille dots, which only colours tell apart."""
    return style.glyphs.has_braille and (style.has_colour or len(traces) < 2)


def draw_bars(
    canvas: Canvas, area: Area, columns: Float64Array, shown: LevelRange, style: Style
) -> None:
    """Draw levels of columns, shape (area.width,) [dB], as bars in the colours of their height."""
    rows = area.height
    eighths = np.rint(shown.fraction(columns) * rows * 8).astype(int)
    above = np.arange(rows)[::-1, None]
    filled = np.clip(eighths - 8 * above, 0, 8)
    codes = np.array([ord(bar) for bar in style.glyphs.bars], np.uint32)
    canvas.codes[area.slices] = codes[filled]
    heights = [shade((N_SHADES - 1) - row * (N_SHADES * 3 // 4) // rows) for row in range(rows)]
    canvas.pens[area.slices] = np.where(filled > 0, np.array(heights)[:, None], 0)


def draw_traces(
    canvas: Canvas, area: Area, traces: Sequence[Trace], axis: ColumnAxis, shown: LevelRange
) -> None:
    """Draw lines of dots, eight in a character, over what is there; the last one is on top.

    The axis has two columns for each of the area.
    """
    for trace in traces:
        columns = axis.reduce(trace.levels)
        dots = _stroke(columns, area.height * _DOT_LINES, shown)
        cells = dots.reshape(area.height, _DOT_LINES, area.width, _DOT_COLUMNS)
        bits = np.einsum("rlcd,ld->rc", cells, _DOTS).astype(np.uint32)
        _put(canvas, area, bits, trace.pen)


def draw_marks(
    canvas: Canvas, area: Area, traces: Sequence[Trace], axis: ColumnAxis, shown: LevelRange
) -> None:
    """Draw lines of each trace's character; the axis has the area's columns."""
    for trace in traces:
        stroke = _stroke(axis.reduce(trace.levels), area.height, shown)
        canvas.codes[area.slices][stroke] = ord(trace.mark)
        canvas.pens[area.slices][stroke] = trace.pen


def _stroke(columns: Float64Array, rows: int, shown: LevelRange) -> NDArray[np.bool_]:
    """Return the cells, shape (rows, n_columns), of a connected line through levels in range."""
    heights = np.minimum((shown.fraction(columns) * rows).astype(int), rows - 1)
    y = rows - 1 - heights
    before = np.concatenate([y[:1], y[:-1]])
    highest = np.where(y > before, before + 1, y)
    lowest = np.where(y < before, before - 1, y)
    at = np.arange(rows)[:, None]
    is_line: NDArray[np.bool_] = (at >= highest) & (at <= lowest)
    return is_line & (columns > shown.bottom_db)


def _put(canvas: Canvas, area: Area, bits: NDArray[np.uint32], pen: int) -> None:
    codes, pens = canvas.codes[area.slices], canvas.pens[area.slices]
    mine = bits > 0
    is_dotted = (codes >= _BRAILLE) & (codes < _BRAILLE + 256)
    is_full = codes == _FULL
    # A line of dots keeps what is behind it: the bar, or what was behind another line.
    behind = np.where(is_dotted, pens & (BEHIND - 1) * BEHIND, 0)
    pens[mine] = np.where(is_full, BEHIND * pens, behind)[mine] | pen
    codes[mine] = _BRAILLE | bits[mine] | np.where(is_dotted, codes & 0xFF, 0)[mine]
