"""The newest samples of a stream, contiguous in memory, where frames are read in place."""

from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.parallel import copy, copy_steps, in_parts
from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import DeviceError, InternalError

PAGE_BYTES = 4096
"""Alignment of memory that every device can use [bytes]."""


def aligned_memory(n_bytes: int) -> NDArray[np.uint8]:
    """Return uninitialised host memory, aligned to ``PAGE_BYTES``.

    Raises
    ------
    DeviceError
        If there is not enough memory.
    """
    try:
        memory = np.empty(n_bytes + PAGE_BYTES, np.uint8)
    except MemoryError as error:
        raise DeviceError(f"the host has no {n_bytes / 2**20:.1f} MiB of memory left") from error
    first = -memory.ctypes.data % PAGE_BYTES
    return memory[first : first + n_bytes]


def touched_memory(n_bytes: int) -> NDArray[np.uint8]:
    """Return memory as ``aligned_memory`` does whose pages exist; several threads make large ones.

    Raises
    ------
    DeviceError
        If there is not enough memory.
    """
    memory = aligned_memory(n_bytes)
    in_parts(lambda part: memory[part][::PAGE_BYTES].fill(0), n_bytes, n_bytes)
    return memory


class SampleBuffer:
    """Contiguous samples that later frames may need; the oldest make room for new ones.

    Positions count stored samples: position 0 is the first sample ever stored, and the buffer holds
    those from ``start`` to ``end``. When its memory is full, ``move`` copies the samples that are
    still needed to the front.

    Parameters
    ----------
    layout : SampleLayout
        Layout of the samples.
    capacity : int
        Size [samples per channel].
    memory : (bytes,) uint8, optional
        Memory to use; by default its own.
    filled : bool
        Whether the memory is already full of samples.

    Attributes
    ----------
    data : (channels, capacity) array, or (channels, capacity, 3) of bytes
        The samples; the one at position p is ``data[:, p - start]``.
    start, end : int
        Positions of the first sample and after the last.
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

    @property
    def fill(self) -> int:
        """Number of stored samples per channel."""
        return self.end - self.start

    @property
    def room(self) -> NDArray[Any]:
        """Memory after the samples, to the end of their half of the buffer."""
        half = self.capacity // 2
        return self.data[:, self.fill : half if self.fill < half else self.capacity]

    def append(self, samples: NDArray[Any]) -> None:
        """Copy samples of the buffer's dtype, (channels, n) or (channels, n, 3), to its end.

        Samples that are already in place are not copied.
        """
        fill, n = self.fill, samples.shape[1]
        target = self.data[:, fill : fill + n]
        if not np.may_share_memory(self.data, samples):
            copy(target, samples, axis=1)
        elif not _is_same(target, samples):
            target[...] = samples.copy()  # they may overlap
        self.end += n

    def append_steps(self, samples: NDArray[Any], step: int) -> Generator[None]:
        """Append samples, and yield whenever a further step of them is there.

        Several threads copy the later ones meanwhile. Close it to wait for them.
        """
        fill, n = self.fill, samples.shape[1]
        if n <= step or np.may_share_memory(self.data, samples):
            self.append(samples)
            yield
            return
        target = self.data[:, fill : fill + n]
        with closing(copy_steps(target, samples, 1, step)) as copies:
            for part in copies:
                self.end += part.stop - part.start
                yield

    def restart(self, position: int) -> None:
        """Drop all samples; the next one has a position."""
        self.start = self.end = position

    def shift(self, n_samples: int) -> None:
        """Add a number to the positions of all samples."""
        self.start += n_samples
        self.end += n_samples

    def place(self, position: int) -> int:
        """Return the index in ``data`` of the sample at a position."""
        return position - self.start

    def move(self, first: int) -> None:
        """Copy the samples from a position on to the front; they must fill at most half of it."""
        place, n = self.place(first), self.end - first
        if 2 * n > self.capacity:
            raise InternalError(f"{n} samples do not fit half a buffer of {self.capacity}")
        target, source = self.data[:, :n], self.data[:, place : place + n]
        if place >= n:
            copy(target, source, axis=1)
        else:
            target[...] = source  # they overlap
        self.start = first


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays are views of the same memory."""
    return one.__array_interface__ == other.__array_interface__
