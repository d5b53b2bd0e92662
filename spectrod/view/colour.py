"""Colour scales as terminal escape sequences, for the terminal's number of colours."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

Depth = Literal["24-bit", "256", "none"]

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
_CUBE_STEPS = np.array([0, 95, 135, 175, 215, 255])  # of the 216 colours in a 256-colour terminal


@dataclass(frozen=True)
class Style:
    """Colours of a terminal."""

    depth: Depth = "none"

    @cached_property
    def foreground(self) -> list[str]:
        """Sequence that selects each shade for characters."""
        return [_sequence(38, rgb, self.depth) for rgb in _shades()]

    @cached_property
    def background(self) -> list[str]:
        """Sequence that selects each shade behind characters."""
        return [_sequence(48, rgb, self.depth) for rgb in _shades()]

    @property
    def reset(self) -> str:
        """Sequence that ends all colour."""
        return "" if self.depth == "none" else RESET


def style_for(environment: Mapping[str, str]) -> Style:
    """Choose the colours by the environment (https://no-color.org, COLORTERM, TERM)."""
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR"):
        return Style("none")
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Style("24-bit")
    if "256color" in term:
        return Style("256")
    return Style("none")


def _shades() -> list[tuple[int, int, int]]:
    at = np.linspace(0.0, len(_ANCHORS) - 1, N_SHADES)
    channels = [np.interp(at, np.arange(len(_ANCHORS)), c) for c in zip(*_ANCHORS, strict=True)]
    return [(round(r), round(g), round(b)) for r, g, b in zip(*channels, strict=True)]


def _sequence(code: int, rgb: tuple[int, int, int], depth: Depth) -> str:
    if depth == "none":
        return ""
    if depth == "24-bit":
        return f"\x1b[{code};2;{rgb[0]};{rgb[1]};{rgb[2]}m"
    r, g, b = (int(np.argmin(abs(_CUBE_STEPS - value))) for value in rgb)
    return f"\x1b[{code};5;{16 + 36 * r + 6 * g + b}m"
