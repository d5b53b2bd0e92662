"""Settings that levels of day, evening and night need, where the command line leaves them out."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.lib.errors import ConfigError
from spectrod.measure.intervals import DAY_S
from spectrod.measure.levels import LevelRow
from spectrod.measure.levels.level_quantities import LevelQuantity, parse_quantity
from spectrod.measure.measurement import Measurement
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
        is one of parts of the day. With Lden, shorter intervals are local ones, too: days have
        rows beside them. The zone is that of ``--files-zone``, or the offset that all
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
    interval_s = found["interval_s"] = given.get("interval_s", DAY_S)
    if "interval_s" not in given or ("Lden" in of_days and interval_s < DAY_S):
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


class AbsentPeriods:
    """Counts values of day, evening and night for which nothing was recorded, and says so.

    Parameters
    ----------
    about : MeasurementDescription
        Description of the rows.
    """

    def __init__(self, about: MeasurementDescription) -> None:
        self._absent = {
            k: 0
            for k, one in enumerate(about.quantities)
            if isinstance(one, LevelQuantity) and one.kind == "period"
        }
        self._names = [one.name for one in about.quantities]
        self._has_days = about.has_days
        self._n_rows = 0

    def add(self, rows: Sequence[Measurement]) -> None:
        """Count the values of rows that are not numbers."""
        for row in rows:
            if self._has_days and not (isinstance(row, LevelRow) and row.is_day):
                continue
            self._n_rows += 1
            for k in self._absent:
                self._absent[k] += bool(np.isnan(row.values[k]).any())

    def report(self) -> None:
        """Log a warning if there are intervals without values."""
        absent = {self._names[k]: n for k, n in self._absent.items() if n}
        if absent:
            _log.warning(
                "%s: nan in %s of %d %s: nothing was recorded in a part of the day that it "
                "needs (day 7 to 19 h, evening 19 to 23 h, night 23 to 7 h)",
                ", ".join(absent),
                ", ".join(map(str, absent.values())),
                self._n_rows,
                "days" if self._has_days else "intervals",
            )
