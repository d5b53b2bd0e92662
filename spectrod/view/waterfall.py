"""The waterfall: rows of levels over time, the newest on top."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from spectrod.units import Float32Array, Float64Array
from spectrod.view.axes import ColumnAxis, LevelRange
from spectrod.view.canvas import Canvas, Scrolled
from spectrod.view.colour import BEHIND, N_SHADES, Style, shade
from spectrod.view.traces import Area

PERIODS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Times that a row may cover [s]."""
ROWS_MAX = 1024
BYTES_MAX = 64 << 20
"""Bounds on the rows that are kept, and on their memory."""

_ROWS_MIN = 2
_HALF = ord("▀")
_CHARACTERS = np.array([ord(character) for character in " .:-=+*#%@"], np.uint32)
_ROWS_PER_AGE = 5
_AGE_WIDTH = 6


@dataclass(slots=True, eq=False)
class HistoryRow:
    """One row of the waterfall."""

    t_s: float
    """Time of its end, by the clock of ``Scene.now_s`` [s]."""
    levels: Float32Array | Float64Array
    """Highest level of each bin in its time, shape (n_bins,) [dB]."""
    _axis: ColumnAxis | None = field(default=None, repr=False)
    _columns: Float64Array = field(default_factory=lambda: np.zeros(0), repr=False)

    def columns(self, axis: ColumnAxis) -> Float64Array:
        """Return the highest level in each column, which is kept for the next picture."""
        if self._axis is not axis:
            self._axis, self._columns = axis, axis.reduce(self.levels)
        return self._columns


class History:
    """Collects rows of a fixed time from rows of any rate."""

    def __init__(self) -> None:
        self.rows: deque[HistoryRow] = deque(maxlen=ROWS_MAX)
        """The newest first."""
        self.n_rows = 0
        """Number of rows since the start, those that are forgotten included."""
        self._pending: Float32Array | None = None
        self._due_s = 0.0

    def push(self, levels: Float64Array, now_s: float, period_s: float) -> None:
        """Add a row of levels, (n_bins,) [dB]; rows within a period become their maximum."""
        row = levels.astype(np.float32)
        if self._pending is not None and self._pending.shape == row.shape:
            row = np.maximum(row, self._pending)
        self._pending = row
        if now_s < self._due_s:
            return
        # Keep the rhythm, but not after a pause or for a shorter period.
        is_late = now_s - self._due_s > period_s
        self._due_s = (now_s if is_late else self._due_s) + period_s
        self._pending = None
        self.rows.appendleft(HistoryRow(now_s, row))
        self.n_rows += 1
        while len(self.rows) > max(_ROWS_MIN, BYTES_MAX // row.nbytes):
            self.rows.pop()

    def hurry(self) -> None:
        """Let the next row be the last of its period: the period has changed."""
        self._due_s = 0.0

    def clear(self) -> None:
        """Forget all rows."""
        self.rows.clear()
        self._pending = None
        self.hurry()


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
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
    canvas: Canvas, area: Area, rows: Rows, axis: ColumnAxis, shown: LevelRange, style: Style
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
    for line in range(0, n_lines, _ROWS_PER_AGE):
        row = history[max(0, line * per_line - n_skipped)]
        age = f"{_age(rows.now_s - row.t_s):>{_AGE_WIDTH}}"
        canvas.text(first_line + line, area.column - 1 - _AGE_WIDTH, age)
    for line in range(n_lines):
        canvas.text(first_line + line, area.column - 1, style.glyphs.vertical)


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
