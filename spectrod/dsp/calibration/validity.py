"""Dates between which calibrations are valid, in UTC."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectrod.dsp.units import NS_PER_S
from spectrod.lib.errors import ConfigError

if TYPE_CHECKING:
    from spectrod.dsp.calibration.channel_calibration import ChannelCalibration

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MAX = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)
VALIDITY_NS_MAX = (_MAX - _EPOCH) // dt.timedelta(seconds=1) * NS_PER_S
"""Latest time of a validity [ns since 1970]."""


@dataclass(frozen=True, slots=True)
class Validity:
    """The time for which a calibration holds.

    Attributes
    ----------
    from_utc_ns, until_utc_ns : int or None
        From the first time on, before the second, UTC [ns since 1970]; None: without a bound.
    """

    from_utc_ns: int | None = None
    until_utc_ns: int | None = None

    @property
    def is_stated(self) -> bool:
        """Whether it has a bound at all."""
        return self.from_utc_ns is not None or self.until_utc_ns is not None

    def covers(self, begin_utc_ns: int, end_utc_ns: int) -> bool:
        """Return whether a time from a begin to before an end [ns] lies within it."""
        is_late = self.from_utc_ns is None or begin_utc_ns >= self.from_utc_ns
        return is_late and (self.until_utc_ns is None or end_utc_ns <= self.until_utc_ns)

    @property
    def text(self) -> str:
        """As ``valid from 2026-05-01T00:00:00Z until 2027-05-01T00:00:00Z``."""
        ends = {"from": self.from_utc_ns, "until": self.until_utc_ns}
        parts = [f"{word} {_iso(end)}" for word, end in ends.items() if end is not None]
        return f"valid {' '.join(parts)}"

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of files: those bounds that are stated."""
        ends = {
            "calibration_valid_from": self.from_utc_ns,
            "calibration_valid_until": self.until_utc_ns,
        }
        return {name: _iso(end) for name, end in ends.items() if end is not None}


ALWAYS = Validity()


def parse_validity(valid_from: Any, valid_until: Any) -> Validity:
    """Return the validity that two values of a file state.

    Parameters
    ----------
    valid_from, valid_until : date, datetime or None
        A date is a whole day of UTC, the last one with its end; a time needs a zone.

    Raises
    ------
    ConfigError
        If one is something else, or not from 1970 to 2199, or the second is not after the first.
    """
    begin = _instant("valid_from", valid_from)
    end = _instant("valid_until", valid_until, is_end=True)
    if begin is not None and end is not None and begin >= end:
        raise ConfigError(f"valid_until={valid_until}: must be after valid_from={valid_from}")
    return Validity(begin, end)


def common_validity(calibrations: Iterable["ChannelCalibration | None"]) -> Validity:
    """Return the time for which all of some calibrations hold."""
    found = [one.validity for one in calibrations if one is not None]
    begins = [one.from_utc_ns for one in found if one.from_utc_ns is not None]
    ends = [one.until_utc_ns for one in found if one.until_utc_ns is not None]
    return Validity(max(begins, default=None), min(ends, default=None))


def outside_validity(
    calibrations: Sequence["ChannelCalibration | None"], begin_utc_ns: int, end_utc_ns: int
) -> str:
    """Return what a log says of samples that a calibration is not valid for; empty if all are.

    Parameters
    ----------
    calibrations : sequence of (ChannelCalibration or None)
        Of each signal.
    begin_utc_ns, end_utc_ns : int
        UTC of the first sample and after the last [ns].
    """
    for number, one in enumerate(calibrations):
        if one is not None and not one.validity.covers(begin_utc_ns, end_utc_ns):
            return (
                f"signal {number}: calibration {one.cal_id} is {one.validity.text}, and samples "
                f"are of {_iso(begin_utc_ns)} to {_iso(end_utc_ns)}: levels beyond are questionable"
            )
    return ""


def _instant(key: str, value: Any, *, is_end: bool = False) -> int | None:
    if value is None:
        return None
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        when = value
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        when = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
        if is_end and value.year < _MAX.year:
            when += dt.timedelta(days=1)
    else:
        raise ConfigError(
            f"{key}={str(value)[:40]!r}: must be a date, of UTC, or a time with a zone: 2026-05-01 "
            "or 2026-05-01T12:00:00+02:00"
        )
    if not _EPOCH <= when <= _MAX:
        raise ConfigError(f"{key}={value}: must be from 1970 to 2199")
    return (when - _EPOCH) // dt.timedelta(microseconds=1) * (NS_PER_S // 10**6)


def _iso(utc_ns: int) -> str:
    return f"{np.datetime64(utc_ns // NS_PER_S, 's')}Z"
