"""TOML with positions: where each key stands, and every mistake of a text at once.

``tomllib`` decides what is valid, and gives the values. It keeps no positions and reports the first
mistake only, so this module splits a text into its statements (a header of a table, or a key with
its value) to find positions, and parses the statements of an invalid text one by one.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Mistake", "Position", "TomlText", "parse_toml"]

Path = tuple[str | int, ...]
"""Keys from the root to a value, and numbers of array items from 0."""

_DEPTH_MAX = 16
"""Deepest nesting of a value, and most parts of a key, that get positions."""
_MISTAKES_MAX = 1000
"""Most mistakes that are listed of one text."""

_BLANK = re.compile(r"[ \t]*")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
_STRING = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""(?:"{0,2})'
    r"|'''[^']*(?:'(?!'')[^']*)*'''(?:'{0,2})"
    r'|"(?!"")(?:[^"\\\n]|\\.)*"'
    r"|'(?!'')[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^\s\[\]{},#\"'=]+(?:[ ][0-9]{2}:[0-9:.Z+-]+)?")
_SPACE = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_IN_ARRAY = re.compile(r"[+-]?[0-9].*|[+-]?(?:inf|nan)|true|false", re.IGNORECASE | re.DOTALL)
_STATEMENT = re.compile(
    r"""^[ \t]*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:[ \t]*\.[^=\n]*)?[ \t]*=(?!=)"""
    r"""|^[ \t]*\[[^,\n]*\][ \t]*(?:\#.*)?$""",
    re.MULTILINE,
)
_OPENING = re.compile(r"""=.*(?:[\[{]|\"{3}|'{3})""")
"""The start of a value that may continue in the next line."""
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE_WORD = re.compile(r"[^\s\"'\[\]{},#=]+(?: [^\s\"'\[\]{},#=]+)*")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), "true"),
    **dict.fromkeys(("false", "no", "off"), "false"),
}


class Position(NamedTuple):
    """Line and column of a character, from 1."""

    line: int
    column: int


class Mistake(NamedTuple):
    """A violation of TOML's syntax, or a key that is defined twice."""

    position: Position
    text: str


class _Invalid(Exception):  # noqa: N818 - ends the scan of one statement
    """A statement whose end cannot be found."""


@dataclass
class _Statement:
    """A header of a table, or a key with its value.

    Attributes
    ----------
    start, end : int
        Offsets of its first character and of the line after it.
    keys : list of (str, int)
        Parts of its key, each with its offset.
    header : int
        Number of brackets of a header; 0 for a key with a value.
    value : int
        Offset of the value.
    items : list of (tuple of (str or int), int)
        Keys and items inside the value, each with its offset.
    is_whole : bool
        Whether its end was found; the rest may still be invalid.
    """

    start: int
    end: int = 0
    keys: list[tuple[str, int]] = field(default_factory=list)
    header: int = 0
    value: int = 0
    items: list[tuple[Path, int]] = field(default_factory=list)
    is_whole: bool = True


class TomlText:
    """The values of a text, and where they stand.

    Parameters
    ----------
    text : str
        The text; lines may end with CR LF.
    data : dict
        Its values; of an invalid text those of its valid statements.
    mistakes : tuple of Mistake
        At most 1000, by position; none if the text is valid.
    lost : frozenset of tuple
        Paths of keys and tables that invalid statements may have defined; () for any.

    Attributes
    ----------
    data, mistakes, lost
        As given.
    """

    def __init__(
        self,
        text: str,
        data: dict[str, Any],
        mistakes: tuple[Mistake, ...] = (),
        lost: frozenset[Path] = frozenset(),
    ) -> None:
        self.data, self.mistakes, self.lost = data, mistakes, lost
        self._text = text
        self._positions: Mapping[Path, Position] | None = None

    @property
    def positions(self) -> Mapping[Path, Position]:
        """Position of each table, each key and each array item; of a table the first mention."""
        if self._positions is None:
            offsets: dict[Path, int] = {}
            for path, offset in _placed(self._text):
                offsets.setdefault(path, offset)
            places = _Places(self._text)
            self._positions = {path: places.at(offset) for path, offset in offsets.items()}
        return self._positions

    def position(self, path: Path) -> Position | None:
        """Return the position of a key or item, or of the nearest that contains it."""
        while path:
            if path in self.positions:
                return self.positions[path]
            path = path[:-1]
        return None


def parse_toml(text: str) -> TomlText:
    """Parse a text; ``mistakes`` of the result has all that is wrong with it.

    Parameters
    ----------
    text : str
        TOML 1.0.

    Returns
    -------
    parsed : TomlText

    Raises
    ------
    RecursionError
        If arrays or inline tables are nested deeper than Python's stack allows.
    """
    text = text.replace("\r\n", "\n")
    try:
        return TomlText(text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        whole = _located(error, Position(1, 1), text)
    reader = _TolerantReader(text)
    reader.read()
    mistakes = reader.mistakes or [whole]
    lost = reader.lost if reader.mistakes else {()}
    return TomlText(text, reader.data, tuple(sorted(mistakes[:_MISTAKES_MAX])), frozenset(lost))


class _Places:
    """Lines and columns of offsets."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def at(self, offset: int) -> Position:
        from bisect import bisect_right  # noqa: PLC0415 - only texts with mistakes need it

        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements of a text; one without an end is cut where the next seems to begin."""
    at = 0
    while True:
        at = _skip(_SPACE, text, at)
        if at >= len(text):
            return
        statement = _Statement(at)
        try:
            statement.end = _scan(text, statement)
        except _Invalid:
            statement.is_whole = False
            statement.end = _line_end(text, at)
            if _OPENING.search(text, at, statement.end):
                following = _STATEMENT.search(text, statement.end)
                statement.end = following.start() if following else len(text)
        yield statement
        at = statement.end


def _scan(text: str, statement: _Statement) -> int:
    """Fill in a statement; return the offset after it."""
    at = statement.start
    while text[at : at + 1] == "[" and statement.header < 2:
        statement.header += 1
        at += 1
    at = _scan_key(text, at, statement.keys)
    if statement.header:
        if not text.startswith("]" * statement.header, at):
            raise _Invalid
        at += statement.header
    else:
        if text[at : at + 1] != "=":
            raise _Invalid
        statement.value = _skip(_BLANK, text, at + 1)
        at = _scan_value(text, statement.value, (), statement.items)
    end = _END.match(text, at)
    if not end:
        raise _Invalid
    return end.end()


def _scan_key(text: str, at: int, keys: list[tuple[str, int]]) -> int:
    """Read a dotted key; return the offset after it and blanks."""
    while True:
        at = _skip(_BLANK, text, at)
        part = _KEY_PART.match(text, at)
        if not part:
            raise _Invalid
        keys.append((_plain_key(part[0]), at))
        at = _skip(_BLANK, text, part.end())
        if text[at : at + 1] != ".":
            return at
        if len(keys) == _DEPTH_MAX:
            raise _Invalid
        at += 1


def _plain_key(written: str) -> str:
    if written[0] == "'":
        return written[1:-1]
    if written[0] == '"':
        try:
            return str(tomllib.loads(f"key = {written}")["key"])
        except tomllib.TOMLDecodeError as error:
            raise _Invalid from error
    return written


def _scan_value(text: str, at: int, path: Path, items: list[tuple[Path, int]]) -> int:
    """Return the offset after a value; collect the keys and items in it."""
    opening = text[at : at + 1]
    if len(path) >= _DEPTH_MAX and opening in ("[", "{"):
        raise _Invalid
    if opening == "[":
        return _scan_array(text, at, path, items)
    if opening == "{":
        return _scan_inline_table(text, at, path, items)
    value = _STRING.match(text, at) or _SCALAR.match(text, at)
    if not value:
        raise _Invalid
    return value.end()


def _scan_array(text: str, at: int, path: Path, items: list[tuple[Path, int]]) -> int:
    index, at = 0, _skip(_SPACE, text, at + 1)
    while text[at : at + 1] != "]":
        bare = _SCALAR.match(text, at)
        # A word here is the key after an array that was not closed, or a string without quotes.
        if bare and not _IN_ARRAY.fullmatch(bare[0]):
            raise _Invalid
        items.append(((*path, index), at))
        at = _skip(_SPACE, text, _scan_value(text, at, (*path, index), items))
        if text[at : at + 1] == ",":
            at = _skip(_SPACE, text, at + 1)
        elif text[at : at + 1] != "]":
            raise _Invalid
        index += 1
    return at + 1


def _scan_inline_table(text: str, at: int, path: Path, items: list[tuple[Path, int]]) -> int:
    at = _skip(_BLANK, text, at + 1)
    while text[at : at + 1] != "}":
        keys: list[tuple[str, int]] = []
        at = _scan_key(text, at, keys)
        if text[at : at + 1] != "=":
            raise _Invalid
        own = path
        for key, offset in keys:
            own = (*own, key)
            items.append((own, offset))
        at = _scan_value(text, _skip(_BLANK, text, at + 1), own, items)
        at = _skip(_BLANK, text, at)
        if text[at : at + 1] == ",":
            at = _skip(_BLANK, text, at + 1)
        elif text[at : at + 1] != "}":
            raise _Invalid
    return at + 1


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _placed(text: str) -> Iterator[tuple[Path, int]]:
    """Yield each path of a text with its offset; paths of tables more than once."""
    table: Path | None = ()
    arrays: dict[Path, int] = {}
    for statement in _statements(text):
        if not statement.is_whole:
            if statement.header:
                table = None
            continue
        if table is None and not statement.header:
            continue
        path: Path = () if statement.header else table or ()
        for k, (key, offset) in enumerate(statement.keys):
            path = (*path, key)
            yield path, offset
            if statement.header == 2 and k == len(statement.keys) - 1:
                arrays[path] = arrays.get(path, -1) + 1
            if statement.header and path in arrays:
                path = (*path, arrays[path])
                yield path, offset
        if statement.header:
            table = path
        for inside, offset in statement.items:
            yield path + inside, offset


def _located(error: tomllib.TOMLDecodeError, start: Position, text: str, shift: int = 0) -> Mistake:
    """Move an error to the place in the whole text; ``shift`` characters were put before it."""
    message = str(error)
    place = _PLACE.search(message)
    if place is None or place[1] is None:
        position = start
    else:
        line, column = int(place[1]), int(place[2])
        if line == 1:
            column += start.column - 1 - shift
        position = Position(start.line + line - 1, max(column, 1))
        if position.line > text.count("\n") + 1:
            position = start
    if place:
        message = message[: place.start()]
    return Mistake(position, f"not valid TOML: {message}")


class _TolerantReader:
    """Reads an invalid text statement by statement.

    Attributes
    ----------
    data : dict
        Values of valid statements.
    mistakes : list of Mistake
        In the order of the text; a few more than the limit at most.
    lost : set of tuple
        Paths of keys and tables that invalid statements may have defined; () for any.
    """

    def __init__(self, text: str) -> None:
        self.data: dict[str, Any] = {}
        self.mistakes: list[Mistake] = []
        self.lost: set[Path] = set()
        self._text, self._places = text, _Places(text)
        self._headers: set[Path] = set()
        self._defined: set[Path] = set()
        self._mentioned: dict[Path, Position] = {}
        self._table: dict[str, Any] | None = self.data
        self._path: Path = ()

    def read(self) -> None:
        for statement in _statements(self._text):
            if len(self.mistakes) >= _MISTAKES_MAX:
                self.lost.add(())
                return
            if not self._is_valid(statement):
                self._lose(statement)
            elif statement.header:
                self._enter(statement)
            else:
                self._define(statement)

    def _lose(self, statement: _Statement) -> None:
        """Note what an invalid statement may have defined."""
        if statement.header:
            # Keys that follow belong to a table of which nothing is known.
            self._table = None
            self.lost.add(())
        elif self._table is not None:
            self.lost.add((*self._path, *(key for key, _ in statement.keys)))

    def _is_valid(self, statement: _Statement) -> bool:
        """Check the syntax of a statement by itself; add its mistake."""
        text = self._text[statement.start : statement.end]
        if not statement.is_whole:
            text = text.rstrip("\n")
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            start = self._places.at(statement.start)
            mistake = _located(error, start, self._text)
            self.mistakes.append(mistake._replace(text=mistake.text + _meant(text)))
            return False
        return statement.is_whole

    def _enter(self, statement: _Statement) -> None:
        """Make the table of a header the current one."""
        path = tuple(key for key, _ in statement.keys)
        position = self._places.at(statement.keys[0][1])
        if path in self._headers and statement.header == 1:
            self._add_twice(position, f"[{'.'.join(path)}]", path)
        self._table, self._path = self._descend(self.data, (), path, position), path
        if self._table is None:
            self.lost.add(path)
            return
        self._headers.add(path)
        if statement.header == 2:
            self._table = None  # arrays of tables: spectrod's settings have none

    def _define(self, statement: _Statement) -> None:
        """Set a key in the current table."""
        if self._table is None:
            return
        *parents, last = (key for key, _ in statement.keys)
        position = self._places.at(statement.keys[0][1])
        table = self._descend(self._table, self._path, tuple(parents), position)
        path = (*self._path, *parents, last)
        if table is None:
            return
        if last in table:
            self._add_twice(position, ".".join(map(str, path)), path)
            return
        self._defined.add(path)
        self._mentioned.setdefault(path, position)
        value = self._text[statement.value : statement.end]
        table[last] = tomllib.loads(f"value = {value}")["value"]

    def _descend(
        self, table: dict[str, Any], base: Path, names: tuple[str, ...], position: Position
    ) -> dict[str, Any] | None:
        """Return the table in a table, made where it is new; None, and a mistake, if it is none."""
        path = base
        for name in names:
            path = (*path, name)
            if path in self._defined:
                self._add_twice(position, ".".join(map(str, path)), path)
                return None
            self._mentioned.setdefault(path, position)
            table = table.setdefault(name, {})
        return table

    def _add_twice(self, position: Position, name: str, path: Path) -> None:
        line, column = self._mentioned[path]
        text = f"{name}: is defined twice; first in line {line}, column {column}"
        self.mistakes.append(Mistake(position, text))


def _meant(statement: str) -> str:
    """Suggest what was probably meant by a value that is not valid."""
    value = re.split(r"[ \t]#", statement.partition("=")[2], maxsplit=1)[0].strip()
    if value.lower() in _BOOLEANS:
        return f"; did you mean {_BOOLEANS[value.lower()]}?"
    if comma := _DECIMAL_COMMA.fullmatch(value):
        return f"; did you mean {comma[1]}.{comma[2]}?"
    if _BARE_WORD.fullmatch(value) and not value[0].isdigit() and len(value) < _DEPTH_MAX * 8:
        return f'; a string needs quotes: "{value}"'
    return ""
