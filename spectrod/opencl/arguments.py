"""A kernel's arguments, set only where they change: pyopencl takes 4 us to set one."""

from collections.abc import Iterable
from typing import Any

import numpy as np

Scalar = np.uint64 | np.uint32 | np.float32


class Arguments:
    """Arguments of one kernel object that nobody else sets.

    Parameters
    ----------
    kernel : pyopencl.Kernel
        From ``Context.kernel``.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._scalars: dict[int, Scalar] = {}

    def set_buffers(self, buffers: Iterable[tuple[int, Any]]) -> None:
        """Set buffers, or None, by index; they are not kept alive."""
        for index, buffer in buffers:
            self.kernel.set_arg(index, buffer)

    def set_scalars(self, first: int, scalars: Iterable[Scalar]) -> None:
        """Set scalars from an index on."""
        for index, scalar in enumerate(scalars, first):
            if self._scalars.get(index) != scalar:
                self.kernel.set_arg(index, scalar)
                self._scalars[index] = scalar
