"""A signal whose every frame says its own number, so that each loss in it can be measured.

``python -m spectrod_bench.sequence_signal [FIRST]`` writes it to standard output for ever.
"""

import os
import signal
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.types import Int64Array
from spectrod.units import Float32Array

CHANNELS = 2
FRAMES_MAX = 1 << 32
"""Numbers that there are; 24.8 hours of them at 48 kHz."""

# Odd, so that multiplying by it modulo 2^32 has an inverse; by the golden ratio, so that
# neighbours look like noise (Knuth, The Art of Computer Programming 3, section 6.4).
_MIX = 0x9E3779B1
_UNMIX = pow(_MIX, -1, FRAMES_MAX)
_FULL_SCALE = 2.0**15
_BREAKS_KEPT = 100
_BLOCK = 4800


def numbered_frames(first: int, n: int) -> NDArray[np.int16]:
    """Make the frames that say ``first``, ``first + 1`` and so on.

    Returns
    -------
    frames : (n, 2) int16
        The lower and the upper half of the number, mixed. Number 0 is silence, and alone is.
    """
    mixed = np.arange(first, first + n, dtype=np.uint64) * np.uint64(_MIX)
    return mixed.astype("<u4").view("<i2").reshape(-1, CHANNELS)


def read_numbers(samples: Float32Array) -> Int64Array:
    """Read what each frame says.

    Parameters
    ----------
    samples : (2, n) float32
        Bit-true [FS].

    Returns
    -------
    numbers : (n,) int64
        0 for silence.
    """
    halves = np.rint(samples.astype(np.float64) * _FULL_SCALE).astype(np.int64) & 0xFFFF
    mixed = (halves[0] | halves[1] << 16).astype(np.uint64)
    return np.asarray((mixed * np.uint64(_UNMIX)).astype(np.uint32), np.int64)


@dataclass(frozen=True, slots=True)
class Break:
    """A place where numbers and indices do not go on alike."""

    sample_index: int
    """Of the first sample behind it."""
    index_jump: int
    """Samples that the indices say were lost."""
    number_jump: int
    """Samples that were lost, by their numbers; silence that the player put in does not count."""

    @property
    def unaccounted(self) -> int:
        """Samples that were lost unsaid; negative for more said than were lost."""
        return self.number_jump - self.index_jump


class NumberCheck:
    """Holds every sample of a stream against the number that it says.

    Attributes
    ----------
    frames, silent : int
        Samples looked at that said a number, and that were silent.
    breaks : list of Break
        The first hundred.
    n_breaks, unaccounted : int
        How many there were, and the sum of their unaccounted samples' sizes.
    """

    def __init__(self) -> None:
        self.frames = self.silent = 0
        self.n_breaks = self.unaccounted = 0
        self.breaks: list[Break] = []
        self._next_index = 0
        # Of the last sample that said a number: it, and the count of silent ones by then.
        self._last: tuple[int, int, int] | None = None

    def look(self, samples: Float32Array, sample_index: int) -> None:
        """Take the next samples, (2, n), the first of which has this index."""
        numbers = read_numbers(samples)
        n = len(numbers)
        told = np.flatnonzero(numbers)
        index = sample_index + told
        silent = self.silent + told - np.arange(len(told))
        self.frames += len(told)
        self.silent += n - len(told)
        if len(told):
            self._compare(index, numbers[told], silent)
        self._next_index = sample_index + n

    def _compare(self, index: Int64Array, number: Int64Array, silent: Int64Array) -> None:
        if self._last is None:
            self._last = int(index[0]) - 1, int(number[0]) - 1, int(silent[0])
        index_step, number_step, silent_step = (
            np.diff(values, prepend=last)
            for values, last in zip((index, number, silent), self._last, strict=True)
        )
        self._last = int(index[-1]), int(number[-1]), int(silent[-1])
        # An index that follows on rises by one and by the silence since.
        index_jump, number_jump = index_step - silent_step - 1, number_step - 1
        for at in np.flatnonzero((index_jump != 0) | (number_jump != 0)):
            self._note(Break(int(index[at]), int(index_jump[at]), int(number_jump[at])))

    def _note(self, found: Break) -> None:
        self.n_breaks += 1
        self.unaccounted += abs(found.unaccounted)
        if len(self.breaks) < _BREAKS_KEPT:
            self.breaks.append(found)


def write_for_ever(fd: int, first: int) -> None:
    """Write numbered frames to a descriptor until nobody reads it or all numbers are used."""
    while first < FRAMES_MAX:
        rest = memoryview(numbered_frames(first, min(_BLOCK, FRAMES_MAX - first)).tobytes())
        while rest:
            rest = rest[os.write(fd, rest) :]
        first += _BLOCK


if __name__ == "__main__":
    # Whoever read it has gone: that is how it ends.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    write_for_ever(sys.stdout.fileno(), int(sys.argv[1]) if len(sys.argv) > 1 else 1)
