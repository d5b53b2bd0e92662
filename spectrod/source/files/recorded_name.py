"""Finds the start time of a recording in the name of its file.

Forms (``docs/sources.md`` has an example of each):

- date and time, year first, with or without separators, together or, as of BirdNET-Pi, apart;
- SoundTrap's twelve digits after a dot, and those of an XWAV file, ``YYMMDD_hhmmss.x.wav``;
- AudioMoth's older eight hexadecimal digits: seconds since 1970.

After the time there may be a fraction and a zone: ``Z``, ``UTC``, ``GMT``, an offset, or an offset
from one of these. What can be read in two ways is no time, and ``why`` says what it is: dates of
six digits, two times, a number after a minus that may be an offset or a counter, abbreviations of
time zones.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from spectrod.lib.time_format import TimeFormat
from spectrod.source.files.instants import RecordedAt, instant

OF_NAME = "its name"


class TimeInName(NamedTuple):
    """What a name says.

    Attributes
    ----------
    found : RecordedAt or None
        The start time; None if there is none.
    why : str
        Why something that looks like a time is none; empty if nothing does.
    """

    found: RecordedAt | None
    why: str = ""


_NOTHING = TimeInName(None)
_SEVERAL = TimeInName(None, "its name has more than one time")

_DATE = r"""(?<!\d)
    (?P<year>(?:19|20|21)\d\d) (?P<ds>[-_.]?) (?P<month>\d\d) (?P=ds) (?P<day>\d\d)"""
_CLOCK = r"""(?P<hour>\d\d) (?P<ts>{separators}) (?P<minute>\d\d) (?P=ts) (?P<second>\d\d)
    (?P<fraction>
        [.,]\d{{1,9}}
      | \d{{3}} (?=Z|[+-]\d\d)
      | [-_] (?:\d{{3}}|\d{{6}}|\d{{9}})
        (?=[-_\ ]?(?:Z|UTC|GMT)(?![A-Za-z0-9]) | [-_\ ]?[+] | [-_\ ]-)
    )? (?!\d)"""
_BETWEEN = r"""(?: (?P<iso>[-_\ ]?[Tt]) | [_\ ]at[_\ ] | -birdnet-(?:RTSP_\d+-)? | [-_$.\ ]? )"""
_DATE_AND_TIME = re.compile(_DATE + _BETWEEN + _CLOCK.format(separators="[-_:.]?"), re.VERBOSE)
_DATE_ALONE = re.compile(_DATE + r"(?!\d)", re.VERBOSE)
_CLOCK_ALONE = re.compile(r"(?<![\d:])" + _CLOCK.format(separators=":") + "(?!:)", re.VERBOSE)

_HALF_OF_DAY = re.compile(r"[-_ ]?([AaPp])\.?[Mm](?![A-Za-z0-9])")
_OF_UTC = r"(?:UTC|GMT|utc|gmt)(?P<from_utc>[+-]\d\d?(?::?\d\d)?)?(?![A-Za-z0-9])"
_ZONE = re.compile(
    rf"""(?P<gap>[-_ ]?)\(?(?:
        (?P<utc>{_OF_UTC})
      | (?P<zulu>[Zz])(?![A-Za-z0-9])
      | (?P<offset>[+-]\d+(?::\d\d)?)(?!\d|\.\d)
      | (?P<letters>[A-Z]{{3,4}})(?![A-Za-z0-9])
    )""",
    re.VERBOSE,
)
_UTC_ELSEWHERE = re.compile(rf"(?<![A-Za-z0-9]){_OF_UTC}")
_OFFSET = re.compile(r"[+-](\d\d?)(?::?(\d\d))?")
_HOURS_AHEAD_MAX, _HOURS_BEHIND_MAX = 14, 12
_OFFSET_MINUTES = (0, 15, 30, 45)
_BEHIND_IN_USE = {3 * 60 + 30, 2 * 60 + 30, 4 * 60 + 30, 9 * 60 + 30}
"""Offsets behind UTC that zones had since 1970, besides whole hours [min]."""
_ABBREVIATIONS = re.compile(
    r"A[CEKW]?[SD]T|[BCEMP][SD]T|[CE]E?EST|[CE]ET|[HIJKN]ST|HKT|ICT|I?DT|MSK|N[DZ]T|NZ[SD]T|SAST|SGT"
)
"""Of time zones; several stand for two or three zones, and none counts."""

_SOUNDTRAP = re.compile(r"\.(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?![0-9])")
_XWAV = re.compile(
    r"(?<!\d)(\d\d)(\d\d)(\d\d)[-_](\d\d)(\d\d)(\d\d)(?:\.[A-Za-z0-9]+)?\.x\.(?:wav|flac)$",
    re.IGNORECASE,
)
_SIX_DIGITS = re.compile(r"(?<!\d)\d{6}[-_T. ]?\d{6}(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)\d\d([-_.])\d\d\1(?:19|20)\d\d(?!\d)")
_AUDIOMOTH_NAME = re.compile(r"[0-9A-F]{8}")
_AUDIOMOTH_FIRST, _AUDIOMOTH_LAST = 0x54A48E00, 0x7FFFFFFF
"""From 2015, before the first AudioMoth, to the end of its 31-bit time in 2038 [s since 1970]."""


def time_in_name(name: str, time_format: str = "") -> TimeInName:
    """Return the time in a file's full name, and why there is none.

    Parameters
    ----------
    name : str
        Name without folders.
    time_format : str
        The only form that counts, see ``TimeFormat``; empty: those of recorders.
    """
    if time_format:
        return _in_format(name, time_format)
    times = _times(name)
    if not times:
        return _without_a_year(name)
    return _SEVERAL if len(times) > 1 else times.pop()


def recorded_at_name(name: str, time_format: str = "") -> RecordedAt | None:
    """Return the time in a file's full name; None if there is none, or more than one reading."""
    return time_in_name(name, time_format).found


_format = lru_cache(TimeFormat)


def _in_format(name: str, time_format: str) -> TimeInName:
    times = _format(time_format).times(name)
    if not times:
        return TimeInName(None, f"{time_format!r} is not in its name")
    if len(times) > 1:
        return TimeInName(None, f"{time_format!r} is in its name with more than one time")
    (time,) = times
    fraction_ns, offset_s = time.fraction_ns, time.offset_s
    found = instant(time.fields, OF_NAME, fraction_ns=fraction_ns, offset_s=offset_s)
    why = "" if found else f"{time_format!r} finds a time in its name that does not exist"
    return TimeInName(found, why)


def _times(name: str) -> set[TimeInName]:
    """Return the different times in a name whose date has a year of four digits."""
    matches = list(_DATE_AND_TIME.finditer(name))
    if len(matches) == 2 and [_before(name, match) for match in matches] == ["S", "E"]:
        del matches[1]  # start and end, as of Frontier Labs
    if matches:
        return {_of_match(name, match, match) for match in matches}
    dates = {match[0]: match for match in _DATE_ALONE.finditer(name)}
    clocks = {match[0]: match for match in _CLOCK_ALONE.finditer(name)}
    if len(dates) * len(clocks) > 1:
        return {_SEVERAL}
    return {_of_match(name, date, clock) for date in dates.values() for clock in clocks.values()}


def _before(name: str, match: re.Match[str]) -> str:
    """Return the letter that stands alone before a match."""
    letters = re.search(r"(?<![A-Za-z0-9])[A-Z]$", name[: match.start()])
    return letters[0] if letters else ""


def _of_match(name: str, date: re.Match[str], clock: re.Match[str]) -> TimeInName:
    hour, after = int(clock["hour"]), clock.end()
    half = _HALF_OF_DAY.match(name, after)
    if half is not None:
        if not 1 <= hour <= 12:
            return _NOTHING
        hour, after = hour % 12 + 12 * (half[1] in "Pp"), half.end()
    is_iso = bool(date.groupdict().get("iso"))
    zone = _zone(name, after, is_iso=is_iso)
    if isinstance(zone, str):
        return TimeInName(None, zone)
    fields = [int(date[part]) for part in ("year", "month", "day")]
    fields += [hour, int(clock["minute"]), int(clock["second"])]
    fraction_ns = int(f"{(clock['fraction'] or '').lstrip('.,_-') or '0':0<9}")
    return TimeInName(instant(fields, OF_NAME, fraction_ns=fraction_ns, offset_s=zone))


# ---- zones


def _zone(name: str, after: int, *, is_iso: bool) -> int | str | None:
    """Return the zone of a time that ends at an index of a name.

    Returns
    -------
    zone : int or str or None
        By how much it is ahead of UTC [s]; a text that says why it has two readings; None: there is
        none.
    """
    match = _ZONE.match(name, after)
    if match is not None:
        if match["utc"]:
            return _from_utc(match)
        if match["zulu"] and (match["zulu"] == "Z" or is_iso):
            return 0
        if match["letters"] and _ABBREVIATIONS.fullmatch(match["letters"]):
            return f"{match['letters']!r} in its name is no offset from UTC"
        if match["offset"]:
            zone = _of_offset(match["offset"], is_marked=is_iso or bool(match["gap"]))
            if zone is not None:
                return zone
    elsewhere = {_from_utc(match) for match in _UTC_ELSEWHERE.finditer(name)}
    if len(elsewhere) > 1:
        return "its name has more than one time zone"
    return elsewhere.pop() if elsewhere else None


def _from_utc(match: re.Match[str]) -> int:
    """Return the offset that follows the letters UTC; another number counts for nothing."""
    return _offset_s(match["from_utc"] or "") or 0


def _of_offset(text: str, *, is_marked: bool) -> int | str | None:
    """Return what a sign with digits after a time says; see ``_zone``.

    A plus is an offset. A minus is one too in ISO 8601, after another separator or with a colon;
    else it is the separator of a counter, unless the digits may be both.
    """
    offset_s = _offset_s(text) if len(text) in (3, 5, 6) else None
    is_minus = text.startswith("-")
    if offset_s is not None and (not is_minus or is_marked or ":" in text):
        return offset_s
    if not is_minus or (offset_s and (-offset_s % 3600 == 0 or -offset_s // 60 in _BEHIND_IN_USE)):
        return f"{text!r} in its name may be an offset from UTC or a number"
    return None


def _offset_s(text: str) -> int | None:
    """Return the seconds by which a zone such as ``+0530`` is ahead of UTC; None: there is none."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    minutes = int(match[2] or 0)
    seconds = int(match[1]) * 3600 + minutes * 60
    is_minus = text.startswith("-")
    hours_max = _HOURS_BEHIND_MAX if is_minus else _HOURS_AHEAD_MAX
    if minutes not in _OFFSET_MINUTES or seconds > hours_max * 3600:
        return None
    return -seconds if is_minus else seconds


# ---- dates of two-digit years, and numbers


def _without_a_year(name: str) -> TimeInName:
    """Return the time in a name without a year of four digits at the front of a date."""
    found = [*_SOUNDTRAP.finditer(name)] or [*_XWAV.finditer(name)]
    times = {_in_this_century(match) for match in found}
    if len(times) > 1:
        return _SEVERAL
    if times:
        return TimeInName(times.pop())
    stem = name.partition(".")[0]
    if _AUDIOMOTH_NAME.fullmatch(stem):
        seconds = int(stem, 16)
        if _AUDIOMOTH_FIRST <= seconds <= _AUDIOMOTH_LAST:
            return TimeInName(RecordedAt(seconds * 10**9, OF_NAME, has_zone=True))
    if match := _SIX_DIGITS.search(name):
        return TimeInName(None, f"{match[0]!r} in its name may begin with the year or the day")
    if match := _DAY_FIRST.search(name):
        return TimeInName(None, f"{match[0]!r} in its name may begin with the day or the month")
    return _NOTHING


def _in_this_century(match: re.Match[str]) -> RecordedAt | None:
    year, *rest = (int(digits) for digits in match.groups())
    return instant([2000 + year, *rest], OF_NAME)
