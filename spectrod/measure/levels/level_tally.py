"""What is kept of a span of time: sums, extremes, histograms."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, log2

import numpy as np

from spectrod.dsp.units import FULL_SCALE, Float64Array
from spectrod.measure.levels.histogram import LevelHistogram
from spectrod.measure.levels.level_quantities import PERIODS
from spectrod.measure.levels.loudness import LoudnessTally
from spectrod.measure.levels.time_weighting import TimeWeighting
from spectrod.measure.levels.weighted_signals import ChunkSignals, Needs

_PERCENTILE_RATE_HZ = 500.0


def percentile_step(fs: float) -> int:
    """Return the samples from one counted level of a percentile to the next: a power of two.

    Levels are counted 500 to 1000 times per second, or at each sample of lower rates.
    """
    return 1 << max(0, min(12, floor(log2(fs / _PERCENTILE_RATE_HZ))))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a chunk that belongs to one interval and one part of the day.

    Attributes
    ----------
    first, stop : int
        Its samples in the chunk.
    begin : int
        Index of the chunk's first sample since the signals were reset.
    settled : mapping of str to int
        By time weighting: the first sample in the chunk whose average has settled.
    period : int
        Part of the day; 0 without.
    between : slice
        Which values of ``BetweenSamples.run`` belong to the interval.
    """

    first: int
    stop: int
    begin: int
    settled: Mapping[TimeWeighting, int]
    period: int
    between: slice


class Tally:
    """Sums, extremes and histograms of a span of time, which ``values`` turns into levels.

    Parameters
    ----------
    needs : Needs
        What to keep.
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.

    Attributes
    ----------
    n_samples : int
        Samples per channel.
    energy : dict of (channels,) float64
        Sums of squares, by frequency weighting [FS^2].
    period_energy : (3, channels) float64
        Sums of squares of A, by part of the day [FS^2].
    period_samples : list of int
        Samples of each part of the day.
    total, square_total : (channels,) float64
        Sums of the digital samples [FS], and of their squares [FS^2].
    largest : (channels,) float64
        Largest magnitude of a sample [FS].
    true_peak : (channels,) float64
        Largest magnitude of an interpolated value [FS].
    n_full_scale : (channels,) int64
        Samples at full scale.
    peaks : dict of (channels,) float64
        Largest squares, also between samples, by frequency weighting [FS^2].
    maxima, minima, last : dict of (channels,) float64
        Of the averages [FS^2]; minima leave out the time of settling. NaN before there are any.
    histograms : dict of LevelHistogram
        Of the averages, without the time of settling.
    loudness : LoudnessTally
    """

    def __init__(self, needs: Needs, fs: float, channels: int) -> None:
        self._needs, self._step = needs, percentile_step(fs)
        self.n_samples = 0
        self.energy = {name: np.zeros(channels) for name in needs.weightings}
        self.period_energy = np.zeros((len(PERIODS), channels))
        self.period_samples = [0] * len(PERIODS)
        self.total, self.square_total = np.zeros(channels), np.zeros(channels)
        self.largest, self.true_peak = np.zeros(channels), np.zeros(channels)
        self.n_full_scale = np.zeros(channels, np.int64)
        self.peaks = {name: np.zeros(channels) for name in needs.peaks}
        self.maxima, self.minima, self.last = (
            {both: np.full(channels, np.nan) for both in needs.averages} for _ in range(3)
        )
        self.histograms = {both: LevelHistogram(channels) for both in needs.percentiles}
        self.loudness = LoudnessTally()

    def add(self, signals: ChunkSignals, part: Part) -> None:
        """Add a part of a chunk; parts come in order."""
        span = slice(part.first, part.stop)
        self.n_samples += part.stop - part.first
        self._add_samples(signals, part)
        for name, squares in signals.squares.items():
            energy = squares[:, span].sum(axis=1)
            self.energy[name] += energy
            if name == "A" and self._needs.periods:
                self.period_energy[part.period] += energy
                self.period_samples[part.period] += part.stop - part.first
            if name in self.peaks:
                np.maximum(self.peaks[name], squares[:, span].max(axis=1), out=self.peaks[name])
        self.add_between(signals, part.between)
        self._add_averages(signals, part)
        if signals.steps is not None:
            steps = signals.steps.ending_in(part.begin + part.first, part.begin + part.stop)
            self.loudness.add(steps)

    def add_between(self, signals: ChunkSignals, chosen: slice) -> None:
        """Add what lies between samples; see ``Part.between``."""
        for name, magnitudes in signals.weighted_between.items():
            largest = _largest(magnitudes[:, chosen])
            np.maximum(self.peaks[name], np.square(largest), out=self.peaks[name])
        if signals.between is not None:
            largest = _largest(signals.between[:, chosen])
            np.maximum(self.true_peak, largest, out=self.true_peak)

    def _add_samples(self, signals: ChunkSignals, part: Part) -> None:
        magnitudes = np.abs(signals.samples[:, part.first : part.stop])
        largest = magnitudes.max(axis=1)
        np.maximum(self.largest, largest, out=self.largest)
        if (largest >= FULL_SCALE).any():
            self.n_full_scale += np.count_nonzero(magnitudes >= FULL_SCALE, axis=1)
        if self._needs.energy:
            self.square_total += np.square(signals.samples[:, part.first : part.stop]).sum(axis=1)
        if self._needs.sum:
            self.total += signals.samples[:, part.first : part.stop].sum(axis=1)

    def _add_averages(self, signals: ChunkSignals, part: Part) -> None:
        for both, averages in signals.averages.items():
            self.last[both] = averages[:, part.stop - 1].copy()
            highest = averages[:, part.first : part.stop].max(axis=1)
            self.maxima[both] = np.fmax(self.maxima[both], highest)
            first = max(part.first, part.settled[both[1]])
            if first >= part.stop:
                continue
            lowest = averages[:, first : part.stop].min(axis=1)
            self.minima[both] = np.fmin(self.minima[both], lowest)
            if both in self.histograms:
                # The last sample of each step is counted.
                first += (self._step - 1 - first) % self._step
                self.histograms[both].add(averages[:, first : part.stop : self._step])

    def merge(self, later: "Tally") -> None:
        """Add a later span of time."""
        self.n_samples += later.n_samples
        for name, energy in later.energy.items():
            self.energy[name] += energy
        self.period_energy += later.period_energy
        self.period_samples = [
            ours + theirs
            for ours, theirs in zip(self.period_samples, later.period_samples, strict=True)
        ]
        self.total += later.total
        self.square_total += later.square_total
        self.n_full_scale += later.n_full_scale
        np.maximum(self.largest, later.largest, out=self.largest)
        np.maximum(self.true_peak, later.true_peak, out=self.true_peak)
        for name, peak in later.peaks.items():
            np.maximum(self.peaks[name], peak, out=self.peaks[name])
        for both in self._needs.averages:
            self.maxima[both] = np.fmax(self.maxima[both], later.maxima[both])
            self.minima[both] = np.fmin(self.minima[both], later.minima[both])
            self.last[both] = later.last[both]
        for both, histogram in later.histograms.items():
            self.histograms[both].merge(histogram)
        self.loudness.merge(later.loudness)


def _largest(magnitudes: Float64Array) -> Float64Array:
    """Return the largest magnitude of each channel, (channels,); 0 of none."""
    found: Float64Array = magnitudes.reshape(len(magnitudes), -1).max(axis=1, initial=0.0)
    return found


def mean(total: Float64Array, n: int) -> Float64Array:
    """Return sums divided by a number; NaN for none."""
    return total / n if n else np.full(total.shape, np.nan)
