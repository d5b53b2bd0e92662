"""Commands that measure: arguments, the source, files and the table."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from spectrod.apps.measurements.level_table import LevelTable
from spectrod.apps.measurements.sample_blocks import blocks_of, report_left_out
from spectrod.cli import options
from spectrod.cli.interrupts import interrupts_held
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import SampleRange, sample_range
from spectrod.cli.times import parse_utc_ns, wait_for_start
from spectrod.config import config
from spectrod.daemon.service import configure_logging
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.value_writer import LevelWriter, check_suffix, open_writer
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.names import name_channels
from spectrod.lib.text import printable
from spectrod.measure.intervals import LevelAlign
from spectrod.measure.measurement import Measurement
from spectrod.measure.measurement_config import IntervalMeter, MeasuredSignals
from spectrod.recording.output_plan import check_outputs
from spectrod.source.base import SelectableSource
from spectrod.source.kinds import forms
from spectrod.source.open_source import Source, open_source

_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the source, the outputs and the interval."""
    parser.add_argument("source", metavar="SRC", help=forms())
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        action="append",
        default=[],
        help="write the rows to a file, .csv .nc or .h5, instead of a table; repeatable",
    )
    parser.add_argument(
        "--interval", metavar="TIME", default="1s", help=f"{options.TIME} (%(default)s)"
    )


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the range, the source's settings and the configuration."""
    options.add_range(parser)
    options.add_source(parser, pace="full")
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


@dataclass(frozen=True, slots=True)
class RowSource:
    """An open source, and what rows of it need.

    Attributes
    ----------
    name : str
        What the command line names.
    source : Source
    span : SampleRange
        Samples to measure.
    names : tuple of str
        Names of the channels.
    calibrations : tuple of (ChannelCalibration or None)
        Calibration of each channel.
    has_utc : bool
        Whether the time of the samples is known.
    """

    name: str
    source: Source
    span: SampleRange
    names: tuple[str, ...]
    calibrations: tuple[ChannelCalibration | None, ...]
    has_utc: bool

    @property
    def signals(self) -> MeasuredSignals:
        """The signals, as measurements see them."""
        source = self.source
        return MeasuredSignals(
            source.description,
            source.fs,
            self.names,
            self.calibrations,
            source.is_iq,
            source.center_frequency_hz,
            tuple(source.speakers),
            self.has_utc,
        )

    def align(self, given: LevelAlign | None) -> LevelAlign:
        """Return the bounds of intervals, UTC by default where it is known.

        Raises
        ------
        ConfigError
            If the time of the samples is needed and not known.
        """
        align: LevelAlign = given or ("utc" if self.has_utc else "start")
        if align != "start" and not self.has_utc:
            raise ConfigError(f"--align {align}: {self.name} has no start time; give --start-time")
        return align


def check_paths(args: argparse.Namespace) -> list[Path]:
    """Return the files to write; raises ConfigError if one cannot be such a file."""
    paths = [Path(one) for one in args.output]
    for path in paths:
        check_suffix(path)
    check_outputs(args.output, Path(args.source) if Path(args.source).is_file() else None)
    return paths


def open_rows(args: argparse.Namespace) -> RowSource:
    """Open the source of the command line; raises a SpectrodError if that fails."""
    settings = config.load(args.config, options.flags(args))
    configure_logging(settings.log.level, settings.log.style)
    pace = settings.source.pace if args.pace else "full"
    source = open_source(msgspec.structs.replace(settings.source, loop=bool(args.loop)), pace)
    if args.start_time is not None:
        if source.is_live:
            raise ConfigError(
                f"--start-time {args.start_time}: {args.source} starts when it is opened"
            )
        source.start_utc_ns = parse_utc_ns("--start-time", args.start_time)
    span = sample_range(args, source)
    if isinstance(source, SelectableSource):
        source.start_at(span.first)
    n_signals = source.channels // 2 if source.is_iq else source.channels
    return RowSource(
        args.source,
        source,
        span,
        name_channels(settings.source.channel_names, n_signals),
        settings.source.calibrations(n_signals) or (None,) * n_signals,
        # Samples of a pipe or a test signal have the present time.
        source.n_samples is None or source.start_utc_ns is not None,
    )


def measure_rows(
    args: argparse.Namespace,
    measured: RowSource,
    meter: IntervalMeter,
    about: MeasurementDescription,
    paths: list[Path],
    table: LevelTable,
) -> int:
    """Read the source to its end, and write the rows, or print them; return the exit code.

    Of each file it prints how many intervals it has.

    Parameters
    ----------
    args : argparse.Namespace
        From ``add_arguments``.
    measured : RowSource
        From ``open_rows``.
    meter : IntervalMeter
        Measures the rows.
    about : MeasurementDescription
        Describes them.
    paths : list of Path
        Files to write; none: a table.
    table : LevelTable
    """
    writers: list[LevelWriter] = []
    source = measured.source
    try:
        for path in paths:
            with interrupts_held():
                writers.append(open_writer(path, about))

        n_rows = 0

        def write(rows: Sequence[Measurement]) -> None:
            nonlocal n_rows
            n_rows += len(rows)
            for row in rows:
                for writer in writers:
                    writer.write(row)
                if not writers:
                    table.show(row)

        if args.start is not None and source.is_live:
            wait_for_start(args.start, args.source)
        exit_code = _read(source, measured.span, meter, write, has_utc=about.has_utc)
        with interrupts_held():
            write(meter.finish())
            for path, writer in zip(paths, writers, strict=True):
                writer.finish()
                print(f"# {printable(path)}: {_count(n_rows, about)}")
    finally:
        with interrupts_held():
            for writer in writers:
                writer.abort()  # finished files stay
    return exit_code or report_left_out(source)


def _count(n_rows: int, about: MeasurementDescription) -> str:
    n = len(about.channels)
    channels = f" of {n} channels" if n > 1 else ""
    return f"{n_rows} interval{'' if n_rows == 1 else 's'}{channels}"


def _read(
    source: Source,
    span: SampleRange,
    meter: IntervalMeter,
    write: Callable[[Sequence[Measurement]], None],
    *,
    has_utc: bool,
) -> int:
    """Pass all samples through the meter; return the exit code."""
    reader = source.open_reader()
    exit_code = 0
    try:
        source.start(reader)
        with ProgressBar(source.fs, span.n_samples) as bar:
            try:
                for block in blocks_of(source, reader, span, bar):
                    with interrupts_held():
                        rows = meter.push(
                            block.samples,
                            block.missing_samples,
                            block.t_utc_ns if has_utc else None,
                        )
                        write(rows)
            except KeyboardInterrupt:
                exit_code = _INTERRUPTED
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
    finally:
        with interrupts_held():
            source.stop()
            reader.close()
            reader.release()
    if source.failure is not None and not exit_code:
        raise source.failure
    return exit_code
