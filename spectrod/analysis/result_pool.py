"""ResultPool of the memory of whole results, such as all rows of a signal."""

from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from spectrod.analysis.buffer_pool import Lease, PooledBuffer
from spectrod.analysis.sample_buffer import PAGE_BYTES, aligned_memory

_SPARE_MAX = 2
_HOST_BYTES_MAX = 1 << 26
"""Maximum size of results in ordinary memory that is kept for later ones [bytes]."""


class ResultPool:
    """Pool of memory for large results of a few sizes.

    The first write to new memory takes about as long as the spectra that fill it. The memory that
    was released last is kept, at most that of ``_SPARE_MAX`` results, and lent again for results of
    at least half its size.

    Parameters
    ----------
    make : callable
        Makes a new ``PooledBuffer`` of a number of bytes.
    """

    def __init__(self, make: Callable[[int], PooledBuffer]) -> None:
        self._make = make
        # Appending and removing are atomic: results are released in any thread.
        self._spare: deque[PooledBuffer] = deque(maxlen=_SPARE_MAX)
        self._lent: WeakSet[Lease] = WeakSet()

    @property
    def lent_bytes(self) -> int:
        """Size of all memory that arrays refer to."""
        return sum(len(lease.pooled.memory) for lease in list(self._lent))

    def lend(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array of memory that no other array refers to."""
        n_bytes = dtype.itemsize * prod(shape)
        size = max(1, -(-n_bytes // PAGE_BYTES)) * PAGE_BYTES
        lease = Lease(self._kept(size) or self._make(size), self._spare, shape, dtype)
        self._lent.add(lease)
        return lease.array()

    def _kept(self, size: int) -> PooledBuffer | None:
        for pooled in list(self._spare):
            if size <= len(pooled.memory) <= 2 * size:
                try:
                    self._spare.remove(pooled)
                except ValueError:  # another thread was faster
                    continue
                return pooled
        return None


_HOST = ResultPool(lambda n_bytes: PooledBuffer(aligned_memory(n_bytes), None))


def host_results(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return ordinary memory for results, that of earlier ones up to ``_HOST_BYTES_MAX``."""
    if dtype.itemsize * prod(shape) > _HOST_BYTES_MAX:
        return np.empty(shape, dtype)
    return _HOST.lend(shape, dtype)
