"""Averages of several deployments beside each other: one scale, one time axis, and differences."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from spectrod.apps.batch.ltsa import LongTermAverage, PooledDay, limits_of, pool_days
from spectrod.dsp.units import NS_PER_S, Float64Array
from spectrod.formats.picture.colormaps import Uint8Array

DIFFERENCES_MAX = 8
"""Most differences of a report."""
OVERLAP_MIN = 0.5
"""Least share of the longest deployment's time that another one has, to be drawn over all of it."""
SHARED_MIN_S = 600
"""Least time that deployments have in common to be compared [s]."""
_RANGE_PERCENT, _RANGE_MIN_DB = 99.0, 3.0
_OCTAVES = range(-6, 9)
_OCTAVE_HZ = 1000.0
_LOW, _MIDDLE, _HIGH = (33, 102, 172), (247, 247, 247), (178, 24, 43)
"""Colours of a difference below, at and above 0 dB, as those of the page."""


class Axes(NamedTuple):
    """Time [ns] and highest frequency [Hz] of a picture."""

    begin_utc_ns: int
    end_utc_ns: int
    f_max_hz: float


class SignalAverage(NamedTuple):
    """The average of a signal of a deployment, and the daily files that it is of."""

    deployment: str
    signal: str
    average: LongTermAverage
    days: Sequence[PooledDay] = ()


class BandDifference(Struct, frozen=True, kw_only=True):
    """Mean power density of an octave: ``f_hz`` is its middle, levels are in the report's unit."""

    f_hz: float
    level_db: float
    reference_db: float
    difference_db: float


class DeploymentDifference(Struct, frozen=True, kw_only=True):
    """How much louder a deployment is than the reference, in the time that both have.

    Attributes
    ----------
    deployment, reference, signal : str
        Names; the signal is that of both.
    unit : str
        Of the levels.
    bands : tuple of BandDifference
        Octaves with data; each column of the pictures counts the same.
    """

    deployment: str
    reference: str
    signal: str
    unit: str
    bands: tuple[BandDifference, ...]


class Comparison(NamedTuple):
    """A difference, and its picture."""

    numbers: DeploymentDifference
    picture: LongTermAverage


def common_axes(own: Mapping[str, Axes]) -> dict[str, Axes]:
    """Give deployments of about the same time one time axis and one frequency axis.

    Parameters
    ----------
    own : mapping of str to Axes
        What each deployment covers.

    Returns
    -------
    axes : dict of Axes
        Of those that have at least half of the time of the longest one, what they cover together;
        of the others their own.
    """
    if not own:
        return {}
    longest = max(own.values(), key=lambda one: one.end_utc_ns - one.begin_utc_ns)
    alike = {name: one for name, one in own.items() if _shared(one, longest) >= OVERLAP_MIN}
    together = Axes(
        min(one.begin_utc_ns for one in alike.values()),
        max(one.end_utc_ns for one in alike.values()),
        max(one.f_max_hz for one in alike.values()),
    )
    return {**own, **dict.fromkeys(alike, together)}


def _shared(one: Axes, longest: Axes) -> float:
    """Return the share of the longest time that another one has."""
    shared_ns = min(one.end_utc_ns, longest.end_utc_ns) - max(
        one.begin_utc_ns, longest.begin_utc_ns
    )
    return shared_ns / max(1, longest.end_utc_ns - longest.begin_utc_ns)


def on_one_scale(averages: Sequence[SignalAverage]) -> list[SignalAverage]:
    """Return averages whose colours stand for the same levels, of each unit."""
    levels: dict[str, list[Float64Array]] = defaultdict(list)
    for one in averages:
        levels[one.average.unit].append(one.average.level.ravel())
    ranges = {unit: limits_of(np.concatenate(some)) for unit, some in levels.items()}
    return [
        one._replace(average=replace(one.average, range_db=ranges[one.average.unit]))
        for one in averages
    ]


def compare(averages: Sequence[SignalAverage]) -> tuple[list[Comparison], list[str]]:
    """Return how much louder deployments are than one before them, and why others have no number.

    The reference is the first deployment that has a channel of the same name, levels in the same
    unit, and the same axes or at least ``SHARED_MIN_S`` of the time. Averages with other axes are
    pooled once more, over the time and the frequencies that both have. At most
    ``DIFFERENCES_MAX`` are returned.

    Parameters
    ----------
    averages : sequence of SignalAverage
        Those of one deployment follow each other.

    Returns
    -------
    found : list of Comparison
    left_out : list of str
        A line for each average that is not compared, but for those of the first deployment.
    """
    found: list[Comparison] = []
    left_out: list[str] = []
    before: dict[str, list[SignalAverage]] = defaultdict(list)
    for one in averages:
        alike = before[one.signal]
        reference, reason = _reference(one, alike)
        if reference is None:
            alike.append(one)
        elif len(found) == DIFFERENCES_MAX:
            reason = f"a report has at most {DIFFERENCES_MAX} differences"
        else:
            found.append(_comparison(*_on_shared_axes(one, reference)))
        if reason and one.deployment != averages[0].deployment:
            left_out.append(f"{one.deployment} {one.signal}".rstrip() + f": {reason}")
    return found, left_out


def _reference(
    one: SignalAverage, before: Sequence[SignalAverage]
) -> tuple[SignalAverage | None, str]:
    """Return the first average that another one can be compared with; else None and why not."""
    others = [other for other in before if other.deployment != one.deployment]
    if not others:
        return None, "no deployment before it has a channel of this name"
    unit = one.average.unit
    in_unit = [other for other in others if other.average.unit == unit]
    if not in_unit:
        return None, f"its levels are in {unit or 'dB'}, those before it in others"
    for other in in_unit:
        axes = _shared_axes(one.average, other.average)
        is_long = axes.end_utc_ns - axes.begin_utc_ns >= SHARED_MIN_S * NS_PER_S
        if is_long or _axes(one.average) == _axes(other.average):
            return other, ""
    return None, f"it has less than {SHARED_MIN_S} s in common with those before it"


def _shared_axes(one: LongTermAverage, other: LongTermAverage) -> Axes:
    """Return the time and the highest frequency that two averages have; the end may come first."""
    return Axes(
        max(one.begin_utc_ns, other.begin_utc_ns),
        min(one.end_utc_ns, other.end_utc_ns),
        min(one.f_max_hz, other.f_max_hz),
    )


def _on_shared_axes(
    one: SignalAverage, reference: SignalAverage
) -> tuple[SignalAverage, SignalAverage]:
    """Return two averages on the same axes."""
    axes = _shared_axes(one.average, reference.average)
    if all(_axes(each.average) == axes for each in (one, reference)):
        return one, reference
    first, second = (
        each._replace(average=pool_days(each.days, *axes)) for each in (one, reference)
    )
    return first, second


def _axes(average: LongTermAverage) -> Axes:
    return Axes(average.begin_utc_ns, average.end_utc_ns, average.f_max_hz)


def _comparison(one: SignalAverage, reference: SignalAverage) -> Comparison:
    with np.errstate(invalid="ignore"):  # of digital silence in both
        level = one.average.level - reference.average.level
    known = np.abs(level[np.isfinite(level)])
    most = np.percentile(known, _RANGE_PERCENT) if known.size else 0.0
    most = float(max(np.ceil(most), _RANGE_MIN_DB))
    picture = replace(
        one.average,
        level=level,
        unit="dB",
        range_db=(-most, most),
        period_s=max(one.average.period_s, reference.average.period_s),
    )
    numbers = DeploymentDifference(
        deployment=one.deployment,
        reference=reference.deployment,
        signal=one.signal,
        unit=reference.average.unit,
        bands=tuple(_bands(one.average, reference.average)),
    )
    return Comparison(numbers, picture)


def _bands(one: LongTermAverage, reference: LongTermAverage) -> Iterator[BandDifference]:
    """Yield the octaves in which both have data at the same time."""
    edges_hz = np.geomspace(one.f_max_hz, one.f_min_hz, len(one.level) + 1)
    octave = np.log2(np.sqrt(edges_hz[1:] * edges_hz[:-1]) / _OCTAVE_HZ)
    width_hz = -np.diff(edges_hz)
    both = np.isfinite(one.level) & np.isfinite(reference.level)
    powers = [_mean_power(average.level, both) for average in (one, reference)]
    for number in _OCTAVES:
        rows = (np.rint(octave) == number) & both.any(axis=1)
        if not rows.any():
            continue
        levels = [
            float(10.0 * np.log10(np.average(power[rows], weights=width_hz[rows])))
            for power in powers
        ]
        yield BandDifference(
            f_hz=_OCTAVE_HZ * 2.0**number,
            level_db=round(levels[0], 2),
            reference_db=round(levels[1], 2),
            difference_db=round(levels[0] - levels[1], 2),
        )


def _mean_power(level: Float64Array, used: np.ndarray) -> Float64Array:
    """Return the mean power of the used columns of each row; 0 without."""
    power = np.where(used, 10.0 ** (np.where(used, level, 0.0) / 10.0), 0.0)
    mean: Float64Array = power.sum(axis=1) / np.maximum(1, used.sum(axis=1))
    return mean


def diverging(n_entries: int) -> Uint8Array:
    """Return colours of differences, (n_entries, 3): blue below 0 dB, white at 0, red above."""
    place = np.linspace(-1.0, 1.0, n_entries)
    channels = [
        np.interp(place, (-1.0, 0.0, 1.0), of) for of in zip(_LOW, _MIDDLE, _HIGH, strict=True)
    ]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)
