"""Hours of the week and duty cycles in UTC. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError

NEVER_NS: Final = (1 << 63) - 1
"""Later than any time [ns since 1970]."""

_CYCLE_PART_MIN_S: Final = 1.0
_MINUTE_NS: Final = 60 * NS_PER_S
_DAY_MINUTES: Final = 24 * 60
_WEEK_MINUTES: Final = 7 * _DAY_MINUTES
_WEEK_NS: Final = _WEEK_MINUTES * _MINUTE_NS
_MONDAY_NS: Final = 4 * _DAY_MINUTES * _MINUTE_NS  # 1970-01-05; 1970 began with a Thursday
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS: Final = re.compile(r"(?:(\S+)\s+)?(\d\d):(\d\d)\s*-\s*(\d\d):(\d\d)", re.ASCII)
_RULE: Final = "must be HH:MM-HH:MM in UTC, with days before it or not: 'Mon-Fri 06:00-18:00'"


class Schedule:
    """The times at which something is wanted: hours of the week, with an optional duty cycle.

    Parameters
    ----------
    hours : sequence of str
        Each ``HH:MM-HH:MM``, UTC, without the end; an end not after the start is on the next day.
        ``Mon``, ``Mon-Fri`` or ``Sat,Sun`` in front names the days of the start. Without hours: at
        all times.
    on_s, off_s : float
        Durations of the on and off phases within the hours, counted from 1970, so cycles that
        divide a day start with it [s]. Both 1 or more, or both 0: without a break.

    Raises
    ------
    ConfigError
        If a rule is violated.
    """

    def __init__(self, hours: Sequence[str] = (), on_s: float = 0.0, off_s: float = 0.0) -> None:
        if (on_s > 0.0) != (off_s > 0.0):
            raise ConfigError("must both be 0, or neither", on_s=on_s, off_s=off_s)
        if on_s and min(on_s, off_s) < _CYCLE_PART_MIN_S:
            raise ConfigError("must be 1 or more, where not 0", on_s=on_s, off_s=off_s)
        self._on_ns, self._cycle_ns = round(on_s * NS_PER_S), round((on_s + off_s) * NS_PER_S)
        is_on = [False] * _WEEK_MINUTES
        for text in hours:
            for minute in _minutes(text):
                is_on[minute] = True
        # Minutes at which the state changes, and the state of each minute.
        self._is_always = not hours or all(is_on)
        changes = () if self._is_always else range(_WEEK_MINUTES)
        self._turns = [k for k in changes if is_on[k] != is_on[k - 1]]
        self._is_on = is_on

    def covers(self, t_utc_ns: int) -> bool:
        """Return True if a time is wanted [ns since 1970]."""
        if self._cycle_ns and t_utc_ns % self._cycle_ns >= self._on_ns:
            return False
        return self._is_always or self._is_on[_week_ns(t_utc_ns) // _MINUTE_NS]

    def next_turn_ns(self, t_utc_ns: int) -> int:
        """Return a later time up to which ``covers`` does not change [ns since 1970].

        ``NEVER_NS`` if it never changes.
        """
        turn_ns = NEVER_NS
        if self._cycle_ns:
            within_ns = t_utc_ns % self._cycle_ns
            edge_ns = self._on_ns if within_ns < self._on_ns else self._cycle_ns
            turn_ns = t_utc_ns - within_ns + edge_ns
        if not self._is_always:
            week_ns = _week_ns(t_utc_ns)
            k = bisect_right(self._turns, week_ns // _MINUTE_NS)
            minute = self._turns[k] if k < len(self._turns) else self._turns[0] + _WEEK_MINUTES
            turn_ns = min(turn_ns, t_utc_ns - week_ns + minute * _MINUTE_NS)
        return turn_ns


def _week_ns(t_utc_ns: int) -> int:
    return (t_utc_ns - _MONDAY_NS) % _WEEK_NS


def _minutes(text: str) -> Iterator[int]:
    """Yield the minutes of the week in a text of hours, counted from Monday 00:00."""
    found = _HOURS.fullmatch(text.strip())
    if not found:
        raise ConfigError(_RULE, schedule=text)
    days, *numbers = found.groups()
    hour, minute, end_hour, end_minute = map(int, numbers)
    begin, end = 60 * hour + minute, 60 * end_hour + end_minute
    if max(minute, end_minute) > 59 or begin >= _DAY_MINUTES or end > _DAY_MINUTES:
        raise ConfigError(f"{_RULE}, 00:00 to 24:00", schedule=text)
    if end <= begin:
        end += _DAY_MINUTES
    for day in _weekdays(text, days):
        first = day * _DAY_MINUTES
        yield from (k % _WEEK_MINUTES for k in range(first + begin, first + end))


def _weekdays(text: str, days: str | None) -> Iterator[int]:
    if days is None:
        yield from range(7)
        return
    for part in days.lower().split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not {first, last} <= set(_DAYS):
            raise ConfigError(f"{part!r}: days are Mon Tue Wed Thu Fri Sat Sun", schedule=text)
        begin, end = _DAYS.index(first), _DAYS.index(last)
        yield from (day % 7 for day in range(begin, end + 1 if end >= begin else end + 8))
