"""The Dask executor: workers of a cluster, on this machine or on any others."""

import itertools
import logging
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import resource_tracker
from typing import Any

import spectrod
from spectrod.apps.batch.executor import Compute, attempt, limit_s, prepare_process
from spectrod.apps.batch.job import Job
from spectrod.apps.batch.plan import Unit
from spectrod.apps.batch.results import UnitRecord
from spectrod.apps.batch.unit import compute_unit, failed
from spectrod.lib.errors import ConfigError, InternalError, UnavailableError, bug_error
from spectrod.lib.optional_packages import need
from spectrod.lib.text import printable

CONNECT_S = 10.0
"""How long a scheduler has to answer [s]."""
WAITING_MIN = 64
"""Least number of units that a scheduler knows of, by which an adaptive cluster grows."""
WAITING_PER_THREAD = 4

_ENCRYPTED = "tls://"
_OWN_CLUSTER: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
}
"""Dask's configuration of the processes that this class starts: without pages, which they would
show to every user, and without a profiler, which takes processor time for these pages."""
_PREFIX = "spectrod-unit"
_STARTS = "spectrod-unit-starts"
_LOOK_S = 0.5


class DaskExecutor:
    """Computes units on workers of Dask; see ``Executor``.

    Units that a lost worker had go to others: Dask gives them to three workers more. A worker that
    does not answer is restarted by Dask (``distributed.scheduler.worker-ttl``, 5 min), and one
    whose unit exceeds its limit by this class. The scheduler knows of ``WAITING_PER_THREAD`` units
    a thread at a time. Closing the iterator ends the workers of a cluster that it has made; those
    of another cluster complete the units that they compute, whose results then stand.

    All workers must see the files of the job under the same paths, have the same version of
    spectrod, and one thread each.

    Whoever can talk to a process of Dask can run programs in it, also in this one, which unpickles
    results. So the processes of its own cluster talk by TLS, with a key that is made for this run
    and that no file keeps, and have no pages.

    Parameters
    ----------
    scheduler : str
        Address of a scheduler, as ``tls://host:8786``, with the keys of Dask's own configuration;
        empty: a cluster of processes of this machine is made.
    n_workers : int
        Number of its processes; not used with a scheduler.
    resources : mapping of str to float
        What a worker must have free for a unit, as ``{"GPU": 1}``.
    compute : callable
        Computes a unit; each worker imports it by its name.
    stop : callable
        Returns True when no more units should be started.
    is_insecure : bool
        Whether a scheduler without TLS is accepted.

    Raises
    ------
    ConfigError
        If the scheduler's address is not ``tls://``, and ``is_insecure`` is not set.
    UnavailableError
        If Dask, or what makes its keys, is not installed.
    """

    def __init__(
        self,
        scheduler: str = "",
        n_workers: int = 1,
        resources: Mapping[str, float] | None = None,
        compute: Compute = compute_unit,
        stop: Callable[[], bool] = lambda: False,
        *,
        is_insecure: bool = False,
    ) -> None:
        if scheduler and not scheduler.startswith(_ENCRYPTED) and not is_insecure:
            raise ConfigError(
                f"--scheduler {scheduler}: must be {_ENCRYPTED}: without TLS, whoever reaches the "
                "scheduler or answers in its place can run programs here; --insecure accepts that"
            )
        if not scheduler:
            need("cryptography", "dask")
        self._distributed = need("distributed", "dask")
        # Dask's own default is to log each connection.
        logging.getLogger("distributed").setLevel(logging.NOTSET)
        self._scheduler, self._n_workers = scheduler, n_workers
        self._resources = dict(resources or {})
        self._compute, self._stop = compute, stop
        self._numbers = itertools.count()

    def run(self, job: Job, units: Iterable[Unit]) -> Iterator[UnitRecord]:
        """Compute units; see ``Executor``.

        Raises
        ------
        UnavailableError
            If no scheduler answers, or a worker cannot compute: it has another version of spectrod,
            or more than one thread.
        """
        waiting = iter(units)
        with self._client() as client:
            running = _SubmittedUnits(self._distributed, client, job)
            try:
                while True:
                    if self._stop():
                        waiting = iter(())
                        running.cancel_unstarted()
                    room = running.room()
                    for unit in itertools.islice(waiting, room):
                        running.submit(unit, self._submit(client, job, unit))
                    if not running:
                        return
                    yield from running.completed()
            finally:
                running.cancel()

    def _submit(self, client: Any, job: Job, unit: Unit) -> Any:
        return client.submit(
            _compute_on_worker,
            (self._compute, job, unit, spectrod.__version__),
            key=f"{_PREFIX}-{unit.key}-{next(self._numbers)}",
            pure=False,
            priority=unit.cost_s,  # the longest first, so that none is left over at the end
            resources=self._resources or None,
        )

    @contextmanager
    def _client(self) -> Iterator[Any]:
        if self._scheduler:
            with self._connected(self._scheduler) as client:
                yield client
            return
        resource_tracker.ensure_running()  # it would unblock SIGINT when it is started
        # A terminal sends these to all processes, and only this one handles them. The thread that
        # starts workers inherits the mask, and they do from it.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
        try:
            with need("dask", "dask").config.set(_OWN_CLUSTER):
                cluster = self._distributed.LocalCluster(
                    n_workers=self._n_workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    security=self._distributed.Security.temporary(),
                    resources=self._resources or None,
                )
        except (OSError, RuntimeError, TimeoutError) as error:
            text = printable(str(error)) or "they do not answer"
            raise UnavailableError(f"workers of this machine: cannot be started: {text}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        with cluster, self._connected(cluster) as client:
            yield client

    @contextmanager
    def _connected(self, where: Any) -> Iterator[Any]:
        try:
            client = self._distributed.Client(where, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, TypeError, ValueError) as error:
            # TypeError: Dask's configuration has no keys for TLS.
            reason = printable(str(error)) or "it does not answer"
            raise UnavailableError(f"scheduler {printable(str(where))}: {reason}") from None
        with client:
            yield client


@dataclass(slots=True)
class _Submitted:
    """A unit that the scheduler knows of; its start is None until a worker reports it."""

    unit: Unit
    future: Any
    worker: str = ""
    start_s: float | None = None


class _SubmittedUnits:
    """The units that a scheduler knows of."""

    def __init__(self, distributed: Any, client: Any, job: Job) -> None:
        self._distributed, self._client, self._job = distributed, client, job
        self._units: dict[str, _Submitted] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._starts: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        client.subscribe_topic(_STARTS, self._on_start)

    def __bool__(self) -> bool:
        return bool(self._units)

    def room(self) -> int:
        """Return how many more units the scheduler may get."""
        threads: int = sum(self._client.nthreads().values())
        return max(0, max(WAITING_MIN, WAITING_PER_THREAD * threads) - len(self._units))

    def submit(self, unit: Unit, future: Any) -> None:
        """Take a unit that has been submitted."""
        self._units[future.key] = _Submitted(unit, future)
        future.add_done_callback(lambda one: self._done.put(one.key))

    def completed(self) -> Iterator[UnitRecord]:
        """Wait a while; yield the records of the units that are completed or exceed their limit."""
        with suppress(queue.Empty):
            key = self._done.get(timeout=_LOOK_S)
            while True:
                if (one := self._units.pop(key, None)) is not None:
                    yield self._record(one)
                key = self._done.get_nowait()
        self._note_starts()
        for key, one in list(self._units.items()):
            if one.start_s is None or time.monotonic() - one.start_s < limit_s(one.unit):
                continue
            del self._units[key]
            yield self._give_up(one)

    def cancel_unstarted(self) -> None:
        """Take back the units that no worker has reported to have started."""
        self._note_starts()
        unstarted = {key: one for key, one in self._units.items() if one.start_s is None}
        if unstarted:
            self._client.cancel([one.future for one in unstarted.values()])
            for key in unstarted:
                del self._units[key]

    def cancel(self) -> None:
        """Take back all units."""
        if self._units:
            with suppress(OSError, TimeoutError):  # the scheduler has gone
                self._client.cancel([one.future for one in self._units.values()], force=True)

    def _on_start(self, event: tuple[float, Mapping[str, str]]) -> None:
        _, what = event
        self._starts.put((what["key"], what["worker"]))

    def _note_starts(self) -> None:
        with suppress(queue.Empty):
            while True:
                key, worker = self._starts.get_nowait()
                if (one := self._units.get(key)) is not None:
                    one.worker, one.start_s = worker, time.monotonic()

    def _record(self, one: _Submitted) -> UnitRecord:
        if one.future.cancelled():
            return failed(self._job, one.unit, InternalError("Dask has cancelled it"))
        error = one.future.exception()
        if error is None:
            record: UnitRecord = one.future.result()
            return record
        if isinstance(error, _UnfitWorkerError):
            raise UnavailableError(str(error))
        if isinstance(error, self._distributed.KilledWorker):
            reason = f"each of {error.allowed_failures + 1} workers was lost while it computed this"
            return failed(self._job, one.unit, InternalError(reason))
        return failed(self._job, one.unit, bug_error(error))

    def _give_up(self, one: _Submitted) -> UnitRecord:
        """End the worker of a unit that takes too long."""
        self._client.cancel([one.future], force=True)
        try:
            with suppress(KeyError):  # Dask has given it up meanwhile
                self._client.restart_workers([one.worker], raise_for_error=False)
        except ValueError:  # it has no nanny, which would restart it
            self._client.retire_workers([one.worker], close_workers=True, remove=True)
        reason = f"took more than {limit_s(one.unit):.0f} s on {one.worker}: given up"
        return failed(self._job, one.unit, InternalError(reason))


class _UnfitWorkerError(Exception):
    """A worker on which no unit can be computed."""


def _compute_on_worker(task: tuple[Compute, Job, Unit, str]) -> UnitRecord:
    """Compute a unit: the body of a task."""
    compute, job, unit, version = task
    worker = need("distributed", "dask").get_worker()
    where = f"worker {worker.address}"
    if spectrod.__version__ != version:
        raise _UnfitWorkerError(f"{where}: has spectrod {spectrod.__version__}, must be {version}")
    if worker.state.nthreads != 1:
        raise _UnfitWorkerError(f"{where}: has {worker.state.nthreads} threads, must have 1")
    key = worker.get_current_task()
    worker.log_event(_STARTS, {"key": str(key), "worker": worker.address})
    _prepare_worker()
    with _unprofiled(worker):
        return attempt(compute, job, unit)


@cache
def _prepare_worker() -> None:
    """Prepare this process for its first unit: Dask starts workers with its own environment."""
    prepare_process(n_threads=1)


@contextmanager
def _unprofiled(worker: Any) -> Iterator[None]:
    """Hide this thread from Dask's profiler, and pause that.

    It holds the frames of a thread for a while, and so the handles of files. HDF5 lays out a file
    by when handles are closed: the same content would have other bytes. It also takes the
    interpreter's lock from the unit each 10 ms, which then takes a tenth longer.
    """
    profiler = worker.periodic_callbacks.get("profile")
    thread = threading.get_ident()
    with worker.active_threads_lock:
        key = worker.active_threads.pop(thread)
    if profiler is not None:
        worker.loop.add_callback(profiler.stop)
    try:
        yield
    finally:
        if profiler is not None:
            worker.loop.add_callback(profiler.start)
        with worker.active_threads_lock:
            worker.active_threads[thread] = key
