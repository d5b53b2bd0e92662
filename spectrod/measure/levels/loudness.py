"""Loudness of ITU-R BS.1770, EBU Tech 3341 and EBU Tech 3342."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.frequency_weighting import k_cascade
from spectrod.measure.levels.histogram import PowerHistogram
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, RecursiveFilter

STEPS_PER_S = 100
"""Updates of momentary and short-term loudness per second."""
MOMENTARY_STEPS, SHORT_TERM_STEPS = 40, 300
"""Steps of 400 ms and of 3 s."""
_GATING_STEPS = 10
"""Steps between gating blocks, which overlap by 75 %, and between values of the range."""

_OFFSET_DB = -0.691
ABSOLUTE_GATE_LUFS = -70.0
_RELATIVE_GATE_LU, _RANGE_GATE_LU = -10.0, -20.0
_RANGE_PERCENTS = (10.0, 95.0)

_SURROUND = 1.41
CHANNEL_WEIGHTS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (1.0, 1.0),
    5: (1.0, 1.0, 1.0, _SURROUND, _SURROUND),
    6: (1.0, 1.0, 1.0, 0.0, _SURROUND, _SURROUND),
}
"""Weights by number of channels: mono; L R; L R C Ls Rs; L R C LFE Ls Rs."""
_LOW_FREQUENCY, _SIDE, _BACK = ("LFE",), ("SL", "SR"), ("BL", "BR", "BC")


def loudness(power: Float64Array | float) -> Float64Array:
    """Return the loudness of weighted powers, (...) float64 [LUFS]; -inf of silence."""
    with np.errstate(divide="ignore"):
        level: Float64Array = np.asarray(_OFFSET_DB + 10.0 * np.log10(power))
    return level


def _power(lufs: float) -> float:
    return float(10.0 ** ((lufs - _OFFSET_DB) / 10.0))


def speaker_weights(speakers: Sequence[str]) -> tuple[float, ...]:
    """Return the weights of channels by their speakers.

    Speakers from 60 to 120 degrees beside the front weigh 1.41, all others 1 [1]_; low frequencies
    are left out. Those behind are at 110 degrees where there are none at the sides [2]_, else at
    135 degrees and beyond.

    Parameters
    ----------
    speakers : sequence of str
        As ``FL`` or ``LFE``; see ``spectrod.source.files.speakers``.

    References
    ----------
    .. [1] ITU-R BS.1770-5, annex 1 (3/2 and 3/2/1), annex 3, table 4.
    .. [2] ITU-R BS.775: loudspeakers of the surround channels, of one (3/1) or two (3/2).
    """
    surround = _SIDE if any(one in _SIDE for one in speakers) else _BACK
    weights = {**dict.fromkeys(surround, _SURROUND), **dict.fromkeys(_LOW_FREQUENCY, 0.0)}
    return tuple(weights.get(one, 1.0) for one in speakers)


def channel_weights(
    channels: int, given: Sequence[float] | None = None, speakers: Sequence[str] = ()
) -> tuple[float, ...]:
    """Return the weights of the channels in the sum of powers.

    Parameters
    ----------
    channels : int
        Number of channels.
    given : sequence of float, optional
        Weights that the user has set, one a channel, 0 to 10.
    speakers : sequence of str
        Speaker of each channel, which gives its weight by default; if unknown, the number of
        channels does, by ``CHANNEL_WEIGHTS``.

    Raises
    ------
    ConfigError
        If there are no weights for this number of channels, or they break a rule.
    """
    if speakers and len(speakers) != channels:
        raise ConfigError(f"speakers: {len(speakers)} values for {channels} channels")
    if given is None:
        if speakers:
            return speaker_weights(speakers)
        if channels not in CHANNEL_WEIGHTS:
            raise ConfigError(
                f"channels={channels}: loudness has channel weights for 1, 2, 5 (L R C Ls Rs) and "
                "6 (L R C LFE Ls Rs) channels, and for files that name the speakers; give "
                "channel_weights"
            )
        return CHANNEL_WEIGHTS[channels]
    weights = tuple(float(value) for value in given)
    if len(weights) != channels:
        raise ConfigError(f"{len(weights)} values for {channels} channels", channel_weights=...)
    for value in weights:
        if not 0.0 <= value <= 10.0:
            raise ConfigError("must be 0 to 10", channel_weights=value)
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class LoudnessSteps:
    """Values at the ends of consecutive steps of 10 ms.

    Attributes
    ----------
    ends : (n,) int64
        Index after the last sample of each step, from the start or the last reset.
    momentary, short_term : (n,) float64
        Weighted mean powers of the last 400 ms and 3 s [FS^2]; NaN before these are complete.
    gates : (n,) bool
        True at the ends of gating blocks: every 100 ms.
    """

    ends: NDArray[np.int64]
    momentary: Float64Array
    short_term: Float64Array
    gates: NDArray[np.bool_]

    def ending_in(self, first: int, stop: int) -> "LoudnessSteps":
        """Return the steps that end after a sample index, and at or before another."""
        part = slice(*np.searchsorted(self.ends, (first, stop), side="right"))
        return LoudnessSteps(
            self.ends[part], self.momentary[part], self.short_term[part], self.gates[part]
        )


class LoudnessMeter:
    """Computes momentary and short-term loudness of one programme, chunk by chunk.

    Parameters
    ----------
    fs : float
        Sample rate, at least 8 kHz [Hz].
    weights : sequence of float
        Weight of each channel; see ``channel_weights``.

    Raises
    ------
    ConfigError
        If the sample rate is too low.
    """

    def __init__(self, fs: float, weights: Sequence[float]) -> None:
        self._fs = fs
        self._weights = np.array(weights)[:, np.newaxis]
        self._filter = RecursiveFilter(k_cascade(fs), len(weights))
        self.reset()

    def reset(self) -> None:
        """Forget all samples so far."""
        self._filter.reset()
        self._position = 0
        self._open_sum = 0.0
        self._n_steps = 0
        self._sums = np.zeros(SHORT_TERM_STEPS)

    def run(self, samples: Float64Array) -> LoudnessSteps:
        """Process the next chunk.

        Parameters
        ----------
        samples : (channels, CHUNK_SAMPLES) float64

        Returns
        -------
        steps : LoudnessSteps
            The steps that end in this chunk.
        """
        squares = np.square(self._filter.run(samples))
        squares *= self._weights
        sums = self._step_sums(squares.sum(axis=0))
        first = self._n_steps + 1
        self._n_steps += len(sums)
        numbers = np.arange(first, self._n_steps + 1)
        self._sums = np.concatenate((self._sums, sums))
        momentary = self._means(numbers, MOMENTARY_STEPS)
        short_term = self._means(numbers, SHORT_TERM_STEPS)
        self._sums = self._sums[len(sums) :]
        ends = self._step_ends(numbers)
        return LoudnessSteps(ends, momentary, short_term, numbers % _GATING_STEPS == 0)

    def _step_ends(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index after the last sample of steps that are numbered from 1."""
        ends: NDArray[np.int64] = np.rint(numbers * (self._fs / STEPS_PER_S)).astype(np.int64)
        return ends

    def _step_sums(self, power: Float64Array) -> Float64Array:
        """Return the sums of the steps that end in a chunk; keep that of the open one."""
        begin, stop = self._position, self._position + CHUNK_SAMPLES
        self._position = stop
        n_ends_max = int(CHUNK_SAMPLES * STEPS_PER_S / self._fs) + 2
        ends = self._step_ends(np.arange(self._n_steps + 1, self._n_steps + 1 + n_ends_max))
        cuts = (ends[ends <= stop] - begin).tolist()
        sums, first = [], 0
        for cut in cuts:
            sums.append(self._open_sum + float(power[first:cut].sum()))
            self._open_sum, first = 0.0, cut
        self._open_sum += float(power[first:].sum())
        return np.array(sums)

    def _means(self, numbers: NDArray[np.int64], n_steps: int) -> Float64Array:
        """Return the mean powers of the n_steps steps up to each step; NaN if there are fewer."""
        if not len(numbers):
            return np.zeros(0)
        recent = self._sums[len(self._sums) - len(numbers) - n_steps + 1 :]
        totals = sliding_window_view(recent, n_steps).sum(axis=1)
        lengths = self._step_ends(numbers) - self._step_ends(numbers - n_steps)
        means: Float64Array = np.where(numbers >= n_steps, totals / lengths, np.nan)
        return means


class LoudnessTally:
    """Loudness of a span of time: integrated, range, maxima, and the latest values.

    Attributes
    ----------
    momentary, short_term : float
        Latest powers [FS^2]; NaN before there are any.
    momentary_max, short_term_max : float
        Largest powers [FS^2]; NaN before there are any.
    blocks, ranged : PowerHistogram
        Powers of the gating blocks above the absolute gate, and short-term powers for the range.
    """

    def __init__(self) -> None:
        self.blocks, self.ranged = PowerHistogram(), PowerHistogram()
        self.momentary = self.short_term = np.nan
        self.momentary_max = self.short_term_max = np.nan

    def add(self, steps: LoudnessSteps) -> None:
        """Add steps, in order."""
        if not len(steps.ends):
            return
        self.momentary, self.short_term = float(steps.momentary[-1]), float(steps.short_term[-1])
        self.momentary_max = _larger(self.momentary_max, steps.momentary)
        self.short_term_max = _larger(self.short_term_max, steps.short_term)
        gate = _power(ABSOLUTE_GATE_LUFS)
        # Comparisons with NaN are false.
        self.blocks.add(steps.momentary[steps.gates & (steps.momentary > gate)])
        self.ranged.add(steps.short_term[steps.gates & (steps.short_term >= gate)])

    def merge(self, later: "LoudnessTally") -> None:
        """Add a later span of time."""
        self.momentary, self.short_term = later.momentary, later.short_term
        self.momentary_max = _larger(self.momentary_max, later.momentary_max)
        self.short_term_max = _larger(self.short_term_max, later.short_term_max)
        self.blocks.merge(later.blocks)
        self.ranged.merge(later.ranged)

    @property
    def integrated_lufs(self) -> float:
        """Gated loudness of the blocks of 400 ms that end in the span [LUFS]; NaN without any."""
        ungated = self.blocks.mean_above(0.0)
        return float(loudness(self.blocks.mean_above(ungated * 10.0 ** (_RELATIVE_GATE_LU / 10))))

    @property
    def range_lu(self) -> float:
        """Loudness range [LU]; NaN without short-term values above the gates."""
        gate = self.ranged.mean_above(0.0) * 10.0 ** (_RANGE_GATE_LU / 10.0)
        low, high = (self.ranged.ranked_above(gate, percent) for percent in _RANGE_PERCENTS)
        return float(loudness(high) - loudness(low))


def _larger(known: float, values: Float64Array | float) -> float:
    """Return the largest number, NaN left out."""
    return float(np.fmax.reduce(np.append(values, known)))
