"""A process of ``spectrod record`` that records one source after another."""

import argparse
import copy
import gc
import io
import pickle
import signal
from collections.abc import Callable
from contextlib import redirect_stderr
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from spectrod.formats.whole_files import WrittenFile, unpublished
from spectrod.lib.allocator import keep_freed_memory
from spectrod.lib.errors import SpectrodError, bug_error

if TYPE_CHECKING:
    from spectrod.analysis.engine_pool import KeptEngines

Record = Callable[[argparse.Namespace, "KeptEngines"], int]
"""Records one source with an engine that is kept for others."""

LOG_MAX_CHARS = 16_384
"""Maximum of log text that is shown of a file."""

_GARBAGE_THRESHOLD = 20_000
"""New objects before a garbage collection within a task: more than a short one makes."""

CRASHED = 70
"""Exit code of a source whose process has ended, or that a bug has stopped."""


class Task(NamedTuple):
    """A source with its outputs."""

    source: str
    outputs: tuple[str, ...]


class TaskResult(NamedTuple):
    """Result of a task."""

    exit_code: int
    reason: str = ""
    """Why it failed."""
    log: str = ""
    """Text that was logged."""
    files: tuple[WrittenFile, ...] = ()
    """Complete files that are not published."""


class _GivenUpError(BaseException):
    """Ends a task at once: its outputs are removed."""


def of_task(args: argparse.Namespace, task: Task) -> argparse.Namespace:
    """Return the arguments with which the command would record one source."""
    one = copy.copy(args)
    one.source, one.output, one.pattern = task.source, list(task.outputs), None
    return one


def work(link: Connection, job: bytes) -> None:
    """Record the sources that arrive, until the link is closed: the body of a process.

    Parameters
    ----------
    link : Connection
        Sends a ``Task`` and takes a ``TaskResult``, again and again.
    job : bytes
        Pickled arguments of ``record``, a ``Record``, and the probable number of tasks.
    """
    signal.signal(signal.SIGTERM, _give_up)
    gc.disable()  # imports leave no garbage
    keep_freed_memory()
    # Imported after that, as what is unpickled.
    from spectrod.analysis.engine_pool import KeptEngines  # noqa: PLC0415
    from spectrod.analysis.parallel import limit_threads  # noqa: PLC0415

    limit_threads(1)  # each processor has a process
    args, record, n_tasks = pickle.loads(job)  # noqa: S301 - by the process that started this one
    engines = KeptEngines(n_tasks)
    gc.freeze()  # so that what is imported is not searched for garbage after each task
    gc.set_threshold(_GARBAGE_THRESHOLD)
    gc.enable()
    is_first, folders = True, set[Path]()
    try:
        while True:
            task: Task = link.recv()
            _send(link, _result(task, args, lambda one: record(one, engines), folders))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
            # The next task uses the memory of cycles, which are few but have large arrays.
            gc.collect()
            if is_first:  # the same of what the first task has imported
                gc.freeze()
                is_first = False
    except (EOFError, OSError, _GivenUpError):
        engines.close()


def _send(link: Connection, result: TaskResult) -> None:
    """Send a result; remove its files if the process that would publish them has ended."""
    try:
        link.send(result)
    except OSError:
        for file in result.files:
            file.discard()
        raise


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _GivenUpError


def _result(
    task: Task,
    args: argparse.Namespace,
    record: Callable[[argparse.Namespace], int],
    folders: set[Path],
) -> TaskResult:
    one = of_task(args, task)
    with redirect_stderr(io.StringIO()) as log, unpublished(folders) as files:
        try:
            code, reason = record(one), ""
        except SpectrodError as error:
            code, reason = error.exit_code, str(error)
        except Exception as error:  # noqa: BLE001
            # Last line of defence: one file must not end the recording of the others.
            code, reason = CRASHED, str(bug_error(error))
        # Whoever gets the result owns the files: SIGTERM waits until it is sent.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    return TaskResult(code, reason, log.getvalue()[:LOG_MAX_CHARS], tuple(files))
