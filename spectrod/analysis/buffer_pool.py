"""BufferPool of result memory that is reused when no array refers to it any more."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class PooledBuffer:
    """Host memory that a device writes to.

    Attributes
    ----------
    memory : (bytes,) uint8
        The host's memory.
    buffer : pyopencl.Buffer, optional
        Buffer of that memory, or what keeps its pages locked.
    twin : pyopencl.Buffer, optional
        Buffer of the same size on a device with its own memory.
    """

    memory: NDArray[np.uint8]
    buffer: Any
    twin: Any = None


class BufferPool:
    """Pool of memory, lent as arrays.

    An array and all its views refer to their lease; the memory returns to the pool when the last of
    them is released. Sizes are powers of two, so a kept array wastes little memory.

    Parameters
    ----------
    make : callable
        Makes a new ``PooledBuffer`` of a number of bytes.
    spare_max : int
        Maximum number of free buffers of one size; more are left only after a burst.
    """

    def __init__(self, make: Callable[[int], PooledBuffer], spare_max: int = 8) -> None:
        self._make = make
        self._spare_max = spare_max
        # Bounded: extra buffers are dropped. Appending and popping need no lock.
        self._spare: dict[int, deque[PooledBuffer]] = {}

    def lend(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> "Lease":
        """Lend memory for an array."""
        n_bytes = dtype.itemsize * prod(shape)
        size = 1 << max(n_bytes - 1, 1).bit_length()
        spare = self._spare.setdefault(size, deque(maxlen=self._spare_max))
        try:
            pooled = spare.pop()
        except IndexError:
            pooled = self._make(size)
        return Lease(pooled, spare, shape, dtype)


class Lease:
    """A lent buffer; its NumPy arrays refer to this object.

    It must not be an array itself: NumPy's views of views refer to the innermost array.
    """

    def __init__(
        self,
        pooled: PooledBuffer,
        spare: deque[PooledBuffer],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self.pooled = pooled
        self._spare = spare
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (pooled.memory.ctypes.data, False),
            "version": 3,
        }

    @staticmethod
    def of(array: NDArray[Any]) -> "Lease | None":
        """Return the lease that an array or a view belongs to; None for other memory."""
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        return owner if isinstance(owner, Lease) else None

    def array(self) -> NDArray[Any]:
        """Return an array of the memory."""
        return np.asarray(self)

    def __del__(self) -> None:
        self._spare.append(self.pooled)
