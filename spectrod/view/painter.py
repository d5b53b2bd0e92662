"""The least output that turns the picture on a terminal into the next one."""

import numpy as np
from numpy.typing import NDArray

from spectrod.view.canvas import Canvas, encode_cells
from spectrod.view.colour import RESET, Style

_CLEAR = "\x1b[H\x1b[2J"
_GAP = 8
"""Unchanged characters between changed ones that cost less than to move the cursor over them."""


class Painter:
    """Draws pictures on a terminal, and remembers what it shows."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._shown: Canvas | None = None

    def forget(self) -> None:
        """Draw the next picture as a whole: something else may have written to the terminal."""
        self._shown = None

    def paint(self, canvas: Canvas) -> str:
        """Return the output that shows a picture; the terminal must get all of it."""
        shown, parts = self._shown, []
        if shown is None or shown.codes.shape != canvas.codes.shape:
            shown = Canvas(canvas.width, canvas.height)
            parts.append(f"{RESET}{_CLEAR}" if self._style.has_colour else _CLEAR)
        parts.append(_scroll(shown, canvas))
        changed = (shown.codes != canvas.codes) | (shown.pens != canvas.pens)
        for line in np.flatnonzero(changed.any(axis=1)).tolist():
            for first, last in _runs(changed[line]):
                cells = canvas.codes[line, first:last], canvas.pens[line, first:last]
                parts.append(f"\x1b[{line + 1};{first + 1}H{encode_cells(*cells, self._style)}")
        self._shown = canvas
        return "".join(parts)


def _scroll(shown: Canvas, canvas: Canvas) -> str:
    """Move the scrolled lines of what is shown, if that is cheaper; return the output for it."""
    before, after = shown.scrolled, canvas.scrolled
    if before is None or after is None or before.first != after.first or before.last != after.last:
        return ""
    n_lines = after.position - before.position
    if not 0 < n_lines < after.last - after.first:
        return ""
    area, kept = slice(after.first, after.last), slice(after.first + n_lines, after.last)
    moved, source = Canvas(canvas.width, canvas.height), slice(after.first, after.last - n_lines)
    moved.codes[:], moved.pens[:] = shown.codes, shown.pens
    moved.codes[area], moved.pens[area] = ord(" "), 0
    moved.codes[kept], moved.pens[kept] = shown.codes[source], shown.pens[source]
    if _n_different(moved, canvas) >= _n_different(shown, canvas):
        return ""
    shown.codes, shown.pens = moved.codes, moved.pens
    # Insert lines at the top of a scrolling region, then give up the region.
    first, last = after.first + 1, after.last
    return f"\x1b[{first};{last}r\x1b[{first};1H\x1b[{n_lines}L\x1b[r"


def _n_different(one: Canvas, other: Canvas) -> int:
    return int(np.count_nonzero((one.codes != other.codes) | (one.pens != other.pens)))


def _runs(changed: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return first and last-plus-one of runs of changed characters, close ones as one run."""
    at = np.flatnonzero(changed)
    breaks = np.flatnonzero(np.diff(at) > _GAP)
    firsts = at[np.r_[0, breaks + 1]].tolist()
    lasts = (at[np.r_[breaks, len(at) - 1]] + 1).tolist()
    return list(zip(firsts, lasts, strict=True))
