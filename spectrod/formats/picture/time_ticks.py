"""Ticks of a time axis: time since the first sample, or the wall clock."""

from datetime import UTC, datetime
from typing import Literal, get_args

from spectrod.dsp.units import NS_PER_S
from spectrod.formats.picture.axes import Axis, Tick, decimals_of, multiples, nice_step

TimeScale = Literal["elapsed", "utc"]
TIME_SCALES: tuple[TimeScale, ...] = get_args(TimeScale)

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
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


def _utc(t_ns: int) -> datetime:
    # Whole seconds only: a float of nanoseconds since 1970 has errors of hundreds of ns.
    return datetime.fromtimestamp(t_ns // NS_PER_S, UTC)


def _utc_label(t_ns: int, step_s: float) -> str:
    moment = _utc(t_ns)
    if step_s >= _DAY:
        return f"{moment:%Y-%m-%d}"
    if step_s >= _MINUTE:
        # The date changes at midnight: show the new date.
        is_midnight = moment.hour == moment.minute == 0
        return f"{moment:%b %d}" if is_midnight else f"{moment:%H:%M}"
    decimals = decimals_of(step_s) if step_s < 1.0 else 0
    fraction = f".{t_ns % NS_PER_S:09d}"[: decimals + 1] if decimals else ""
    return f"{moment:%H:%M:%S}{fraction}"


def _utc_title(begin_ns: int, end_ns: int) -> str:
    begin, end = f"{_utc(begin_ns):%Y-%m-%d}", f"{_utc(end_ns):%Y-%m-%d}"
    return f"UTC, {begin}" if begin == end else f"UTC, {begin} to {end}"


def utc_axis(begin_ns: int, duration_s: float, max_count: int) -> Axis:
    """Return an axis of wall-clock time, with ticks at round times.

    Parameters
    ----------
    begin_ns : int
        UTC at the low end, since 1970 [ns].
    duration_s : float
        Duration, > 0 [s].
    max_count : int
        Largest number of intervals, >= 1.

    Returns
    -------
    axis : Axis
        Values in seconds since ``begin_ns``; the title names the date.
    """
    step = _time_step(duration_s / max_count)
    step_ns = max(1, round(step * NS_PER_S))
    end_ns = begin_ns + round(duration_s * NS_PER_S)
    first_ns = -(-begin_ns // step_ns) * step_ns
    ticks = tuple(
        Tick((t_ns - begin_ns) / NS_PER_S, _utc_label(t_ns, step))
        for t_ns in range(first_ns, end_ns + 1, step_ns)
    )
    return Axis(ticks, _utc_title(begin_ns, end_ns))
