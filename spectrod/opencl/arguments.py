"""A kernel's arguments, set only if they change: pyopencl takes 4 us to set one."""

from collections.abc import Iterable
from typing import Any

import numpy as np


class Arguments:
    """Arguments of a kernel object that only this object sets; one thread at a time.

    Attributes
    ----------
    kernel : pyopencl.Kernel
        From ``Context.kernel``.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._numbers: dict[int, bytes] = {}

    def set(self, first: int, values: Iterable[Any]) -> None:
        """Set arguments from an index on.

        NumPy scalars and vectors are compared with their last values. Buffers are always set, since
        a new one may have an old address; they are not kept alive.
        """
        for index, value in enumerate(values, first):
            if isinstance(value, (np.generic, np.ndarray)):
                number = value.tobytes()
                if self._numbers.get(index) == number:
                    continue
                self._numbers[index] = number
            self.kernel.set_arg(index, value)
