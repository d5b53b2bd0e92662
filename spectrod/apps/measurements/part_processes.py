"""Processes that measure parts of a recording side by side."""

import argparse
import logging
import os
import signal
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spectrod.apps.measurements.bound_source import bind
from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.apps.measurements.parts import ContinuousRanges, RecordingPart
from spectrod.apps.measurements.sample_blocks import blocks_of
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.blocks import Block
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import (
    ConfigError,
    InputError,
    SpectrodError,
    StorageError,
    UnavailableError,
)
from spectrod.lib.processes import end_with, start_process
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.level_meter import LevelTotal
from spectrod.measure.measurement import Measurement
from spectrod.measure.measurement_config import IntervalMeter, MeasurementConfig
from spectrod.source.base import SelectableSource

JOBS_MAX = 64
"""Maximum of processes."""

_AHEAD = 2
"""Parts for each process that may be measured before the first of them is written."""
_LOOK_S = 0.2
_END_S = 5.0
_KINDS = (ConfigError, InputError, StorageError, UnavailableError, SpectrodError)
"""Errors that a process reports, by their exit codes."""
_HANDLED_HERE = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


class PartResult(NamedTuple):
    """What a process has measured.

    Attributes
    ----------
    rows : list of Measurement
    total : LevelTotal or None
        Sums of all intervals, of levels.
    left_out : list of (Path, str)
        Files that were found unusable while they were read, with a line for each.
    logged : list of (str, int, str)
        Name of the logger, level and text of each warning meanwhile.
    """

    rows: list[Measurement]
    total: LevelTotal | None
    left_out: list[tuple[Path, str]]
    logged: list[tuple[str, int, str]]


class _PartFailure(NamedTuple):
    kind: type[SpectrodError]
    text: str


def measure_parts(
    args: argparse.Namespace, defaults: MeasurementConfig, parts: Sequence[RecordingPart], jobs: int
) -> Generator[PartResult]:
    """Measure parts in processes; yield the result of each, in order.

    Parameters
    ----------
    args : Namespace
        Arguments of the command, which each process opens its source by.
    defaults : MeasurementConfig
        Settings that they do not give.
    parts : sequence of RecordingPart
    jobs : int
        Number of processes.

    Raises
    ------
    SpectrodError
        The failure of a part, or a process that has ended. The other processes end then, and when
        the iterator is closed.
    """
    context = get_context("spawn")  # threads of libraries do not survive a fork
    processes = [_PartProcess(context, args, defaults) for _ in range(min(jobs, len(parts)))]
    waiting, found = deque(enumerate(parts)), dict[int, PartResult]()
    try:
        for number in range(len(parts)):
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


class _PartProcess:
    """A process that measures one part after the other."""

    def __init__(
        self, context: SpawnContext, args: argparse.Namespace, defaults: MeasurementConfig
    ) -> None:
        self._context, self._args, self._defaults = context, args, defaults
        self._process: SpawnProcess | None = None
        self.link: Connection
        self.number: int | None = None

    def give(self, number: int, part: RecordingPart) -> None:
        """Start a part, and the process if it does not run."""
        if self._process is None:
            self.link, theirs = self._context.Pipe()
            arguments = theirs, os.getpid(), self._args, self._defaults
            try:
                self._process = start_process(self._context, _work, arguments, _HANDLED_HERE)
            finally:
                theirs.close()
        self.number = number
        with suppress(OSError):  # a process that has ended: take() reports it
            self.link.send(part)

    def take(self) -> tuple[int, PartResult]:
        """Return the number and the result of the part; raises SpectrodError."""
        assert self.number is not None
        number, self.number = self.number, None
        try:
            result: PartResult | _PartFailure = self.link.recv()
        except (EOFError, OSError) as error:
            text = f"a process that measured ended with exit code {self.end()}"
            raise UnavailableError(text) from error
        if isinstance(result, _PartFailure):
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


# ---- in the process


def _work(
    link: Connection, parent: int, args: argparse.Namespace, defaults: MeasurementConfig
) -> None:
    """Measure the parts that arrive, until the link is closed: the body of a process."""
    if not end_with(parent):
        return
    args.log_level = "error"  # what concerns all parts is said by the parent
    with suppress(EOFError, OSError):
        while True:
            part: RecordingPart = link.recv()
            try:
                link.send(_measure_part(args, defaults, part))
            except SpectrodError as error:
                kind = next(one for one in _KINDS if isinstance(error, one))
                link.send(_PartFailure(kind, str(error)))


def _measure_part(
    args: argparse.Namespace, defaults: MeasurementConfig, part: RecordingPart
) -> PartResult:
    measured, _, bound = bind(args, defaults)
    source = measured.source
    n_left_out = len(source.left_out.lines)
    logged = _collect_warnings()
    meter = bound.open(0)
    try:
        rows = _rows(measured, meter, part)
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
    total = meter.total if isinstance(meter, LevelMeter) else None
    return PartResult(rows, total, source.left_out.since(n_left_out), logged.found)


def _rows(measured: MeasuredSource, meter: IntervalMeter, part: RecordingPart) -> list[Measurement]:
    """Measure the samples of a part; the meter then has passed those that are missing up to it."""
    source, begin = measured.source, set_clock(meter, measured)
    start, has_utc = max(begin, part.first), measured.has_utc
    rows = _pass_over(meter, measured, start - begin)
    position = start
    for block in _blocks(measured, start, part.stop - start):
        utc_ns = block.t_utc_ns if has_utc else None
        rows += meter.push(block.samples, block.missing_samples, utc_ns)
        position = block.sample_index + block.n_samples
    if source.failure is not None:
        raise source.failure
    if part.is_last:
        return [*rows, *meter.finish()]
    return rows + _pass_over(meter, measured, part.stop - position)


def _blocks(measured: MeasuredSource, first: int, n: int) -> Iterator[Block]:
    source = measured.source
    if isinstance(source, SelectableSource):
        source.start_at(first)
    reader = source.open_reader()
    try:
        source.start(reader)
        with ProgressBar(source.fs, n, is_hidden=True) as bar:
            yield from blocks_of(source, reader, SampleRange(first, n, n), bar)
    finally:
        source.stop()
        reader.close()
        reader.release()


def set_clock(meter: IntervalMeter, measured: MeasuredSource) -> int:
    """Give a meter the time of the first sample, as if it had measured from there on.

    Returns
    -------
    begin : int
        Index of this sample.
    """
    begin = ContinuousRanges.of(measured).begins[0]
    missing = begin - measured.span.first
    meter.push(_no_samples(measured), missing, measured.utc_ns(begin))
    return begin


def _pass_over(meter: IntervalMeter, measured: MeasuredSource, n: int) -> list[Measurement]:
    """Let samples be missing; return the rows of intervals that end in them."""
    return list(meter.push(_no_samples(measured), n)) if n > 0 else []


def _no_samples(measured: MeasuredSource) -> Float32Array:
    return np.empty((measured.source.channels, 0), np.float32)


class _Warnings(logging.Handler):
    """Keeps warnings in place of writing them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.found.append((record.name, record.levelno, record.getMessage()))


def _collect_warnings() -> _Warnings:
    """Let the log of this process be kept, from now on."""
    kept, root = _Warnings(), logging.getLogger()
    root.handlers[:] = [kept]
    root.setLevel(logging.WARNING)
    return kept
