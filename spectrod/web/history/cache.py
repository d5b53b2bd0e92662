"""Computes answers in few threads, each once for all that wait for it, and keeps the newest."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from spectrod.errors import BusyError
from spectrod.web.history.answer import HistoryAnswer
from spectrod.web.history.budget import Budget
from spectrod.web.history.request import HistoryRequest

THREADS: Final = 2
WAITING_MAX: Final = 64
"""Different requests that may wait for a thread."""
CACHE_BYTES_MAX: Final = 64 << 20
"""Memory of kept answers [bytes]."""
FRESH_S: Final = 1.0
"""Time for which an answer that may change is kept [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The body of an answer.

    Attributes
    ----------
    body : bytes
        The body.
    etag : str
        Quoted hash of the body.
    is_final : bool
        Whether the same request always has this answer.
    """

    body: bytes
    etag: str
    is_final: bool


@dataclass(slots=True, eq=False)
class _Computation:
    """A computation, and how many wait for it."""

    task: "asyncio.Future[Encoded]"
    budget: Budget
    n_waiting: int = 0


@dataclass(slots=True)
class _KeptAnswer:
    """Answers, the last used at the end."""

    bytes_max: int
    clock: Callable[[], float]
    n_bytes: int = 0
    entries: OrderedDict[HistoryRequest, tuple[Encoded, float]] = field(default_factory=OrderedDict)

    def get(self, request: HistoryRequest) -> Encoded | None:
        """Return a kept answer that is still right."""
        entry = self.entries.get(request)
        if entry is None:
            return None
        encoded, made_s = entry
        if not encoded.is_final and self.clock() - made_s > FRESH_S:
            self._drop(request)
            return None
        self.entries.move_to_end(request)
        return encoded

    def put(self, request: HistoryRequest, encoded: Encoded) -> None:
        """Keep an answer; the ones that were not used for longest are dropped."""
        if len(encoded.body) > self.bytes_max // 4:
            return
        if request in self.entries:
            self._drop(request)
        self.entries[request] = encoded, self.clock()
        self.n_bytes += len(encoded.body)
        while self.n_bytes > self.bytes_max:
            self._drop(next(iter(self.entries)))

    def _drop(self, request: HistoryRequest) -> None:
        encoded, _ = self.entries.pop(request)
        self.n_bytes -= len(encoded.body)


class Answers:
    """Answers requests of one event loop.

    Parameters
    ----------
    compute : callable
        Computes an answer within a budget, in a thread.
    cache_bytes : int
        Memory of kept answers [bytes].
    clock : callable
        Monotonic seconds.
    """

    def __init__(
        self,
        compute: Callable[[HistoryRequest, Budget], HistoryAnswer],
        cache_bytes: int = CACHE_BYTES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compute = compute
        self._threads = ThreadPoolExecutor(THREADS, "history")
        self._running: dict[HistoryRequest, _Computation] = {}
        self._kept = _KeptAnswer(cache_bytes, clock)

    async def get(self, request: HistoryRequest) -> Encoded:
        """Return the answer to a request.

        A computation ends early when the last task that waits for it is cancelled.

        Raises
        ------
        BusyError
            If too many requests wait.
        ConfigError, NotFoundError
            See ``spectrod.web.history.answer.answer``.
        """
        kept = self._kept.get(request)
        if kept is not None:
            return kept
        running = self._running.get(request) or self._start(request)
        running.n_waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.n_waiting -= 1
            if not running.n_waiting and not running.task.done():
                running.budget.cancelled.set()
                self._forget(request, running)

    def _start(self, request: HistoryRequest) -> _Computation:
        if len(self._running) >= WAITING_MAX:
            raise BusyError(f"{WAITING_MAX} requests of history wait already: try again later")
        budget = Budget()
        loop = asyncio.get_running_loop()
        task = loop.run_in_executor(self._threads, self._encode, request, budget)
        running = self._running[request] = _Computation(task, budget)
        task.add_done_callback(lambda _: self._finish(request, running))
        return running

    def _encode(self, request: HistoryRequest, budget: Budget) -> Encoded:
        """Compute and encode; in a thread."""
        budget.start()
        answer = self._compute(request, budget)
        body = answer.encode()
        digest = hashlib.blake2b(body, digest_size=16).hexdigest()
        return Encoded(body, f'"{digest}"', answer.is_final)

    def _finish(self, request: HistoryRequest, running: _Computation) -> None:
        self._forget(request, running)
        # An error that nobody waits for any more, as of a cancelled computation, is nobody's.
        if running.task.cancelled() or running.task.exception() is not None:
            return
        self._kept.put(request, running.task.result())

    def _forget(self, request: HistoryRequest, running: _Computation) -> None:
        if self._running.get(request) is running:
            del self._running[request]
