"""Text files of frequency responses: CSV, ``.frd``, and those of miniDSP and Dayton Audio."""

import re

from spectrod.dsp.calibration.response import ROWS_MAX
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable

LINE_MAX_CHARS = 1000
COMMENT_LINES_MAX = 1000

_COMMENT = re.compile(r"[#*;!\"']|//|[^\W\d_]")
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_COLUMNS_MIN, _COLUMNS_MAX = 2, 3


def parse_response(content: bytes) -> list[tuple[float, float]]:
    """Parse a table of frequencies and levels.

    Parameters
    ----------
    content : bytes
        Lines of ``Hz dB`` or ``Hz dB degrees``, separated by tabs, spaces, semicolons or commas,
        with decimal points or commas; a byte order mark and CR LF are accepted. Lines that begin
        with ``#``, ``*``, ``;``, ``!``, ``//``, a quotation mark or a letter are comments. The
        phase is not used.

    Returns
    -------
    rows : list of (frequency [Hz], level [dB])

    Raises
    ------
    ConfigError
        If a line is no row, with its number; or if there are too many lines.
    """
    rows: list[tuple[float, float]] = []
    n_comments = 0
    points: set[str] = set()
    for number, line in enumerate(_text(content).splitlines(), start=1):
        text = line.strip("\ufeff \t\r\n\f\v").replace("\N{MINUS SIGN}", "-")
        if len(text) > LINE_MAX_CHARS:
            raise _wrong(number, text, f"must be at most {LINE_MAX_CHARS} characters")
        if not text or _COMMENT.match(text):
            n_comments += 1
            if n_comments > COMMENT_LINES_MAX:
                raise _wrong(number, text, f"must be within {COMMENT_LINES_MAX} comments")
            continue
        fields = _fields(number, text)
        points.update(mark for mark in ".," if any(mark in field for field in fields))
        if len(points) > 1:
            raise _wrong(number, text, "decimals must be all points or all commas")
        rows.append((_number(fields[0]), _number(fields[1])))
        if len(rows) > ROWS_MAX:
            raise _wrong(number, text, f"must be within {ROWS_MAX} rows")
    return rows


def _text(content: bytes) -> str:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        # Only comments have other characters than ASCII; a row with one is refused below.
        return content.decode("latin-1")


def _fields(number: int, text: str) -> list[str]:
    """Split a row; a comma separates columns only where no other character does."""
    row = text.rstrip(",;")  # a separator at the end of the line
    fields = re.split(r"\s*;\s*|\s*,\s+|\s+", row)
    if len(fields) == 1:
        fields = row.split(",")
    if not _COLUMNS_MIN <= len(fields) <= _COLUMNS_MAX or not all(
        _NUMBER.fullmatch(field) for field in fields
    ):
        raise _wrong(number, text, "must be Hz, dB and optionally degrees")
    return fields


def _number(field: str) -> float:
    return float(field.replace(",", "."))


def _wrong(number: int, text: str, rule: str) -> ConfigError:
    return ConfigError(f"line {number}: {printable(text, 60)!r}: {rule}")
