"""Finds the start time of a recording in its header or its name.

Formats of recorders, in the order of precedence:

- AudioMoth's comment, ``Recorded at 04:30:00 01/05/2026 (UTC+2)``;
- GUANO's ``Timestamp``, ISO 8601 (bat recorders);
- BWF's ``bext`` chunk: date and time of day, and the samples since midnight if they agree;
- the name, see ``recorded_name``.

A time with a zone takes precedence over one without, which is taken as UTC or in a given zone. A
time before 1900 or after 2199 [UTC] is no time; a warning is logged when such a time in a header is
ignored.
"""

import datetime as dt
import logging
import re
import struct
from dataclasses import replace

from spectrod.lib.text import printable
from spectrod.source.files.instants import (
    EPOCH,
    YEAR_FIRST,
    YEAR_LAST,
    RecordedAt,
    instant,
    within_years,
)
from spectrod.source.files.local_times import from_zone
from spectrod.source.files.recorded_name import recorded_at_name, time_in_name
from spectrod.source.files.riff import read_chunks
from spectrod.source.store.urls import file_name

__all__ = ["RecordedAt", "find_start", "recorded_at", "recorded_at_name", "why_undated"]

_log = logging.getLogger(__name__)

_DAY_S = 86400
_TIMECODE_TOLERANCE_S = 2.0
_GUANO_TIME_MAX_CHARS = 64

_AUDIOMOTH_COMMENT = re.compile(
    r"Recorded at (\d\d):(\d\d):(\d\d)(\.\d{1,6})? (\d\d)/(\d\d)/(\d{4})"
    r"(?: \(UTC(?:([+-])(\d{1,2})(?::(\d\d))?)?\))?"
)
# Recorders pad the chunk with NUL, put blanks around keys, or a byte order mark before the first.
_GUANO_TIMESTAMP = re.compile(rb"(?:^|[\r\n\0])(?:\xef\xbb\xbf)?[ \t]*Timestamp[ \t]*:([^\r\n\0]*)")
_DAY_AND_TIME = re.compile(r"\S+[T ]\d\d:?\d\d\S*")
_BLANK_BEFORE_ZONE = re.compile(r"[ \t]+(?=[+-]\d|Z$)")
_BEXT_DATE = re.compile(rb"(\d{4})\D(\d\d)\D(\d\d)(\d\d)\D(\d\d)\D(\d\d)")
_BEXT_DATE_AT = 320


def find_start(
    path: str, fs: float = 0.0, comment: str = "", time_format: str = "", time_zone: str = ""
) -> RecordedAt | None:
    """Return the start of a recording, and log its origin; see ``recorded_at``.

    A warning is logged if the name has something that may be a time, but not one alone, or a local
    time that comes twice or not at all.
    """
    found = recorded_at(path, fs, comment, time_format, time_zone)
    if found is None:
        if why := why_undated(path, time_format):
            _log.warning("%s: has no start time%s", printable(path), why)
        return None
    when = EPOCH + dt.timedelta(microseconds=found.utc_ns // 1000)
    if found.repeat_ns:
        what = "comes twice: the first is taken" if found.repeat_ns > 0 else "is left out there"
        _log.warning("%s: begins at a local time of %s that %s", printable(path), time_zone, what)
    zone = "" if found.has_zone else f", which names no time zone: taken as {time_zone or 'UTC'}"
    _log.info("%s starts at %s, from %s%s", path, when.isoformat(), found.origin, zone)
    return found


def recorded_at(
    path: str, fs: float = 0.0, comment: str = "", time_format: str = "", time_zone: str = ""
) -> RecordedAt | None:
    """Find the start time of a recording.

    Parameters
    ----------
    path : str
        Path of the file; its name is used, and a WAV file's ``bext`` and ``guan`` chunks.
    fs : float
        Sample rate, for ``bext``'s count of samples since midnight [Hz]; 0 if unknown.
    comment : str
        Comment in the header, as libsndfile reads it.
    time_format : str
        Format of times in names; then the name alone counts. See ``TimeFormat``.
    time_zone : str
        Time zone of a time that names none; empty: UTC. See ``from_zone``.

    Returns
    -------
    found : RecordedAt or None
        None if there is no time, or only an invalid one; an invalid one in a header is logged.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    found = _stated(path, fs, comment, time_format)
    if found is None or found.has_zone or not time_zone:
        return found
    utc_ns, repeat_ns = from_zone(found.utc_ns, time_zone)
    return replace(found, utc_ns=utc_ns, repeat_ns=repeat_ns)


def _stated(path: str, fs: float, comment: str, time_format: str) -> RecordedAt | None:
    """Return the time that a file states, as UTC if it names no zone."""
    if time_format:
        return recorded_at_name(file_name(path), time_format)
    chunks = read_chunks(path, (b"bext", b"guan"))
    stated = (
        _from_comment(comment),
        _from_guano(chunks.get(b"guan", b"")),
        _from_bext(chunks.get(b"bext", b""), fs),
    )
    for text, time in stated:
        if text and time is None:
            rule = "must be a time from %d to %d: it is ignored"
            _log.warning(f"%s: %s: {rule}", printable(path), text, YEAR_FIRST, YEAR_LAST)
    candidates = [time for _, time in stated] + [recorded_at_name(file_name(path))]
    found = [candidate for candidate in candidates if candidate is not None]
    return next((candidate for candidate in found if candidate.has_zone), next(iter(found), None))


def why_undated(path: str, time_format: str = "") -> str:
    """Return why the name of a file states no start time, after a colon; empty if unknown."""
    why = time_in_name(file_name(path), time_format).why
    hint = "" if time_format else " (time_format tells)"
    return f": {printable(why)}{hint}" if why else ""


# Each of these returns a header's statement for messages, "" if there is none, and the time that it
# gives, None if that is invalid.


def _from_comment(comment: str) -> tuple[str, RecordedAt | None]:
    match = _AUDIOMOTH_COMMENT.search(comment)
    if match is None:
        return "", None
    hour, minute, second, fraction, day, month, year, sign, hours, minutes = match.groups()
    date = [int(part) for part in (year, month, day, hour, minute, second)]
    fraction_ns = int(f"{(fraction or '.0')[1:]:0<9}")
    # AudioMoth's first firmware wrote no zone and supported only UTC.
    offset_s = int(hours or 0) * 3600 + int(minutes or 0) * 60
    offset_s = -offset_s if sign == "-" else offset_s
    time = instant(date, "AudioMoth's comment", fraction_ns=fraction_ns, offset_s=offset_s)
    return printable(match[0]), time


def _from_guano(chunk: bytes) -> tuple[str, RecordedAt | None]:
    match = _GUANO_TIMESTAMP.search(chunk)
    if match is None:
        return "", None
    stated = match[1].strip()
    shown = printable(b"Timestamp: " + stated, _GUANO_TIME_MAX_CHARS)
    text = stated.decode("utf-8", "replace") if len(stated) <= _GUANO_TIME_MAX_CHARS else ""
    text = _BLANK_BEFORE_ZONE.sub("", text)
    if not _DAY_AND_TIME.fullmatch(text):
        return shown, None
    try:
        time = dt.datetime.fromisoformat(text)
        offset = time.utcoffset()
        utc = (time - (offset or dt.timedelta(0))).replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return shown, None
    fraction_ns = time.microsecond * 1000
    offset_s = None if offset is None else int(offset.total_seconds())
    return shown, within_years(utc, fraction_ns, "its GUANO header", offset_s)


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
    found = instant([int(part) for part in match.groups()], "its BWF header")
    samples = struct.unpack_from("<Q", chunk, _BEXT_DATE_AT + 18)[0]
    if found is None or fs <= 0.0:
        return shown, found
    time_of_day_s = found.utc_ns // 10**9 % _DAY_S
    difference_s = samples / fs - time_of_day_s
    if abs(difference_s) >= _TIMECODE_TOLERANCE_S:
        return shown, found
    exact = RecordedAt(found.utc_ns + round(difference_s * 1e9), found.origin, found.has_zone)
    return shown, exact
