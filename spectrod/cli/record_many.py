"""``spectrod record`` of many files: one output of each, made by processes side by side."""

import argparse
import logging
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_any
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import NamedTuple

from spectrod.cli.data_options import data_options
from spectrod.cli.options import flags
from spectrod.cli.picture_options import picture_options, repeat
from spectrod.cli.progress import FileProgress
from spectrod.cli.record_plan import asked
from spectrod.cli.record_worker import CRASHED, Record, Task, TaskResult, of_task, work
from spectrod.config.config import Config, load
from spectrod.daemon.service import configure_logging
from spectrod.lib.errors import ConfigError, StorageError
from spectrod.lib.output_formats import format_of
from spectrod.lib.processes import start_process
from spectrod.lib.text import printable
from spectrod.recording.output_plan import make_folders
from spectrod.source.kinds import FILES, find_kind, uri_of
from spectrod.source.source_listing import FILES_MAX, list_sound_files

_log = logging.getLogger(__name__)

STEM = "{stem}"
"""Stands for the name of a source without folder and suffix, in names of outputs."""
JOBS_MAX = 64
"""Maximum of processes."""
DEFAULT_JOBS_MAX = 8
"""Maximum without ``--jobs``: each process may open a context of the same GPU."""
FAILURES_MAX = 1000
"""Maximum of failed files that are listed at the end; all are counted."""
UNPUBLISHED_MAX = 64
"""Maximum of files that wait for the disk; then no process gets another one."""

_INTERRUPTED = 130
_END_S = 5.0
_LOOK_S = 0.1
_SEVERAL_FILES = ("every", "profile", "time_per_pixel")
"""Flags that make several files of a source, whose names could collide."""


class _Published(NamedTuple):
    """Files of a task that are being published: its source, its result and the end of that."""

    source: str
    result: TaskResult
    end: Future[TaskResult]


def record_many(args: argparse.Namespace, record: Record) -> int:
    """Record each source to its own outputs, and list the failures at the end.

    Processes leave it to this one to wait for the disk, and record the next source meanwhile. A
    source is done when its files survive a power failure.

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
        If the folder of the outputs cannot be made.
    """
    tasks = plan(args)
    args.settings_of_first = _apply_settings(of_task(args, tasks[0]))
    make_folders(tasks[0].outputs)  # those of all tasks
    jobs = min(args.jobs or default_jobs(), len(tasks))
    # Each process starts afresh: drivers do not survive a fork.
    context = get_context("spawn")
    n_each = -(-len(tasks) // jobs)
    workers = [_Worker(context, args, record, n_each) for _ in range(jobs)]
    with ThreadPoolExecutor(jobs, "spectrod-publish") as publisher:
        batch = _Batch(tasks, workers, publisher)
        with _interrupts(batch.interrupt):
            try:
                batch.to_the_end()
            finally:
                for worker in workers:
                    worker.end()
                batch.discard_unpublished()
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
    return path


def _sources_of(source: str, args: argparse.Namespace) -> Sequence[str]:
    if Path(source).is_file():
        return [uri_of(source)]
    if "://" in source or find_kind(source)[0] is not FILES:
        raise ConfigError(f"{source}: must be a file where there are several sources")
    if not (args.each and Path(source).is_dir()):
        return [source]
    found = list_sound_files(source, recursive=bool(args.recursive))
    for _, reason in found.unread:
        _log.warning("%s", reason)
    return [uri_of(str(path)) for path in found.files]


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


def _apply_settings(args: argparse.Namespace) -> Config:
    """Check the flags that do not depend on the source, and set up the log; return the settings.

    Raises
    ------
    ConfigError
        If a flag is wrong.
    """
    found = asked(args)
    data_options(args, found.paths)
    settings = load(args.config, flags(args))
    configure_logging(settings.log.level, settings.log.style)
    if "picture" in found.contents:
        repeat(args)
        picture_options(args)
    return settings


# ---- the processes


class _Worker:
    """A process that records one source after another, and keeps what it has opened."""

    def __init__(
        self, context: SpawnContext, args: argparse.Namespace, record: Record, n_tasks: int
    ) -> None:
        # The process unpickles it, which imports nearly all it needs, when it is ready for that.
        self._context, self._job = context, pickle.dumps((args, record, n_tasks))
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
        try:
            self._process = start_process(
                self._context, work, (theirs, self._job), (signal.SIGINT, signal.SIGHUP)
            )
        finally:
            theirs.close()

    def take(self) -> TaskResult:
        """Return the result of the task; a process that has ended is a failure of the task."""
        self.task = None
        try:
            result: TaskResult = self.link.recv()
        except (EOFError, OSError):
            code = self.end()
            return TaskResult(CRASHED, f"the process that recorded it ended with exit code {code}")
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


def _publish(result: TaskResult) -> TaskResult:
    """Publish the files of a result; return the result with the first failure."""
    for file in result.files:
        try:
            file.publish()
        except StorageError as error:
            result = result._replace(
                exit_code=max(result.exit_code, error.exit_code),
                reason=result.reason or str(error),
            )
    return result


# ---- all tasks


class _Batch:
    """Gives tasks to processes, publishes their files, and counts the results."""

    def __init__(
        self, tasks: Sequence[Task], workers: Sequence[_Worker], publisher: ThreadPoolExecutor
    ) -> None:
        self._publisher, self._publishing = publisher, deque[_Published]()
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
            while self._start_tasks() or self._publishing:
                busy = {worker.link: worker for worker in self._workers if worker.task}
                for link in wait(list(busy), _LOOK_S) if busy else ():
                    self._take(busy[link])  # type: ignore[index]
                self._await_disk(is_idle=not busy)
                self._count_published(progress)
                self._handle_interrupts(progress)

    def _handle_interrupts(self, progress: FileProgress) -> None:
        n_before, self._n_handled = self._n_handled, self._n_interrupts
        if self._n_handled > 1 and n_before < 2:
            for worker in self._workers:
                worker.give_up()
            self.discard_unpublished()
        elif self._n_handled and not n_before:
            progress.print(
                "spectrod: completing the files in progress; Ctrl-C again removes them\n"
            )

    def _start_tasks(self) -> bool:
        """Give waiting tasks to idle processes; return whether any process is busy."""
        for worker in self._workers:
            may_start = self._waiting and not self._n_interrupts and not self._is_disk_behind
            if worker.task is None and may_start:
                worker.give(self._waiting.popleft())
        return any(worker.task for worker in self._workers)

    @property
    def _is_disk_behind(self) -> bool:
        return len(self._publishing) >= UNPUBLISHED_MAX

    def _take(self, worker: _Worker) -> None:
        """Take a result, and let its files be published while the process goes on."""
        assert worker.task is not None
        source, result = worker.task.source, worker.take()
        if self._n_handled > 1 and result.exit_code:
            for file in result.files:
                file.discard()
            return
        end = self._publisher.submit(_publish, result)
        self._publishing.append(_Published(source, result, end))

    def _await_disk(self, *, is_idle: bool) -> None:
        """Wait for the disk if there is nothing else to do, or too much is unpublished."""
        if self._publishing and (is_idle or self._is_disk_behind):
            wait_for_any([one.end for one in self._publishing], _LOOK_S, FIRST_COMPLETED)

    def discard_unpublished(self) -> None:
        """Remove the files whose publication has not started."""
        for one in list(self._publishing):
            if one.end.cancel():
                self._publishing.remove(one)
                for file in one.result.files:
                    file.discard()

    def _count_published(self, progress: FileProgress) -> None:
        for one in [one for one in self._publishing if one.end.done()]:
            self._publishing.remove(one)
            self._count(one.source, one.end.result(), progress)

    def _count(self, source: str, result: TaskResult, progress: FileProgress) -> None:
        progress.print(result.log)
        self._n_done += 1
        self._exit_code = max(self._exit_code, result.exit_code)
        if result.reason:
            self._n_failed += 1
            if len(self._failures) < FAILURES_MAX:
                reason = result.reason
                self._failures.append(reason if source in reason else f"{source}: {reason}")
        progress.update(self._n_done, self._n_failed)

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
