"""Finds the steadiest stretch of a calibrator's tone in a recording."""

from collections.abc import Iterable
from math import ceil

import numpy as np

from spectrod.apps.measurements.calibrator import (
    CLIPPED_FS,
    FREQUENCY_TOLERANCE,
    THD_N_MAX,
    segment_samples,
)
from spectrod.dsp.units import Float64Array


class SteadySearch:
    """Searches a recording for the stretch in which a tone's level changes least.

    It keeps three numbers for each segment of ``segment_samples``, so 1.4 MB for a day.

    Parameters
    ----------
    fs : float
        Sample rate [Hz].
    frequency_hz : float
        Stated frequency of the tone [Hz].
    """

    def __init__(self, fs: float, frequency_hz: float) -> None:
        self._n = segment_samples(fs, frequency_hz)
        self._window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(self._n) / self._n)
        near = frequency_hz * np.array([1.0 - FREQUENCY_TOLERANCE, 1.0 + FREQUENCY_TOLERANCE])
        first, last = np.rint(near * self._n / fs).astype(int)
        # The main lobe of the window has two bins on each side.
        self._bins = slice(max(0, first - 2), last + 3)
        self._rest = np.empty(0)
        self._powers: list[float] = []
        self._is_tone: list[bool] = []

    def add(self, samples: Float64Array) -> None:
        """Add the next samples, (n,) [FS]."""
        samples = np.concatenate((self._rest, samples))
        n_whole = len(samples) // self._n * self._n
        self._rest = samples[n_whole:]
        self._add(samples[:n_whole].reshape(-1, self._n))

    def _add(self, segments: Float64Array) -> None:
        is_whole = np.abs(segments).max(axis=1, initial=0.0) < CLIPPED_FS
        segments = segments - segments.mean(axis=1, keepdims=True)
        spectra = np.square(np.abs(np.fft.rfft(segments * self._window)))
        power, total = spectra[:, self._bins].sum(axis=1), spectra.sum(axis=1)
        is_pure = total - power <= THD_N_MAX**2 * total
        self._powers += power.tolist()
        self._is_tone += (is_whole & is_pure & (power > 0.0)).tolist()

    def first_sample(self, n_samples: int) -> int | None:
        """Return the index at which the steadiest stretch of this length begins.

        Parameters
        ----------
        n_samples : int

        Returns
        -------
        first : int or None
            The first of several that are equal; None if no stretch has the tone alone, unclipped.
        """
        n = ceil(n_samples / self._n)
        if len(self._powers) < n:
            return None
        view = np.lib.stride_tricks.sliding_window_view
        is_tone = view(np.array(self._is_tone), n).all(axis=1)
        if not is_tone.any():
            return None
        powers = view(np.array(self._powers), n)
        ratio = powers.max(axis=1) / np.where(is_tone, powers.min(axis=1), 1.0)
        return int(np.argmin(np.where(is_tone, ratio, np.inf))) * self._n


def find_steady(
    blocks: Iterable[Float64Array], fs: float, frequency_hz: float, n_samples: int
) -> int | None:
    """Return the index of the steadiest stretch in blocks of samples; see ``SteadySearch``."""
    search = SteadySearch(fs, frequency_hz)
    for block in blocks:
        search.add(block)
    return search.first_sample(n_samples)
