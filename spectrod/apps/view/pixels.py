"""The waterfall as pixels, in strips of the height of a character."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.area import Area
from spectrod.apps.view.axes import ColumnAxis, LevelRange
from spectrod.apps.view.colour import N_SHADES
from spectrod.apps.view.graphics import Graphics
from spectrod.apps.view.history import HistoryRow

ROW_PX = 2
"""Height of a row of the waterfall [px]."""
WIDTH_MAX_PX = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """A line of the waterfall.

    Attributes
    ----------
    number : int
        Number of the line since the start.
    line : int
        Line of the screen.
    n_rows : int
        Rows of the waterfall in it; fewer than fit only in the newest and the oldest strip.
    """

    number: int
    line: int
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class PixelWaterfall:
    """A waterfall in an area of the screen.

    Attributes
    ----------
    area : Area
        Lines and columns.
    graphics : Graphics
        How the terminal shows it.
    axis : ColumnAxis
        With a column for each pixel.
    shown : LevelRange
        Levels of the first and the last shade.
    history : sequence of HistoryRow
        The newest first.
    n_rows : int
        Number of rows since the start, of which the history has the newest.
    generation : int
        Changes when rows were forgotten.
    """

    area: Area
    graphics: Graphics
    axis: ColumnAxis
    shown: LevelRange
    history: Sequence[HistoryRow]
    n_rows: int
    generation: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """What strips depend on beside their rows: if it changes, all are drawn again."""
        return self.area, self.graphics, self.axis, self.shown, self.generation

    @property
    def rows_per_strip(self) -> int:
        """Rows in a line."""
        return rows_per_line(self.graphics)

    @property
    def position(self) -> int:
        """Number of the newest strip."""
        return max(0, self.n_rows - 1) // self.rows_per_strip

    def strips(self) -> Iterator[Strip]:
        """Yield the visible strips that have a row, the newest first."""
        per_strip, oldest = self.rows_per_strip, self.n_rows - len(self.history)
        for line in range(self.area.height):
            number = self.position - line
            first = max(number * per_strip, oldest)
            n_rows = min((number + 1) * per_strip, self.n_rows) - first
            if number < 0 or n_rows <= 0:
                return
            yield Strip(number, self.area.line + line, n_rows)

    def shades(self, strip: Strip) -> NDArray[np.uint8]:
        """Return the shades of a strip, shape (cell_height_px, width); 0 where no row is."""
        per_strip, height = self.rows_per_strip, self.graphics.cell_height_px
        newest = min((strip.number + 1) * per_strip, self.n_rows) - 1
        at = self.n_rows - 1 - newest  # index in the history, the newest first
        rows = np.zeros((per_strip, self.axis.columns), np.uint8)
        first = (strip.number + 1) * per_strip - 1 - newest
        for k, row in enumerate(islice(self.history, at, at + strip.n_rows)):
            fraction = self.shown.fraction(row.columns(self.axis))
            rows[first + k] = (fraction * (N_SHADES - 1)).astype(np.uint8)
        return rows[np.arange(height) * per_strip // height]


def rows_per_line(graphics: Graphics) -> int:
    """Return how many rows of the waterfall a character's height has room for."""
    return max(1, graphics.cell_height_px // ROW_PX)
