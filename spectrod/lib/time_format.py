"""Formats of start times in names of files: the fields of ``strptime`` that recorders need.

A format stands for a part of a name, wherever in it: ``%y%m%d-%H%M%S`` finds the time of
``glider_230411-221029.038.wav``. One ``*`` stands for any text between fields.
"""

import datetime as dt
import re
from typing import NamedTuple

from spectrod.lib.errors import ConfigError

FORMAT_CHARS_MAX = 100
NAME_CHARS_MAX = 1024
"""Longest name that is searched; of longer ones, the end."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_FIELDS = {
    "Y": r"\d{4}", "y": r"\d\d", "m": r"\d\d", "d": r"\d\d", "j": r"\d{3}",
    "b": "|".join(_MONTHS), "B": "|".join(_FULL_MONTHS),
    "H": r"\d\d", "I": r"\d\d", "p": "[ap]m", "M": r"\d\d", "S": r"\d\d", "f": r"\d{1,9}",
    "s": r"\d{9,11}", "z": r"Z|[+-]\d\d(?::?\d\d)?",
}  # fmt: skip
_DIGITS = frozenset("YymdjHIMSfs")
_NAMES = {"year": "Yy", "month": "mbB", "day": "d", "hour": "HI"}
_CENTURY_TURNS = 69
"""Years of two digits from here on are of the last century, as POSIX says."""


class ParsedTime(NamedTuple):
    """A time in a name.

    Attributes
    ----------
    fields : tuple of int
        Year, month, day, hour, minute, second; they need not be a time that exists.
    fraction_ns : int
        Part of the second [ns].
    offset_s : int or None
        By how much it is ahead of UTC [s]; None: no zone is named.
    """

    fields: tuple[int, int, int, int, int, int]
    fraction_ns: int
    offset_s: int | None


class TimeFormat:
    """A format of times in names.

    Parameters
    ----------
    text : str
        Fields ``%Y %y %m %d %j %b %B %H %I %p %M %S %f %s %z %%``, one ``*``, and text that the
        name has as it is.

    Raises
    ------
    ConfigError
        If it has other fields, one twice, or not what makes a time.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._pattern = re.compile(_pattern(text), re.IGNORECASE)

    def times(self, name: str) -> set[ParsedTime]:
        """Return the different times at the places of a name where the format fits."""
        searched = name[-NAME_CHARS_MAX:]
        return {_time(match.groupdict()) for match in self._pattern.finditer(searched)}


def check_time_format(text: str) -> None:
    """Check a format; raises ConfigError, see ``TimeFormat``. An empty one is none."""
    if text:
        TimeFormat(text)


# ---- formats


def _pattern(text: str) -> str:
    """Return the regular expression of a format."""
    if len(text) > FORMAT_CHARS_MAX:
        raise _broken(text, f"must have at most {FORMAT_CHARS_MAX} characters")
    parts, fields, is_digit = [], "", False
    for part in re.findall(r"%.?|\*|[^%*]+", text, re.DOTALL):
        field = part[1:] if part[0] == "%" else ""
        if field == "%":
            parts.append("%")
        elif part[0] == "%":
            _check_field(text, field, fields)
            # Else a date would be found in the middle of a longer number.
            begins = field in _DIGITS and not is_digit
            parts.append((r"(?<!\d)" if begins else "") + f"(?P<{field}>{_FIELDS[field]})")
            fields += field
        elif part == "*":
            parts.append(".*?")
        else:
            parts.append(re.escape(part))
        is_digit = field in _DIGITS if field else part[-1].isdigit()
    if is_digit:
        parts.append(r"(?!\d)")
    if text.count("*") > 1:
        raise _broken(text, "must have at most one *")
    _check_complete(text, fields)
    return "".join(parts)


def _check_field(text: str, field: str, before: str) -> None:
    if field not in _FIELDS or not field:
        known = " ".join(f"%{name}" for name in _FIELDS)
        raise _broken(text, f"%{field} is no field; known: {known} %%")
    if field in before:
        raise _broken(text, f"must have %{field} once")


def _check_complete(text: str, fields: str) -> None:
    """Check that a format has what makes one time."""
    if "s" in fields:
        if set(fields) - {"s", "f"}:
            raise _broken(text, "must have nothing but %f beside %s")
        return
    for name, choices in _NAMES.items():
        if name in ("month", "day") and "j" in fields:
            if set(fields) & set(choices):
                raise _broken(text, "must have %j, or a month and a day")
            continue
        found = [f"%{choice}" for choice in choices if choice in fields]
        if len(found) != 1:
            options = " or ".join(f"%{choice}" for choice in choices)
            raise _broken(text, f"must have one {name}: {options}")
    if ("I" in fields) != ("p" in fields):
        raise _broken(text, "must have %p with %I, and with it alone")
    if "S" in fields and "M" not in fields:
        raise _broken(text, "must have %M with %S")
    if "f" in fields and "S" not in fields:
        raise _broken(text, "must have %S with %f")


def _broken(text: str, rule: str) -> ConfigError:
    return ConfigError(rule, time_format=text)


# ---- times


def _time(found: dict[str, str]) -> ParsedTime:
    fraction_ns = int(f"{found.get('f', '0'):0<9}")
    if "s" in found:
        utc = dt.datetime.fromtimestamp(int(found["s"]), dt.UTC)
        date = (utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second)
        return ParsedTime(date, fraction_ns, 0)
    year, month, day = _date(found)
    clock = _hour(found), int(found.get("M", 0)), int(found.get("S", 0))
    return ParsedTime((year, month, day, *clock), fraction_ns, _offset_s(found.get("z")))


def _date(found: dict[str, str]) -> tuple[int, int, int]:
    """Return year, month and day; day 0 where there is no such day of the year."""
    year = int(found["Y"]) if "Y" in found else _full_year(int(found["y"]))
    if "j" in found:
        try:
            day = dt.date(year, 1, 1) + dt.timedelta(days=int(found["j"]) - 1)
        except (ValueError, OverflowError):
            return year, 1, 0
        return (year, day.month, day.day) if day.year == year else (year, 1, 0)
    if "m" in found:
        return year, int(found["m"]), int(found["d"])
    name = found.get("b") or found["B"]
    return year, _MONTHS.index(name[:3].lower()) + 1, int(found["d"])


def _full_year(year: int) -> int:
    return year + (1900 if year >= _CENTURY_TURNS else 2000)


def _hour(found: dict[str, str]) -> int:
    """Return the hour; 24, which does not exist, for a wrong one of half a day."""
    if "H" in found:
        return int(found["H"])
    hour = int(found["I"])
    return hour % 12 + 12 * (found["p"].lower() == "pm") if 1 <= hour <= 12 else 24


def _offset_s(zone: str | None) -> int | None:
    if zone is None:
        return None
    digits = re.sub(r"\D", "", zone)
    seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60 if digits else 0
    return -seconds if zone.startswith("-") else seconds
