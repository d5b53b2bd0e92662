"""Finds the start time of a recording in its header or its name.

Formats of recorders, in the order of precedence:

- AudioMoth's comment, ``Recorded at 04:30:00 01/05/2026 (UTC+2)``;
- GUANO's ``Timestamp``, ISO 8601 (bat recorders);
- BWF's ``bext`` chunk: date and time of day, and the samples since midnight if they agree;
- the name: date and time in this order, with or without separators; AudioMoth's older eight
  hexadecimal digits; SoundTrap's twelve digits after a dot.

A time with a zone takes precedence over one without, which is taken as UTC. Ambiguous times are
ignored: dates of six digits may start with the year or the day, so they count only in SoundTrap's
form; two different times in a name, or a month 13, are no time. Nor is a time before 1900 or after
2199 [UTC]; a warning is logged when such a time in a header is ignored.
"""

import datetime as dt
import logging
import re
import struct
from dataclasses import dataclass

from spectrod.source.riff import read_chunks
from spectrod.source.store.urls import file_name
from spectrod.text import printable

_log = logging.getLogger(__name__)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECOND = dt.timedelta(seconds=1)
_DAY_S = 86400
_YEAR_FIRST, _YEAR_LAST = 1900, 2199
_TIMECODE_TOLERANCE_S = 2.0
_GUANO_TIME_MAX_CHARS = 64

_DATE_AND_TIME = re.compile(
    r"""(?<!\d)
    (?P<year>(?:19|20|21)\d\d) (?P<ds>[-_.]?) (?P<month>\d\d) (?P=ds) (?P<day>\d\d)
    (?P<between>[T_$.\ -]?)
    (?P<hour>\d\d) (?P<ts>[-_:.]?) (?P<minute>\d\d) (?P=ts) (?P<second>\d\d)
    (?P<fraction>\.\d{1,9})? (?!\d)
    (?P<zone>Z(?![A-Za-z]) | [-_ ]?UTC | [+-](?:0\d|1[0-4]):?(?:00|15|30|45)(?!\d))?""",
    re.VERBOSE,
)
_SOUNDTRAP = re.compile(r"\.(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?![0-9])")
_AUDIOMOTH_NAME = re.compile(r"[0-9A-F]{8}")
_AUDIOMOTH_FIRST, _AUDIOMOTH_LAST = 0x54A48E00, 0x7FFFFFFF
"""From 2015, before the first AudioMoth, to the end of its 31-bit time in 2038 [s since 1970]."""
_AUDIOMOTH_COMMENT = re.compile(
    r"Recorded at (\d\d):(\d\d):(\d\d)(\.\d{1,6})? (\d\d)/(\d\d)/(\d{4})"
    r"(?: \(UTC(?:([+-])(\d{1,2})(?::(\d\d))?)?\))?"
)
_GUANO_TIMESTAMP = re.compile(rb"^Timestamp:([^\r\n]*)", re.MULTILINE)
_DAY_AND_TIME = re.compile(r"\S+[T ]\d\d:\S+")
_BEXT_DATE = re.compile(rb"(\d{4})\D(\d\d)\D(\d\d)(\d\d)\D(\d\d)\D(\d\d)")
_BEXT_DATE_AT = 320


@dataclass(frozen=True, slots=True)
class RecordedAt:
    """Start time of a recording.

    Attributes
    ----------
    utc_ns : int
        UTC of sample 0 [ns].
    origin : str
        Origin of the time, for messages.
    has_zone : bool
        False if the origin names no time zone and UTC was assumed.
    """

    utc_ns: int
    origin: str
    has_zone: bool


def find_start(path: str, fs: float = 0.0, comment: str = "") -> int | None:
    """Return the UTC of a recording's sample 0 [ns], and log its origin; see ``recorded_at``."""
    found = recorded_at(path, fs, comment)
    if found is None:
        return None
    when = _EPOCH + dt.timedelta(microseconds=found.utc_ns // 1000)
    zone = "" if found.has_zone else ", which names no time zone: taken as UTC"
    _log.info("%s starts at %s, from %s%s", path, when.isoformat(), found.origin, zone)
    return found.utc_ns


def recorded_at(path: str, fs: float = 0.0, comment: str = "") -> RecordedAt | None:
    """Find the start time of a recording.

    Parameters
    ----------
    path : str
        Path of the file; its name is used, and a WAV file's ``bext`` and ``guan`` chunks.
    fs : float
        Sample rate, for ``bext``'s count of samples since midnight [Hz]; 0 if unknown.
    comment : str
        Comment in the header, as libsndfile reads it.

    Returns
    -------
    found : RecordedAt or None
        None if there is no time, or only an invalid one; an invalid one in a header is logged.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    chunks = read_chunks(path, (b"bext", b"guan"))
    stated = (
        _from_comment(comment),
        _from_guano(chunks.get(b"guan", b"")),
        _from_bext(chunks.get(b"bext", b""), fs),
    )
    for text, time in stated:
        if text and time is None:
            rule = "must be a time from %d to %d: it is ignored"
            _log.warning(f"%s: %s: {rule}", printable(path), text, _YEAR_FIRST, _YEAR_LAST)
    candidates = [time for _, time in stated] + [recorded_at_name(file_name(path))]
    found = [candidate for candidate in candidates if candidate is not None]
    return next((candidate for candidate in found if candidate.has_zone), next(iter(found), None))


def recorded_at_name(name: str) -> RecordedAt | None:
    """Parse the time in a file's full name; None if there is none, or several."""
    matches = {_from_match(match) for match in _DATE_AND_TIME.finditer(name)}
    if not matches:
        matches = {_from_soundtrap(match) for match in _SOUNDTRAP.finditer(name)}
    stem = name.partition(".")[0]
    if not matches and _AUDIOMOTH_NAME.fullmatch(stem):
        seconds = int(stem, 16)
        if _AUDIOMOTH_FIRST <= seconds <= _AUDIOMOTH_LAST:
            return RecordedAt(seconds * 10**9, "its name", has_zone=True)
    return matches.pop() if len(matches) == 1 else None


def _from_match(match: re.Match[str]) -> RecordedAt | None:
    date = [int(match[part]) for part in ("year", "month", "day", "hour", "minute", "second")]
    zone = match["zone"] or ""
    if zone[1:2].isdigit() and match["between"] != "T":
        zone = ""  # an ordinary number, except after ISO 8601's T
    return _instant(date, match["fraction"], _offset_s(zone), "its name", has_zone=bool(zone))


def _offset_s(zone: str) -> int:
    """Return the seconds by which a zone such as ``+0530`` is ahead of UTC."""
    digits = re.sub(r"\D", "", zone)
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60 if digits else 0
    return -seconds if zone.startswith("-") else seconds


def _from_soundtrap(match: re.Match[str]) -> RecordedAt | None:
    year, *rest = (int(digits) for digits in match.groups())
    return _instant([2000 + year, *rest], None, 0, "its name", has_zone=False)


# Each of these returns a header's statement for messages, "" if there is none, and the time that it
# gives, None if that is invalid.


def _from_comment(comment: str) -> tuple[str, RecordedAt | None]:
    match = _AUDIOMOTH_COMMENT.search(comment)
    if match is None:
        return "", None
    hour, minute, second, fraction, day, month, year, sign, hours, minutes = match.groups()
    date = [int(part) for part in (year, month, day, hour, minute, second)]
    offset_s = int(hours or 0) * 3600 + int(minutes or 0) * 60
    offset_s = -offset_s if sign == "-" else offset_s
    # AudioMoth's first firmware wrote no zone and supported only UTC.
    time = _instant(date, fraction, offset_s, "AudioMoth's comment", has_zone=True)
    return printable(match[0]), time


def _from_guano(chunk: bytes) -> tuple[str, RecordedAt | None]:
    match = _GUANO_TIMESTAMP.search(chunk)
    if match is None:
        return "", None
    stated = match[1].strip()
    shown = printable(b"Timestamp: " + stated, _GUANO_TIME_MAX_CHARS)
    text = stated.decode("utf-8", "replace") if len(stated) <= _GUANO_TIME_MAX_CHARS else ""
    if not _DAY_AND_TIME.fullmatch(text):
        return shown, None
    try:
        time = dt.datetime.fromisoformat(text)
        offset = time.utcoffset()
        utc = (time - (offset or dt.timedelta(0))).replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return shown, None
    fraction_ns = time.microsecond * 1000
    return shown, _found(utc, fraction_ns, "its GUANO header", has_zone=offset is not None)


def _from_bext(chunk: bytes, fs: float) -> tuple[str, RecordedAt | None]:
    """Read date and time, and the first sample's time of day if it agrees with them.

    References
    ----------
    .. [1] EBU Tech 3285: OriginationDate, OriginationTime (10 and 8 characters after 320 others),
       TimeReference (64 bits, samples since midnight), which may also be of a time code of its own.
    """
    match = _BEXT_DATE.match(chunk, _BEXT_DATE_AT)
    if match is None or len(chunk) < _BEXT_DATE_AT + 26 or int(match[1]) == 0:
        return "", None
    shown = printable(b"bext: " + match[0])
    found = _instant([int(part) for part in match.groups()], None, 0, "its BWF header")
    samples = struct.unpack_from("<Q", chunk, _BEXT_DATE_AT + 18)[0]
    if found is None or fs <= 0.0:
        return shown, found
    time_of_day_s = found.utc_ns // 10**9 % _DAY_S
    difference_s = samples / fs - time_of_day_s
    if abs(difference_s) >= _TIMECODE_TOLERANCE_S:
        return shown, found
    exact = RecordedAt(found.utc_ns + round(difference_s * 1e9), found.origin, found.has_zone)
    return shown, exact


def _instant(
    date: list[int],
    fraction: str | None,
    offset_s: int,
    origin: str,
    *,
    has_zone: bool = False,
) -> RecordedAt | None:
    """Convert year to second in a zone ``offset_s`` ahead of UTC; None if that is no valid time."""
    year, month, day, hour, minute, second = date
    try:
        time = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
        utc = time - dt.timedelta(seconds=offset_s)
    except (ValueError, OverflowError):
        return None
    return _found(utc, int(f"{(fraction or '.0')[1:]:0<9}"), origin, has_zone=has_zone)


def _found(utc: dt.datetime, fraction_ns: int, origin: str, *, has_zone: bool) -> RecordedAt | None:
    if not _YEAR_FIRST <= utc.year <= _YEAR_LAST:
        return None
    return RecordedAt((utc - _EPOCH) // _SECOND * 10**9 + fraction_ns, origin, has_zone)
