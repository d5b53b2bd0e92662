"""The newest samples of a stream, one after the other in memory, where frames are read in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.errors import DeviceError, InternalError
from spectrod.sample_layout import SampleLayout

PAGE_BYTES = 4096
"""Memory starts at multiples of it, so that any device can work in it."""


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
    layout : SampleLayout
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
        layout: SampleLayout,
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
