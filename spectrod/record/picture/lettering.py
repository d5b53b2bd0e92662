"""Typefaces and how wide texts are in them: smooth ones where FreeType is there."""

from functools import cache

from PIL import ImageFont, features

from spectrod.text import printable

_BUILT_IN_EXTRAS = "·…°"
"""What Pillow's built-in typeface has beyond ASCII, of what is used here."""

_WIDE_TYPEFACE = "DejaVuSans.ttf"
"""Used where it is installed and a text needs more characters than the built-in one has."""

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def _is_built_in(character: str) -> bool:
    return " " <= character <= "~" or character in _BUILT_IN_EXTRAS


@cache
def _built_in(size: int) -> Font:
    if features.check_module("freetype2"):
        return ImageFont.load_default(size)
    return ImageFont.load_default()  # a bitmap of one size, all that is left without FreeType


@cache
def _wide(size: int) -> Font | None:
    if not features.check_module("freetype2"):
        return None
    try:
        return ImageFont.truetype(_WIDE_TYPEFACE, size)
    except OSError:
        return None


def typeset(text: str, size: int) -> tuple[str, Font]:
    """Choose a typeface that has the text's characters; where there is none, replace them."""
    text = printable(text)
    if all(map(_is_built_in, text)):
        return text, _built_in(size)
    font = _wide(size)
    if font is not None:
        return text, font
    return "".join(c if _is_built_in(c) else "?" for c in text), _built_in(size)


def text_width(text: str, size: int) -> float:
    """Width of a text [px]."""
    text, font = typeset(text, size)
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
