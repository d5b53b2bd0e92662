"""Points and lengths of time in arguments."""

import datetime as dt
import re
import time

from spectrod.errors import ConfigError

_DAY_NS = 86400 * 10**9
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_YEAR_MIN, _YEAR_MAX = 1700, 2200
"""Years that 64 bits of nanoseconds since 1970 hold, with room for any recording."""


_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_LENGTH = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)\s*(s|min|h|d)?")
_UNIT_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LENGTH_MAX_S = 1e9


def parse_seconds(flag: str, text: str) -> float:
    """Read a length of time, in seconds unless it names min, h or d.

    Raises
    ------
    ConfigError
        If it is none, or not above 0 and below 1e9 s.
    """
    match = _LENGTH.fullmatch(text.strip())
    seconds = float(match[1]) * _UNIT_S[match[2] or "s"] if match else 0.0
    if not 0.0 < seconds < _LENGTH_MAX_S:
        raise ConfigError(f"{flag} {text}: must be a positive number of seconds, or as 10min, 1h")
    return seconds


def parse_next_utc_ns(flag: str, text: str, after_utc_ns: int) -> int:
    """Read a point of time, or a time of day, which stands for the first such time from one on.

    Parameters
    ----------
    flag : str
        What it was given with, for the error.
    text : str
        ISO 8601, or HH:MM or HH:MM:SS, UTC.
    after_utc_ns : int
        From when on a time of day is looked for [ns].

    Raises
    ------
    ConfigError
        If it is neither.
    """
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return parse_utc_ns(flag, text)
    hour, minute, second = (int(part or 0) for part in match.groups())
    if hour > 23 or minute > 59 or second > 59:
        raise ConfigError(f"{flag} {text}: must be a time of day, 00:00 to 23:59:59")
    of_day_ns = (hour * 3600 + minute * 60 + second) * 10**9
    return after_utc_ns + (of_day_ns - after_utc_ns) % _DAY_NS


def parse_utc_ns(flag: str, text: str) -> int:
    """Read a point of time, UTC where it names no zone, as nanoseconds since 1970.

    Parameters
    ----------
    flag : str
        What it was given with, for the error.
    text : str
        ISO 8601.

    Raises
    ------
    ConfigError
        If it is no such time, or not one of the years 1700 to 2200.
    """
    try:
        point = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{flag} {text}: must be ISO 8601, as in 2026-05-01T04:30:00Z") from None
    if point.tzinfo is None:
        point = point.replace(tzinfo=dt.UTC)
    if not _YEAR_MIN <= point.year <= _YEAR_MAX:
        raise ConfigError(f"{flag} {text}: must be {_YEAR_MIN} to {_YEAR_MAX}")
    return (point - _EPOCH) // dt.timedelta(microseconds=1) * 1000


def wait_for_start(text: str, source: str) -> None:
    """Wait until a live source is to be recorded.

    Parameters
    ----------
    text : str
        Of ``--start``, see ``parse_next_utc_ns``.
    source : str
        For the error.

    Raises
    ------
    ConfigError
        If it is no point of time, or one that is over.
    """
    start_ns = parse_next_utc_ns("--start", text, time.time_ns())
    if start_ns < time.time_ns():
        raise ConfigError(f"--start {text}: is over, and {source} is live")
    # In pieces, as the clock may be set meanwhile.
    while (left_s := (start_ns - time.time_ns()) * 1e-9) > 0.0:
        time.sleep(min(left_s, 1.0))
