"""Computes answers in few threads, each once for all that wait for it, and keeps the newest."""

import asyncio
import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from sys import getsizeof
from typing import Final

from spectrod.apps.web.compressed import compressed
from spectrod.apps.web.history.answer import HistoryAnswer
from spectrod.apps.web.history.budget import Budget
from spectrod.apps.web.history.request import HistoryRequest
from spectrod.lib.errors import BusyError

THREADS: Final = 2
WAITING_MAX: Final = 64
"""Different requests that may wait for a thread."""
CACHE_BYTES_MAX: Final = 8 << 20
"""Memory of kept answers [bytes]."""
_ENTRY_BYTES: Final = 800
"""Memory of a kept answer beside its body and the request's name: their objects, which are 700
bytes, and room in the dictionary [bytes]."""
FRESH_S: Final = 1.0
"""Time for which an answer that may change is kept [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The body of an answer, as browsers take it.

    Attributes
    ----------
    body : bytes
        The body in gzip.
    etag : str
        Quoted hash of the body before that.
    is_final : bool
        Whether the same request always has this answer.
    """

    body: bytes
    etag: str
    is_final: bool


@dataclass(slots=True, eq=False)
class _Computation:
    """A computation, who asked for it first, and how many wait for it."""

    request: HistoryRequest
    asker: str
    result: "asyncio.Future[Encoded]"
    budget: Budget = field(default_factory=Budget)
    n_waiting: int = 0


class _Turns:
    """Computations that wait for a thread: one of each asker in turn."""

    def __init__(self) -> None:
        self._of_asker: OrderedDict[str, deque[_Computation]] = OrderedDict()

    def add(self, computation: _Computation) -> None:
        self._of_asker.setdefault(computation.asker, deque()).append(computation)

    def discard(self, computation: _Computation) -> None:
        own = self._of_asker.get(computation.asker, deque())
        if computation in own:
            own.remove(computation)
            self._drop_if_empty(computation.asker)

    def next(self) -> _Computation | None:
        """Return and remove the next one; None if none waits."""
        if not self._of_asker:
            return None
        asker, own = next(iter(self._of_asker.items()))
        self._of_asker.move_to_end(asker)
        computation = own.popleft()
        self._drop_if_empty(asker)
        return computation

    def _drop_if_empty(self, asker: str) -> None:
        if not self._of_asker[asker]:
            del self._of_asker[asker]


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
        self.n_bytes += _n_bytes(request, encoded)
        while self.n_bytes > self.bytes_max:
            self._drop(next(iter(self.entries)))

    def _drop(self, request: HistoryRequest) -> None:
        encoded, _ = self.entries.pop(request)
        self.n_bytes -= _n_bytes(request, encoded)


def _n_bytes(request: HistoryRequest, encoded: Encoded) -> int:
    """Return the memory of a kept answer [bytes]."""
    return len(encoded.body) + getsizeof(request.name) + _ENTRY_BYTES


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
        self._n_busy = 0
        self._running: dict[HistoryRequest, _Computation] = {}
        self._turns = _Turns()
        self._kept = _KeptAnswer(cache_bytes, clock)

    async def get(self, request: HistoryRequest, asker: str = "") -> Encoded:
        """Return the answer to a request.

        A computation ends early when the last task that waits for it is cancelled. Askers get the
        threads in turn, however many requests each of them has.

        Parameters
        ----------
        request : HistoryRequest
            The request.
        asker : str, optional
            Who asks: the peer's network.

        Raises
        ------
        BusyError
            If too many requests wait.
        ConfigError, NotFoundError
            See ``spectrod.apps.web.history.answer.answer``.
        """
        kept = self._kept.get(request)
        if kept is not None:
            return kept
        running = self._running.get(request) or self._start(request, asker)
        running.n_waiting += 1
        try:
            return await asyncio.shield(running.result)
        finally:
            running.n_waiting -= 1
            if not running.n_waiting and not running.result.done():
                running.budget.cancelled.set()
                self._turns.discard(running)
                self._forget(running)

    def _start(self, request: HistoryRequest, asker: str) -> _Computation:
        if len(self._running) >= WAITING_MAX:
            raise BusyError(f"{WAITING_MAX} requests of history wait already: try again later")
        result = asyncio.get_running_loop().create_future()
        running = self._running[request] = _Computation(request, asker, result)
        self._turns.add(running)
        self._use_threads()
        return running

    def _use_threads(self) -> None:
        """Let free threads compute what waits."""
        loop = asyncio.get_running_loop()
        while self._n_busy < THREADS and (running := self._turns.next()):
            self._n_busy += 1
            task = loop.run_in_executor(self._threads, self._encode, running)
            task.add_done_callback(partial(self._finish, running))

    def _encode(self, running: _Computation) -> Encoded:
        """Compute and encode; in a thread."""
        running.budget.start()
        answer = self._compute(running.request, running.budget)
        body = answer.encode()
        digest = hashlib.blake2b(body, digest_size=16).hexdigest()
        return Encoded(compressed(body), f'"{digest}"', answer.is_final)

    def _finish(self, running: _Computation, task: "asyncio.Future[Encoded]") -> None:
        """Give all who wait the result; whoever asks from now on does not get an error of it."""
        self._n_busy -= 1
        self._forget(running)
        error = task.exception()
        if error is None:
            self._kept.put(running.request, task.result())
            running.result.set_result(task.result())
        else:
            # Frames of the thread would keep its columns until a collection: they have ``running``.
            running.result.set_exception(error.with_traceback(None))
            running.result.exception()  # of a cancelled computation it is nobody's
        self._use_threads()

    def _forget(self, running: _Computation) -> None:
        if self._running.get(running.request) is running:
            del self._running[running.request]
