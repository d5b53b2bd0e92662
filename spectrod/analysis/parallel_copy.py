"""Copies by several threads: a single-threaded memcpy cannot saturate PCIe."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from numpy.typing import NDArray

_THREADS_MAX = 4
_PART_BYTES_MIN = 1 << 20


def copy(out: NDArray[Any], source: NDArray[Any], axis: int) -> None:
    """Copy an array to another of its shape, in parts along an axis if it is long enough."""
    n = out.shape[axis]
    n_parts = min(_THREADS_MAX, os.cpu_count() or 1, n, out.nbytes // _PART_BYTES_MIN)
    if n_parts < 2:
        out[...] = source
        return

    def copy_part(number: int) -> None:
        part = slice(n * number // n_parts, n * (number + 1) // n_parts)
        place = (slice(None),) * axis + (part,)
        out[place] = source[place]

    list(_threads(os.getpid()).map(copy_part, range(n_parts)))


@cache
def _threads(pid: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not survive a fork
    return ThreadPoolExecutor(_THREADS_MAX, "spectrod-copy")
