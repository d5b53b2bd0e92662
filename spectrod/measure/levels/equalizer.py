"""Frequency responses removed in the time domain, by filters of linear phase without delay."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.calibration import Response
from spectrod.dsp.units import Float64Array

ERROR_DB = 0.05
"""Largest deviation that a design aims at, where the response is known [dB]."""

_GRID = 1 << 18
"""Points of the transform on which a filter is designed and checked."""
_HALF_MIN, _HALF_MAX = 1 << 7, 1 << 15
"""Shortest and longest half of a filter [samples]."""
_KAISER_BETA = 6.0
_TRANSITION_BINS = 4.0
"""Width of the transition to no correction outside the table, re fs / taps [1]."""


@dataclass(frozen=True, slots=True, eq=False)
class EqualizerDesign:
    """A filter that removes a response.

    Attributes
    ----------
    taps : (2 * half + 1,) float64
        Symmetric impulse response; its middle is at the present sample.
    error_db : float
        Largest deviation from the response's inverse within the table and below fs / 2 [dB].
    worst_hz : float
        Where that is [Hz].
    """

    taps: Float64Array
    error_db: float
    worst_hz: float

    @property
    def half(self) -> int:
        """Samples before and after the present one that it takes."""
        return len(self.taps) // 2


@lru_cache(maxsize=64)
def design_equalizer(response: Response, fs: float) -> EqualizerDesign:
    """Design the shortest filter that removes a response within ``ERROR_DB``, or the longest.

    The gain is the inverse of the response where it is known, interpolated as for spectra. Outside
    it is 1: never extrapolated. The change to 1 takes 8 fs / taps and lies outside the table.

    Parameters
    ----------
    response : Response
        Levels of the channel over frequency.
    fs : float
        Sample rate [Hz].

    Notes
    -----
    Sampling of the frequency response, and a Kaiser window [1]_.

    References
    ----------
    .. [1] A. V. Oppenheim and R. W. Schafer, "Discrete-time signal processing", 3rd ed., 7.5.
    """
    frequencies = np.asarray(np.fft.rfftfreq(_GRID, 1.0 / fs), np.float64)
    wanted_db = -response.at(frequencies)
    half = _HALF_MIN
    while True:
        width_hz = _TRANSITION_BINS * fs / (2 * half + 1)
        found = _design(response, frequencies, wanted_db, half, width_hz)
        # Twice the width below the table, the gain is 1.
        is_right = found.error_db <= ERROR_DB and 2.0 * width_hz <= response.range_hz[0]
        if is_right or half >= _HALF_MAX:
            return found
        half *= 2


def _design(
    response: Response,
    frequencies: Float64Array,
    wanted_db: Float64Array,
    half: int,
    width_hz: float,
) -> EqualizerDesign:
    gain = 10.0 ** (_with_transitions(response, frequencies, wanted_db, width_hz) / 20.0)
    impulse = np.fft.irfft(gain, _GRID)
    window = np.kaiser(2 * half + 1, _KAISER_BETA)
    taps = np.concatenate((impulse[half:0:-1], impulse[: half + 1])) * window
    centred = np.concatenate((taps[half:], np.zeros(_GRID - len(taps)), taps[:half]))
    with np.errstate(divide="ignore"):
        achieved_db = 20.0 * np.log10(np.abs(np.fft.rfft(centred).real))
    error_db = np.nan_to_num(np.abs(achieved_db - wanted_db))
    worst = int(np.argmax(error_db))
    return EqualizerDesign(taps, float(error_db[worst]), float(frequencies[worst]))


def _with_transitions(
    response: Response, frequencies: Float64Array, wanted_db: Float64Array, width_hz: float
) -> Float64Array:
    """Return the gain [dB] with a change to 0 dB outside the table."""
    low, high = response.range_hz
    low_db, high_db = -response.levels_db[0], -response.levels_db[-1]
    found = np.nan_to_num(wanted_db)
    below, above = frequencies < low, frequencies > high
    # The change ends above 0 Hz.
    low_width_hz = min(width_hz, low / 1.5)
    found[below] = low_db * _fall((low - frequencies[below]) / low_width_hz)
    found[above] = high_db * _fall((frequencies[above] - high) / width_hz)
    return found


def _fall(distance: Float64Array) -> Float64Array:
    """Return 1 up to half the width, and a cosine to 0 at 1.5 times the width."""
    phase = np.clip(distance - 0.5, 0.0, 1.0)
    falling: Float64Array = 0.5 + 0.5 * np.cos(np.pi * phase)
    return falling


class Equalizer:
    """Removes the responses of channels from a stream, block by block, in float64.

    Samples come out beside the corrected ones, both without delay: a sample comes when those after
    it that its filter takes are there, and blocks have one length from the start on, so that the
    results do not depend on how the stream is cut.

    Parameters
    ----------
    responses : sequence of (Response or None)
        Response of each channel; at least one is there.
    fs : float
        Sample rate [Hz].

    Attributes
    ----------
    designs : list of (EqualizerDesign or None)
        Filter of each channel.
    half : int
        Samples before and after a sample that its filter takes. Within them of a start, an end or
        a gap, missing samples count as 0.
    pending : int
        Samples that were given and have not come out.
    """

    def __init__(self, responses: Sequence[Response | None], fs: float) -> None:
        self.designs = [None if one is None else design_equalizer(one, fs) for one in responses]
        self.half = max(one.half for one in self.designs if one is not None)
        # Longer transforms cost less and come later: half of the samples of each are new.
        self._nfft = 4 * self.half
        self._hop = self._nfft - 2 * self.half
        self._held = np.zeros((len(responses), self._nfft))
        self._spectra = [None if one is None else self._spectrum(one) for one in self.designs]
        self.reset()

    def _spectrum(self, design: EqualizerDesign) -> Float64Array:
        """Return the transform of a filter whose middle is at sample 0: it is real."""
        half = design.half
        centred = np.zeros(self._nfft)
        centred[: half + 1], centred[self._nfft - half :] = design.taps[half:], design.taps[:half]
        return np.fft.rfft(centred).real

    def reset(self) -> None:
        """Forget all samples so far."""
        self.pending = 0
        # The samples before the first one count as 0.
        self._n_held = self.half
        self._held[:, : self.half] = 0.0

    def push(self, samples: NDArray[Any]) -> list[Float64Array]:
        """Add (channels, n) samples.

        Returns
        -------
        blocks : list of (2 * channels, m) float64
            Samples that are complete, then the corrected ones, in order.
        """
        blocks, first, n = [], 0, samples.shape[1]
        while first < n:
            stop = min(n, first + self._nfft - self._n_held)
            self._held[:, self._n_held : self._n_held + stop - first] = samples[:, first:stop]
            self._n_held += stop - first
            self.pending += stop - first
            first = stop
            if self._n_held == self._nfft:
                blocks.append(self._take(self._hop))
        return blocks

    def finish(self) -> list[Float64Array]:
        """Return the samples that are left, as if zeros followed; then start again."""
        blocks = []
        while self.pending:
            self._held[:, self._n_held :] = 0.0
            blocks.append(self._take(min(self.pending, self._hop)))
        self.reset()
        return blocks

    def _take(self, n: int) -> Float64Array:
        """Filter the samples held, and remove the first n."""
        found = self._filter(self._held)[:, :n]
        left = self._n_held - n
        self._held[:, :left] = self._held[:, n : self._n_held].copy()
        self._n_held = left
        self.pending -= n
        return found

    def _filter(self, part: Float64Array) -> Float64Array:
        """Correct the samples of a part that have all their neighbours in it."""
        n = len(part)
        inner = slice(self.half, self._nfft - self.half)
        found = np.empty((2 * n, self._hop))
        found[:n] = part[:, inner]
        for k, spectrum in enumerate(self._spectra):
            if spectrum is None:
                found[n + k] = part[k, inner]
            else:
                transformed = np.fft.rfft(part[k]) * spectrum
                found[n + k] = np.fft.irfft(transformed, self._nfft)[inner]
        return found


def response_notes(responses: Sequence[Response | None], fs: float) -> list[str]:
    """Say which channels have a response that no filter removes within ``ERROR_DB``."""
    designs = [None if one is None else design_equalizer(one, fs) for one in responses]
    return [
        f"the frequency response of channel {number} changes too fast for its correction, which "
        f"is up to {one.error_db:.2f} dB off, at {one.worst_hz:.5g} Hz"
        for number, one in enumerate(designs)
        if one is not None and one.error_db > ERROR_DB
    ]
