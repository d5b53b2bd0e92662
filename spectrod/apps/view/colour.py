"""Colours of characters as terminal escape sequences, for the terminal's number of colours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, Literal

import numpy as np

from spectrod.apps.view.glyphs import UNICODE, Glyphs
from spectrod.apps.view.graphics import Graphics

Depth = Literal["24-bit", "256", "none"]
Rgb = tuple[int, int, int]

N_SHADES = 64
RESET = "\x1b[0m"

# Eight steps of the map "inferno" (CC0): perceptually uniform, also for colour-blind people and in
# grey.
_ANCHORS = [
    (0, 0, 4),
    (40, 11, 84),
    (101, 21, 110),
    (159, 42, 99),
    (212, 72, 66),
    (245, 125, 21),
    (250, 193, 39),
    (252, 255, 164),
]
# Of lines: told apart by colour-blind people too (Okabe and Ito, "Color Universal Design", 2008).
_LINES = [
    (213, 94, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (204, 121, 167),
    (230, 159, 0),
    (0, 114, 178),
]
_CUBE_STEPS = np.array([0, 95, 135, 175, 215, 255])  # of the 216 colours in a 256-colour terminal

N_LINES: Final = len(_LINES)
"""Number of colours for lines."""

# A pen is one number, so that NumPy compares pictures: a colour of the foreground (0: the
# terminal's own), one of the background above it, and a bit that exchanges the two.
_BITS = 8
BEHIND: Final = 1 << _BITS
"""Factor that makes a colour, or an array of them, the background."""
REVERSE: Final = 1 << 16
"""Pen that exchanges foreground and background."""


def shade(k: int) -> int:
    """Return the colour of a shade, 0 to ``N_SHADES`` - 1."""
    return 1 + k


def line_colour(k: int) -> int:
    """Return the colour of line k."""
    return 1 + N_SHADES + k % N_LINES


@dataclass(frozen=True)
class Style:
    """Colours, characters and pixels of a terminal."""

    depth: Depth = "none"
    glyphs: Glyphs = field(default=UNICODE)
    graphics: Graphics | None = None

    @property
    def has_colour(self) -> bool:
        """Whether there is any colour."""
        return self.depth != "none"

    @cached_property
    def _parameters(self) -> list[tuple[str, str]]:
        """Parameters of each colour, as foreground and as background."""
        colours = [*shades(), *_LINES]
        named = [tuple(_parameter(code, rgb, self.depth) for code in (38, 48)) for rgb in colours]
        return [("39", "49"), *((front, back) for front, back in named)]

    def switch(self, before: int, after: int) -> str:
        """Return the sequence that changes the pen; empty without colours."""
        if not self.has_colour or before == after:
            return ""
        if not after:
            return RESET
        mask = BEHIND - 1
        ends = [(pen & mask, pen >> _BITS & mask, pen & REVERSE) for pen in (before, after)]
        (front, back, reverse), (new_front, new_back, new_reverse) = ends
        parameters = []
        if front != new_front:
            parameters.append(self._parameters[new_front][0])
        if back != new_back:
            parameters.append(self._parameters[new_back][1])
        if reverse != new_reverse:
            parameters.append("7" if new_reverse else "27")
        return f"\x1b[{';'.join(parameters)}m"


def style_for(environment: Mapping[str, str], glyphs: Glyphs = UNICODE) -> Style:
    """Choose the colours by the environment (https://no-color.org, COLORTERM, TERM)."""
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR"):
        return Style("none", glyphs)
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Style("24-bit", glyphs)
    if "256color" in term:
        return Style("256", glyphs)
    return Style("none", glyphs)


@lru_cache(maxsize=1)
def shades() -> list[Rgb]:
    """Return the colours of the shades, from the lowest level to the highest."""
    at = np.linspace(0.0, len(_ANCHORS) - 1, N_SHADES)
    channels = [np.interp(at, np.arange(len(_ANCHORS)), c) for c in zip(*_ANCHORS, strict=True)]
    return [(round(r), round(g), round(b)) for r, g, b in zip(*channels, strict=True)]


def _parameter(code: int, rgb: Rgb, depth: Depth) -> str:
    if depth == "24-bit":
        return f"{code};2;{rgb[0]};{rgb[1]};{rgb[2]}"
    r, g, b = (int(np.argmin(abs(_CUBE_STEPS - value))) for value in rgb)
    return f"{code};5;{16 + 36 * r + 6 * g + b}"
