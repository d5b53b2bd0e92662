"""A picture as a grid of characters, each with a pen."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.colour import Style

if TYPE_CHECKING:
    from spectrod.apps.view.pixels import PixelWaterfall

_SPACE = ord(" ")
_UTF_32 = "utf-32-le"


@dataclass(frozen=True, slots=True)
class Scrolled:
    """Lines whose content moves down from picture to picture, the newest on top.

    Attributes
    ----------
    first, last : int
        First line and last-plus-one.
    position : int
        Number of lines that have entered on top since the start.
    is_forced : bool
        Whether the terminal must move them, because they have pixels that move with them.
    """

    first: int
    last: int
    position: int
    is_forced: bool = False


class Canvas:
    """A grid of characters; what does not fit is left out.

    Attributes
    ----------
    codes : (height, width) uint32
        Code points, each of a character that is one column wide.
    pens : (height, width) int32
        Pens, see ``spectrod.apps.view.colour``.
    scrolled : Scrolled or None
        Lines that a terminal may move instead of drawing them again.
    pixels : PixelWaterfall or None
        A waterfall of pixels over empty characters.
    """

    __slots__ = ("codes", "pens", "pixels", "scrolled")

    def __init__(self, width: int, height: int) -> None:
        self.codes: NDArray[np.uint32] = np.full((height, width), _SPACE, np.uint32)
        self.pens: NDArray[np.int32] = np.zeros((height, width), np.int32)
        self.scrolled: Scrolled | None = None
        self.pixels: PixelWaterfall | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.codes[0])

    @property
    def height(self) -> int:
        """Number of lines."""
        return len(self.codes)

    def text(self, line: int, column: int, text: str, pen: int = 0) -> None:
        """Write a text; the caller vouches for the width of its characters."""
        if line < self.height and column < self.width:
            codes = np.frombuffer(text.encode(_UTF_32, "replace"), np.uint32)
            codes = codes[: self.width - column]
            self.codes[line, column : column + len(codes)] = codes
            self.pens[line, column : column + len(codes)] = pen

    def texts(self, lines: list[str]) -> Self:
        """Write lines from the top; return the canvas."""
        for line, text in enumerate(lines[: self.height]):
            self.text(line, 0, text)
        return self

    def lines(self, style: Style) -> list[str]:
        """Return the picture as text with escape sequences, without empty lines at its end."""
        shown = [
            encode_cells(codes[:n], pens[:n], style)
            for codes, pens in zip(self.codes, self.pens, strict=True)
            for n in [_used(codes, pens)]
        ]
        while shown and not shown[-1]:
            shown.pop()
        return shown


def encode_cells(codes: NDArray[np.uint32], pens: NDArray[np.int32], style: Style) -> str:
    """Return neighbouring characters with the sequences of their pens, from and to pen 0."""
    if not style.has_colour:
        return codes.tobytes().decode(_UTF_32)
    starts = [0, *(np.flatnonzero(np.diff(pens)) + 1).tolist(), len(pens)]
    parts, pen = [], 0
    for start, end in pairwise(starts):
        if start < end:
            after = int(pens[start])
            parts += [style.switch(pen, after), codes[start:end].tobytes().decode(_UTF_32)]
            pen = after
    return "".join([*parts, style.switch(pen, 0)])


def _used(codes: NDArray[np.uint32], pens: NDArray[np.int32]) -> int:
    """Return the number of characters up to the last that is not an empty one."""
    used = np.flatnonzero((codes != _SPACE) | (pens != 0))
    return int(used[-1]) + 1 if len(used) else 0
