"""Time zones by name, and times in them."""

import datetime as dt
import os
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spectrod.lib.errors import ConfigError
from spectrod.lib.names import ZONE_MAX_CHARS
from spectrod.lib.text import printable

LOCAL: Final = "local"
"""Stands for the zone of this machine."""
TIME_ZONE: Final = "time_zone"
"""Name of the attribute of recordings that states the zone of the place where their source is."""

_NS_PER_S: Final = 10**9
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCALTIME: Final = Path("/etc/localtime")
"""Link to the zone's file, as systemd and POSIX programs have it; absent: UTC."""


def find_zone(name: str, key: str = "time_zone") -> ZoneInfo:
    """Return a time zone.

    Parameters
    ----------
    name : str
        Name of the IANA time zone database, such as ``Europe/Berlin``; ``local``: the zone of this
        machine; empty: UTC.
    key : str
        Name of the setting, for the error.

    Raises
    ------
    ConfigError
        If there is no such zone.
    """
    known = _local_name(key) if name == LOCAL else name or "UTC"
    try:
        return ZoneInfo(known)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            "there is no such time zone on this machine; a name is Europe/Berlin or UTC",
            **{key: known},
        ) from error


def zone_name(name: str) -> str:
    """Return the name in the database of a zone; empty if the argument is.

    Raises
    ------
    ConfigError
        See ``find_zone``.
    """
    return find_zone(name).key if name else ""


def zone_attribute(name: str) -> dict[str, str]:
    """Return the attribute of recordings that states a zone; empty if the name is.

    Raises
    ------
    ConfigError
        See ``find_zone``.
    """
    return {TIME_ZONE: zone_name(name)} if name else {}


def is_known_zone(name: str) -> bool:
    """Return whether a name that others state is one of a zone in this machine's database."""
    if len(name) > ZONE_MAX_CHARS or name == LOCAL:  # which is where it was written, not here
        return False
    try:
        return bool(zone_name(name))
    except ConfigError:
        return False


def unknown_zone(name: str) -> str:
    """Return the line of the log for a name that others state and this machine does not know."""
    rule = "there is no such time zone on this machine; it is ignored"
    return f"{TIME_ZONE}={printable(name, ZONE_MAX_CHARS)!r}: {rule}"


def shown_zone(name: str) -> str:
    """Return what people read for a zone: ``UTC+02:00`` for ``Etc/GMT-2``, whose sign misleads."""
    hours = name.removeprefix("Etc/GMT")
    if hours == name or not hours.lstrip("+-").isdecimal():
        return name
    return f"UTC{offset_text(-int(hours) * 3600)}"


def _local_name(key: str) -> str:
    """Return the name of this machine's zone: of ``$TZ``, or of the file that it links to."""
    given = os.environ.get("TZ")
    if given is not None:
        return given.removeprefix(":") or "UTC"
    if not _LOCALTIME.exists():
        return "UTC"
    _, _, name = os.path.realpath(_LOCALTIME).partition("/zoneinfo/")
    if not name:
        rule = f"{_LOCALTIME} does not name a zone; give one, as Europe/Berlin"
        raise ConfigError(rule, **{key: LOCAL})
    return name


def local_time(utc_ns: int, zone: dt.tzinfo) -> dt.datetime:
    """Return the local time at a UTC [ns], in whole seconds."""
    # A float of nanoseconds since 1970 has errors of hundreds of ns.
    return (_EPOCH + dt.timedelta(seconds=utc_ns // _NS_PER_S)).astimezone(zone)


def utc_text(utc_ns: int) -> str:
    """Format UTC [ns] with milliseconds, as ISO 8601: ``2026-11-23T02:49:24.920Z``."""
    rest_ms = utc_ns % _NS_PER_S // 1_000_000
    return f"{local_time(utc_ns, dt.UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"


def span_text(begin_utc_ns: int, end_utc_ns: int | None) -> str:
    """Format the begin of something [ns] and its end, None while it lasts."""
    begin = utc_text(begin_utc_ns)
    return f"since {begin}" if end_utc_ns is None else f"{begin} to {utc_text(end_utc_ns)}"


def offset_s(utc_ns: int, zone: dt.tzinfo) -> int:
    """Return the offset of local time from UTC at a UTC [ns], positive in the east [s]."""
    offset = local_time(utc_ns, zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def offset_text(seconds: int) -> str:
    """Format an offset from UTC [s] as in ISO 8601: ``+02:00``."""
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{rest:02}" if rest else text  # of local mean time, before there were zones
