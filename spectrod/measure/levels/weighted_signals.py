"""The signals of which levels are made: weighted, squared, averaged, interpolated."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.dsp.weighting import Weighting
from spectrod.measure.levels.frequency_weighting import FitWeighting, weighting_cascade
from spectrod.measure.levels.level_quantities import LevelQuantity
from spectrod.measure.levels.loudness import LoudnessMeter, LoudnessSteps
from spectrod.measure.levels.recursive import RecursiveFilter
from spectrod.measure.levels.time_weighting import TimeWeightedSquare, TimeWeighting
from spectrod.measure.levels.true_peak import AHEAD, BetweenSamples

T = TypeVar("T")

_FITTED: tuple[FitWeighting, ...] = ("A", "C")

_OF_SAMPLES = ("loudness", "sample")
"""Kinds of quantities of the digital samples."""

Averaged = tuple[Weighting, TimeWeighting]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a set of quantities needs.

    Attributes
    ----------
    weightings : tuple of str
        Frequency weightings whose squares are needed.
    averages : tuple of (str, str)
        Frequency and time weighting of the averages.
    percentiles : tuple of (str, str)
        Those of which histograms are needed.
    peaks : tuple of str
        Frequency weightings of which the largest magnitude is needed.
    loudness, true_peak, periods, sum, energy : bool
        Whether loudness, the true peak, sums of parts of the day, or the sum of the samples or of
        their squares is needed.
    """

    weightings: tuple[Weighting, ...]
    averages: tuple[Averaged, ...]
    percentiles: tuple[Averaged, ...]
    peaks: tuple[Weighting, ...]
    loudness: bool
    true_peak: bool
    periods: bool
    sum: bool
    energy: bool

    @property
    def samples_ahead(self) -> int:
        """Samples after an interval that its values need: peaks lie between samples."""
        return AHEAD if self.true_peak or self.peaks else 0

    @classmethod
    def of(cls, quantities: Sequence[LevelQuantity]) -> "Needs":
        """Return what quantities need."""
        names = {one.name for one in quantities}
        kinds = {one.kind for one in quantities}
        timed = [one for one in quantities if one.time]
        return cls(
            weightings=_unique(one.weighting for one in quantities if one.kind not in _OF_SAMPLES),
            averages=_unique((one.weighting, one.time) for one in timed if one.time),
            percentiles=_unique(
                (one.weighting, one.time) for one in timed if one.time and one.kind == "percentile"
            ),
            peaks=_unique(one.weighting for one in quantities if one.kind == "peak_level"),
            loudness="loudness" in kinds,
            true_peak="true_peak" in names,
            periods="period" in kinds,
            sum="dc" in names,
            energy=bool({"rms", "crest"} & names),
        )


def _unique(found: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSignals:
    """Signals of one chunk of samples; all arrays (channels, CHUNK_SAMPLES) float64.

    Attributes
    ----------
    samples : array
        The samples [FS].
    squares : dict
        Squares of the weighted samples, by frequency weighting [FS^2].
    averages : dict
        Averages of the squares, by frequency and time weighting [FS^2].
    between : (channels, CHUNK_SAMPLES, 3) array or None
        Magnitudes between the samples, see ``BetweenSamples.run`` [FS].
    weighted_between : dict
        Magnitudes between the weighted samples, by frequency weighting [FS].
    steps : LoudnessSteps or None
        Steps of loudness that end in the chunk.
    """

    samples: Float64Array
    squares: dict[Weighting, Float64Array]
    averages: dict[Averaged, Float64Array]
    between: Float64Array | None
    weighted_between: dict[Weighting, Float64Array]
    steps: LoudnessSteps | None


class SignalChain:
    """Computes the signals that quantities need, chunk by chunk.

    Parameters
    ----------
    needs : Needs
        Which signals.
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.
    weights : sequence of float
        Weights of the channels in the loudness; unused without.

    Raises
    ------
    ConfigError
        If a weighting does not exist at this sample rate.
    """

    def __init__(self, needs: Needs, fs: float, channels: int, weights: Sequence[float]) -> None:
        self._needs = needs
        self._filters = {
            weighting: RecursiveFilter(weighting_cascade(weighting, fs), channels)
            for weighting in _FITTED
            if weighting in needs.weightings
        }
        self._averages = {
            both: TimeWeightedSquare(both[1], fs, channels) for both in needs.averages
        }
        self._between = BetweenSamples(channels) if needs.true_peak else None
        self._weighted_between = {weighting: BetweenSamples(channels) for weighting in needs.peaks}
        self._loudness = LoudnessMeter(fs, weights) if needs.loudness else None

    def reset(self) -> None:
        """Forget all samples so far."""
        for stage in self._filters.values():
            stage.reset()
        for average in self._averages.values():
            average.reset()
        for between in self._weighted_between.values():
            between.reset()
        if self._between is not None:
            self._between.reset()
        if self._loudness is not None:
            self._loudness.reset()

    def run(self, samples: Float64Array, corrected: Float64Array) -> ChunkSignals:
        """Process the next chunk.

        Parameters
        ----------
        samples : (channels, CHUNK_SAMPLES) float64
            Digital samples, of which peaks and loudness are made [FS].
        corrected : (channels, CHUNK_SAMPLES) float64
            Samples of which levels are made: the same without a frequency response [FS].
        """
        squares: dict[Weighting, Float64Array] = {}
        weighted_between: dict[Weighting, Float64Array] = {}
        for weighting in self._needs.weightings:
            stage = self._filters.get(weighting)  # type: ignore[arg-type]  # Z has none
            weighted = corrected if stage is None else stage.run(corrected)
            if weighting in self._weighted_between:
                weighted_between[weighting] = self._weighted_between[weighting].run(weighted)
            squares[weighting] = np.square(weighted)
        averages = {both: stage.run(squares[both[0]]) for both, stage in self._averages.items()}
        return ChunkSignals(
            samples,
            squares,
            averages,
            None if self._between is None else self._between.run(samples),
            weighted_between,
            None if self._loudness is None else self._loudness.run(samples),
        )
