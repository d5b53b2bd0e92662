"""The columns of tables of events."""

import datetime as dt
from typing import Any

from spectrod.formats.export.attributes import iso_time
from spectrod.lib.text import printable
from spectrod.measure.triggers.detection import Detection

EVENT_COLUMNS = (
    *("file", "begin_s", "end_s", "duration_s", "channel"),
    *("f_min_hz", "f_max_hz", "frequency_hz", "level", "unit", "threshold", "floor"),
    *("over_floor_db", "pulses", "name"),
)
"""Names of the columns of events, after those of times."""
EVENT_TIMES = ("begin_utc", "end_utc")
"""Names of the columns of times in UTC."""
EVENT_TEXTS = ("file", "channel", "unit", "name")
"""Columns of texts; the others are numbers."""


def fields_of(one: Detection, zone: dt.tzinfo | None = None) -> dict[str, Any]:
    """Return the values of an event by the names of the columns; None for what is not known.

    Times are ``begin_utc`` and ``end_utc``, or with a time zone ``begin`` and ``end``, with its
    offset from UTC.
    """
    event, (begin, end) = one.event, time_names(zone)
    return {
        begin: iso_time(event.begin_utc_ns, zone) if one.has_utc else None,
        end: iso_time(one.end_utc_ns, zone) if one.has_utc else None,
        "file": printable(one.file),
        "begin_s": round(one.begin_s, 6),
        "end_s": round(one.begin_s + one.duration_s, 6),
        "duration_s": round(one.duration_s, 6),
        "channel": event.channel,
        "f_min_hz": event.f_min_hz,
        "f_max_hz": event.f_max_hz,
        "frequency_hz": _rounded(event.frequency_hz, 4),
        "level": round(event.level, 2),
        "unit": event.unit,
        "threshold": _rounded(event.threshold),
        "floor": _rounded(event.floor),
        "over_floor_db": _rounded(one.over_floor_db),
        "pulses": event.pulses,
        "name": printable(event.name),
    }


def time_names(zone: dt.tzinfo | None) -> tuple[str, str]:
    """Return the names of begin and end, before those of ``EVENT_COLUMNS``."""
    return EVENT_TIMES if zone is None else ("begin", "end")


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)
