"""Text and lines in ink on paper: an 8-bit page of ink coverage, smooth where FreeType is there."""

from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont, features

from spectrod.record.picture.colormaps import Uint8Array

FULL_INK, SOFT_INK, FAINT_INK = 255, 165, 70

_BUILT_IN_EXTRAS = "·…°"
"""What Pillow's built-in typeface has beyond ASCII, of what is used here."""

_WIDE_TYPEFACE = "DejaVuSans.ttf"
"""Used where it is installed and a text needs more characters than the built-in one has."""

_Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def _is_built_in(character: str) -> bool:
    return " " <= character <= "~" or character in _BUILT_IN_EXTRAS


@cache
def _built_in(size: int) -> _Font:
    if features.check_module("freetype2"):
        return ImageFont.load_default(size)
    return ImageFont.load_default()  # a bitmap of one size, all that is left without FreeType


@cache
def _wide(size: int) -> _Font | None:
    if not features.check_module("freetype2"):
        return None
    try:
        return ImageFont.truetype(_WIDE_TYPEFACE, size)
    except OSError:
        return None


def _set(text: str, size: int) -> tuple[str, _Font]:
    """Choose a typeface that has the text's characters; where there is none, replace them."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    if all(map(_is_built_in, text)):
        return text, _built_in(size)
    font = _wide(size)
    if font is not None:
        return text, font
    return "".join(c if _is_built_in(c) else "?" for c in text), _built_in(size)


def text_width(text: str, size: int) -> float:
    """Width of a text [px]."""
    text, font = _set(text, size)
    return float(font.getlength(text))


def shorten(text: str, size: int, width: float) -> str:
    """Cut a text in its middle so that it fits the width [px]; both ends tell files apart."""
    if text_width(text, size) <= width:
        return text
    # A character takes a pixel at least; without this bound a long text would take minutes.
    for kept in range(min(len(text) - 1, int(width)), 1, -1):
        head = (kept + 1) // 2
        short = f"{text[:head]}…{text[len(text) - kept + head :]}"
        if text_width(short, size) <= width:
            return short
    return ""


def wrap(pieces: list[str], size: int, width: float) -> list[str]:
    """Join pieces by middle dots into lines that fit the width [px]; a long piece has its own."""
    lines: list[str] = []
    for piece in pieces:
        joined = f"{lines[-1]}  ·  {piece}" if lines else piece
        if lines and text_width(joined, size) <= width:
            lines[-1] = joined
        else:
            lines.append(shorten(piece, size, width))
    return lines


class Sheet:
    """A page to draw on, in amounts of ink from 0 (paper) to 255."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("L", (width, height))
        self._draw = ImageDraw.Draw(self._image)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        size: int,
        *,
        align: float = 0.0,
        ink: int = FULL_INK,
    ) -> None:
        """Write a line.

        Parameters
        ----------
        at : (float, float)
            Where the text is anchored across, and the middle of its digits' height [px].
        text : str
            One line.
        size : int
            Of the type [px].
        align : float
            0 if the text begins at the anchor, 0.5 if it is centred there, 1 if it ends there.
        ink : int
            0 to 255.
        """
        text, font = _set(text, size)
        _, top, _, bottom = font.getbbox("0")
        x = round(at[0] - align * font.getlength(text))
        y = round(at[1] - (top + bottom) / 2.0)
        self._draw.text((x, y), text, fill=ink, font=font)

    def line(self, start: tuple[int, int], end: tuple[int, int], ink: int) -> None:
        """Draw a line one pixel wide, both ends included."""
        self._draw.line([start, end], fill=ink)

    def frame(self, left: int, top: int, width: int, height: int) -> None:
        """Draw a thin frame directly around an area."""
        corners = (left - 1, top - 1, left + width, top + height)
        self._draw.rectangle(corners, outline=SOFT_INK)

    def coverage(self) -> Uint8Array:
        """Ink of each pixel, shape (height, width)."""
        return np.array(self._image)
