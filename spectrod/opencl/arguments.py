"""Arguments of a kernel, set without the search for their type."""

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
        # For a number, pyopencl's set_arg catches an exception of each type that it could have,
        # which takes 10 us. The method that pyopencl's own invokers call takes 0.1 us.
        self._set_number = getattr(kernel, "_set_arg_buf", kernel.set_arg)
        # Before pyopencl 2026.1.4 set_arg takes no None.
        self._set_null = getattr(kernel, "_set_arg_null", lambda index: kernel.set_arg(index, None))
        self._counts: dict[int, int] = {}

    def set_counts(self, first: int, counts: Iterable[int]) -> None:
        """Set arguments of 64 bits from an index on, those that differ from the last call's."""
        for index, count in enumerate(counts, first):
            if self._counts.get(index) != count:
                self._set_number(index, np.uint64(count))
                self._counts[index] = count

    def set(self, first: int, values: Iterable[Any]) -> None:
        """Set arguments from an index on.

        Parameters
        ----------
        first : int
            Index of the first argument.
        values : iterable
            NumPy scalars and vectors, which are copied, buffers, which are not kept alive, or None
            for no buffer.
        """
        for index, value in enumerate(values, first):
            if isinstance(value, (np.generic, np.ndarray)):
                self._set_number(index, value)
            elif value is None:
                self._set_null(index)
            else:
                self.kernel.set_arg(index, value)
