"""Processes that measure parts of a recording side by side."""

import argparse
import copy
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spectrod.apps.measurements.bound_source import bind
from spectrod.apps.measurements.measured_source import MeasuredSource
from spectrod.apps.measurements.parts import RecordingPart, ranges_of
from spectrod.apps.measurements.sample_blocks import blocks_of
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.blocks import Block
from spectrod.dsp.units import Float32Array
from spectrod.lib.errors import InputError
from spectrod.lib.ordered_work import collect_warnings, in_processes
from spectrod.measure.levels import LevelMeter
from spectrod.measure.levels.level_total import LevelTotal
from spectrod.measure.measurement import Measurement
from spectrod.measure.measurement_config import IntervalMeter, MeasurementConfig
from spectrod.source.base import SelectableSource


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
    quiet = copy.copy(args)
    quiet.log_level = "error"  # what concerns all parts is said by the parent
    return in_processes(partial(_measure_part, quiet, defaults), parts, jobs)


# ---- in the process


def _measure_part(
    args: argparse.Namespace, defaults: MeasurementConfig, part: RecordingPart
) -> PartResult:
    measured, _, bound = bind(args, defaults)
    source = measured.source
    n_left_out = len(source.left_out.lines)
    logged = collect_warnings()
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
    begin = ranges_of(measured).begins[0]
    missing = begin - measured.span.first
    meter.push(_no_samples(measured), missing, measured.utc_ns(begin))
    return begin


def _pass_over(meter: IntervalMeter, measured: MeasuredSource, n: int) -> list[Measurement]:
    """Let samples be missing; return the rows of intervals that end in them."""
    return list(meter.push(_no_samples(measured), n)) if n > 0 else []


def _no_samples(measured: MeasuredSource) -> Float32Array:
    return np.empty((measured.source.channels, 0), np.float32)
