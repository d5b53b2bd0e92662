"""The waterfall in sixels, which scroll with the text of the terminal.

Source: DEC, "VT330/VT340 Programmer Reference Manual, volume 2: Graphics programming", chapter 14.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spectrod.apps.view.colour import shades
from spectrod.apps.view.pixels import PixelWaterfall, Strip

_TILE_PX = 800
_BAND_PX = 6
_BITS = 1 << np.arange(_BAND_PX)
_FIRST_CHARACTER = 63
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)
_PERCENT = 100.0 / 255.0


class SixelWaterfall:
    """Shows a waterfall, and remembers which strips the terminal has."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._sent: dict[int, int] = {}

    def forget(self) -> None:
        """Send everything again with the next picture."""
        self._key = None

    def paint(self, picture: PixelWaterfall | None, *, has_scrolled: bool) -> str:
        """Return the output that shows a waterfall.

        Parameters
        ----------
        picture : PixelWaterfall or None
            None shows nothing; what is there disappears with the characters over it.
        has_scrolled : bool
            Whether the terminal has moved the lines of the waterfall to their present places.
        """
        key = None if picture is None else picture.key
        if key != self._key or not has_scrolled:
            self._key, self._sent = key, {}
        if picture is None:
            return ""
        parts: list[str] = []
        sent: dict[int, int] = {}
        for strip in picture.strips():
            sent[strip.number] = max(strip.n_rows, self._sent.get(strip.number, 0))
            if strip.n_rows > self._sent.get(strip.number, 0):
                parts += _tiles(picture, strip)
        self._sent = sent
        return "".join(parts)


def _tiles(picture: PixelWaterfall, strip: Strip) -> Iterator[str]:
    """Yield the parts of a strip beside each other: xterm refuses images wider than 1000 px."""
    cell_px, shades_of = picture.graphics.cell_width_px, picture.shades(strip)
    n_columns = _TILE_PX // cell_px
    for first in range(0, picture.area.width, n_columns):
        tile = shades_of[:, first * cell_px : (first + n_columns) * cell_px]
        column = picture.area.column + first
        yield f"\x1b[{strip.line + 1};{column + 1}H{encode_sixels(tile)}"


def encode_sixels(indices: NDArray[np.uint8]) -> str:
    """Return shades, shape (height, width), as a device control string."""
    height, width = indices.shape
    used = np.unique(indices).tolist()
    bands = [_band(indices[top : top + _BAND_PX]) for top in range(0, height, _BAND_PX)]
    # Background select 1: pixels that no sixel sets stay as they are.
    head = f'\x1bP0;1;0q"1;1;{width};{height}'
    return head + "".join(_colours()[k] for k in used) + "-".join(bands) + "\x1b\\"


def _band(rows: NDArray[np.uint8]) -> str:
    """Return the sixels of up to six rows, a run for each shade."""
    bits = _BITS[: len(rows), None]
    runs = []
    for k in np.unique(rows).tolist():
        sixels = ((rows == k) * bits).sum(axis=0) + _FIRST_CHARACTER
        data = sixels.astype(np.uint8).tobytes().rstrip(b"?")
        packed = _RUN.sub(lambda run: b"!%d%c" % (len(run[0]), run[0][0]), data)
        runs.append(f"#{k}{packed.decode('ascii')}")
    return "$".join(runs)


@lru_cache(maxsize=1)
def _colours() -> list[str]:
    """Return the definition of each shade's colour register, in percent of red, green and blue."""
    percents = [[round(value * _PERCENT) for value in rgb] for rgb in shades()]
    return [f"#{k};2;{r};{g};{b}" for k, (r, g, b) in enumerate(percents)]
