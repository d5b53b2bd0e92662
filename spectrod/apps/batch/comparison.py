"""Averages of several deployments beside each other: one scale, one time axis, and differences."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from spectrod.apps.batch.ltsa import LongTermAverage, limits_of
from spectrod.dsp.units import Float64Array
from spectrod.formats.picture.colormaps import Uint8Array

DIFFERENCES_MAX = 8
"""Most differences of a report."""
OVERLAP_MIN = 0.5
"""Least share of the longest deployment's time that another one has, to be compared with it."""
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
    """The average of a signal of a deployment."""

    deployment: str
    signal: str
    average: LongTermAverage


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


def comparisons(averages: Sequence[SignalAverage]) -> Iterator[Comparison]:
    """Yield how much louder deployments are than the first one with the same signal and axes.

    Averages in different units, as dB SPL and dBFS, have no difference. At most
    ``DIFFERENCES_MAX`` are yielded.
    """
    references: dict[object, SignalAverage] = {}
    n_found = 0
    for one in averages:
        average = one.average
        axes = average.begin_utc_ns, average.end_utc_ns, average.f_min_hz, average.f_max_hz
        reference = references.setdefault((one.signal, average.unit, axes), one)
        if reference.deployment == one.deployment or n_found == DIFFERENCES_MAX:
            continue
        n_found += 1
        yield _comparison(one, reference)


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
        unit=one.average.unit,
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
