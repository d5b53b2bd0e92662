"""Levels and other values of a span of time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectrod.dsp.units import (
    FLOOR_DBFS,
    FULL_SCALE_SINE_FS2,
    Float64Array,
    power_to_level,
)
from spectrod.measure.levels.level_quantities import PERIODS, LevelQuantity
from spectrod.measure.levels.level_tally import Tally, mean
from spectrod.measure.levels.loudness import LoudnessTally, loudness
from spectrod.measure.levels.weighted_signals import Averaged

_PERIOD_PENALTIES_DB = (0.0, 5.0, 10.0)
"""Penalties of day, evening and night in Lden: Directive 2002/49/EC, annex I [dB]."""

UNCALIBRATED_DB = -10.0 * float(np.log10(FULL_SCALE_SINE_FS2))
"""Level of a signal whose root mean square is 1.0, re a full-scale sine [dBFS]."""


@dataclass(frozen=True, slots=True)
class Scale:
    """What turns sums into levels.

    Attributes
    ----------
    fs : float
        Sample rate [Hz].
    full_scale_db : (channels,) float64
        Level of a signal whose root mean square is 1.0, of each channel [dB].
    """

    fs: float
    full_scale_db: Float64Array

    def level(self, power: Float64Array) -> Float64Array:
        """Return the levels of (channels,) mean squares [FS^2]; silence is -200 dB in any unit."""
        dbfs = power_to_level(power, FULL_SCALE_SINE_FS2)
        return np.maximum(dbfs + (self.full_scale_db - UNCALIBRATED_DB), FLOOR_DBFS)


def values_of(
    quantities: Sequence[LevelQuantity],
    tally: Tally,
    scale: Scale,
    hours: tuple[float, float, float],
) -> Float64Array:
    """Return the values of a span of time.

    Parameters
    ----------
    quantities : sequence of LevelQuantity
        Which values.
    tally : Tally
        The span of time; made for at least these quantities.
    scale : Scale
        Sample rate and calibration.
    hours : tuple of three float
        Duration of day, evening and night of the span's dates, for Lden [h].

    Returns
    -------
    values : (quantities, channels) float64
        NaN where there is no value yet.
    """
    rows = [_value(one, tally, scale, hours) for one in quantities]
    return np.array([np.broadcast_to(row, scale.full_scale_db.shape) for row in rows])


def _value(
    quantity: LevelQuantity, tally: Tally, scale: Scale, hours: tuple[float, float, float]
) -> Float64Array | float:
    if quantity.kind == "loudness":
        return _loudness(quantity.name, tally.loudness)
    if quantity.kind == "sample":
        return _of_samples(quantity.name, tally)
    if quantity.kind == "period":
        return scale.level(_of_periods(quantity.name, tally, hours))
    return scale.level(_power(quantity, tally, scale.fs))


def _power(quantity: LevelQuantity, tally: Tally, fs: float) -> Float64Array:
    if quantity.time is not None:
        return _averaged(quantity, (quantity.weighting, quantity.time), tally)
    if quantity.kind == "peak_level":
        return tally.peaks[quantity.weighting]
    square = mean(tally.energy[quantity.weighting], tally.n_samples)
    return square * (tally.n_samples / fs) if quantity.kind == "exposure" else square


def _averaged(quantity: LevelQuantity, both: Averaged, tally: Tally) -> Float64Array:
    match quantity.kind:
        case "max":
            return tally.maxima[both]
        case "min":
            return tally.minima[both]
        case "percentile":
            return tally.histograms[both].exceeded(quantity.percent)
    return tally.last[both]


def _of_periods(name: str, tally: Tally, hours: tuple[float, float, float]) -> Float64Array:
    means = [
        mean(energy, n) for energy, n in zip(tally.period_energy, tally.period_samples, strict=True)
    ]
    if name != "Lden":
        return means[PERIODS.index(name.removeprefix("L"))]
    weights = [
        duration * 10.0 ** (penalty_db / 10.0)
        for duration, penalty_db in zip(hours, _PERIOD_PENALTIES_DB, strict=True)
    ]
    parts = [weight * one for weight, one in zip(weights, means, strict=True)]
    summed: Float64Array = np.sum(parts, axis=0) / sum(hours)
    return summed


def _loudness(name: str, tally: LoudnessTally) -> float:
    match name:
        case "LUFS_I":
            return tally.integrated_lufs
        case "LRA":
            return tally.range_lu
        case "LUFS_M":
            power = tally.momentary
        case "LUFS_Mmax":
            power = tally.momentary_max
        case "LUFS_S":
            power = tally.short_term
        case _:
            power = tally.short_term_max
    return float(np.maximum(loudness(power), FLOOR_DBFS))


def _of_samples(name: str, tally: Tally) -> Float64Array:
    if name == "dc":
        return mean(tally.total, tally.n_samples)
    square = mean(tally.square_total, tally.n_samples)
    match name:
        case "rms":
            return np.asarray(np.sqrt(square))
        case "crest":
            with np.errstate(invalid="ignore", divide="ignore"):  # silence has no crest factor
                ratio = np.square(tally.largest) / square
            return power_to_level(ratio)
        case "true_peak":
            largest = np.maximum(tally.true_peak, tally.largest)
        case _:
            largest = tally.largest
    return power_to_level(np.square(largest), 1.0, FLOOR_DBFS)
