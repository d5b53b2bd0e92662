"""Points of time in arguments."""

import datetime as dt

from spectrod.errors import ConfigError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_YEAR_MIN, _YEAR_MAX = 1700, 2200
"""Years that 64 bits of nanoseconds since 1970 hold, with room for any recording."""


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
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{flag} {text}: must be ISO 8601, as in 2026-05-01T04:30:00Z") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    if not _YEAR_MIN <= time.year <= _YEAR_MAX:
        raise ConfigError(f"{flag} {text}: must be {_YEAR_MIN} to {_YEAR_MAX}")
    return (time - _EPOCH) // dt.timedelta(microseconds=1) * 1000
