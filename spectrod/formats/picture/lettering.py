"""Typefaces and widths of texts: antialiased if FreeType is available."""

import logging
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby

from PIL import Image, ImageDraw, ImageFont, features

from spectrod.formats.picture.fonts import Font, FontFile, FontFinder, draws, fc_match
from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

_BUILT_IN_EXTRAS = "·…°"
"""Non-ASCII characters that are used here and that Pillow's built-in typeface has."""

_WIDE_TYPEFACE = "DejaVuSans.ttf"
"""Used if it is installed and a text has characters that the built-in typeface lacks."""

_SELECTORS = dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
"""Variation selectors, which choose between two glyphs of the character before them."""

_REPORTED_MAX = 20
"""Largest number of characters that a report names."""

_finder = FontFinder()


@dataclass(frozen=True, slots=True)
class Run:
    """A part of a line in one typeface.

    Attributes
    ----------
    text : str
        At least one character.
    font : Font
        The typeface, in an available size.
    scale : float
        Factor from that size to the wanted one; 1 unless the glyphs are bitmaps.
    file : FontFile or None
        File of the typeface, if fontconfig found it.
    missing : str
        The characters that no font has; ``text`` has question marks instead of them.
    """

    text: str
    font: Font
    scale: float = 1.0
    file: FontFile | None = None
    missing: str = ""

    @property
    def width(self) -> float:
        """Distance from the begin of this run to that of the next [px]."""
        return _length_px(self.font, self.text) * self.scale

    @property
    def is_pictures(self) -> bool:
        """Whether the glyphs are coloured bitmaps."""
        return self.scale != 1.0


@lru_cache(maxsize=4096)
def _length_px(font: Font, text: str) -> float:
    return float(font.getlength(text))


@lru_cache(maxsize=256)
def drawn(font: Font, text: str) -> tuple[Image.Image, int, int]:
    """Draw a short text of one typeface.

    Returns
    -------
    mask : (height, width) image of 8 bits
        Coverage of each pixel.
    left, top : int
        Position of the mask's corner relative to the text's own.
    """
    left, top, right, bottom = map(int, font.getbbox(text))
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=font)
    return mask, left, top


def _is_built_in(character: str) -> bool:
    return " " <= character <= "~" or character in _BUILT_IN_EXTRAS


@cache
def _built_in(size: int) -> Font:
    if features.check_module("freetype2"):
        return ImageFont.load_default(size)
    return ImageFont.load_default()  # without FreeType there is one bitmap font of one size


@cache
def _wide(size: int) -> Font | None:
    if not features.check_module("freetype2"):
        return None
    try:
        return ImageFont.truetype(_WIDE_TYPEFACE, size)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _wide_draws(character: str, size: int) -> bool:
    font = _wide(size)
    return font is not None and draws(font, character)


def legible(text: str) -> str:
    """Return the drawable characters of a text: one line, without selectors."""
    return printable(text).translate(_SELECTORS)


def typeset(text: str, size: int) -> tuple[Run, ...]:
    """Choose typefaces for the characters of a text; replace characters that none has.

    Pillow's built-in typeface is the default; DejaVu Sans replaces it for the whole text if it has
    more of the characters. fontconfig finds fonts for the rest.

    Parameters
    ----------
    text : str
        Any text; see ``legible``.
    size : int
        Font size [px].

    Returns
    -------
    runs : tuple of Run
        Consecutive runs. The first one is in the typeface of most Latin texts, which positions the
        line; it may be empty.
    """
    if text.isascii() and text.isprintable():
        return (Run(text, _built_in(size)),)
    text = legible(text)
    others = {character for character in text if not _is_built_in(character)}
    base, wide = _built_in(size), _wide(size) if others else None
    if wide is not None:
        lacks = {character for character in others if not _wide_draws(character, size)}
        if lacks < others:
            base, others = wide, lacks
    if not others:
        return (Run(text, base),)
    files = _finder.find(others)
    runs = [Run("", base)] if text[0] in others else []
    for (is_other, file), part in groupby(text, lambda one: (one in others, files.get(one))):
        piece = "".join(part)
        if file is not None:
            font, scale = file.scaled(size)
            runs.append(Run(piece, font, scale, file))
        elif is_other:
            runs.append(Run("?" * len(piece), base, missing=piece))
        else:
            runs.append(Run(piece, base))
    return tuple(runs)


def ascent(font: Font) -> int:
    """Return the height of a typeface above its baseline [px]."""
    return int(font.getmetrics()[0]) if isinstance(font, ImageFont.FreeTypeFont) else 0


def coloured(run: Run) -> Image.Image:
    """Draw a run of bitmap glyphs in their own size, RGBA, with its ascender at the top."""
    font = run.font
    assert isinstance(font, ImageFont.FreeTypeFont)
    width, height = round(font.getlength(run.text)), sum(font.getmetrics())
    image = Image.new("RGBA", (max(1, width), height))
    ImageDraw.Draw(image).text((0, 0), run.text, font=font, embedded_color=True)
    return image


def report_missing(texts: tuple[str, ...]) -> None:
    """Report the characters of some texts that no font has, in one warning."""
    runs = (run for text in texts for run in typeset(text, 12))
    missing = "".join(dict.fromkeys(character for run in runs for character in run.missing))
    if missing:
        _report(missing)


@lru_cache(maxsize=64)
def _report(missing: str) -> None:
    """Log a warning, once for the same characters: many pictures may have the same title."""
    named = ", ".join(f"{one} (U+{ord(one):04X})" for one in missing[:_REPORTED_MAX])
    more = len(missing) - _REPORTED_MAX
    _log.warning(
        "no font for %s%s: drawn as ?; install a font that has them%s",
        named,
        f" and {more} more" if more > 0 else "",
        "" if fc_match() else ", and fontconfig",
    )


def text_width(text: str, size: int) -> float:
    """Return the width of a text [px]."""
    return sum(run.width for run in typeset(text, size))


def shorten(text: str, size: int, width: float) -> str:
    """Cut the middle of a text so that it fits the width [px]; both ends help to identify it."""
    if text_width(text, size) <= width:
        return text
    # A character is at least one pixel wide; without this bound a long text would take minutes.
    for kept in range(min(len(text) - 1, int(width)), 1, -1):
        head = (kept + 1) // 2
        short = f"{text[:head]}…{text[len(text) - kept + head :]}"
        if text_width(short, size) <= width:
            return short
    return ""


def wrap(pieces: list[str], size: int, width: float) -> list[str]:
    """Join pieces with middle dots into lines that fit the width [px]; a long piece has its own."""
    lines: list[str] = []
    for piece in pieces:
        joined = f"{lines[-1]}  ·  {piece}" if lines else piece
        if lines and text_width(joined, size) <= width:
            lines[-1] = joined
        else:
            lines.append(shorten(piece, size, width))
    return lines
