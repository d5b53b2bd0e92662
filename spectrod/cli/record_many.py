"""``spectrod record`` of many files: one output of each, made by processes side by side."""

import argparse
import copy
import io
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from spectrod.analysis.engine_pool import KeptEngines, OpenEngine
from spectrod.cli.data_options import data_options
from spectrod.cli.options import flags
from spectrod.cli.picture_options import picture_options, repeat
from spectrod.cli.progress import FileProgress
from spectrod.cli.record_plan import asked
from spectrod.config import load
from spectrod.errors import ConfigError, SpectrodError, StorageError, UnavailableError
from spectrod.output_formats import format_of
from spectrod.source.kinds import FILES, find_kind
from spectrod.source.listing import FILES_MAX, list_sound_files
from spectrod.text import printable

_log = logging.getLogger(__name__)

Record = Callable[[argparse.Namespace, OpenEngine], int]
"""Records one source with an engine that the given function opens."""

STEM = "{stem}"
"""Stands for the name of a source without folder and suffix, in names of outputs."""
JOBS_MAX = 64
"""Maximum of processes."""
DEFAULT_JOBS_MAX = 8
"""Maximum without ``--jobs``: each process may open a context of the same GPU."""
FAILURES_MAX = 1000
"""Maximum of failed files that are listed at the end; all are counted."""
LOG_MAX_CHARS = 16_384
"""Maximum of log text that is shown of a file."""

_INTERRUPTED = 130
_CRASHED = 70
_END_S = 5.0
_LOOK_S = 0.1
_SEVERAL_FILES = ("every", "profile", "time_per_pixel")
"""Flags that make several files of a source, whose names could collide."""


class Task(NamedTuple):
    """A source with its outputs."""

    source: str
    outputs: tuple[str, ...]


class _Result(NamedTuple):
    """Result of a task: exit code, reason of a failure, and the text that was logged."""

    exit_code: int
    reason: str = ""
    log: str = ""


class _GivenUpError(BaseException):
    """Ends a task at once: its outputs are removed."""


def record_many(args: argparse.Namespace, record: Record) -> int:
    """Record each source to its own outputs, and list the failures at the end.

    The first Ctrl-C lets the processes complete the files in progress, the second one removes
    these.

    Parameters
    ----------
    args : argparse.Namespace
        Arguments of ``record``, ``source`` a list.
    record : callable
        Records one source: a function of a module, which each process imports.

    Returns
    -------
    exit_code : int
        130 after Ctrl-C, else the highest of all files.

    Raises
    ------
    ConfigError
        If the arguments are wrong, or outputs of two sources have the same name.
    StorageError
        If the folder of the outputs does not exist.
    """
    tasks = plan(args)
    _check_settings(_of_task(args, tasks[0]))
    jobs = min(args.jobs or default_jobs(), len(tasks))
    # Each process starts afresh: drivers do not survive a fork.
    context = get_context("spawn")
    workers = [_Worker(context, args, record) for _ in range(jobs)]
    batch = _Batch(tasks, workers)
    with _interrupts(batch.interrupt):
        try:
            batch.to_the_end()
        finally:
            for worker in workers:
                worker.end()
    return batch.report()


def default_jobs() -> int:
    """Return the default number of processes: one for each usable processor, at most 8."""
    return min(len(os.sched_getaffinity(0)), DEFAULT_JOBS_MAX)


# ---- before the start: what becomes of each source


def plan(args: argparse.Namespace) -> list[Task]:
    """Return the outputs of each source, in order; raises the errors of ``record_many``."""
    _check_flags(args)
    templates = [_template(args, output) for output in args.output]
    sources = [found for source in args.source for found in _sources_of(source, args)]
    if not sources:
        raise ConfigError(f"{', '.join(args.source)}: no sound files to record")
    if len(sources) > FILES_MAX:
        raise ConfigError(f"{len(sources)} sources: must be at most {FILES_MAX}")
    tasks = [
        Task(source, tuple(_named(template, source) for template in templates))
        for source in sources
    ]
    _check_names(tasks)
    return tasks


def _check_flags(args: argparse.Namespace) -> None:
    for name in _SEVERAL_FILES:
        value = getattr(args, name)
        if value is not None:
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} {value}: makes several files, and is for one source")
    if args.channels_as == "files":
        raise ConfigError("--channels-as files: makes several files, and is for one source")
    if args.jobs is not None and not 1 <= args.jobs <= JOBS_MAX:
        raise ConfigError(f"--jobs {args.jobs}: must be 1 to {JOBS_MAX}")


def _template(args: argparse.Namespace, output: str) -> Path:
    if output == "-" or output.endswith(":-"):
        raise ConfigError(f"{output}: standard output takes one file, and each source makes one")
    path = Path(output) if args.pattern is None else Path(output) / args.pattern
    if STEM not in path.name:
        names = f"FOLDER/ --name '{STEM}.png', or '{STEM}.png'"
        raise ConfigError(f"-o {output}: needs a name for each source: -o {names}")
    format_of(path)
    if not path.parent.is_dir():
        raise StorageError(f"{path.parent}: is no folder")
    return path


def _sources_of(source: str, args: argparse.Namespace) -> Sequence[str]:
    if "://" in source or find_kind(source)[0] is not FILES:
        raise ConfigError(f"{source}: must be a file where there are several sources")
    if not (args.each and Path(source).is_dir()):
        return [source]
    found = list_sound_files(source, recursive=bool(args.recursive))
    for _, reason in found.unread:
        _log.warning("%s", reason)
    return [str(path) for path in found.files]


def _named(template: Path, source: str) -> str:
    return str(template.with_name(template.name.replace(STEM, Path(source).absolute().stem)))


def _check_names(tasks: Sequence[Task]) -> None:
    """Refuse two sources with the same output, and outputs that would replace a source."""
    folders: dict[Path, Path] = {}

    def resolved(name: str) -> Path:
        path = Path(name)
        if path.parent not in folders:
            folders[path.parent] = path.parent.resolve()
        return folders[path.parent] / path.name

    sources = {resolved(task.source) for task in tasks}
    made: dict[Path, str] = {}
    for task in tasks:
        for output in task.outputs:
            path = resolved(output)
            if path in sources:
                raise ConfigError(f"{output}: must be another file than one that is read")
            if path in made:
                raise ConfigError(
                    f"{output}: is the output of {made[path]} and of {task.source}: rename one, or "
                    "record them to folders of their own"
                )
            made[path] = task.source


def _of_task(args: argparse.Namespace, task: Task) -> argparse.Namespace:
    """Return the arguments with which the command would record one source."""
    one = copy.copy(args)
    one.source, one.output, one.pattern = task.source, list(task.outputs), None
    return one


def _check_settings(args: argparse.Namespace) -> None:
    """Check the flags that do not depend on the source; raises ConfigError."""
    found = asked(args)
    data_options(args, found.paths)
    load(args.config, flags(args))
    if "picture" in found.contents:
        repeat(args)
        picture_options(args)


# ---- the processes


class _Worker:
    """A process that records one source after another, and keeps what it has opened."""

    def __init__(self, context: SpawnContext, args: argparse.Namespace, record: Record) -> None:
        self._context, self._args, self._record = context, args, record
        self._process: SpawnProcess | None = None
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        """Start a task, and the process if it does not run."""
        if self._process is None:
            self._start()
        self.task = task
        # A process that has ended closes the link, which ``take`` reports.
        with suppress(OSError):
            self.link.send(task)

    def _start(self) -> None:
        self.link, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._args, self._record))
        process.daemon = True
        resource_tracker.ensure_running()  # it would unblock SIGINT when it is started
        # A terminal sends these to all processes, and only this one handles them.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
        try:
            process.start()
        except OSError as error:
            raise UnavailableError(f"process: cannot be started: {error.strerror}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()
        self._process = process

    def take(self) -> _Result:
        """Return the result of the task; a process that has ended is a failure of the task."""
        self.task = None
        try:
            result: _Result = self.link.recv()
        except (EOFError, OSError):
            code = self.end()
            return _Result(_CRASHED, f"the process that recorded it ended with exit code {code}")
        return result

    def give_up(self) -> None:
        """End the process at once; it removes unfinished outputs."""
        if self._process is not None:
            self._process.terminate()

    def end(self) -> int | None:
        """End the process after its task; return its exit code. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return None
        self.link.close()
        for stop in (process.terminate, process.kill):
            process.join(_END_S)
            if process.is_alive():
                stop()
        process.join()
        return process.exitcode


def _work(link: Connection, args: argparse.Namespace, record: Record) -> None:
    """Record the sources that arrive, until the link is closed: the body of a process."""
    signal.signal(signal.SIGTERM, _give_up)
    engines = KeptEngines()
    try:
        while True:
            task: Task = link.recv()
            link.send(_result(task, args, lambda one: record(one, engines.open)))
    except (EOFError, OSError, _GivenUpError):
        engines.close()


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _GivenUpError


def _result(
    task: Task, args: argparse.Namespace, record: Callable[[argparse.Namespace], int]
) -> _Result:
    one = _of_task(args, task)
    with redirect_stderr(io.StringIO()) as log:
        try:
            code, reason = record(one), ""
        except SpectrodError as error:
            code, reason = error.exit_code, str(error)
        except Exception as error:  # noqa: BLE001
            # Last line of defence: one file must not end the recording of the others.
            _log.debug("%s: failed", task.source, exc_info=True)
            code, reason = _CRASHED, f"{error!r}: a bug; please report it"
    return _Result(code, reason, log.getvalue()[:LOG_MAX_CHARS])


# ---- all tasks


class _Batch:
    """Gives tasks to processes, and counts the results."""

    def __init__(self, tasks: Sequence[Task], workers: Sequence[_Worker]) -> None:
        self._n_tasks, self._waiting, self._workers = len(tasks), deque(tasks), workers
        self._failures: list[str] = []
        self._n_done = self._n_failed = self._n_interrupts = self._n_handled = 0
        self._exit_code = 0

    def interrupt(self) -> None:
        """Start no more tasks; the second time, give up those in progress."""
        self._n_interrupts += 1

    def to_the_end(self) -> None:
        """Record all sources, with a line of progress."""
        with FileProgress(self._n_tasks) as progress:
            progress.update(0)
            while self._start_tasks():
                busy = {worker.link: worker for worker in self._workers if worker.task}
                for link in wait(list(busy), _LOOK_S):
                    self._take(busy[link], progress)  # type: ignore[index]
                    progress.update(self._n_done, self._n_failed)
                self._handle_interrupts(progress)

    def _handle_interrupts(self, progress: FileProgress) -> None:
        n_before, self._n_handled = self._n_handled, self._n_interrupts
        if self._n_handled > 1 and n_before < 2:
            for worker in self._workers:
                worker.give_up()
        elif self._n_handled and not n_before:
            progress.print(
                "spectrod: completing the files in progress; Ctrl-C again removes them\n"
            )

    def _start_tasks(self) -> bool:
        """Give waiting tasks to idle processes; return whether any process is busy."""
        for worker in self._workers:
            if worker.task is None and self._waiting and not self._n_interrupts:
                worker.give(self._waiting.popleft())
        return any(worker.task for worker in self._workers)

    def _take(self, worker: _Worker, progress: FileProgress) -> None:
        assert worker.task is not None
        source, result = worker.task.source, worker.take()
        if self._n_handled > 1 and result.exit_code:
            return
        progress.print(result.log)
        self._n_done += 1
        self._exit_code = max(self._exit_code, result.exit_code)
        if result.reason:
            self._n_failed += 1
            if len(self._failures) < FAILURES_MAX:
                reason = result.reason
                self._failures.append(reason if source in reason else f"{source}: {reason}")

    def report(self) -> int:
        """List the files that have failed; return the exit code."""
        lines = [printable(line) for line in self._failures]
        if self._n_failed > len(lines):
            lines.append(f"and {self._n_failed - len(lines)} more")
        if self._n_failed or self._n_interrupts:
            n_good = self._n_done - self._n_failed
            lines.append(f"{n_good} of {self._n_tasks} files recorded, {self._n_failed} failed")
        # Standard error may be closed (None), full or a broken pipe: the exit code remains.
        with suppress(OSError):
            if sys.stderr is not None:
                sys.stderr.writelines(f"spectrod: {line}\n" for line in lines)
        return _INTERRUPTED if self._n_interrupts else self._exit_code


@contextmanager
def _interrupts(note: Callable[[], None]) -> Iterator[None]:
    """Call a function for each Ctrl-C, SIGTERM and SIGHUP in the block; ignored ones stay so."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    before = {number: one for number, one in handlers.items() if one is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda *_: note())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
