"""The local executor: processes of this machine, one unit at a time each."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import cycle, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess

from spectrod.apps.batch.executor import Compute, attempt, limit_s, prepare_process
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.results import UnitRecord
from spectrod.apps.batch.unit import compute_unit, failed
from spectrod.lib.errors import InternalError
from spectrod.lib.processes import end_with, start_process

PROCESSES_MAX = 256

_HANDLED_HERE = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
_LOOK_S = 0.2
_END_S = 5.0


class LocalExecutor:
    """Computes units in processes of this machine; see ``Executor``.

    A process computes one unit after the other, and keeps its engine open. One that ends early is
    the failure of its unit, and a new one takes its place. The processes end when this one does,
    however it does. The threads of PoCL are shared out among them, so that two processes on two
    processors have one each; ``POCL_MAX_PTHREAD_COUNT``, if it is set, holds instead.

    Parameters
    ----------
    n_processes : int
        Number of processes, 1 to 256.
    compute : callable or sequence of callable
        Computes a unit; each process imports it by its name. Of several, as one for each device,
        processes have one in turn.
    stop : callable
        Returns True when no more units should be started.
    """

    def __init__(
        self,
        n_processes: int,
        compute: Compute | Sequence[Compute] = compute_unit,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        turns = cycle([compute] if callable(compute) else compute)
        self._computes, self._stop = list(islice(turns, n_processes)), stop

    def run(self, job: Job, units: Iterable[Unit]) -> Iterator[UnitRecord]:
        """Compute units; see ``Executor``."""
        waiting = deque(units)
        context = get_context("spawn")  # drivers do not survive a fork
        computes = self._computes[: len(waiting)]
        n_threads = max(1, len(os.sched_getaffinity(0)) // max(1, len(computes)))
        processes = [_UnitProcess(context, job, compute, n_threads) for compute in computes]
        try:
            while True:
                for process in processes:
                    if process.unit is None and waiting and not self._stop():
                        process.give(waiting.popleft())
                busy = {process.link: process for process in processes if process.unit}
                if not busy:
                    return
                for link in wait(list(busy), _LOOK_S):
                    yield busy[link].take()  # type: ignore[index]
                for process in processes:
                    if process.is_over_limit:
                        yield process.give_up()
        finally:
            for process in processes:
                process.end()


class _UnitProcess:
    """A process that computes units."""

    def __init__(self, context: SpawnContext, job: Job, compute: Compute, n_threads: int) -> None:
        self._context, self._job, self._compute = context, job, compute
        self._n_threads = n_threads
        self._process: SpawnProcess | None = None
        self.link: Connection
        self.unit: Unit | None = None
        self._end_s = 0.0

    def give(self, unit: Unit) -> None:
        """Start a unit, and the process if it does not run."""
        if self._process is None:
            self._start()
        self.unit = unit
        self._end_s = time.monotonic() + limit_s(unit)
        with suppress(OSError):  # a process that has ended: take() reports it
            self.link.send(unit)

    def _start(self) -> None:
        self.link, theirs = self._context.Pipe()
        arguments = theirs, os.getpid(), self._job, self._compute, self._n_threads
        try:
            self._process = start_process(self._context, _work, arguments, _HANDLED_HERE)
        finally:
            theirs.close()

    @property
    def is_over_limit(self) -> bool:
        """Whether the unit takes too long."""
        return self.unit is not None and time.monotonic() > self._end_s

    def take(self) -> UnitRecord:
        """Return the record of the unit; a process that has ended is a failure of the unit."""
        assert self.unit is not None
        unit, self.unit = self.unit, None
        try:
            record: UnitRecord = self.link.recv()
        except (EOFError, OSError):
            code = self.end()
            reason = f"the process that computed it ended with exit code {code}"
            return failed(self._job, unit, InternalError(reason))
        return record

    def give_up(self) -> UnitRecord:
        """End the process, whose unit takes too long."""
        assert self.unit is not None
        unit = self.unit
        self.end()
        self.unit = None
        reason = f"took more than {limit_s(unit):.0f} s, 100 times what is expected: given up"
        return failed(self._job, unit, InternalError(reason))

    def end(self) -> int | None:
        """End the process, at once if it computes; return its exit code. Idempotent.

        A process that is killed leaves files under temporary names, which the next one removes.
        """
        process, self._process = self._process, None
        if process is None:
            return None
        self.link.close()
        if self.unit is None:
            process.join(_END_S)
        process.kill()
        process.join()
        return process.exitcode


def _work(link: Connection, parent: int, job: Job, compute: Compute, n_threads: int) -> None:
    """Compute the units that arrive, until the link is closed: the body of a process."""
    if not end_with(parent):
        return
    prepare_process(n_threads)
    with suppress(EOFError, OSError):
        while True:
            unit: Unit = link.recv()
            link.send(attempt(compute, job, unit))
