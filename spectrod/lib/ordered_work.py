"""Items that processes work on side by side, with their results in order."""

import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Generic, NamedTuple, TypeVar

from spectrod.lib.allocator import keep_freed_memory
from spectrod.lib.errors import (
    ConfigError,
    InputError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.lib.processes import end_with, start_process

JOBS_MAX = 64
"""Maximum of processes."""

_AHEAD = 2
"""Items for each process that may be worked on before the result of the first of them is taken."""
_LOOK_S = 0.2
_END_S = 5.0
_KINDS = (ConfigError, InputError, StorageError, UnavailableError, SpectrodError)
"""Errors that a process reports, by their exit codes."""
_HANDLED_HERE = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class WorkFailure(NamedTuple):
    """An error of an item."""

    kind: type[SpectrodError]
    text: str


def in_processes(
    work: Callable[[_Item], _Result], items: Sequence[_Item], jobs: int
) -> Generator[_Result]:
    """Work on items in processes; yield the result of each, in order.

    Parameters
    ----------
    work : callable
        Makes the result of an item; it, items and results can be pickled.
    items : sequence
    jobs : int
        Number of processes.

    Raises
    ------
    SpectrodError
        The failure of an item, or a process that has ended. The other processes end then, and when
        the iterator is closed.
    """
    context = get_context("spawn")  # threads of libraries do not survive a fork
    processes = [WorkProcess[_Item, _Result](context, work) for _ in range(min(jobs, len(items)))]
    waiting, found = deque(enumerate(items)), dict[int, _Result]()
    try:
        for number in range(len(items)):
            while number not in found:
                for process in processes:
                    may_start = waiting and waiting[0][0] < number + _AHEAD * len(processes)
                    if process.number is None and may_start:
                        process.give(*waiting.popleft())
                busy = {one.link: one for one in processes if one.number is not None}
                for link in wait(list(busy), _LOOK_S):
                    found.update([busy[link].take()])  # type: ignore[index]
            yield found.pop(number)
    finally:
        for process in processes:
            process.end()


class WorkProcess(Generic[_Item, _Result]):
    """A process that works on one item after the other."""

    def __init__(self, context: SpawnContext, work: Callable[[_Item], _Result]) -> None:
        self._context, self._work = context, work
        self._process: SpawnProcess | None = None
        self.link: Connection
        self.number: int | None = None

    def give(self, number: int, item: _Item) -> None:
        """Start an item, and the process if it does not run."""
        if self._process is None:
            self.link, theirs = self._context.Pipe()
            arguments = theirs, os.getpid(), self._work
            try:
                self._process = start_process(self._context, serve, arguments, _HANDLED_HERE)
            finally:
                theirs.close()
        self.number = number
        with suppress(OSError):  # a process that has ended: take() reports it
            self.link.send(item)

    def take(self) -> tuple[int, _Result]:
        """Return the number and the result of the item; raises SpectrodError."""
        assert self.number is not None
        number, self.number = self.number, None
        try:
            result: Any = self.link.recv()
        except (EOFError, OSError) as error:
            text = f"a process that measured ended with exit code {self.end()}"
            raise UnavailableError(text) from error
        if isinstance(result, WorkFailure):
            raise result.kind(result.text)
        return number, result

    def end(self) -> int | None:
        """End the process at once; return its exit code. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return None
        self.link.close()
        process.join(_END_S if self.number is None else 0.0)
        process.kill()
        process.join()
        return process.exitcode


def serve(link: Connection, parent: int, work: Callable[[Any], Any]) -> None:
    """Work on the items that arrive, until the link is closed: the body of a process."""
    if not end_with(parent):
        return
    keep_freed_memory()
    with suppress(EOFError, OSError):
        while True:
            item = link.recv()
            try:
                link.send(work(item))
            except SpectrodError as error:
                kind = next(one for one in _KINDS if isinstance(error, one))
                link.send(WorkFailure(kind, str(error)))


class CollectedWarnings(logging.Handler):
    """Keeps warnings in place of writing them.

    Attributes
    ----------
    found : list of (str, int, str)
        Name of the logger, level and text of each.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.found.append((record.name, record.levelno, record.getMessage()))


def collect_warnings() -> CollectedWarnings:
    """Let the log of this process be kept, from now on."""
    kept, root = CollectedWarnings(), logging.getLogger()
    root.handlers[:] = [kept]
    root.setLevel(logging.WARNING)
    return kept
