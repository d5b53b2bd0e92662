"""Work on host memory by several threads: one alone saturates neither the memory nor PCIe."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import count, pairwise
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")

_THREADS_MAX = 8
"""With 16 of 16 processors the memory gives copies little more than with 8."""
_PART_BYTES_MIN = 1 << 19
"""To hand over a smaller part takes much of the time that its copy takes [bytes]."""

_limits = {"threads": _THREADS_MAX}


def usable_processors() -> int:
    """Count the processors that this process may use: not those of others in its container."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def limit_threads(n: int) -> None:
    """Let work use at most n threads, in a process that shares its processors.

    ``copy_steps`` uses n besides that of its caller, which works between the steps.
    """
    _limits["threads"] = max(1, n)


def in_parts(work: Callable[[slice], T], n: int, n_bytes: int) -> list[T]:
    """Call a function for consecutive parts of n items, in threads if they have many bytes.

    The calling thread takes parts as the others do, and all of them while no other is free.

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
    with closing(_Job(work, parts)) as job:
        _helpers(os.getpid()).join(job, len(parts) - 1)
        job.work()
        return [job.result(i) for i in range(len(parts))]


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
    with closing(_Job(copy_part, [part for of_step in parts for part in of_step])) as job:
        _helpers(os.getpid()).join(job, max(map(len, parts)))
        end = 0
        for one, of_step in zip(steps, parts, strict=True):
            for i in range(end, end := end + len(of_step)):
                job.work(until=i)
                job.result(i)
            yield one


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


class _Job(Generic[T]):
    """Parts of one piece of work; threads take them in order, each part once."""

    def __init__(self, work: Callable[[slice], T], parts: Sequence[slice]) -> None:
        self._work, self._parts = work, parts
        self._next = count()  # its next() is atomic
        self._results: dict[int, T] = {}
        self._errors: dict[int, BaseException] = {}
        self._undone = [_locked() for _ in parts]
        self._helping: list[tuple[_Helper, Lock]] = []

    def joined(self, helper: "_Helper", left: Lock) -> None:
        """Add a helper, which releases a lock as soon as it has left."""
        self._helping.append((helper, left))

    def work(self, until: int | None = None) -> None:
        """Do parts until none is left, or one is complete."""
        while until is None or self._undone[until].locked():
            i = next(self._next)
            if i >= len(self._parts):
                return
            try:
                self._results[i] = self._work(self._parts[i])
            except BaseException as error:  # noqa: BLE001 - of another thread: the caller raises it
                self._errors[i] = error
            self._undone[i].release()

    def result(self, i: int) -> T:
        """Wait for a part; return its result, or raise its error."""
        with self._undone[i]:
            if error := self._errors.get(i):
                raise error
            return self._results[i]

    def close(self) -> None:
        """Do all parts that are left, and wait for the others: no helper writes any more."""
        try:
            self._wait()
        except BaseException:  # Ctrl-C
            self._wait()
            raise

    def _wait(self) -> None:
        self.work()
        for helper, left in self._helping:
            helper.dismiss(self, left)
            with left:
                pass


class _Helper(Thread):
    """A thread that waits for jobs."""

    def __init__(self, idle: list["_Helper"]) -> None:
        super().__init__(name="spectrod-parallel", daemon=True)
        self._idle = idle
        self._called = _locked()
        self._task: list[tuple[_Job[Any], Lock]] = []
        self.start()

    def call(self, job: _Job[Any]) -> None:
        """Start a job, and leave it when no part is left; only while idle."""
        left = _locked()
        self._task.append((job, left))
        job.joined(self, left)
        self._called.release()

    def dismiss(self, job: _Job[Any], left: Lock) -> None:
        """Take a job back that the helper has not started: a busy machine may start it late."""
        with suppress(ValueError):
            self._task.remove((job, left))
            left.release()

    def run(self) -> None:
        """Do jobs for as long as the process lives."""
        while True:
            self._called.acquire()
            try:
                job, left = self._task.pop()
            except IndexError:  # dismissed
                self._idle.append(self)
                continue
            job.work()
            del job  # it refers to the memory that was worked on
            self._idle.append(self)  # before its caller calls again
            left.release()


class _Helpers:
    """All helpers of a process.

    They are no ``ThreadPoolExecutor``, which takes about as long to hand over a part as to copy it.
    """

    def __init__(self) -> None:
        self._idle: list[_Helper] = []
        self._n = 0
        self._making = Lock()

    def join(self, job: _Job[Any], n: int) -> None:
        """Let up to n helpers join a job: those that are idle, and new ones up to the maximum."""
        for _ in range(n):
            try:
                found: _Helper | None = self._idle.pop()
            except IndexError:
                found = self._new()
            if found is None:
                return
            found.call(job)

    def _new(self) -> _Helper | None:
        """Start a helper; None if there are enough, or the system has no more threads."""
        with self._making:
            if self._n == _THREADS_MAX:
                return None
            try:
                helper = _Helper(self._idle)
            except RuntimeError:
                return None
            self._n += 1
            return helper


def _locked() -> Lock:
    lock = Lock()
    lock.acquire()
    return lock


@cache
def _helpers(pid: int) -> _Helpers:  # noqa: ARG001 - threads do not survive a fork
    return _Helpers()
