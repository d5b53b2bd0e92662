"""A signal whose every frame carries its own number, so that each loss can be measured.

``python -m spectrod.apps.bench.sequence_signal [FIRST]`` writes it to standard output without end.
"""

import os
import signal
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float32Array, Int64Array

CHANNELS = 2
FRAMES_MAX = 1 << 32
"""Count of numbers; they last for 24.8 hours at 48 kHz."""

# Odd, so that it has an inverse modulo 2^32; by the golden ratio, so that neighbours look like
# noise (Knuth, The Art of Computer Programming 3, section 6.4).
_MIX = 0x9E3779B1
_UNMIX = pow(_MIX, -1, FRAMES_MAX)
_FULL_SCALE = 2.0**15
_BREAKS_KEPT = 100
_BLOCK = 4800


def numbered_frames(first: int, n: int) -> NDArray[np.int16]:
    """Return the frames with the numbers ``first``, ``first + 1`` and so on.

    Returns
    -------
    frames : (n, 2) int16
        The lower and the upper half of the mixed number. Only number 0 is silence.
    """
    mixed = np.arange(first, first + n, dtype=np.uint64) * np.uint64(_MIX)
    return mixed.astype("<u4").view("<i2").reshape(-1, CHANNELS)


def read_numbers(samples: Float32Array) -> Int64Array:
    """Return the number of each frame.

    Parameters
    ----------
    samples : (2, n) float32
        Bit-exact samples [FS].

    Returns
    -------
    numbers : (n,) int64
        Numbers; 0 for silence.
    """
    halves = np.rint(samples.astype(np.float64) * _FULL_SCALE).astype(np.int64) & 0xFFFF
    mixed = (halves[0] | halves[1] << 16).astype(np.uint64)
    return np.asarray((mixed * np.uint64(_UNMIX)).astype(np.uint32), np.int64)


@dataclass(frozen=True, slots=True)
class Break:
    """A point where numbers and indices do not advance alike."""

    sample_index: int
    """Index of the first sample after the break."""
    index_jump: int
    """Samples lost according to the indices."""
    number_jump: int
    """Samples lost according to the numbers; silence inserted by the player does not count."""

    @property
    def unaccounted(self) -> int:
        """Lost samples that were not reported; negative if too many were reported."""
        return self.number_jump - self.index_jump


class NumberCheck:
    """Compares every sample of a stream with the number that it carries.

    Attributes
    ----------
    frames, silent : int
        Samples checked that carried a number, and that were silent.
    breaks : list of Break
        The first hundred breaks.
    n_breaks, unaccounted : int
        Number of all breaks, and the sum of the absolute values of their unaccounted samples.
    """

    def __init__(self) -> None:
        self.frames = self.silent = 0
        self.n_breaks = self.unaccounted = 0
        self.breaks: list[Break] = []
        self._next_index = 0
        # Index and number of the last numbered sample, and the number of silent ones before it.
        self._last: tuple[int, int, int] | None = None

    def look(self, samples: Float32Array, sample_index: int) -> None:
        """Check the next samples, (2, n), the first of which has this index."""
        numbers = read_numbers(samples)
        n = len(numbers)
        sounding = np.flatnonzero(numbers)
        index = sample_index + sounding
        silent = self.silent + sounding - np.arange(len(sounding))
        self.frames += len(sounding)
        self.silent += n - len(sounding)
        if len(sounding):
            self._compare(index, numbers[sounding], silent)
        self._next_index = sample_index + n

    def _compare(self, index: Int64Array, number: Int64Array, silent: Int64Array) -> None:
        if self._last is None:
            self._last = int(index[0]) - 1, int(number[0]) - 1, int(silent[0])
        index_step, number_step, silent_step = (
            np.diff(values, prepend=last)
            for values, last in zip((index, number, silent), self._last, strict=True)
        )
        self._last = int(index[-1]), int(number[-1]), int(silent[-1])
        # The index of the next contiguous sample rises by one plus the silence since.
        index_jump, number_jump = index_step - silent_step - 1, number_step - 1
        for at in np.flatnonzero((index_jump != 0) | (number_jump != 0)):
            self._note(Break(int(index[at]), int(index_jump[at]), int(number_jump[at])))

    def _note(self, found: Break) -> None:
        self.n_breaks += 1
        self.unaccounted += abs(found.unaccounted)
        if len(self.breaks) < _BREAKS_KEPT:
            self.breaks.append(found)


def write_endless(fd: int, first: int) -> None:
    """Write numbered frames to a descriptor until its reader ends or all numbers are used."""
    while first < FRAMES_MAX:
        rest = memoryview(numbered_frames(first, min(_BLOCK, FRAMES_MAX - first)).tobytes())
        while rest:
            rest = rest[os.write(fd, rest) :]
        first += _BLOCK


if __name__ == "__main__":
    # End quietly when the reader has gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    write_endless(sys.stdout.fileno(), int(sys.argv[1]) if len(sys.argv) > 1 else 1)
