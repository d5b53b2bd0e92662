"""Levels in fractional octaves by filters: their quantities, signals, sums and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.histogram import LevelHistogram
from spectrod.measure.levels.level_quantities import (
    BAND_FORMS,
    BAND_QUANTITIES_DEFAULT,
    BAND_RANGE_HZ,
    LevelQuantity,
    parse_quantities,
)
from spectrod.measure.levels.level_tally import Part, percentile_step
from spectrod.measure.levels.level_values import Scale
from spectrod.measure.levels.octave_bank import OctaveFilterBank
from spectrod.measure.levels.octave_filters import FRACTIONS, OctaveFilter, octave_filters
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, RecursiveFilter, Section
from spectrod.measure.levels.time_weighting import SETTLE_S, TIME_CONSTANTS_S, TimeWeighting

_KINDS = ("eq", "exposure", "last", "max", "min", "percentile")
_FRACTIONS = {"octave": 1, "third-octave": 3} | {f"octave/{n}": n for n in FRACTIONS}


@dataclass(frozen=True, slots=True)
class BandLevels:
    """Fractional octaves, and the quantities that are measured in each.

    Attributes
    ----------
    filters : tuple of OctaveFilter
        The bands, ascending.
    quantities : tuple of LevelQuantity
    """

    filters: tuple[OctaveFilter, ...] = ()
    quantities: tuple[LevelQuantity, ...] = ()

    @property
    def named_quantities(self) -> tuple[LevelQuantity, ...]:
        """A quantity of each band, named ``LZeq_63Hz``: all bands of the first, of the next, ..."""
        return tuple(
            replace(one, name=f"{one.name}_{band.name.replace(' ', '')}")
            for one in self.quantities
            for band in self.filters
        )

    @property
    def times(self) -> tuple[TimeWeighting, ...]:
        """Time weightings that the quantities need."""
        return tuple(dict.fromkeys(one.time for one in self.quantities if one.time))

    @property
    def percentiles(self) -> tuple[TimeWeighting, ...]:
        """Time weightings of which histograms are needed."""
        timed = (one.time for one in self.quantities if one.kind == "percentile")
        return tuple(dict.fromkeys(one for one in timed if one))

    @property
    def settle_s(self) -> float:
        """Time after a start until every value is final [s]."""
        slowest = max((one.settle_s for one in self.filters), default=0.0)
        return slowest + max((SETTLE_S[one] for one in self.times), default=0.0)


NO_BANDS = BandLevels()


def band_levels(
    name: str,
    quantities: Sequence[str],
    fs: float,
    interval_s: float,
    range_hz: tuple[float, float] = BAND_RANGE_HZ,
) -> BandLevels:
    """Choose bands and their quantities by name.

    Parameters
    ----------
    name : str
        See ``BAND_FORMS``; empty for no bands.
    quantities : sequence of str
        Z-weighted levels with no time weighting, F or S.
    fs, interval_s : float
        Sample rate [Hz], length of an interval [s].
    range_hz : (float, float)
        First and last nominal mid-band frequency [Hz].

    Raises
    ------
    ConfigError
        If a name or the range breaks a rule.
    """
    if not name:
        if quantities:
            raise ConfigError(
                f"band_quantities={','.join(quantities)}: need bands: {BAND_FORMS}",
                "band_quantities",
            )
        return NO_BANDS
    if name not in _FRACTIONS:
        raise ConfigError(f"must be {BAND_FORMS}, the filters of IEC 61260-1", bands=name)
    parsed = parse_quantities(quantities or BAND_QUANTITIES_DEFAULT, interval_s)
    for one in parsed:
        if one.kind not in _KINDS or one.weighting != "Z" or one.time == "I":
            raise ConfigError(
                f"quantity={one.name!r}: in bands, must be a level without frequency weighting: "
                "LZeq, LZE, or LZF or LZS alone or with max, min or a percentage, as LZF90"
            )
    return BandLevels(octave_filters(fs, _FRACTIONS[name], *range_hz), parsed)


@dataclass(frozen=True, slots=True, eq=False)
class BandSteps:
    """Signals of one chunk in the bands that have steps of one length.

    Attributes
    ----------
    bands : slice
        The bands.
    step : int
        Samples of a step.
    settle_samples : float
        Settling time of the slowest of their filters [samples].
    squares : (bands, channels, CHUNK_SAMPLES // step) float64
        Mean squares of the steps [FS^2].
    averages : dict of array
        Time-weighted squares at the ends of the steps, by time weighting [FS^2].
    """

    bands: slice
    step: int
    settle_samples: float
    squares: Float64Array
    averages: dict[TimeWeighting, Float64Array]


class BandChain:
    """Computes the squares in bands, chunk by chunk, in steps of about a millisecond.

    A step has ``percentile_step`` samples, or one sample of the band's rate if that is more. F and
    S average the steps' mean squares: a maximum between two ends of steps, at most 2 ms apart, may
    read up to 0.07 dB low with F.

    Parameters
    ----------
    levels : BandLevels
        The bands, at least one, and what is needed of them.
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.
    unsettled_samples : int
        Samples after a start that are not to be relied on.
    """

    def __init__(
        self, levels: BandLevels, fs: float, channels: int, unsettled_samples: int = 0
    ) -> None:
        self._channels = channels
        self._bank = OctaveFilterBank(levels.filters, channels)
        steps = [max(percentile_step(fs), 1 << one.stage) for one in levels.filters]
        self._groups: list[_StepGroup] = []
        first = 0
        while first < len(steps):
            stop = first + steps[first:].count(steps[first])  # steps descend with frequency
            slowest_s = max(one.settle_s for one in levels.filters[first:stop])
            averages = {
                time: _average(time, steps[first], fs, (stop - first) * channels)
                for time in levels.times
            }
            settle_samples = slowest_s * fs + unsettled_samples
            group = _StepGroup(slice(first, stop), steps[first], settle_samples, averages)
            self._groups.append(group)
            first = stop

    def reset(self) -> None:
        """Forget all samples so far."""
        self._bank.reset()
        for group in self._groups:
            for average in group.averages.values():
                average.reset()

    def run(self, samples: Float64Array) -> list[BandSteps]:
        """Process the next chunk, (channels, CHUNK_SAMPLES) float64 samples."""
        filtered = self._bank.run(samples)
        found = []
        for group in self._groups:
            n_steps = CHUNK_SAMPLES // group.step
            n_bands = group.bands.stop - group.bands.start
            squares = np.empty((n_bands, self._channels, n_steps))
            k = 0
            while k < n_bands:
                bands = next(filtered)
                np.square(bands, out=bands)
                steps = bands.reshape(len(bands), self._channels, n_steps, -1)
                np.mean(steps, axis=3, out=squares[k : k + len(bands)])
                k += len(bands)
            rows = squares.reshape(-1, n_steps)
            averages = {
                # Rounding can leave a negative residue where the average is nearly 0.
                time: np.maximum(average.run(rows), 0.0).reshape(squares.shape)
                for time, average in group.averages.items()
            }
            found.append(
                BandSteps(group.bands, group.step, group.settle_samples, squares, averages)
            )
        return found


@dataclass(frozen=True, slots=True)
class _StepGroup:
    """Bands with steps of one length, and their averages."""

    bands: slice
    step: int
    settle_samples: float
    averages: Mapping[TimeWeighting, RecursiveFilter]


def _average(time: TimeWeighting, step: int, fs: float, channels: int) -> RecursiveFilter:
    keep = exp(-step / (fs * TIME_CONSTANTS_S[time]))
    section = Section((1.0 - keep, 0.0), (1.0, -keep))
    return RecursiveFilter([section], channels, CHUNK_SAMPLES // step)


class BandTally:
    """Sums, extremes and histograms of a span of time, of each band and channel.

    Parameters
    ----------
    levels : BandLevels
        What to keep.
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.

    Attributes
    ----------
    energy : (bands, channels) float64
        Sums of squares [FS^2].
    n_samples : (bands, 1) int64
        Samples of the steps that end in the span.
    maxima, minima, last : dict of (bands, channels) float64
        Of the averages, by time weighting [FS^2]; minima leave out the settling time. NaN before
        there are any.
    histograms : dict of LevelHistogram
        Of the averages of all bands and channels, without the settling time.
    """

    def __init__(self, levels: BandLevels, fs: float, channels: int) -> None:
        self._fs = fs
        shape = len(levels.filters), channels
        self.energy = np.zeros(shape)
        self.n_samples = np.zeros((len(levels.filters), 1), np.int64)
        self.maxima, self.minima, self.last = (
            {time: np.full(shape, np.nan) for time in levels.times} for _ in range(3)
        )
        self.histograms = {
            time: [LevelHistogram(channels) for _ in levels.filters] for time in levels.percentiles
        }

    def add(self, found: Sequence[BandSteps], part: Part) -> None:
        """Add a part of a chunk; a step belongs to the part that holds its last sample."""
        for one in found:
            steps = slice(part.first // one.step, part.stop // one.step)
            if steps.start == steps.stop:
                continue
            squares = one.squares[:, :, steps]
            self.energy[one.bands] += squares.sum(axis=2) * one.step
            self.n_samples[one.bands] += squares.shape[2] * one.step
            for time, averages in one.averages.items():
                self._add_averages(
                    one, time, averages[:, :, steps], part.begin + steps.start * one.step
                )

    def _add_averages(
        self, one: BandSteps, time: TimeWeighting, averages: Float64Array, begin: int
    ) -> None:
        """Add averages whose first step begins at a sample since the start."""
        bands = one.bands
        self.last[time][bands] = averages[:, :, -1]
        self.maxima[time][bands] = np.fmax(self.maxima[time][bands], averages.max(axis=2))
        unsettled = one.settle_samples + SETTLE_S[time] * self._fs - begin
        settled = averages[:, :, max(0, -int(-unsettled // one.step)) :]
        if not settled.shape[2]:
            return
        self.minima[time][bands] = np.fmin(self.minima[time][bands], settled.min(axis=2))
        if time in self.histograms:
            for histogram, band in zip(self.histograms[time][bands], settled, strict=True):
                histogram.add(band)

    def merge(self, later: "BandTally") -> None:
        """Add a later span of time."""
        self.energy += later.energy
        self.n_samples += later.n_samples
        for time, last in later.last.items():
            self.maxima[time] = np.fmax(self.maxima[time], later.maxima[time])
            self.minima[time] = np.fmin(self.minima[time], later.minima[time])
            self.last[time] = np.where(np.isnan(last), self.last[time], last)
        for time, histograms in later.histograms.items():
            for mine, theirs in zip(self.histograms[time], histograms, strict=True):
                mine.merge(theirs)


def band_values(levels: BandLevels, tally: BandTally, scale: Scale) -> Float64Array:
    """Return the levels of a span of time, (quantities, bands, channels) float64.

    NaN where a band has no step in the span.
    """
    shape = (len(levels.quantities), *tally.energy.shape)
    found = np.empty(shape)
    for k, quantity in enumerate(levels.quantities):
        found[k] = scale.level(_power(quantity, tally, scale.fs))
    return found


def _power(quantity: LevelQuantity, tally: BandTally, fs: float) -> Float64Array:
    if quantity.time is not None:
        match quantity.kind:
            case "max":
                return tally.maxima[quantity.time]
            case "min":
                return tally.minima[quantity.time]
            case "percentile":
                histograms = tally.histograms[quantity.time]
                return np.array([one.exceeded(quantity.percent) for one in histograms])
        return tally.last[quantity.time]
    if quantity.kind == "exposure":
        return np.where(tally.n_samples > 0, tally.energy / fs, np.nan)
    with np.errstate(invalid="ignore"):
        mean: Float64Array = tally.energy / tally.n_samples
    return mean
