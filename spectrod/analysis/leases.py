"""Memory for results that is used again once nobody refers to it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SPARE_MAX = 8
"""Pieces of a size that are kept while nobody has them: more would be a burst's."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Memory of the host that a device writes to.

    Attributes
    ----------
    memory : (bytes,) uint8
        Of the host.
    buffer : pyopencl.Buffer
        That memory, or what it is mapped from.
    """

    memory: NDArray[np.uint8]
    buffer: Any


class Pool:
    """Pieces of memory, lent as arrays.

    An array, and every view of it, refers to its lease; with the last of them the piece comes back.
    Sizes are powers of two, so that whoever keeps a few rows keeps little more than them.

    Parameters
    ----------
    make : callable
        Number of bytes to a new ``Piece``.
    """

    def __init__(self, make: Callable[[int], Piece]) -> None:
        self._make = make
        # Bounded: what would be too many is let go. Appending and popping need no lock.
        self._spare: dict[int, deque[Piece]] = {}

    def lend(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> "Lease":
        """Lend memory for an array."""
        n_bytes = dtype.itemsize * int(np.prod(shape))
        size = 1 << max(n_bytes - 1, 1).bit_length()
        spare = self._spare.setdefault(size, deque(maxlen=_SPARE_MAX))
        try:
            piece = spare.pop()
        except IndexError:
            piece = self._make(size)
        return Lease(piece, spare, shape, dtype)


class Lease:
    """A piece that is lent; NumPy's arrays of it refer to this.

    It must not be an array itself: NumPy lets views of views refer to the lowest array there is.
    """

    def __init__(
        self, piece: Piece, spare: deque[Piece], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.piece = piece
        self._spare = spare
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (piece.memory.ctypes.data, False),
            "version": 3,
        }

    def array(self) -> NDArray[Any]:
        """Array of it."""
        return np.asarray(self)

    def __del__(self) -> None:
        self._spare.append(self.piece)
