"""Ticks of a time axis: time since the first sample, or the wall clock."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Literal, get_args

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.picture.axes import Axis, Tick, decimals_of, multiples, nice_step
from spectrod.lib.time_zones import local_time, offset_s, offset_text, shown_zone

TimeScale = Literal["elapsed", "utc"]
TIME_SCALES: tuple[TimeScale, ...] = get_args(TimeScale)

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_DAY_NS = 86400 * NS_PER_S
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).toordinal()
_CLOCK_STEPS_S = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(minutes * _MINUTE for minutes in (1.0, 2.0, 5.0, 10.0, 15.0, 30.0)),
    *(hours * _HOUR for hours in (1.0, 2.0, 3.0, 6.0, 12.0, 24.0)),
)


def _time_step(at_least_s: float) -> float:
    """Return the smallest even step of a clock that is not below the argument [s]."""
    if at_least_s <= 1.0:
        return nice_step(at_least_s)
    for step in _CLOCK_STEPS_S:
        if step >= at_least_s:
            return step
    return _DAY * nice_step(at_least_s / _DAY)


def _elapsed_format(duration_s: float, step_s: float) -> str:
    """Return the format of elapsed times, as in the axis title."""
    if duration_s < _MINUTE:
        return "s"
    if duration_s < _HOUR:
        return "min:s"
    if step_s >= _DAY:
        return "d"
    if duration_s >= _DAY:
        return "d h:min"
    return "h:min" if step_s >= _MINUTE else "h:min:s"


def _elapsed_label(value_s: float, form: str, decimals: int) -> str:
    # Round first: 59.9996 s must not give 0:60.
    value_s = round(value_s, decimals)
    width = 3 + decimals if decimals else 2
    minutes, seconds = divmod(value_s, _MINUTE)
    hours, minutes_of_hour = divmod(int(minutes), 60)
    days, hours_of_day = divmod(hours, 24)
    labels = {
        "s": f"{value_s:.{decimals}f}",
        "min:s": f"{minutes:.0f}:{seconds:0{width}.{decimals}f}",
        "h:min:s": f"{hours}:{minutes_of_hour:02}:{seconds:0{width}.{decimals}f}",
        "h:min": f"{hours}:{minutes_of_hour:02}",
        "d h:min": f"{days}d {hours_of_day:02}:{minutes_of_hour:02}",
        "d": f"{days}",
    }
    return labels[form]


def elapsed_axis(duration_s: float, max_count: int, begin_s: float = 0.0) -> Axis:
    """Return an axis of the time since a recording's first sample.

    Parameters
    ----------
    duration_s : float
        Duration, > 0 [s].
    max_count : int
        Largest number of intervals, >= 1.
    begin_s : float
        Time at the low end, >= 0 [s].

    Returns
    -------
    axis : Axis
        Values in seconds since ``begin_s``; labels in the unit of the title: s, min:s, h:min, d.
    """
    step = _time_step(duration_s / max_count)
    form = _elapsed_format(begin_s + duration_s, step)
    decimals = decimals_of(step) if step < 1.0 else 0
    values = multiples(begin_s, begin_s + duration_s, step)
    ticks = tuple(Tick(value - begin_s, _elapsed_label(value, form, decimals)) for value in values)
    return Axis(ticks, f"elapsed time [{form}]")


def clock_axis(
    begin_ns: int, duration_s: float, max_count: int, zone: tzinfo | None = None
) -> Axis:
    """Return an axis of wall-clock time, with ticks at round local times.

    Parameters
    ----------
    begin_ns : int
        UTC at the low end, since 1970 [ns].
    duration_s : float
        Duration, > 0 [s].
    max_count : int
        Largest number of intervals, >= 1.
    zone : tzinfo, optional
        Time zone of the labels; by default UTC.

    Returns
    -------
    axis : Axis
        Values in seconds since ``begin_ns``; the title names the zone, its offsets and the date.
        Where the clock is changed, ticks lie closer or further apart.
    """
    zone = zone or UTC
    step = _time_step(duration_s / max_count)
    end_ns = begin_ns + round(duration_s * NS_PER_S)
    times_ns = list(_round_times(begin_ns, end_ns, step, zone))
    ticks, last = [], None
    for t_ns in times_ns:
        moment = local_time(t_ns, zone)
        ticks.append(Tick((t_ns - begin_ns) / NS_PER_S, _clock_label(t_ns, moment, last, step)))
        last = moment
    name = zone_title([begin_ns, *times_ns, end_ns], zone)
    begin, end = (f"{local_time(t_ns, zone):%Y-%m-%d}" for t_ns in (begin_ns, end_ns))
    dates = begin if begin == end else f"{begin} to {end}"
    return Axis(tuple(ticks), f"{name}, {dates}")


def _round_times(begin_ns: int, end_ns: int, step_s: float, zone: tzinfo) -> Iterator[int]:
    """Yield the UTC of local times that are multiples of a step [ns], from begin to end."""
    if step_s >= _DAY:
        yield from _midnights(begin_ns, end_ns, round(step_s / _DAY), zone)
        return
    step_ns = max(1, round(step_s * NS_PER_S))
    last_ns = last_local_ns = begin_ns - _DAY_NS
    for first_ns, stop_ns, offset_ns in _offsets(begin_ns, end_ns, zone):
        first_local_ns = -(-(first_ns + offset_ns) // step_ns) * step_ns
        for local_ns in range(first_local_ns, stop_ns + offset_ns, step_ns):
            t_ns = local_ns - offset_ns
            # A clock that is put back repeats times, here and there closer than a step.
            if local_ns > last_local_ns or t_ns - last_ns >= step_ns:
                yield t_ns
                last_ns, last_local_ns = t_ns, local_ns


def _midnights(begin_ns: int, end_ns: int, step_days: int, zone: tzinfo) -> Iterator[int]:
    """Yield the UTC at which each date begins whose number since 1970 a step divides [ns]."""
    first, last = (local_time(t_ns, zone).toordinal() - _EPOCH for t_ns in (begin_ns, end_ns))
    for number in range(first - first % step_days, last + 1, step_days):
        midnight = datetime.fromordinal(_EPOCH + number).replace(tzinfo=zone)
        t_ns = round(midnight.timestamp()) * NS_PER_S
        if begin_ns <= t_ns <= end_ns:
            yield t_ns


def _offsets(begin_ns: int, end_ns: int, zone: tzinfo) -> Iterator[tuple[int, int, int]]:
    """Yield the spans of one offset from UTC: first time, time after the last, offset [ns]."""
    first_ns = begin_ns
    while first_ns <= end_ns:
        offset, stop_ns = offset_s(first_ns, zone), first_ns
        while stop_ns <= end_ns and offset_s(stop_ns, zone) == offset:
            stop_ns += _DAY_NS
        if stop_ns > end_ns and offset_s(end_ns, zone) == offset:
            stop_ns = end_ns + 1
        else:
            stop_ns = _change_ns(max(first_ns, stop_ns - _DAY_NS), min(stop_ns, end_ns), zone)
        yield first_ns, stop_ns, offset * NS_PER_S
        first_ns = stop_ns


def _change_ns(before_ns: int, after_ns: int, zone: tzinfo) -> int:
    """Return the first second of another offset than that of the first of two times [ns]."""
    offset = offset_s(before_ns, zone)
    before, after = before_ns // NS_PER_S, after_ns // NS_PER_S
    while after - before > 1:
        middle = (before + after) // 2
        if offset_s(middle * NS_PER_S, zone) == offset:
            before = middle
        else:
            after = middle
    return after * NS_PER_S


def _clock_label(t_ns: int, moment: datetime, last: datetime | None, step_s: float) -> str:
    if step_s >= _DAY:
        return f"{moment:%Y-%m-%d}"
    if step_s >= _MINUTE:
        # Show the date where it changes: mostly at midnight, which some zones leave out.
        is_midnight = moment.hour == moment.minute == 0
        is_new = last is not None and moment.date() != last.date()
        return f"{moment:%b %d}" if is_midnight or is_new else f"{moment:%H:%M}"
    decimals = decimals_of(step_s) if step_s < 1.0 else 0
    fraction = f".{t_ns % NS_PER_S:09d}"[: decimals + 1] if decimals else ""
    return f"{moment:%H:%M:%S}{fraction}"


def zone_title(times_ns: Iterable[int], zone: tzinfo) -> str:
    """Return the name of a zone, with its offsets from UTC at some times, UTC [ns]."""
    if str(zone) == "UTC":
        return "UTC"
    if (shown := shown_zone(str(zone))) != str(zone):
        return shown
    offsets = dict.fromkeys(offset_s(t_ns, zone) for t_ns in times_ns)
    return f"{zone} ({', '.join(f'UTC{offset_text(one)}' for one in offsets)})"
