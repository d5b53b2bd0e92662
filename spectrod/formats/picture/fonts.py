"""Fonts for characters that the usual typefaces lack, found by fontconfig."""

import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from PIL import ImageFont, features

_log = logging.getLogger(__name__)

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

FC_MATCH_TIMEOUT_S = 10.0
"""Without its cache fontconfig reads all fonts, which takes seconds on a full system."""

FONTS_MAX = 8
"""Largest number of fonts in one search; each takes one or two runs of ``fc-match``."""

KNOWN_MAX = 4096
"""Largest number of characters whose font is cached."""

_STRIKES_PX = (109, 128, 136, 160)
"""Sizes of colour fonts with bitmaps of one size, such as Noto Color Emoji."""

_TEST_PX = 24
_NOT_A_CHARACTER = "\U0010ffff"
"""No font has a glyph for this code point."""


@dataclass(frozen=True, slots=True)
class FontFile:
    """A font found by fontconfig.

    Attributes
    ----------
    path : str
        Path of the file.
    index : int
        Index of the font in a collection, from 0.
    """

    path: str
    index: int = 0

    def scaled(self, size: int) -> tuple[ImageFont.FreeTypeFont, float]:
        """Open it at a size [px], or at an available one with the factor that scales it to that.

        Raises
        ------
        OSError
            If FreeType cannot read it.
        """
        return _open(self.path, self.index, size)

    def draws(self, character: str) -> bool:
        """Return whether the font has a visible glyph for a character."""
        try:
            font, _ = self.scaled(_TEST_PX)
            return draws(font, character)
        except OSError:
            return False


@lru_cache(maxsize=64)
def _open(path: str, index: int, size: int) -> tuple[ImageFont.FreeTypeFont, float]:
    try:
        return ImageFont.truetype(path, size, index), 1.0
    except OSError as error:
        for strike in _STRIKES_PX:
            try:
                return ImageFont.truetype(path, strike, index), size / strike
            except OSError:
                continue
        raise error from None


def draws(font: Font, character: str) -> bool:
    """Return whether a font has a visible glyph for a character.

    FreeType draws the same box for all characters that a font lacks.
    """
    mask = font.getmask(character)
    return mask.getbbox() is not None and bytes(mask) != bytes(font.getmask(_NOT_A_CHARACTER))


class FontFinder:
    """Finds fonts for characters, and caches them.

    It runs fontconfig's ``fc-match`` once for the new characters of a text. If that is not
    installed, does not answer within ``FC_MATCH_TIMEOUT_S``, or finds nothing, there is no font.
    Thread: any.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, FontFile | None] = {}

    def find(self, characters: Iterable[str]) -> dict[str, FontFile | None]:
        """Return a font for each character, or None if there is none."""
        needed = set(characters)
        with self._lock:
            unknown = sorted(needed - self._known.keys())
            if unknown:
                if len(self._known) + len(unknown) > KNOWN_MAX:
                    self._known.clear()
                    unknown = sorted(needed)
                self._known |= _ask(unknown)
            return {character: self._known[character] for character in needed}


def fc_match() -> str | None:
    """Return the path of fontconfig's ``fc-match``, or None if it is not installed."""
    # Imported when needed: most texts have no such characters.
    from shutil import which  # noqa: PLC0415

    return which("fc-match")


def _ask(characters: list[str]) -> dict[str, FontFile | None]:
    """Return a font for each character: search repeatedly for the characters that remain."""
    found: dict[str, FontFile | None] = dict.fromkeys(characters)
    program = fc_match()
    if program is None or not features.check_module("freetype2"):
        return found
    left = characters
    for _ in range(FONTS_MAX):
        font, covered = _best(program, left)
        if not covered:
            break
        found |= dict.fromkeys(covered, font)
        left = [character for character in left if character not in covered]
        if not left:
            break
    return found


def _best(program: str, characters: list[str]) -> tuple[FontFile | None, set[str]]:
    """Find the font with most of the characters; prefer outlines to coloured bitmaps."""
    # fontconfig supports colours from version 2.12 on.
    for colour in (":color=false", ""):
        font = _match(program, characters, colour)
        covered = {one for one in characters if font is not None and font.draws(one)}
        if covered:
            return font, covered
    return None, set()


def _match(program: str, characters: list[str], colour: str) -> FontFile | None:
    import subprocess  # noqa: PLC0415 - as above

    charset = " ".join(f"{ord(character):x}" for character in characters)
    pattern = f"sans-serif:charset={charset}{colour}"
    try:
        done = subprocess.run(  # noqa: S603 - the pattern holds hexadecimal numbers alone
            [program, "--format", "%{index}|%{file}", pattern],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FC_MATCH_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.warning("fonts cannot be looked for: %s", error)
        return None
    index, _, path = done.stdout.partition(b"|")
    if done.returncode != 0 or not index.isdigit() or not path:
        return None
    # The upper half of the index names an instance of a variable font.
    return FontFile(os.fsdecode(path), int(index) & 0xFFFF)
