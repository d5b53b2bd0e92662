"""Intervals of samples on a grid, and the parts of the day."""

import datetime as dt
from bisect import bisect_right
from functools import lru_cache
from math import ceil, floor
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_zones import find_zone, local_time
from spectrod.measure.levels.level_quantities import PERIODS

LevelAlign = Literal["start", "utc", "local"]
LEVEL_ALIGNS: tuple[LevelAlign, ...] = get_args(LevelAlign)

DAY_S = 86400.0
_PERIOD_HOURS = (7, 19, 23)
"""Local hours at which day, evening and night begin: Directive 2002/49/EC, annex I."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CLOCK_STEP_NS = 10_000_000
"""Difference of a block's time from that of its samples by count above which the
time is taken from the block again [ns]."""
_CLOCK_SLACK_S = 0.05
"""Distance of a bound of an interval from the present sample that counts as none, where the time
was taken from a block again [s]."""


def check_intervals(interval_s: float, align: LevelAlign, time_zone: str) -> None:
    """Check settings of intervals; raises ConfigError: see ``IntervalGrid`` and ``find_zone``."""
    _check_align(align, interval_s)
    find_zone(time_zone)
    if align == "local" and not time_zone:
        rule = "align='local' needs the time zone of its local times"
        raise ConfigError(rule, "align", time_zone=...)


def _check_align(align: LevelAlign, interval_s: float) -> None:
    if align not in LEVEL_ALIGNS:
        raise ConfigError(f"must be one of {', '.join(LEVEL_ALIGNS)}", align=align)
    if align == "local" and not divides_a_day(interval_s):
        raise ConfigError(
            f"align='local' needs an interval of whole seconds that "
            f"divides a day, such as 3600 or {DAY_S:g} s",
            "align",
            interval_s=interval_s,
        )


def check_days(interval_s: float, align: LevelAlign) -> None:
    """Check that local days consist of whole intervals, of which there are several in one.

    Raises
    ------
    ConfigError
        If intervals are as long as a day, or are not counted from local midnight.
    """
    if interval_s >= DAY_S:
        rule = f"days beside intervals need ones below {DAY_S:g} s"
        raise ConfigError(rule, interval_s=interval_s)
    if align != "local":
        raise ConfigError("days beside intervals need align='local'", align=align)


def divides_a_day(interval_s: float) -> bool:
    """Return whether a day has a whole number of intervals of whole seconds [s]."""
    return interval_s >= 1 and not interval_s % 1 and not DAY_S % interval_s


class UtcOfSamples:
    """The UTC of samples by their index, from one known pair.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    """

    def __init__(self, fs: float) -> None:
        self._fs = fs
        self._index, self._utc_ns = 0, 0

    def set(self, index: int, utc_ns: int) -> None:
        """Set the UTC of a sample [ns]."""
        self._index, self._utc_ns = index, utc_ns

    def utc_ns(self, index: int) -> int:
        """Return the UTC of a sample [ns]."""
        return self._utc_ns + round((index - self._index) * NS_PER_S / self._fs)

    def index_at(self, utc_ns: int) -> int:
        """Return the index of the first sample at or after a UTC [ns]."""
        # A sample a nanosecond early is at this time: times of samples are rounded.
        since = ceil((utc_ns - self._utc_ns) * self._fs / NS_PER_S - 1e-6)
        return self._index + since


class IntervalGrid:
    """The bounds of intervals.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    interval_s : float
        Length of an interval [s].
    align : {"start", "utc", "local"}
        Count intervals from sample 0, from 1970-01-01T00:00Z, or from local midnight.
    zone : ZoneInfo
        Time zone of local times.
    clock : UtcOfSamples
        Times of the samples; unused with "start".

    Raises
    ------
    ConfigError
        If ``align`` is unknown, or is "local" and the interval does not divide a day into whole
        seconds.
    """

    def __init__(
        self, fs: float, interval_s: float, align: LevelAlign, zone: ZoneInfo, clock: UtcOfSamples
    ) -> None:
        _check_align(align, interval_s)
        self._step = interval_s * fs
        self._interval_ns = round(interval_s * NS_PER_S)
        self._align, self._zone, self._clock = align, zone, clock

    def around(self, index: int) -> tuple[int, int]:
        """Return the first sample of the interval that holds a sample, and that of the next."""
        if self._align == "start":
            number = floor(index / self._step)
            # Rounding can put a bound on either side of the sample.
            while round((number + 1) * self._step) <= index:
                number += 1
            return round(number * self._step), round((number + 1) * self._step)
        begin_ns, end_ns = self._around_utc_ns(self._clock.utc_ns(index))
        begin, end = self._clock.index_at(begin_ns), self._clock.index_at(end_ns)
        if end <= index:  # the sample is the first of the next interval by rounding
            begin_ns, end_ns = self._around_utc_ns(end_ns)
            begin, end = end, self._clock.index_at(end_ns)
        return begin, end

    def _around_utc_ns(self, utc_ns: int) -> tuple[int, int]:
        if self._align == "utc":
            begin_ns = utc_ns - utc_ns % self._interval_ns
            return begin_ns, begin_ns + self._interval_ns
        return local_interval(utc_ns, self._interval_ns, self._zone)


class IntervalBounds:
    """The intervals of a stream whose clock may be corrected on the way.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    interval_s, align, zone
        See ``IntervalGrid``.
    first_sample : int
        Index of the first sample.
    utc_ns : int, optional
        Its UTC [ns].

    Attributes
    ----------
    clock : UtcOfSamples
        Times of the samples.
    has_utc : bool
        Whether these are known.

    Raises
    ------
    ConfigError
        See ``IntervalGrid``.
    """

    def __init__(
        self,
        fs: float,
        interval_s: float,
        align: LevelAlign,
        zone: ZoneInfo,
        *,
        first_sample: int = 0,
        utc_ns: int | None = None,
    ) -> None:
        self.has_utc = utc_ns is not None
        self.clock = UtcOfSamples(fs)
        self.clock.set(first_sample, utc_ns or 0)
        self._grid = IntervalGrid(fs, interval_s, align, zone, self.clock)
        self._half_samples = int(interval_s * fs / 2)
        self._slack_samples = _CLOCK_SLACK_S * fs
        self._new_clock: tuple[int, int] | None = None

    @property
    def has_new_clock(self) -> bool:
        """Whether the next interval corrects the clock."""
        return self._new_clock is not None

    def set_utc(self, index: int, utc_ns: int) -> None:
        """Set the UTC of a sample [ns]; if it differs by over 10 ms, from the next interval on."""
        if not self.has_utc:
            self.clock.set(index, utc_ns)
            self.has_utc = True
        elif abs(self.clock.utc_ns(index) - utc_ns) > _CLOCK_STEP_NS:
            self._new_clock = index, utc_ns

    def begin_at(self, index: int) -> tuple[int, int]:
        """Return the first sample of the interval that begins with a sample, and that of the next.

        The sample is the first after an interval or a gap, so the interval may have begun before.
        """
        if self._new_clock is None:
            return self._grid.around(index)
        self.clock.set(*self._new_clock)
        self._new_clock = None
        # The bound of the interval before has moved a little: take the one that follows it.
        begin, end = self._grid.around(index + self._half_samples)
        return (index if abs(begin - index) <= self._slack_samples else begin), end


def local_interval(utc_ns: int, interval_ns: int, zone: ZoneInfo) -> tuple[int, int]:
    """Return begin and end of the local interval that holds a UTC [ns]; see ``IntervalGrid``."""
    bounds = _local_bounds(local_date(utc_ns, zone), interval_ns, zone)
    after = bisect_right(bounds, utc_ns, hi=len(bounds) - 1)
    return bounds[after - 1], bounds[after]


@lru_cache(maxsize=4)
def _local_bounds(date: dt.date, interval_ns: int, zone: ZoneInfo) -> list[int]:
    """Return the UTC of each bound of intervals of a local date [ns], ascending.

    Of wall times that a change of the clock repeats, the second ones are bounds too if a whole
    interval is repeated; wall times that it leaves out are none. So an interval that does not
    divide the change is longer or shorter on that date. The last bound is that of the next date.
    """
    midnight = dt.datetime.combine(date, dt.time(), tzinfo=zone)
    walls = [
        midnight + dt.timedelta(microseconds=since_ns // 1000)
        for since_ns in range(0, round(DAY_S) * NS_PER_S, interval_ns)
    ]
    bounds = {_utc_ns(midnight)}
    for wall in walls:
        first, second = _utc_ns(wall), _utc_ns(wall.replace(fold=1))
        if second >= first:  # else it is left out
            bounds.add(first)
        if second - first >= interval_ns:
            bounds.add(second)
    end_ns = local_utc_ns(date + dt.timedelta(days=1), 0, zone)
    return [*sorted(one for one in bounds if one < end_ns), end_ns]


def local_date(utc_ns: int, zone: ZoneInfo) -> dt.date:
    """Return the local date at a UTC [ns]."""
    return local_time(utc_ns, zone).date()


def local_utc_ns(date: dt.date, hour: int, zone: ZoneInfo) -> int:
    """Return the UTC of a local hour [ns]; the first of two, and the next after one left out."""
    return _utc_ns(dt.datetime.combine(date, dt.time(hour), tzinfo=zone))


def _utc_ns(local: dt.datetime) -> int:
    return (local.astimezone(dt.UTC) - _EPOCH) // dt.timedelta(seconds=1) * NS_PER_S


def period_at(utc_ns: int, zone: ZoneInfo) -> tuple[int, int]:
    """Return the part of the day at a UTC, and when it ends.

    Parameters
    ----------
    utc_ns : int
        UTC [ns].
    zone : ZoneInfo
        Time zone.

    Returns
    -------
    period : int
        0 from 07 to 19 h, 1 from 19 to 23 h, 2 from 23 to 07 h local time.
    end_utc_ns : int
        [ns]
    """
    date = local_date(utc_ns, zone)
    for number, hour in enumerate(_PERIOD_HOURS):
        begin_ns = local_utc_ns(date, hour, zone)
        if utc_ns < begin_ns:
            return (number - 1) % len(PERIODS), begin_ns
    return 2, local_utc_ns(date + dt.timedelta(days=1), _PERIOD_HOURS[0], zone)


def period_hours(begin_utc_ns: int, end_utc_ns: int, zone: ZoneInfo) -> tuple[float, float, float]:
    """Return the hours of day, evening and night of the local dates that a span touches.

    Parameters
    ----------
    begin_utc_ns, end_utc_ns : int
        UTC at the first sample and after the last one [ns].
    zone : ZoneInfo
        Time zone.

    Returns
    -------
    hours : tuple of three float
        12, 4 and 8 a date; the night of a date with a change of the clock has 7 or 9.
    """
    hours = [0.0, 0.0, 0.0]
    date, last = local_date(begin_utc_ns, zone), local_date(end_utc_ns - 1, zone)
    while date <= last:
        next_date = date + dt.timedelta(days=1)
        bounds = [local_utc_ns(date, hour, zone) for hour in (0, *_PERIOD_HOURS)]
        bounds.append(local_utc_ns(next_date, 0, zone))
        for period, begin, end in zip((2, 0, 1, 2), bounds, bounds[1:], strict=False):
            hours[period] += (end - begin) / (3600 * NS_PER_S)
        date = next_date
    return hours[0], hours[1], hours[2]
