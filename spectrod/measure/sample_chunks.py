"""Samples of blocks of any length, collected into chunks of one length."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectrod.dsp.spectrum_rules import CHANNELS_MAX, FS_MAX_HZ, FS_MIN_HZ
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.levels.recursive import CHUNK_SAMPLES


class SampleChunks:
    """Collects samples into chunks of ``CHUNK_SAMPLES``, which filters take.

    Parameters
    ----------
    channels : int
        Number of channels.
    position : int
        Index of the first sample.

    Attributes
    ----------
    position : int
        Index of the next sample that is given.
    """

    def __init__(self, channels: int, position: int = 0) -> None:
        self.position = position
        self._chunk = np.zeros((channels, CHUNK_SAMPLES))
        self._n_held = 0

    def checked(self, samples: ArrayLike) -> NDArray[Any]:
        """Return samples as (channels, n); see ``checked_samples``."""
        return checked_samples(samples, len(self._chunk), self.position)

    def fill(self, samples: NDArray[Any]) -> Iterator[None]:
        """Add samples; yield each time that the chunk is full, and ``take`` must empty it."""
        first, n = 0, samples.shape[1]
        while first < n:
            stop = min(n, first + CHUNK_SAMPLES - self._n_held)
            self._chunk[:, self._n_held : self._n_held + stop - first] = samples[:, first:stop]
            self._n_held += stop - first
            self.position += stop - first
            first = stop
            if self._n_held == CHUNK_SAMPLES:
                yield

    def take(self) -> tuple[Float64Array, int, int]:
        """Empty the chunk.

        Returns
        -------
        chunk : (channels, CHUNK_SAMPLES) float64
            The samples, then zeros [FS]; valid until the next ``fill``.
        n_samples : int
            Number of the samples.
        first : int
            Index of the first one.
        """
        n, self._n_held = self._n_held, 0
        self._chunk[:, n:] = 0.0
        return self._chunk, n, self.position - n


def checked_samples(samples: ArrayLike, channels: int, position: int) -> NDArray[Any]:
    """Return samples as (channels, n).

    Parameters
    ----------
    samples : (channels, n) or (n,) array_like
        Finite samples, floating-point [FS].
    channels : int
        Number of channels.
    position : int
        Index of the first sample, for errors.

    Raises
    ------
    ConfigError
        If the shape is wrong. Integers are refused: nothing says what their full scale is.
    InputError
        If a sample is not finite.
    """
    given = np.asarray(samples)
    if given.ndim == 1 and channels == 1:
        given = given[np.newaxis]
    if given.ndim != 2 or len(given) != channels or given.dtype.kind != "f":
        raise ConfigError(
            f"samples of shape {given.shape}, {given.dtype}: must be ({channels}, n) real "
            f"floating-point numbers, 1.0 at full scale{_remedy(given, channels)}"
        )
    if not np.isfinite(given).all():
        raise InputError(f"samples after {position}: not finite")
    return given


def _remedy(given: NDArray[Any], channels: int) -> str:
    """Say how an array of another order or of integers is made to fit."""
    hints = []
    if given.ndim == 2 and len(given) > given.shape[1]:
        hints.append("transpose (n, channels)")
        if given.shape[1] != channels:
            hints.append(f"the meter has channels={channels}")
    if given.dtype.kind == "i":
        hints.append(f"divide {given.dtype} by {1 << (8 * given.dtype.itemsize - 1)}")
    return "; " + ", ".join(hints) if hints else ""


def check_stream(fs: float, channels: int) -> None:
    """Check a sample rate [Hz] and a number of channels; raises ConfigError."""
    if not FS_MIN_HZ <= fs <= FS_MAX_HZ:
        raise ConfigError(f"fs={fs:g}: must be {FS_MIN_HZ:g} to {FS_MAX_HZ:g} Hz")
    if not 1 <= channels <= CHANNELS_MAX:
        raise ConfigError(f"channels={channels}: must be 1 to {CHANNELS_MAX}")
