"""Time weightings F, S and I of squared samples."""

from math import expm1
from typing import Literal

import numpy as np

from spectrod.dsp.units import Float64Array
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, RecursiveFilter, Section

TimeWeighting = Literal["F", "S", "I"]

TIME_CONSTANTS_S: dict[TimeWeighting, float] = {"F": 0.125, "S": 1.0, "I": 0.035}
"""Time constants of the averages of the square [s]: IEC 61672-1, 3.8 and 5.8; I of IEC 60651."""

IMPULSE_DECAY_S = 1.5
"""Time constant of the decay after I's peak detector [s]."""

SETTLE_S: dict[TimeWeighting, float] = {"F": 0.5, "S": 4.0, "I": 0.15}
"""Time after a start until a steady level is within 0.1 dB of its final value [s]: 3.77 time
constants, rounded up."""


class TimeWeightedSquare:
    """The exponentially averaged square of a signal.

    Parameters
    ----------
    weighting : {"F", "S", "I"}
        F and S average with 0.125 s and 1 s. I averages with 35 ms; a peak detector then holds the
        largest value, which decays with 1.5 s.
    fs : float
        Sample rate [Hz].
    channels : int
        Number of channels.
    """

    def __init__(self, weighting: TimeWeighting, fs: float, channels: int) -> None:
        keep = expm1(-1.0 / (fs * TIME_CONSTANTS_S[weighting]))  # minus the new value's weight
        self._average = RecursiveFilter([Section((-keep, 0.0), (1.0, -1.0 - keep))], channels)
        self._decay: _DecayingMaximum | None = None
        if weighting == "I":
            self._decay = _DecayingMaximum(fs, channels)

    def reset(self) -> None:
        """Forget all samples so far."""
        self._average.reset()
        if self._decay is not None:
            self._decay.reset()

    def run(self, squares: Float64Array) -> Float64Array:
        """Weight the next chunk.

        Parameters
        ----------
        squares : (channels, CHUNK_SAMPLES) float64
            Squared samples of the frequency-weighted signal.

        Returns
        -------
        averages : (channels, CHUNK_SAMPLES) float64
            Averages after each sample, at least 0.
        """
        averages = self._average.run(squares)
        # Rounding can leave a negative residue where the average is nearly 0.
        np.maximum(averages, 0.0, out=averages)
        return averages if self._decay is None else self._decay.run(averages)


class _DecayingMaximum:
    """The larger of a value and the decayed maximum before it."""

    def __init__(self, fs: float, channels: int) -> None:
        self._growth = np.exp(np.arange(1, CHUNK_SAMPLES + 1) / (fs * IMPULSE_DECAY_S))
        self._held = np.zeros((channels, 1))

    def reset(self) -> None:
        self._held[:] = 0.0

    def run(self, values: Float64Array) -> Float64Array:
        grown = values * self._growth
        np.maximum(grown[:, :1], self._held, out=grown[:, :1])
        np.maximum.accumulate(grown, axis=1, out=grown)
        held: Float64Array = grown / self._growth
        self._held = held[:, -1:].copy()
        return held
