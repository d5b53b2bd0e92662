"""TOML with positions: where each key stands, and where a syntax error is.

``tomllib`` decides what is valid, and gives the values. It keeps no positions, so this module scans
a valid text for them.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from spectrod.lib.errors import ConfigError

Path = tuple[str | int, ...]
"""Keys from the root to a value, and numbers of array items from 0."""

_DEPTH_MAX = 16
"""Longest path that gets a position."""

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BRACKETS = re.compile(r"\[{0,2}")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_SCALAR = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""(?:"{0,2})'
    r"|'''[^']*(?:'(?!'')[^']*)*'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^\s\[\]{},#]+(?:[ ][0-9]{2}:[0-9:.Z+-]+)?",
    re.DOTALL,
)
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE_WORD = re.compile(r"[^\s\"'\[\]{},#=]+(?: [^\s\"'\[\]{},#=]+)*")
_BARE_WORD_MAX = 128
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")
_VALID_WORD = re.compile(r"true|false|[+-]?(?:inf|nan)")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), "true"),
    **dict.fromkeys(("false", "no", "off"), "false"),
}


class Position(NamedTuple):
    """Line and column of a character, from 1."""

    line: int
    column: int


class TomlText:
    """The values of a text, and where they stand.

    Parameters
    ----------
    text : str
        TOML 1.0; lines may end with CR LF.

    Attributes
    ----------
    data : dict
        Its values.

    Raises
    ------
    tomllib.TOMLDecodeError
        If it is not valid.
    """

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self.data = tomllib.loads(text)

    @cached_property
    def positions(self) -> Mapping[Path, Position]:
        """Position of each table, each key and each array item; of a table the first mention."""
        starts = [0, *(match.end() for match in re.finditer("\n", self._text))]
        found: dict[Path, Position] = {}
        for path, offset in _placed(self._text):
            if len(path) <= _DEPTH_MAX and path not in found:
                line = bisect_right(starts, offset)
                found[path] = Position(line, offset - starts[line - 1] + 1)
        return found

    def position(self, path: Path) -> Position | None:
        """Return the position of a key or item, or of the nearest that contains it."""
        while path:
            if path in self.positions:
                return self.positions[path]
            path = path[:-1]
        return None


def parse_toml(text: str, name: str) -> TomlText:
    """Parse a text.

    Parameters
    ----------
    text : str
        TOML 1.0.
    name : str
        Of its file, for errors.

    Returns
    -------
    parsed : TomlText

    Raises
    ------
    ConfigError
        If it is not valid, or nested too deep; names the first place.
    """
    try:
        return TomlText(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}:{_located(str(error), text)}") from error
    except RecursionError:
        raise ConfigError(f"{name}: not valid TOML here: tables or arrays too deep") from None
    except ValueError as error:  # an integer of more than 4300 digits
        raise ConfigError(f"{name}: not valid TOML: {error}") from error


def _located(message: str, text: str) -> str:
    """Put the place of an error of ``tomllib`` before it, and what was probably meant after it."""
    place = _PLACE.search(message)
    rule = f"not valid TOML: {message[: place.start()] if place else message}"
    lines = text.rstrip().replace("\r\n", "\n").split("\n")
    if place is None or place[1] is None:
        return f"{len(lines)}:{len(lines[-1]) + 1}: {rule}"
    line, column = int(place[1]), int(place[2])
    return f"{line}:{column}: {rule}{_meant(lines[line - 1]) if line <= len(lines) else ''}"


def _meant(line: str) -> str:
    """Suggest what was probably meant by a value that is not valid."""
    value = re.split(r"[ \t]#", line.partition("=")[2], maxsplit=1)[0].strip()
    if _VALID_WORD.fullmatch(value):
        return ""
    if value.lower() in _BOOLEANS:
        return f"; did you mean {_BOOLEANS[value.lower()]}?"
    if comma := _DECIMAL_COMMA.fullmatch(value):
        return f"; did you mean {comma[1]}.{comma[2]}?"
    if _BARE_WORD.fullmatch(value) and not value[0].isdigit() and len(value) < _BARE_WORD_MAX:
        return f'; a string needs quotes: "{value}"'
    return ""


# ---- positions in a valid text


def _placed(text: str) -> Iterator[tuple[Path, int]]:
    """Yield each path of a valid text with its offset; paths of tables more than once."""
    table: Path = ()
    arrays: dict[Path, int] = {}
    at = _skip(_SPACE, text, 0)
    while at < len(text):
        start = _skip(_BRACKETS, text, at)
        n_brackets = start - at
        keys, at = _scan_key(text, start)
        path: Path = () if n_brackets else table
        for k, (key, offset) in enumerate(keys):
            path = (*path, key)
            yield path, offset
            if n_brackets == 2 and k == len(keys) - 1:
                arrays[path] = arrays.get(path, -1) + 1
            if n_brackets and path in arrays:
                path = (*path, arrays[path])
                yield path, offset
        if n_brackets:
            table, at = path, at + n_brackets
        else:
            found: list[tuple[Path, int]] = []
            at = _scan_value(text, _skip(_BLANK, text, at + 1), path, found)
            yield from found
        at = _skip(_SPACE, text, at)


def _scan_key(text: str, at: int) -> tuple[list[tuple[str, int]], int]:
    """Return the parts of a dotted key, each with its offset, and the offset after it."""
    keys = []
    while True:
        at = _skip(_BLANK, text, at)
        end = _skip(_KEY_PART, text, at)
        keys.append((_plain_key(text[at:end]), at))
        at = _skip(_BLANK, text, end)
        if text[at] != ".":
            return keys, at
        at += 1


def _plain_key(written: str) -> str:
    if written[0] == "'":
        return written[1:-1]
    return next(iter(tomllib.loads(f"{written} = 0"))) if written[0] == '"' else written


def _scan_value(text: str, at: int, path: Path, found: list[tuple[Path, int]]) -> int:
    """Return the offset after a value; collect the keys and items in it."""
    opening = text[at]
    if opening not in "[{":
        return _skip(_SCALAR, text, at)
    at = _skip(_SPACE, text, at + 1)
    number = 0
    while text[at] not in "]}":
        own: Path = path
        parts: Sequence[tuple[str | int, int]] = [(number, at)]
        if opening == "{":
            parts, at = _scan_key(text, at)
            at = _skip(_BLANK, text, at + 1)
        for part, offset in parts:
            if len(own) < _DEPTH_MAX:
                own = (*own, part)
                found.append((own, offset))
        at = _skip(_SPACE, text, _scan_value(text, at, own, found))
        if text[at] == ",":
            at = _skip(_SPACE, text, at + 1)
        number += 1
    return at + 1


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
