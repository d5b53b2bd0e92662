"""Points in time and durations in arguments."""

import argparse
import datetime as dt
import re
import time
from dataclasses import dataclass

from spectrod.lib.durations import TIME_RULE, parse_time
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_zones import find_zone, local_time

_DAY = dt.timedelta(days=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_YEAR_MIN, _YEAR_MAX = 1700, 2200
"""Years that 64 bits of nanoseconds since 1970 hold, with room for any recording."""


_TIME_OF_DAY = re.compile(r"(T?)(\d{1,2}):(\d\d)(?::(\d\d))?(Z?)")
_LIKE_UTC = re.compile(r"\d{4}-|\d{8}T|T\d|\d{1,2}:\d\d")
_LENGTH_MAX_S = 1e9
_NS = 10**9


def zone_of_times(args: argparse.Namespace) -> dt.tzinfo:
    """Return the zone of times that name none: that of --time-zone, or else UTC.

    Raises
    ------
    ConfigError
        If there is no such zone.
    """
    found = vars(args)
    return find_zone(found.get("time_zone") or found.get("measurement.time_zone") or "")


def parse_seconds(flag: str, text: str) -> float:
    """Parse a duration [s].

    Raises
    ------
    ConfigError
        If it is not a duration, or not above 0 and below 1e9 s.
    """
    seconds = parse_time(text)
    if seconds is None:
        raise ConfigError(f"{flag} {text}: {TIME_RULE}")
    if not 0.0 < seconds < _LENGTH_MAX_S:
        raise ConfigError(f"{flag} {text}: must be above 0 and below {_LENGTH_MAX_S:g} s")
    return seconds


@dataclass(frozen=True, slots=True)
class Extent:
    """Known extent of a recording from which a part is selected.

    Attributes
    ----------
    name : str
        Name for errors.
    begin_utc_ns : int or None
        UTC of its first sample [ns]; None if unknown.
    duration_ns : int or None
        Its length [ns]; None if unknown.
    zone : tzinfo
        Zone of times that name none.
    """

    name: str
    begin_utc_ns: int | None
    duration_ns: int | None
    zone: dt.tzinfo = dt.UTC

    def offset_ns(self, flag: str, text: str) -> int:
        """Parse the start or end of a part, as an offset from the recording's start [ns].

        Parameters
        ----------
        flag : str
            Name of the flag, for the error.
        text : str
            A position, parsed by ``parse_time``: from the start or, with a minus sign, from the
            end. Or a point in time: ISO 8601, or a time of day with ``T`` before or ``Z`` after it,
            which means the first such time in the recording.

        Raises
        ------
        ConfigError
            If it is neither, or depends on an unknown value.
        """
        position_s = parse_time(text)
        if position_s is None:
            return self._utc_offset_ns(flag, text)
        if abs(position_s) >= _LENGTH_MAX_S:
            raise ConfigError(f"{flag} {text}: must be less than {_LENGTH_MAX_S:g} s")
        if not text.lstrip().startswith("-"):
            return round(position_s * _NS)
        if self.duration_ns is None:
            raise ConfigError(
                f"{flag} {text}: counts from the end, and {self.name} has no known end"
            )
        return self.duration_ns + round(position_s * _NS)

    def _utc_offset_ns(self, flag: str, text: str) -> int:
        if not _LIKE_UTC.match(text):
            raise ConfigError(
                f"{flag} {text}: must be a position as 12.5, 1m30s or 1:02:03 (-12.5: before the "
                "end), or UTC as 2026-05-01T04:30:00Z or T04:30"
            )
        begin_ns = self.begin_utc_ns or 0
        point_ns = parse_next_utc_ns(flag, text, begin_ns, self.zone)
        if self.begin_utc_ns is None:
            raise ConfigError(
                f"{flag} {text}: {self.name} has no start time; give --start-time, or a "
                "position as 12.5"
            )
        return point_ns - begin_ns

    def check_within(self, flag: str, text: str, offset_ns: int) -> None:
        """Check that the result of ``offset_ns`` is within the recording; raises ConfigError."""
        if offset_ns < 0 or (self.duration_ns is not None and offset_ns >= self.duration_ns):
            length = "" if self.duration_ns is None else f", {self.duration_ns / _NS:.10g} s long"
            raise ConfigError(f"{flag} {text}: is not within {self.name}{length}")


def stop_of_live(text: str, name: str) -> ConfigError:
    """Return the error of a --stop for a source without positions."""
    return ConfigError(f"--stop {text}: {name} is live; give --duration")


def parse_next_utc_ns(flag: str, text: str, after_utc_ns: int, zone: dt.tzinfo = dt.UTC) -> int:
    """Parse a point in time, or a time of day: the first such time at or after another time.

    Parameters
    ----------
    flag : str
        Name of the flag, for the error.
    text : str
        ISO 8601, or HH:MM or HH:MM:SS; ``T`` before it is allowed, and ``Z`` after it means UTC.
    after_utc_ns : int
        Earliest time for a time of day [ns].
    zone : tzinfo
        Zone of a time that names none.

    Raises
    ------
    ConfigError
        If the text is neither.
    """
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return parse_utc_ns(flag, text, zone)
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    if hour > 23 or minute > 59 or second > 59:
        raise ConfigError(f"{flag} {text}: must be a time of day, 00:00 to 23:59:59")
    known = dt.UTC if match[5] else zone
    today = local_time(after_utc_ns, known).replace(hour=hour, minute=minute, second=second)
    # Each time of an hour that comes twice counts.
    points = (
        _utc_ns((today + days * _DAY).replace(fold=fold)) for days in (0, 1, 2) for fold in (0, 1)
    )
    return min(point for point in points if point >= after_utc_ns)


def _utc_ns(point: dt.datetime) -> int:
    return (point - _EPOCH) // dt.timedelta(microseconds=1) * 1000


def parse_utc_ns(flag: str, text: str, zone: dt.tzinfo = dt.UTC) -> int:
    """Parse a point in time as nanoseconds since 1970, UTC.

    Parameters
    ----------
    flag : str
        Name of the flag, for the error.
    text : str
        ISO 8601.
    zone : tzinfo
        Zone of a time that names none; of an hour that comes twice the first one counts.

    Raises
    ------
    ConfigError
        If it is not a valid time, or not in the years 1700 to 2200.
    """
    try:
        point = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{flag} {text}: must be ISO 8601, as in 2026-05-01T04:30:00Z") from None
    if point.tzinfo is None:
        point = point.replace(tzinfo=zone)
    if not _YEAR_MIN <= point.year <= _YEAR_MAX:
        raise ConfigError(f"{flag} {text}: must be {_YEAR_MIN} to {_YEAR_MAX}")
    return _utc_ns(point)


def wait_for_start(text: str, source: str, zone: dt.tzinfo) -> None:
    """Wait until the recording of a live source is to start.

    Parameters
    ----------
    text : str
        Value of ``--start``, see ``parse_next_utc_ns``.
    source : str
        Name for the error.
    zone : tzinfo
        Zone of a time that names none.

    Raises
    ------
    ConfigError
        If it is not a point in time, or is in the past.
    """
    if parse_time(text) is not None and not _TIME_OF_DAY.fullmatch(text):
        raise ConfigError(
            f"--start {text}: is a position in a recording, and {source} is live: must be UTC, as "
            "04:30 or 2026-05-01T04:30:00Z"
        )
    start_ns = parse_next_utc_ns("--start", text, time.time_ns(), zone)
    if start_ns < time.time_ns():
        raise ConfigError(f"--start {text}: is over, and {source} is live")
    # Sleep in short steps, because the clock may be set meanwhile.
    while (left_s := (start_ns - time.time_ns()) * 1e-9) > 0.0:
        time.sleep(min(left_s, 1.0))
