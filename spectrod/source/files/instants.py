"""Start times of recordings, within the years that are believed."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
YEAR_FIRST, YEAR_LAST = 1900, 2199
_SECOND = dt.timedelta(seconds=1)


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
        False if the origin names no time zone: it is in UTC, or in the zone that was given.
    offset_s : int
        By how much the named zone is ahead of UTC [s]; 0 without one.
    repeat_ns : int
        Of a local time of a zone that was given: see ``LocalTime``.
    """

    utc_ns: int
    origin: str
    has_zone: bool
    offset_s: int = 0
    repeat_ns: int = 0


def instant(
    date: Sequence[int], origin: str, *, fraction_ns: int = 0, offset_s: int | None = None
) -> RecordedAt | None:
    """Convert a date and time to an instant.

    Parameters
    ----------
    date : sequence of int
        Year, month, day, hour, minute, second.
    origin : str
        See ``RecordedAt``.
    fraction_ns : int
        Part of the second [ns].
    offset_s : int or None
        By how much the time is ahead of UTC [s]; None: no zone is named.

    Returns
    -------
    found : RecordedAt or None
        None if there is no such time, or not from 1900 to 2199.
    """
    year, month, day, hour, minute, second = date
    try:
        time = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
        utc = time - dt.timedelta(seconds=offset_s or 0)
    except (ValueError, OverflowError):
        return None
    return within_years(utc, fraction_ns, origin, offset_s)


def within_years(
    utc: dt.datetime, fraction_ns: int, origin: str, offset_s: int | None
) -> RecordedAt | None:
    """Return an instant; None outside 1900 to 2199. See ``instant``."""
    if not YEAR_FIRST <= utc.year <= YEAR_LAST:
        return None
    utc_ns = (utc - EPOCH) // _SECOND * 10**9 + fraction_ns
    return RecordedAt(utc_ns, origin, offset_s is not None, offset_s or 0)
