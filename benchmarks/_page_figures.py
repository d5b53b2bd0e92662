"""Reads saved figures of the page: pixels of waterfalls in a PNG, bars of spectra in an SVG."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from spectrod.formats.picture.colormaps import colormap

SVG: Final = "{http://www.w3.org/2000/svg}"
FIGURE_DPI: Final = 300
CSS_DPI: Final = 96

Pixels = NDArray[np.int64]

_TURNED: Final[dict[str, Callable[[Pixels], Pixels]]] = {
    "down": lambda pixels: pixels,
    "up": lambda pixels: pixels[::-1],
    "right": lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
}


@dataclass(frozen=True)
class Bar:
    """A bar of a line spectrum.

    Attributes
    ----------
    left, right : float
        Its ends, as shares of the plot's width.
    top : float
        Its top, as a share of the plot's height from the upper edge.
    px : float
        A pixel of the figure, as a share of the width.
    """

    left: float
    right: float
    top: float
    px: float


def waterfalls_of(picture: bytes, drawing: bytes, direction: str) -> list[Pixels]:
    """Return the waterfalls of a PNG, from top to bottom, each (lines, columns, 3), newest first.

    Parameters
    ----------
    picture, drawing : bytes
        PNG and SVG of one figure; the SVG says where the waterfalls are.
    direction : str
        Of time in them: ``down``, ``up`` or ``right``.
    """
    with Image.open(io.BytesIO(picture)) as opened:
        pixels = np.asarray(opened.convert("RGB")).astype(np.int64)
    found = []
    for image in _root(drawing).iter(f"{SVG}image"):
        x, y, width, height = (
            round(float(image.get(name) or "nan") * FIGURE_DPI / CSS_DPI)
            for name in ("x", "y", "width", "height")
        )
        # Colour bars are narrow images.
        if width > height / 10:
            one = pixels[y : y + height, x : x + width]
            found.append(_TURNED[direction](one))
    return found


def bars_of(drawing: bytes) -> list[Bar]:
    """Return the bars of the one line spectrum of an SVG, by frequency."""
    root = _root(drawing)
    (path,) = [one for one in root.iter(f"{SVG}path") if one.get("class") == "line now"]
    plot = root.find(f"{SVG}clipPath/{SVG}rect")
    assert plot is not None
    x, y, width, height = (float(plot.get(name) or "nan") for name in ("x", "y", "width", "height"))
    found = []
    for part in (path.get("d") or "").split("M")[1:]:
        (x0, y0), (x1, _) = (map(float, point.split()) for point in part.split("L"))
        found.append(Bar((x0 - x) / width, (x1 - x) / width, (y0 - y) / height, 1.0 / width))
    return found


def shares_of_colour(pixel: Pixels, name: str = "viridis") -> NDArray[np.float64]:
    """Return where in a map a colour is, as shares of its length; empty of no colour of it."""
    shades = colormap(name, 256).astype(np.int64)
    return np.flatnonzero((shades == pixel).all(axis=1)) / 256.0


def _root(drawing: bytes) -> Any:
    return ET.fromstring(drawing)  # noqa: S314 - our own
