"""Periods of time that have a file each."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError
from spectrod.lib.time_zones import local_time
from spectrod.measure.intervals import DAY_S, divides_a_day, local_interval

_COMES_AGAIN_H = (12, 24, 7 * 24, 31 * 24, 365 * 24)
"""Times after which a time of day, a weekday, a day of a month or of a year repeats [h]."""
_TWICE = [
    dt.datetime(2026, 10, 25, 2, tzinfo=dt.timezone(dt.timedelta(hours=one))) for one in (2, 1)
]
"""A local time that comes twice."""


@dataclass(frozen=True, slots=True)
class Period:
    """A grid of time.

    Attributes
    ----------
    length_ns : int
        Length of a period, 1 s or longer [ns].
    zone : ZoneInfo or None
        Time zone from whose midnights periods count, and of names; None: UTC, and periods start at
        whole multiples of their length since 1970. Days on which the clock changes are longer or
        shorter: see ``IntervalGrid``.

    Raises
    ------
    ConfigError
        If local periods do not divide a day.
    """

    length_ns: int
    zone: ZoneInfo | None = None

    def __post_init__(self) -> None:
        if self.zone is not None and not divides_a_day(self.length_ns / NS_PER_S):
            raise ConfigError("must divide a day into whole seconds with --time-zone")

    def around(self, utc_ns: int) -> tuple[int, int]:
        """Return the begin and the end of the period that holds a UTC [ns]."""
        if self.zone is not None:
            return local_interval(utc_ns, self.length_ns, self.zone)
        begin_ns = utc_ns // self.length_ns * self.length_ns
        return begin_ns, begin_ns + self.length_ns

    def path(self, pattern: str, begin_utc_ns: int) -> Path:
        """Return the path of a period's file; only the last part may be a pattern.

        Raises
        ------
        ConfigError
            If the pattern cannot be filled in.
        """
        return _name(pattern, local_time(begin_utc_ns, self.zone or dt.UTC))

    def check_names(self, pattern: str) -> None:
        """Check that a pattern gives periods names of their own; raises ConfigError.

        A name that repeats, after a day or a year, would replace a file.
        """
        n_next = {0, 1} | {
            -(-hours * 3600 * NS_PER_S // self.length_ns) for hours in _COMES_AGAIN_H
        }
        begins_ns = {self.around(n * self.length_ns)[0] for n in n_next}
        if len({self.path(pattern, one) for one in begins_ns}) < len(begins_ns):
            raise ConfigError(
                f"{pattern}: names must differ for different times with --every, as with "
                "'%Y%m%dT%H%M%SZ.png'"
            )
        is_of_hours = self.zone is not None and self.length_ns < DAY_S * NS_PER_S
        if is_of_hours and len({_name(pattern, one) for one in _TWICE}) < len(_TWICE):
            raise ConfigError(
                f"{pattern}: names must have the offset from UTC with --time-zone, as with "
                "'%Y%m%dT%H%M%S%z.png': an hour comes twice a year"
            )


def _name(pattern: str, begin: dt.datetime) -> Path:
    path = Path(pattern)
    try:
        return path.with_name(begin.strftime(path.name))
    except ValueError as error:
        raise ConfigError(f"{pattern}: cannot be filled in: {error}") from error
