"""Axes of time: UTC, local time, or time since the first sample."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spectrod.dsp.units import NS_PER_S, Float64Array
from spectrod.formats.picture.axes import Axis
from spectrod.formats.picture.time_ticks import clock_axis
from spectrod.lib.optional_packages import need
from spectrod.lib.time_zones import find_zone
from spectrod.measure.intervals import period_at
from spectrod.measure.levels.level_quantities import PERIODS

_DAY_S = 86400.0
_NIGHT = "#eeeeee"
_NIGHTS_MAX = 62
_TICKS_MIN = 2
"""Of an inch there is one, of a narrow figure this many."""
_UNITS_S = (("d", _DAY_S), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
_UNITS_MIN = 3.0
"""A span has at least so many of its unit, unless that is the second."""


class TimeAxis:
    """Positions and labels of the times of a figure.

    Parameters
    ----------
    begin_ns, end_ns : int
        First and last time [ns], UTC or since the first sample.
    has_utc : bool
        Which of the two.
    time_zone : str
        Time zone of the labels, see ``find_zone``; empty for UTC.
    """

    def __init__(self, begin_ns: int, end_ns: int, time_zone: str, *, has_utc: bool) -> None:
        self._zone = find_zone(time_zone)
        self._has_utc, self._has_zone = has_utc, bool(time_zone)
        self._begin_ns, self._end_ns = begin_ns, end_ns
        span_s = (end_ns - begin_ns) / NS_PER_S
        self._unit, unit_s = next(
            (one for one in _UNITS_S if span_s >= _UNITS_MIN * one[1]), _UNITS_S[-1]
        )
        # matplotlib counts dates in days since 1970.
        self._unit_ns = NS_PER_S * (_DAY_S if has_utc else unit_s)

    def positions(self, times_ns: Float64Array) -> Float64Array:
        """Return where times are [days since 1970, or the axis's unit]."""
        return np.asarray(times_ns / self._unit_ns)

    def label(self, panel: Any, *, has_labels: bool) -> None:
        """Set limits and ticks of a panel's horizontal axis, with or without its labels."""
        begin, end = self._begin_ns / self._unit_ns, self._end_ns / self._unit_ns
        panel.set_xlim(begin, end if end > begin else begin + 1.0 / self._unit_ns)
        panel.tick_params(labelbottom=has_labels)
        n_ticks = max(_TICKS_MIN, round(panel.figure.get_figwidth()))
        panel.set_xlabel(self._text(n_ticks) if has_labels else "")
        for one_ns, end_ns in self._nights():
            panel.axvspan(one_ns / self._unit_ns, end_ns / self._unit_ns, color=_NIGHT, zorder=0)
        if self._has_utc:
            self._set_dates(panel, n_ticks)

    def _nights(self) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each night of a local time [ns], unless they are too many."""
        is_shown = self._has_utc and self._has_zone
        if not is_shown or self._end_ns - self._begin_ns > _NIGHTS_MAX * _DAY_S * NS_PER_S:
            return
        begin_ns = self._begin_ns
        while begin_ns < self._end_ns:
            part, end_ns = period_at(begin_ns, self._zone)
            if PERIODS[part] == "night":
                yield begin_ns, min(end_ns, self._end_ns)
            begin_ns = end_ns

    def _text(self, n_ticks: int) -> str:
        """Return the axis's label: the zone and the dates, or the unit."""
        if not self._has_utc:
            return f"time since the first sample [{self._unit}]"
        note = "; grey: 23 to 7 h" if any(self._nights()) else ""
        return f"time, {self._clock(n_ticks).title}{note}"

    def _clock(self, n_ticks: int) -> Axis:
        duration_s = max(1, self._end_ns - self._begin_ns) / NS_PER_S
        return clock_axis(self._begin_ns, duration_s, n_ticks, self._zone)

    def _set_dates(self, panel: Any, n_ticks: int) -> None:
        ticker = need("matplotlib.ticker", "plot")
        ticks = self._clock(n_ticks).ticks
        places = [(self._begin_ns + tick.value * NS_PER_S) / self._unit_ns for tick in ticks]
        panel.xaxis.set_major_locator(ticker.FixedLocator(places))
        panel.xaxis.set_major_formatter(ticker.FixedFormatter([tick.label for tick in ticks]))
