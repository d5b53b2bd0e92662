"""Characters that pictures are made of: Unicode's, or ASCII where a terminal may lack those."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Glyphs:
    """The characters of a picture, each one column wide.

    Attributes
    ----------
    bars : str
        Parts of a bar's uppermost character, from empty to full.
    vertical, corner, horizontal, tick : str
        Lines of the axes.
    has_halves : bool
        Whether the upper half block exists, which shows two rows of a waterfall in one character.
    has_braille : bool
        Whether patterns of eight dots exist; a line is drawn with other characters otherwise.
    """

    bars: str
    vertical: str
    corner: str
    horizontal: str
    tick: str
    has_halves: bool
    has_braille: bool


UNICODE = Glyphs(" ▁▂▃▄▅▆▇█", "│", "└", "─", "┬", has_halves=True, has_braille=True)
CONSOLE = Glyphs(" ▄▄▄▄████", "│", "└", "─", "┬", has_halves=True, has_braille=False)
"""What the fonts of the Linux console contain."""
ASCII = Glyphs(" __..::|#", "|", "+", "-", "+", has_halves=False, has_braille=False)


def glyphs_for(environment: Mapping[str, str], encoding: str | None) -> Glyphs:
    """Choose the characters by the locale (LC_ALL, LC_CTYPE, LANG), TERM and the output's encoding.

    Only a UTF-8 locale has more than ASCII: without one, terminals are not known to show it.
    """
    if "utf8" not in _locale(environment).lower().replace("-", ""):
        return ASCII
    try:
        (UNICODE.bars + UNICODE.vertical + "▀\u28ff").encode(encoding or "ascii")
    except UnicodeEncodeError:
        return ASCII
    return CONSOLE if environment.get("TERM") == "linux" else UNICODE


def _locale(environment: Mapping[str, str]) -> str:
    """Return the locale of characters, without the one that Python itself sets (PEP 538)."""
    is_coerced = bool(sys.flags.utf8_mode) and environment.get("LC_CTYPE") == "C.UTF-8"
    ctype = "" if is_coerced else environment.get("LC_CTYPE", "")
    return environment.get("LC_ALL") or ctype or environment.get("LANG", "")
