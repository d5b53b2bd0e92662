"""The newest samples of a stream, one after the other in memory, where frames are read in place."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import ConfigError, DeviceError, InternalError
from spectrod.stft.stage import SAMPLE_BYTES
from spectrod.types import SampleFormat

PAGE_BYTES = 4096
"""Memory starts at multiples of it, so that any device can work in it."""

_DTYPES: dict[SampleFormat, str] = {
    "int16": "<i2",
    "int24": "u1",
    "int32": "<i4",
    "float32": "<f4",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How samples lie in memory.

    Attributes
    ----------
    sample_format : {"int16", "int24", "int32", "float32"}
        Of each sample.
    channels : int
        Of the source.
    interleaved : bool
        Whether the samples of all channels at one time are neighbours; if not, those of a channel.

    Raises
    ------
    ConfigError
        If the format is not known.
    """

    sample_format: SampleFormat = "float32"
    channels: int = 1
    interleaved: bool = False

    def __post_init__(self) -> None:
        if self.sample_format not in SAMPLE_BYTES:
            raise ConfigError(
                f"sample_format={self.sample_format!r}: must be one of {', '.join(SAMPLE_BYTES)}"
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the arrays; int24 is an array of bytes, three for each sample."""
        return np.dtype(_DTYPES[self.sample_format])

    @property
    def step_bytes(self) -> int:
        """Bytes of the samples of all channels at one time."""
        return SAMPLE_BYTES[self.sample_format] * self.channels

    def pitch(self, capacity: int) -> int:
        """As ``spectrod.stft.stage.Samples`` has it, where a channel has room for so many."""
        return self.channels if self.interleaved else capacity

    def arranged(self, memory: NDArray[Any], capacity: int) -> NDArray[Any]:
        """View flat memory as (channels, capacity) samples, or (channels, capacity, 3) bytes."""
        values = memory[: self.step_bytes * capacity].view(self.dtype)
        ends = (3,) if self.sample_format == "int24" else ()
        if self.interleaved:
            return values.reshape(capacity, self.channels, *ends).swapaxes(0, 1)
        return values.reshape(self.channels, capacity, *ends)


def aligned_memory(n_bytes: int) -> NDArray[np.uint8]:
    """Memory of the host, uninitialised, from a multiple of ``PAGE_BYTES`` on.

    Raises
    ------
    DeviceError
        If there is not so much.
    """
    try:
        memory = np.empty(n_bytes + PAGE_BYTES, np.uint8)
    except MemoryError as error:
        raise DeviceError(f"the host has no {n_bytes / 2**20:.1f} MiB of memory left") from error
    first = -memory.ctypes.data % PAGE_BYTES
    return memory[first : first + n_bytes]


class SampleWindow:
    """Samples in a row that later frames may need; the oldest make room for new ones.

    Samples are counted as they are stored: position 0 is the first there ever was, and the window
    holds those from ``start`` to ``end``. When its memory is full, ``move`` takes what is still
    needed to the front.

    Parameters
    ----------
    layout : Layout
        How samples lie in it.
    capacity : int
        Samples of a channel that it holds.
    memory : (bytes,) uint8, optional
        Where; its own by default.
    filled : bool
        Whether that holds so many samples already.

    Attributes
    ----------
    data : (channels, capacity) array, or (channels, capacity, 3) of bytes
        The samples; the one at position p is ``data[:, p - start]``.
    start, end : int
        Positions of the first sample and behind the last.
    moves : int
        How often it was moved.
    """

    def __init__(
        self,
        layout: Layout,
        capacity: int,
        memory: NDArray[np.uint8] | None = None,
        *,
        filled: bool = False,
    ) -> None:
        if memory is None:
            memory = aligned_memory(layout.step_bytes * capacity)
        self.layout = layout
        self.capacity = capacity
        self.data = layout.arranged(memory, capacity)
        self.start = 0
        self.end = capacity if filled else 0
        self.moves = 0

    @property
    def fill(self) -> int:
        """Samples of a channel up to the last."""
        return self.end - self.start

    def append(self, samples: NDArray[Any]) -> None:
        """Copy samples of the window's dtype, (channels, n) or (channels, n, 3), to its end.

        Those that were put there beforehand stay as they are.
        """
        fill, n = self.fill, samples.shape[1]
        target = self.data[:, fill : fill + n]
        if not _is_same(target, samples):
            # They may lie a little further on in the same memory.
            apart = samples.copy() if np.may_share_memory(self.data, samples) else samples
            self._copy(target, apart)
        self.end += n

    @staticmethod
    def _copy(target: NDArray[Any], samples: NDArray[Any]) -> None:
        target[...] = samples

    def place(self, position: int) -> int:
        """Index in ``data`` of the sample at a position."""
        return position - self.start

    def move(self, first: int) -> None:
        """Take the samples from a position on to the front; they must be at most half of it."""
        place, n = self.place(first), self.end - first
        if 2 * n > self.capacity:
            raise InternalError(f"{n} samples do not fit half a window of {self.capacity}")
        self.data[:, :n] = self.data[:, place : place + n]
        self.start = first
        self.moves += 1


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Say whether two arrays are the same values of the same memory."""
    return one.__array_interface__ == other.__array_interface__
