"""Work on host memory by several threads: one alone saturates neither the memory nor PCIe."""

import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")

_THREADS_MAX = 8
"""With 16 of 16 processors the memory gives copies little more than with 8."""
_PART_BYTES_MIN = 1 << 20

_limits = {"threads": _THREADS_MAX}


def usable_processors() -> int:
    """Count the processors that this process may use: not those of others in its container."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def limit_threads(n: int) -> None:
    """Let ``in_parts`` use at most n threads, in a process that shares its processors."""
    _limits["threads"] = max(1, n)


def in_parts(work: Callable[[slice], T], n: int, n_bytes: int) -> list[T]:
    """Call a function for consecutive parts of n items, in threads if they have many bytes.

    The calling thread takes the first part.

    Parameters
    ----------
    work : callable
        Takes a slice of the items; releases the interpreter's lock for most of its time.
    n : int
        Number of items.
    n_bytes : int
        Size of all items [bytes].

    Returns
    -------
    results : list
        What ``work`` returned for each part, in order.
    """
    parts = _parts(slice(0, n), n_bytes)
    if len(parts) == 1:
        return [work(parts[0])]
    threads = _threads(os.getpid())
    others = [threads.submit(work, part) for part in parts[1:]]
    try:
        return [work(parts[0]), *(other.result() for other in others)]
    except BaseException:
        wait(others)  # they write to memory that the caller may use again
        raise


def copy(out: NDArray[Any], source: NDArray[Any], axis: int) -> None:
    """Copy an array to another of its shape, in parts along an axis."""
    in_parts(_copier(out, source, axis), out.shape[axis], out.nbytes)


def copy_steps(out: NDArray[Any], source: NDArray[Any], axis: int, step: int) -> Generator[slice]:
    """Copy as ``copy`` does, and yield each step of the axis as soon as it is complete.

    Several threads copy the later steps meanwhile. Close it to wait for them.
    """
    copy_part = _copier(out, source, axis)
    n = out.shape[axis]
    steps = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    step_bytes = out.nbytes // max(1, len(steps))
    parts = [_parts(one, step_bytes) for one in steps]
    if max(map(len, parts), default=1) == 1:
        for one in steps:
            copy_part(one)
            yield one
        return
    threads = _threads(os.getpid())
    copies = [[threads.submit(copy_part, part) for part in of_step] for of_step in parts]
    try:
        for one, of_step in zip(steps, copies, strict=True):
            for done in of_step:
                done.result()
            yield one
    finally:
        for of_step in copies:
            wait(of_step)


def _copier(out: NDArray[Any], source: NDArray[Any], axis: int) -> Callable[[slice], None]:
    def copy_part(part: slice) -> None:
        place = (slice(None),) * axis + (part,)
        out[place] = source[place]

    return copy_part


def _parts(items: slice, n_bytes: int) -> list[slice]:
    """Divide consecutive items of a size for the threads."""
    n = items.stop - items.start
    n_parts = min(_limits["threads"], n, n_bytes // _PART_BYTES_MIN)
    if n_parts > 1:  # asking for the processors takes longer than a small part
        n_parts = min(n_parts, usable_processors())
    n_parts = max(1, n_parts)
    bounds = [items.start + n * i // n_parts for i in range(n_parts + 1)]
    return [slice(*bound) for bound in pairwise(bounds)]


@cache
def _threads(pid: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not survive a fork
    return ThreadPoolExecutor(_THREADS_MAX, "spectrod-parallel")
