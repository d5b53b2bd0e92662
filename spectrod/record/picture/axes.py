"""Where the ticks of an axis go and what they say: frequency, time, level."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

import numpy as np

from spectrod.units import Float64Array

FrequencyScale = Literal["linear", "log"]
FREQUENCY_SCALES: tuple[FrequencyScale, ...] = get_args(FrequencyScale)
TimeScale = Literal["elapsed", "utc"]
TIME_SCALES: tuple[TimeScale, ...] = get_args(TimeScale)

_KHZ_FROM_HZ = 2000.0
"""A linear axis that reaches this far is labelled in kHz."""

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_CLOCK_STEPS_S = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(minutes * _MINUTE for minutes in (1.0, 2.0, 5.0, 10.0, 15.0, 30.0)),
    *(hours * _HOUR for hours in (1.0, 2.0, 3.0, 6.0, 12.0, 24.0)),
)
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: its value in the axis' unit, and its text; empty for a minor one."""

    value: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """Ticks in ascending order and what they measure."""

    ticks: tuple[Tick, ...]
    title: str


def nice_step(at_least: float) -> float:
    """Smallest 1, 2 or 5 times a power of ten that is not less than the argument, > 0."""
    power = 10.0 ** math.floor(math.log10(at_least))
    for factor in (1.0, 2.0, 5.0):
        # The margin keeps a step that rounding has put just below its own value.
        if factor * power >= at_least * (1.0 - 1e-9):
            return factor * power
    return 10.0 * power


def _multiples(lo: float, hi: float, step: float) -> list[float]:
    """Multiples of a step from lo to hi, both included but for rounding."""
    first = math.ceil(lo / step - 1e-9)
    last = math.floor(hi / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _decimals(step: float) -> int:
    """Decimals that tell multiples of a nice step apart."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def linear_ticks(lo: float, hi: float, max_count: int, unit: float = 1.0) -> tuple[Tick, ...]:
    """Ticks at multiples of a 1-2-5 step.

    Parameters
    ----------
    lo, hi : float
        Ends of the axis, lo < hi.
    max_count : int
        Most intervals that fit, >= 1.
    unit : float
        What the labels count in, in the axis' own unit: 1000 labels Hz as kHz.

    Returns
    -------
    ticks : tuple of Tick
        Ascending, within the ends.
    """
    step = nice_step((hi - lo) / max_count / unit)
    decimals = _decimals(step)
    values = _multiples(lo / unit, hi / unit, step)
    return tuple(Tick(value * unit, f"{value:.{decimals}f}") for value in values)


def _log_ticks(lo: float, hi: float, mantissas: tuple[int, ...]) -> tuple[float, ...]:
    decades = range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1)
    values = (mantissa * 10.0**decade for decade in decades for mantissa in mantissas)
    return tuple(v for v in values if lo * (1.0 - 1e-9) <= v <= hi * (1.0 + 1e-9))


def _metric(value_hz: float) -> str:
    return f"{value_hz / 1000.0:g}k" if value_hz >= 1000.0 else f"{value_hz:g}"


@dataclass(frozen=True, slots=True)
class FrequencyAxis:
    """A frequency axis from ``lo_hz`` to ``hi_hz``; on a logarithmic one ``lo_hz`` > 0."""

    scale: FrequencyScale
    lo_hz: float
    hi_hz: float

    def at(self, fraction: Float64Array) -> Float64Array:
        """Frequency [Hz] at each fraction of the axis, 0 at its low end and 1 at its high end."""
        if self.scale == "log":
            return np.asarray(self.lo_hz * (self.hi_hz / self.lo_hz) ** fraction)
        return self.lo_hz + (self.hi_hz - self.lo_hz) * fraction

    def fraction(self, f_hz: float) -> float:
        """Where on the axis a frequency [Hz] is: the inverse of ``at``."""
        if self.scale == "log":
            return math.log(f_hz / self.lo_hz) / math.log(self.hi_hz / self.lo_hz)
        return (f_hz - self.lo_hz) / (self.hi_hz - self.lo_hz)

    def edges(self, n_rows: int) -> Float64Array:
        """Limits of evenly spaced rows, shape (n_rows + 1,), ascending [Hz]."""
        edges = self.at(np.linspace(0.0, 1.0, n_rows + 1))
        edges[-1] = self.hi_hz  # a power need not come out exactly
        return edges

    def centres(self, n_rows: int) -> Float64Array:
        """Frequency in the middle of each row, shape (n_rows,), ascending [Hz]."""
        return self.at((np.arange(n_rows) + 0.5) / n_rows)

    def candidates(self, max_count: int) -> Iterator[Axis]:
        """Labelled axes, those with more ticks first; the first that fits is the best."""
        is_decades = self.scale == "log" and self.hi_hz / self.lo_hz >= 10.0
        for mantissas in ((1, 2, 5), (1,)) if is_decades else ():
            values = _log_ticks(self.lo_hz, self.hi_hz, mantissas)
            yield Axis(tuple(Tick(value, _metric(value)) for value in values), "Hz")
        unit, title = (1000.0, "kHz") if self.hi_hz >= _KHZ_FROM_HZ else (1.0, "Hz")
        for count in range(max_count, 0, -1):
            yield Axis(linear_ticks(self.lo_hz, self.hi_hz, count, unit), title)

    def minor(self) -> tuple[Tick, ...]:
        """Unlabelled ticks between: 1 to 9 of each decade on a logarithmic axis, else none."""
        if self.scale == "linear":
            return ()
        values = _log_ticks(self.lo_hz, self.hi_hz, tuple(range(1, 10)))
        return tuple(Tick(value) for value in values)


def _time_step(at_least_s: float) -> float:
    """Smallest step that a clock shows evenly, not less than the argument [s]."""
    if at_least_s <= 1.0:
        return nice_step(at_least_s)
    for step in _CLOCK_STEPS_S:
        if step >= at_least_s:
            return step
    return _DAY * nice_step(at_least_s / _DAY)


def _elapsed_format(duration_s: float, step_s: float) -> str:
    """Choose how elapsed times read, as the axis' title says it."""
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
    # Rounded first: 59.9996 s must not read 0:60.
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


def elapsed_axis(duration_s: float, max_count: int) -> Axis:
    """Axis of the time since the picture's first sample.

    Parameters
    ----------
    duration_s : float
        > 0 [s].
    max_count : int
        Most intervals that fit, >= 1.

    Returns
    -------
    axis : Axis
        Values in seconds; labels in the unit of the title: s, min:s, h:min, d.
    """
    step = _time_step(duration_s / max_count)
    form = _elapsed_format(duration_s, step)
    decimals = _decimals(step) if step < 1.0 else 0
    values = _multiples(0.0, duration_s, step)
    ticks = tuple(Tick(value, _elapsed_label(value, form, decimals)) for value in values)
    return Axis(ticks, f"elapsed time [{form}]")


def _utc(t_ns: int) -> datetime:
    # Whole seconds only: a float of nanoseconds since 1970 is wrong by hundreds of them.
    return datetime.fromtimestamp(t_ns // _NS, UTC)


def _utc_label(t_ns: int, step_s: float) -> str:
    moment = _utc(t_ns)
    if step_s >= _DAY:
        return f"{moment:%Y-%m-%d}"
    if step_s >= _MINUTE:
        # Midnight is where the date changes: say to what.
        is_midnight = moment.hour == moment.minute == 0
        return f"{moment:%b %d}" if is_midnight else f"{moment:%H:%M}"
    decimals = _decimals(step_s) if step_s < 1.0 else 0
    fraction = f".{t_ns % _NS:09d}"[: decimals + 1] if decimals else ""
    return f"{moment:%H:%M:%S}{fraction}"


def _utc_title(begin_ns: int, end_ns: int) -> str:
    begin, end = f"{_utc(begin_ns):%Y-%m-%d}", f"{_utc(end_ns):%Y-%m-%d}"
    return f"UTC, {begin}" if begin == end else f"UTC, {begin} to {end}"


def utc_axis(begin_ns: int, duration_s: float, max_count: int) -> Axis:
    """Axis of wall-clock time, with ticks where a clock shows round numbers.

    Parameters
    ----------
    begin_ns : int
        UTC at the low end, since 1970 [ns].
    duration_s : float
        > 0 [s].
    max_count : int
        Most intervals that fit, >= 1.

    Returns
    -------
    axis : Axis
        Values in seconds since ``begin_ns``; the title names the date.
    """
    step = _time_step(duration_s / max_count)
    step_ns = max(1, round(step * _NS))
    end_ns = begin_ns + round(duration_s * _NS)
    first_ns = -(-begin_ns // step_ns) * step_ns
    ticks = tuple(
        Tick((t_ns - begin_ns) / _NS, _utc_label(t_ns, step))
        for t_ns in range(first_ns, end_ns + 1, step_ns)
    )
    return Axis(ticks, _utc_title(begin_ns, end_ns))
