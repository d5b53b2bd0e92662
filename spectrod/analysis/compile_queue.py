"""One compilation of kernels at a time, however many sources want theirs."""

import threading
from collections import deque
from collections.abc import Callable

from spectrod.lib.worker import Worker, defect


class Compilation:
    """A compilation that waits for its turn; made by ``CompileQueue.add``.

    Attributes
    ----------
    followed_another : bool
        True if another compilation ended before its turn: what it needs may be compiled.
    """

    def __init__(self, act: Callable[["Compilation"], None]) -> None:
        self.followed_another = False
        self._act = act
        self._ended = threading.Event()

    def run(self) -> None:
        """Compile."""
        try:
            self._act(self)
        except Exception as error:  # noqa: BLE001 - the top of the thread: the others go on
            defect("compile", error)
        self._ended.set()

    def skip(self) -> None:
        """End without a turn."""
        self._ended.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return whether it has come."""
        return self._ended.wait(timeout_s)

    @property
    def has_ended(self) -> bool:
        """True after the end."""
        return self._ended.is_set()


class CompileQueue:
    """Runs compilations one after the other, in a thread that ends with the last one.

    A compiler takes a processor for seconds: hundreds of sources that start with an empty cache
    would otherwise take the machine from the analysis, most of them for the same kernels.

    Attributes
    ----------
    failed : set of str
        What could not be compiled since the queue was empty, in words of its users: others that
        wait for the same need not try.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Compilation] = deque()
        self._is_running = False
        self.failed: set[str] = set()

    def add(self, act: Callable[[Compilation], None]) -> Compilation:
        """Let a function compile in its turn; it must raise nothing."""
        added = Compilation(act)
        with self._lock:
            self._waiting.append(added)
            added.followed_another = self._is_running
            if not self._is_running:
                self._is_running = True
                self.failed.clear()
                Worker("compile", self._run).start()
        return added

    def cancel(self, compilation: Compilation) -> None:
        """Skip a compilation whose turn has not come."""
        with self._lock:
            if compilation in self._waiting:
                self._waiting.remove(compilation)
                compilation.skip()

    def _run(self) -> None:
        while (current := self._next()) is not None:
            current.run()

    def _next(self) -> Compilation | None:
        with self._lock:
            self._is_running = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None
