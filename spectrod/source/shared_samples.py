"""Sample memory that a capture process fills and the analysis reads."""

import mmap
import os
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.sample_layout import SampleLayout
from spectrod.lib.errors import ConfigError
from spectrod.lib.wakeup import Wakeup

_MIN_BLOCKS = 4
_MAP_POPULATE = getattr(mmap, "MAP_POPULATE", 0)


class SharedSamples:
    """Memory of a ring that processes fill, one after another, and the count of what they wrote.

    A process writes blocks of at most ``block_samples`` to successive positions, from the ``count``
    at its start on, modulo the capacity. After each block it adds the block's samples to the
    descriptor of the count; see ``spectrod.source.capture.ring_writer``.

    Parameters
    ----------
    layout : SampleLayout
        Layout of the memory: all channels of the device, interleaved.
    capacity : int
        Samples held per channel; at least four blocks are.
    selected : sequence of int
        Channels to read, in this order.
    block_samples : int
        Largest block [samples per channel].

    Attributes
    ----------
    samples : (channels, capacity) or (channels, capacity, 3) array
        The memory, read-only.

    Raises
    ------
    ConfigError
        If memory is short.
    """

    def __init__(
        self, layout: SampleLayout, capacity: int, selected: Sequence[int], block_samples: int
    ) -> None:
        self.layout, self.block_samples = layout, block_samples
        self.capacity = max(capacity, _MIN_BLOCKS * block_samples)
        self.selected = _as_slice(selected)
        self.memory_fd = anonymous_memory("spectrod-capture")
        try:
            self.samples = _shared_memory(self.memory_fd, layout, self.capacity)
            self._progress = Wakeup()
        except BaseException:
            os.close(self.memory_fd)
            raise
        self._lock = threading.Lock()
        self._count = 0

    @property
    def fds(self) -> tuple[int, int]:
        """Descriptors that the processes inherit."""
        return self.memory_fd, self._progress.write_fd

    def for_writer(self) -> dict[str, int]:
        """Return arguments of ``ring_writer.RingWriter``, for the next process."""
        return {
            "memory_fd": self.memory_fd,
            "memory_bytes": self.layout.step_bytes * self.capacity,
            "frame_bytes": self.layout.step_bytes,
            "position": self.count,
            "count_fd": self._progress.write_fd,
        }

    @property
    def count(self) -> int:
        """Position after the newest block that was counted."""
        with self._lock:
            self._count += self._progress.clear()
            return self._count

    def claimed(self) -> int:
        """Position after the newest sample that may have been written.

        Notes
        -----
        An eventfd has a lock in the kernel (a pipe, where there is no eventfd, too), which orders
        all memory accesses before it against those after it, on every processor. Suppose that the
        consumer copies samples and then reads the count P here. If the process had counted a block
        before, it is in P. If it counts one only afterwards, then it starts to write the next block
        after the lock was released by this read, thus after the copy. So at most one block after P
        may have been written to during the copy: a copy of samples from position k on is intact if
        k + capacity >= P + block_samples.

        The process never takes the lock of this object, which only keeps two readers of the count
        apart: the consumer, and the thread that starts the next process.
        """
        return self.count + self.block_samples

    def close(self) -> None:
        """Unmap the memory, if no array refers to it, and close the descriptors."""
        self.samples = self.samples[:, :0].copy()
        self._progress.close()
        os.close(self.memory_fd)


def _as_slice(selected: Sequence[int]) -> slice | list[int]:
    """Return adjacent channels as a slice, for which NumPy makes no copy."""
    first, n = selected[0], len(selected)
    is_adjacent = [*selected] == [*range(first, first + n)]
    return slice(first, first + n) if is_adjacent else [*selected]


def _shared_memory(fd: int, layout: SampleLayout, capacity: int) -> NDArray[Any]:
    """Allocate and map the memory of a descriptor, whose pages are there before the first block."""
    n_bytes = layout.step_bytes * capacity
    try:
        # The system checks at once whether it may ever have this much private memory, but of shared
        # memory it would first use up all.
        mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        allocate(fd, n_bytes)
        flags = mmap.MAP_SHARED | _MAP_POPULATE
        memory = mmap.mmap(fd, n_bytes, flags=flags, prot=mmap.PROT_READ)
    except (OSError, OverflowError):
        raise no_memory(layout, capacity) from None
    return layout.arranged(np.frombuffer(memory, np.uint8), capacity)


def allocate(fd: int, n_bytes: int) -> None:
    """Give the memory of a descriptor its size; raises OSError if the system has less."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, n_bytes)
    else:
        os.ftruncate(fd, n_bytes)


def no_memory(layout: SampleLayout, capacity: int) -> ConfigError:
    """Return the error for a ring that memory cannot hold."""
    gib = layout.step_bytes * capacity / 2**30
    return ConfigError(
        f"channels={layout.channels}: no memory for a ring of {capacity} samples each "
        f"({gib:.1f} GiB)"
    )


def anonymous_memory(name: str) -> int:
    """Return a descriptor of empty memory that other processes can map; raises OSError."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
