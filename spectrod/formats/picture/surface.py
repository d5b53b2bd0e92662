"""Surfaces that a page is drawn on, pixels or vectors: areas, inks and common functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array
from spectrod.formats.picture.colormaps import Uint8Array

FULL_INK, SOFT_INK, FAINT_INK = 255, 165, 70
"""Amounts of ink, 0 for paper."""

Point = tuple[float, float]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Box:
    """An area of pixels."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """First column after the area."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """First row after the area."""
        return self.top + self.height

    def x(self, fraction: float) -> int:
        """Return the column at a fraction from the frame's left line to its right line."""
        return self.left - 1 + round(fraction * (self.width + 1))

    def y(self, fraction: float) -> int:
        """Return the row at a fraction from the frame's bottom line to its top line."""
        return self.bottom - round(fraction * (self.height + 1))


class Surface(Protocol):
    """A page of pixels or vectors to draw on. Coordinates are pixels from the top left."""

    def text(
        self, at: Point, text: str, size: int, *, align: float = 0.0, ink: int = FULL_INK
    ) -> None:
        """Draw a line of text, anchored at ``align`` of its width, digits centred vertically."""

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: int) -> None:
        """Draw a line one pixel wide, horizontal or vertical, both ends included."""

    def frame(self, box: Box) -> None:
        """Draw a thin frame directly around an area."""

    def band(self, box: Box, low: Float32Array, high: Float32Array, ink: int) -> None:
        """Fill between two curves: one value per column, 0 (bottom) to 1 (top), or NaN."""

    def gaps(self, box: Box, is_gap: BoolArray) -> None:
        """Hatch columns where samples are missing."""

    def picture(self, box: Box, entries: Uint8Array) -> None:
        """Draw palette entries, shape (rows, columns), repeated if there are fewer than pixels."""


def runs(is_set: BoolArray) -> Iterator[tuple[int, int]]:
    """Yield the first column of each run of set columns, and the one after its last."""
    steps = np.flatnonzero(np.diff(is_set, prepend=False, append=False))
    yield from zip(steps[::2].tolist(), steps[1::2].tolist(), strict=True)


def stretched(box: Box, entries: Uint8Array) -> Uint8Array:
    """Repeat palette entries, shape (rows, columns), to get one for each pixel."""
    if entries.shape == (box.height, box.width):
        return entries
    rows = np.arange(box.height) * entries.shape[0] // box.height
    columns = np.arange(box.width) * entries.shape[1] // box.width
    return np.asarray(entries[rows][:, columns])


def outline(box: Box, low: Float32Array, high: Float32Array) -> Iterator[list[Point]]:
    """Yield the corners of each area between two curves, at least one pixel high."""
    y_high = box.bottom - 0.5 - high * (box.height - 1.0)
    y_low = box.bottom - 0.5 - low * (box.height - 1.0)
    # A line without height would be invisible.
    is_thin = y_low - y_high < 1.0
    y_low = np.where(is_thin, (y_low + y_high) / 2.0 + 0.5, y_low)
    y_high = np.where(is_thin, y_low - 1.0, y_high)
    for first, stop in runs(np.isfinite(y_low) & np.isfinite(y_high)):
        along = slice(first, stop)
        ends = np.concatenate([[first - 0.5], np.arange(first, stop), [stop - 0.5]])
        xs = (box.left + 0.5 + ends).tolist()
        there = zip(xs, np.pad(y_high[along], 1, mode="edge").tolist(), strict=True)
        back = zip(xs[::-1], np.pad(y_low[along][::-1], 1, mode="edge").tolist(), strict=True)
        yield [*there, *back]
