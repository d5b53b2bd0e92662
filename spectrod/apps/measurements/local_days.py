"""Settings that levels of day, evening and night need, where the command line leaves them out."""

import logging
from collections.abc import Mapping
from typing import Any

from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.lib.errors import ConfigError
from spectrod.measure.intervals import DAY_S
from spectrod.measure.levels.level_quantities import parse_quantity
from spectrod.source.base import SelectableSource

_HOUR_S = 3600
_HOURS_MIN, _HOURS_MAX = -12, 14
"""Zones ahead of UTC by whole hours that the IANA database has by name."""

_log = logging.getLogger(__name__)


def local_days(given: Mapping[str, Any], measured: MeasuredSource) -> dict[str, Any]:
    """Return what Lden and its parts need: local days, and a time zone.

    Parameters
    ----------
    given : mapping
        Settings of levels that the command line gives.
    measured : MeasuredSource

    Returns
    -------
    settings : dict
        ``interval_s``, ``align`` and ``time_zone`` where they are not given; empty if no quantity
        is one of parts of the day. The zone is that of ``--files-zone``, or the offset that all
        files have.

    Raises
    ------
    ConfigError
        If the source has no time, or no time zone is given and the files name none, or only UTC.
    """
    of_days = [one for one in given.get("quantities", ()) if parse_quantity(one).kind == "period"]
    if not of_days:
        return {}
    if not measured.has_utc:
        rule = f"{measured.name} has no start time; give --start-time"
        raise ConfigError(f"--quantity {of_days[0]}: {rule}")
    found: dict[str, Any] = {}
    if not given.get("time_zone"):
        found["time_zone"] = measured.files_zone or _zone_of_files(of_days[0], measured)
    if "interval_s" not in given:
        found["interval_s"] = DAY_S
        found["align"] = given.get("align", "local")
    return found


def _zone_of_files(quantity: str, measured: MeasuredSource) -> str:
    source = measured.source
    offset_s = source.utc_offset_s if isinstance(source, SelectableSource) else 0
    hours, rest_s = divmod(offset_s, _HOUR_S)
    # Recorders whose clock is UTC are elsewhere as a rule: their offset of 0 is no local time.
    if not offset_s or rest_s or not _HOURS_MIN <= hours <= _HOURS_MAX:
        raise ConfigError(
            f"--quantity {quantity}: needs the time zone of day, evening and night; "
            "give --time-zone, as Europe/Berlin"
        )
    _log.warning(
        "day, evening and night are those of UTC%+d, which the files name; --time-zone, as "
        "Europe/Berlin, knows when clocks change",
        hours,
    )
    return f"Etc/GMT{-hours:+d}"  # the sign of these names is that of the west
