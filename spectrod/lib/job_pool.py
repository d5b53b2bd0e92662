"""Many small jobs on few threads: each runs when it is due, woken, or its descriptor is ready."""

import heapq
import itertools
import math
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import NamedTuple

from spectrod.lib.errors import SpectrodError, UnavailableError
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker, defect

_STUCK_S = 0.02
_LATE_S = 0.2
"""Another thread helps if no thread has taken a job for the first time, or if a job has waited for
the second [s]. Threads that compute at the same time hand the interpreter to each other, which
costs more than short jobs."""
_GRID_S = 0.005
_WIDE_GRID_S = 0.05
_WIDE_FROM_S = 0.1
"""Jobs that are due within a step of a grid run together: of 5 ms, of 50 ms for waits over 0.1 s.
"""
_JOIN_S = 1.0
"""How long the end waits for threads; one that a driver holds is left behind [s]."""


class Wait(NamedTuple):
    """What a job waits for: whichever comes first, or ``PoolJob.wake``.

    Attributes
    ----------
    until_s : float
        Monotonic time [s]; infinity for none.
    fd : int
        Descriptor; -1 for none.
    events : int
        ``select.POLLIN``, or 0: only the end of the other side.
    """

    until_s: float = math.inf
    fd: int = -1
    events: int = 0


Steps = Generator[Wait, None, None]
"""A job: it runs until it yields what it waits for, and ends when it returns."""


class PoolJob:
    """A job of a pool; made by ``JobPool.job``.

    Attributes
    ----------
    failure : SpectrodError or None
        Exception that ended it, if it did not return.
    """

    def __init__(
        self,
        pool: "JobPool",
        task: str,
        steps: Steps,
        on_end: Callable[[SpectrodError | None], None],
    ) -> None:
        self.task, self.failure = task, None
        self._pool = pool
        self._steps: Steps | None = steps
        self._on_end = on_end
        self._ended = threading.Event()
        # Guarded by the pool's lock:
        self.is_started = self.is_ready = self.is_running = self.is_woken = False
        self.ready_s = 0.0
        self.due_s = math.inf
        # Its times in the heap, the next one last: only an earlier time than all is added.
        self.queued_s: list[float] = []
        self.watched_fd = -1

    failure: SpectrodError | None

    def start(self) -> None:
        """Run for the first time, soon."""
        self.is_started = True
        self.wake()

    def wake(self) -> None:
        """Run soon, and once more if it runs just now; any thread."""
        self._pool.wake(self)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the job to end; return whether it has. True if it was never started."""
        return not self.is_started or self._ended.wait(timeout_s)

    @property
    def has_ended(self) -> bool:
        """True after its end."""
        return self._ended.is_set()

    def step(self) -> Wait | None:
        """Run until the job waits; None if it has ended. Called by one thread of the pool."""
        try:
            assert self._steps is not None
            return next(self._steps)
        except StopIteration:
            pass
        except SpectrodError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001
            # The top of the thread: its owner must see every exception.
            self.failure = defect(self.task, error)
        self._on_end(self.failure)
        # A time in the heap may keep the job for seconds, but not what it was for.
        self._steps, self._on_end = None, _ignore
        self._ended.set()
        return None


def _ignore(_failure: SpectrodError | None) -> None:
    pass


class JobPool:
    """Runs jobs on few threads.

    A thread of its own waits for times and descriptors. One thread runs the jobs that are ready,
    one after the other; if one of them takes long, others help, so a job that blocks holds up no
    other unless all threads block.

    Parameters
    ----------
    threads_max : int, optional
        Threads that run jobs; by default four more than processors, at most 32.

    Notes
    -----
    Linux only: descriptors are watched by epoll, which forgets one that is closed.
    """

    def __init__(self, threads_max: int | None = None) -> None:
        self.threads_max = threads_max or min(32, (os.cpu_count() or 1) + 4)
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        self._ready: deque[PoolJob] = deque()
        self._due: list[tuple[float, int, PoolJob]] = []
        self._jobs_of: dict[int, PoolJob] = {}
        self._numbers = itertools.count(1)
        self._idle = 0
        self._called = 0
        self._called_s = self._taken_s = 0.0
        self._workers: list[Worker] = []
        self._scheduler: Worker | None = None
        self._looks_at_s = math.inf
        self._is_closed = False
        self._wakeup = Wakeup()
        self._epoll = select.epoll()
        self._epoll.register(self._wakeup, select.EPOLLIN)

    def job(
        self,
        task: str,
        steps: Steps,
        on_end: Callable[[SpectrodError | None], None] = lambda _failure: None,
    ) -> PoolJob:
        """Make a job, which ``PoolJob.start`` starts.

        Parameters
        ----------
        task : str
            The task in one or two words: errors say "TASK failed".
        steps : generator of Wait
            Raises SpectrodError for expected failures; any other exception is a defect, which is
            logged with its traceback and becomes an InternalError.
        on_end : callable
            Called as the job's last action, with ``failure``.
        """
        return PoolJob(self, task, steps, on_end)

    def wake(self, job: PoolJob) -> None:
        """Run a job soon; see ``PoolJob.wake``."""
        with self._lock:
            self._make_ready(job)
            self._call_threads()

    def close(self) -> None:
        """End the threads; call it after the end of all jobs. Idempotent."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._has_work.notify_all()
            threads = [*self._workers, *filter(None, [self._scheduler])]
        self._wakeup.set()
        deadline_s = time.monotonic() + _JOIN_S
        ended = [one.wait(max(0.0, deadline_s - time.monotonic())) for one in threads]
        if all(ended):
            self._epoll.close()
            self._wakeup.close()

    # ---- under the lock

    def _make_ready(self, job: PoolJob) -> None:
        if job.is_running:
            job.is_woken = True
        elif job.is_started and not (job.is_ready or job.has_ended):
            job.is_ready, job.ready_s, job.due_s = True, time.monotonic(), math.inf
            self._ready.append(job)

    def _call_threads(self) -> None:
        """Let a thread run the ready jobs; another one, if the others are not enough."""
        if self._is_closed or not self._ready:
            return
        n_busy = len(self._workers) - self._idle + self._called
        if n_busy and time.monotonic() < self._help_s():
            self._look_at(self._help_s())
        elif self._idle > self._called:
            self._called += 1
            self._called_s = time.monotonic()
            self._has_work.notify()
        elif len(self._workers) < self.threads_max:
            self._called_s = time.monotonic()
            self._start_worker()

    def _start_worker(self) -> None:
        worker = Worker(f"jobs {len(self._workers)}", self._work)
        try:
            worker.start()
        except UnavailableError:
            if not self._workers:
                raise
            self.threads_max = len(self._workers)  # those that run are enough, only slower
        else:
            self._workers.append(worker)

    def _help_s(self) -> float:
        """Return when another thread helps with the ready jobs [s, monotonic]."""
        stuck_s = max(self._taken_s, self._called_s) + _STUCK_S
        return min(stuck_s, max(self._ready[0].ready_s, self._called_s) + _LATE_S)

    def _look_at(self, at_s: float) -> None:
        """Let the scheduler look at this time at the latest [s, monotonic]."""
        if self._scheduler is None:
            self._scheduler = Worker("schedule", self._schedule)
            self._scheduler.start()
        if at_s < self._looks_at_s:
            self._looks_at_s = at_s
            self._wakeup.set()

    def _put_off(self, job: PoolJob, wait: Wait) -> None:
        """Let a job wait."""
        if wait.until_s <= time.monotonic():
            self._make_ready(job)
            return
        if wait.fd >= 0:
            self._watch(job, wait)
        elif job.watched_fd >= 0:
            self._forget(job)
        if not job.is_ready and wait.until_s < math.inf:
            self._queue(job, _on_grid(wait.until_s))

    def _queue(self, job: PoolJob, due_s: float) -> None:
        """Let a job run at a time; it has an entry in the heap at that time or earlier."""
        job.due_s = due_s
        if not job.queued_s or due_s < job.queued_s[-1]:
            job.queued_s.append(due_s)
            heapq.heappush(self._due, (due_s, next(self._numbers), job))
            self._look_at(due_s)

    def _watch(self, job: PoolJob, wait: Wait) -> None:
        if self._scheduler is None:
            self._look_at(math.inf)
        if job.watched_fd not in (-1, wait.fd):
            self._forget(job)
        job.watched_fd = wait.fd
        self._jobs_of[wait.fd] = job
        try:
            self._arm(wait.fd, wait.events | select.EPOLLONESHOT)
        except PermissionError:  # a regular file: always readable
            job.watched_fd = -1
            self._make_ready(job)

    def _arm(self, fd: int, events: int) -> None:
        try:
            self._epoll.modify(fd, events)
        except FileNotFoundError:  # not registered yet, or closed and opened again
            self._epoll.register(fd, events)

    def _forget(self, job: PoolJob) -> None:
        """Stop watching a job's descriptor, which it may have closed."""
        if self._jobs_of.get(job.watched_fd) is job:
            del self._jobs_of[job.watched_fd]
            with suppress(OSError):  # closed: epoll has forgotten it
                self._epoll.unregister(job.watched_fd)
        job.watched_fd = -1

    # ---- the threads

    def _schedule(self) -> None:
        while not self._is_closed:
            with self._lock:
                self._looks_at_s = self._next_look_s()
                timeout_s = self._looks_at_s - time.monotonic()
            ready = self._epoll.poll(None if timeout_s == math.inf else max(0.0, timeout_s))
            self._wakeup.clear()
            with self._lock:
                self._take_readable([fd for fd, _ in ready])
                self._take_due(time.monotonic())
                self._call_threads()

    # A thread that waits holds no job in a local variable: jobs that have ended are released.

    def _take_readable(self, fds: Iterable[int]) -> None:
        for fd in fds:
            if job := self._jobs_of.get(fd):
                self._make_ready(job)

    def _next_look_s(self) -> float:
        due_s = self._due[0][0] if self._due else math.inf
        if self._ready and len(self._workers) - self._idle < self.threads_max:
            due_s = min(due_s, self._help_s())
        return due_s

    def _take_due(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            _, _, job = heapq.heappop(self._due)
            job.queued_s.pop()
            if job.due_s <= now_s:
                self._make_ready(job)
            elif job.due_s < math.inf:
                self._queue(job, job.due_s)

    def _work(self) -> None:
        while self._await_ready():
            self._run_next()

    def _await_ready(self) -> bool:
        """Wait for a job that is ready; return False at the end."""
        with self._lock:
            while not self._ready:
                if self._is_closed:
                    return False
                self._idle += 1
                self._has_work.wait()
                self._idle -= 1
                self._called = max(0, self._called - 1)
            return True

    def _run_next(self) -> None:
        """Run the next job, unless another thread has taken it."""
        with self._lock:
            if not self._ready:
                return
            job = self._ready.popleft()
            self._taken_s = time.monotonic()
            job.is_ready, job.is_running, job.is_woken = False, True, False
        wait = job.step()
        with self._lock:
            job.is_running = False
            if wait is None:
                self._forget(job)
            elif job.is_woken:
                self._make_ready(job)
            else:
                self._put_off(job, wait)


def _on_grid(due_s: float) -> float:
    """Return the first step of the grid at or after a time [s]."""
    grid_s = _WIDE_GRID_S if due_s - time.monotonic() > _WIDE_FROM_S else _GRID_S
    return math.ceil(due_s / grid_s) * grid_s
