"""The least output that turns the picture on a terminal into the next one."""

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.canvas import Canvas, Scrolled, encode_cells
from spectrod.apps.view.colour import RESET, Style

_CLEAR = "\x1b[H\x1b[2J"
_REVERSE_FEED = "\x1bM"
_GAP = 8
"""Unchanged characters between changed ones that cost less than to move the cursor over them."""


class TerminalPainter:
    """Draws pictures on a terminal, and remembers what it shows."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._shown: Canvas | None = None
        self.has_scrolled = False
        """Whether what the last picture scrolls was where the terminal has it now."""

    def forget(self) -> None:
        """Draw the next picture as a whole: something else may have written to the terminal."""
        self._shown = None

    def paint(self, canvas: Canvas) -> str:
        """Return the output that shows a picture; the terminal must get all of it."""
        shown, parts = self._shown, []
        if shown is None or shown.codes.shape != canvas.codes.shape:
            shown = Canvas(canvas.width, canvas.height)
            parts.append(f"{RESET}{_CLEAR}" if self._style.has_colour else _CLEAR)
        parts.append(self._scroll(shown, canvas))
        changed = (shown.codes != canvas.codes) | (shown.pens != canvas.pens)
        for line in np.flatnonzero(changed.any(axis=1)).tolist():
            for first, last in _runs(changed[line]):
                cells = canvas.codes[line, first:last], canvas.pens[line, first:last]
                parts.append(f"\x1b[{line + 1};{first + 1}H{encode_cells(*cells, self._style)}")
        self._shown = canvas
        return "".join(parts)

    def _scroll(self, shown: Canvas, canvas: Canvas) -> str:
        """Move the scrolled lines of what is shown, if it is cheaper; return the output for it."""
        before, after = shown.scrolled, canvas.scrolled
        self.has_scrolled = False
        if before is None or after is None or before.first != after.first:
            return ""
        n_lines, height = after.position - before.position, after.last - after.first
        if before.last != after.last or not 0 <= n_lines < height:
            return ""
        self.has_scrolled = True
        moved = _moved(shown, after, n_lines)
        is_cheaper = _n_different(moved, canvas) < _n_different(shown, canvas)
        if not n_lines or not (is_cheaper or after.is_forced):
            self.has_scrolled = not n_lines
            return ""
        shown.codes, shown.pens = moved.codes, moved.pens
        # Reverse line feeds at the top of a scrolling region, which is given up again.
        first, last = after.first + 1, after.last
        return f"\x1b[{first};{last}r\x1b[{first};1H{_REVERSE_FEED * n_lines}\x1b[r"


def _moved(shown: Canvas, area: Scrolled, n_lines: int) -> Canvas:
    """Return what is shown with the lines of an area moved down."""
    moved = Canvas(shown.width, shown.height)
    moved.codes[:], moved.pens[:] = shown.codes, shown.pens
    whole, kept = slice(area.first, area.last), slice(area.first + n_lines, area.last)
    source = slice(area.first, area.last - n_lines)
    moved.codes[whole], moved.pens[whole] = ord(" "), 0
    moved.codes[kept], moved.pens[kept] = shown.codes[source], shown.pens[source]
    return moved


def _n_different(one: Canvas, other: Canvas) -> int:
    return int(np.count_nonzero((one.codes != other.codes) | (one.pens != other.pens)))


def _runs(changed: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last-plus-one of runs of changed characters, close ones as one run."""
    at = np.flatnonzero(changed)
    breaks = np.flatnonzero(np.diff(at) > _GAP)
    firsts = at[np.r_[0, breaks + 1]].tolist()
    lasts = (at[np.r_[breaks, len(at) - 1]] + 1).tolist()
    return list(zip(firsts, lasts, strict=True))
