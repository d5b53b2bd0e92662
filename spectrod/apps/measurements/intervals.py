"""Measurements of the intervals of a source, as a table or in files.

This is the command of each kind that has no other: its name is that of the kind.
"""

import argparse
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from spectrod.apps.measurements.bound_source import bind
from spectrod.apps.measurements.figure_flags import add_figure_look, figure_look
from spectrod.apps.measurements.local_days import AbsentPeriods
from spectrod.apps.measurements.measured_source import MeasuredSource, add_source
from spectrod.apps.measurements.part_processes import PartResult, measure_parts, set_clock
from spectrod.apps.measurements.parts import RecordingPart, cut_parts
from spectrod.apps.measurements.printed_table import PrintedTable
from spectrod.apps.measurements.sample_blocks import blocks_of, report_left_out
from spectrod.apps.measurements.setting_flags import add_settings
from spectrod.apps.measurements.track_writer import TrackWriter
from spectrod.cli import options
from spectrod.cli.interrupts import interrupts_held, signals_as_interrupts
from spectrod.cli.numbers import count
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_range import SampleRange
from spectrod.cli.times import wait_for_start, zone_of_times
from spectrod.formats.event_files import format_of
from spectrod.formats.figure.drawing import need_matplotlib
from spectrod.formats.figure.measurement_figure import MeasurementFigureWriter
from spectrod.formats.values.by_date_writer import SUFFIX as BY_DATE
from spectrod.formats.values.by_date_writer import ByDateWriter
from spectrod.formats.values.measurement_description import MeasurementDescription, describe
from spectrod.formats.values.value_writer import (
    CSV_FORMS,
    FIGURE_SUFFIXES,
    SUFFIXES,
    ValueWriter,
    check_suffix,
    open_writer,
)
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.ordered_work import JOBS_MAX
from spectrod.lib.text import printable
from spectrod.measure.frame_meter import FrameMeter
from spectrod.measure.kinds import KINDS
from spectrod.measure.levels import LevelMeter, LevelRow
from spectrod.measure.measurement import Measurement
from spectrod.measure.measurement_config import IntervalMeter, MeasurementConfig
from spectrod.recording.output_plan import check_outputs, make_folders
from spectrod.source.kinds import forms
from spectrod.source.open_source import Source

FILES = " ".join(SUFFIXES)
"""Suffixes of files of intervals, for help texts."""

Write = Callable[[Sequence[Measurement]], None]
"""Takes complete rows."""

Writer = ValueWriter | ByDateWriter | TrackWriter
"""Writes complete rows, or the tracks that are in them."""

_INTERRUPTED = 130
_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help=forms())
    add_output(
        parser, f"write the rows to a file, {FILES}, instead of a table; repeatable", ".csv files"
    )
    add_settings(parser, _defaults(parser.prog.rpartition(" ")[2]))
    add_jobs(parser)
    options.add_range(parser)
    add_source(parser)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add --jobs."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="processes that measure parts of a recording side by side; rows stay the same (1)",
    )


def add_output(
    parser: argparse.ArgumentParser, help_: str, csv_files: str = ".csv files with --interval"
) -> None:
    """Add --output, --csv and the look of figures, of the files that this is for."""
    parser.add_argument("-o", "--output", metavar="OUT", action="append", default=[], help=help_)
    parser.add_argument(
        "--csv",
        choices=CSV_FORMS,
        help=f"of {csv_files}: all digits and comments, or dates and numbers for spreadsheets; "
        f"-comma: decimal commas and semicolons, as in German and French ({CSV_FORMS[0]})",
    )
    parser.add_argument(
        "--by-date",
        action="store_true",
        help=f"write -o FOLDER/NAME{BY_DATE} as FOLDER/date=YYYY-MM-DD/NAME{BY_DATE}, a file for "
        "each date of UTC, which DuckDB and polars read as one table",
    )
    add_figure_look(parser)


def check_output(
    args: argparse.Namespace, suffixes: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Check the files of a measurement without intervals, and more files; make their folders.

    Raises
    ------
    ConfigError
        If a suffix is none of these, or a file cannot be made.
    UnavailableError
        If a figure needs a package that is not installed.
    """
    if args.by_date:
        raise ConfigError("--by-date: must be with --interval")
    for path in args.output:
        suffix = Path(path).suffix.lower()
        if suffix not in suffixes:
            known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
            raise ConfigError(f"{path}: must end in {known}, or --interval must be given")
        if suffix in FIGURE_SUFFIXES:
            need_matplotlib()
    outputs = [*args.output, *more]
    check_outputs(outputs, Path(args.source) if Path(args.source).is_file() else None)
    make_folders(outputs)


def _defaults(word: str) -> MeasurementConfig:
    return KINDS[word](word)


@signals_as_interrupts()
def run(args: argparse.Namespace, defaults: MeasurementConfig | None = None) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    defaults = defaults or _defaults(args.command)
    paths, tracks = _files(args), _tracks(args)
    look = figure_look(args, paths)
    outputs = [*args.output, *map(str, tracks)]
    check_outputs(outputs, Path(args.source) if Path(args.source).is_file() else None)
    make_folders(outputs)
    opened = bind(args, defaults)
    measured, bound = opened.measured, opened.meter
    source, jobs = measured.source, _jobs(args, measured)
    meter = bound.open(0)
    parts = cut_parts(opened, meter, jobs) if jobs > 1 else []
    about = describe(bound.signals, bound.facts, meter)
    about = replace(about, extra={**about.extra, **measured.site.attributes})
    for note in about.notes:
        _log.warning("%s", note)
    table = PrintedTable(about, is_live=source.is_live or args.pace == "realtime")

    def read(write: Write) -> int:
        if len(parts) > 1:
            results = measure_parts(args, defaults, parts, jobs)
            return _read_parts(results, measured, meter, parts, write)
        if args.start is not None and source.is_live:
            wait_for_start(args.start, args.source, zone_of_times(args))
        return _read(source, measured.span, meter, write, has_utc=about.has_utc)

    def open_file(path: Path) -> Writer:
        if path in tracks:
            assert isinstance(meter, FrameMeter)
            points = args.track_points
            return TrackWriter(path, measured, about, meter.spec, has_points=points)
        if args.by_date and path.suffix.lower() == BY_DATE:
            return ByDateWriter(path, about)
        writer = open_writer(path, about, args.csv or CSV_FORMS[0])
        if isinstance(writer, MeasurementFigureWriter):
            writer.look = look
        return writer

    exit_code = _measure(read, meter, about, [*paths, *tracks], table, open_file)
    exit_code = exit_code or report_left_out(source)
    if isinstance(meter, LevelMeter):
        table.show_total(meter.summary())
    return exit_code


def _measure(
    read: Callable[[Write], int],
    meter: IntervalMeter,
    about: MeasurementDescription,
    paths: list[Path],
    table: PrintedTable,
    open_file: Callable[[Path], Writer],
) -> int:
    """Read the source to its end, and write the rows, or print them; return the exit code.

    Of each file it prints how many intervals it has.
    """
    writers: list[Writer] = []
    try:
        for path in paths:
            with interrupts_held():
                writers.append(open_file(path))

        n_rows = n_days = 0
        periods = AbsentPeriods(about)

        def write(rows: Sequence[Measurement]) -> None:
            nonlocal n_rows, n_days
            n_rows += len(rows)
            n_days += sum(isinstance(row, LevelRow) and row.is_day for row in rows)
            periods.add(rows)
            for row in rows:
                for writer in writers:
                    writer.write(row)
                if not writers:
                    table.show(row)

        exit_code = read(write)
        with interrupts_held():
            write(meter.finish())
            if n_rows:
                _write_total(meter, writers)
            for path, writer in zip(paths, writers, strict=True):
                writer.finish()
                text = _count(n_rows - n_days, n_days, about)
                if isinstance(writer, TrackWriter):
                    text = writer.count_text
                shown = writer.pattern if isinstance(writer, ByDateWriter) else path
                print(f"# {printable(shown)}: {text}")
            periods.report()
    finally:
        with interrupts_held():
            for writer in writers:
                writer.abort()  # finished files stay
    return exit_code


def _write_total(meter: IntervalMeter, writers: list[Writer]) -> None:
    """Pass the values of all intervals together to the writers, if the meter has such."""
    if isinstance(meter, LevelMeter):
        total = meter.summary()
        for writer in writers:
            writer.write_total(total)


def _files(args: argparse.Namespace) -> list[Path]:
    """Return the files of rows; raises ConfigError for options of files that are not there."""
    paths = [Path(one) for one in args.output]
    for path in paths:
        check_suffix(path)
    suffixes = {path.suffix.lower() for path in paths}
    if args.csv and ".csv" not in suffixes:
        raise ConfigError(f"--csv {args.csv}: must be with -o NAME.csv")
    if args.by_date and BY_DATE not in suffixes:
        raise ConfigError(f"--by-date: must be with -o NAME{BY_DATE}")
    return paths


def _count(n_intervals: int, n_days: int, about: MeasurementDescription) -> str:
    n = len(about.channels)
    channels = f" of {n} channels" if n > 1 else ""
    intervals = f"{n_intervals} interval{'' if n_intervals == 1 else 's'}"
    days = f" and {n_days} day{'' if n_days == 1 else 's'}" if n_days else ""
    return f"{intervals}{days}{channels}"


def _tracks(args: argparse.Namespace) -> list[Path]:
    """Return the files of tracks, which tones alone have; raises ConfigError."""
    paths = [Path(one) for one in getattr(args, "tracks", ())]
    for path in paths:
        format_of(path)
    if paths and (args.jobs or 1) > 1:
        rule = "tracks go on from interval to interval"
        raise ConfigError(f"--jobs {args.jobs}: must be without --tracks: {rule}")
    if not paths and getattr(args, "track_points", False):
        raise ConfigError("--track-points: must be with --tracks FILE")
    return paths


def _jobs(args: argparse.Namespace, measured: MeasuredSource) -> int:
    """Return the number of processes; raises ConfigError."""
    jobs: int | None = getattr(args, "jobs", None)  # transfer functions have none
    if jobs is None or jobs == 1:
        return 1
    if jobs > JOBS_MAX:
        raise ConfigError(f"--jobs {jobs}: must be 1 to {JOBS_MAX}")
    source = measured.source
    if source.is_live or not source.is_stored or source.n_samples is None:
        raise ConfigError(f"--jobs {jobs}: must be of recordings, which {args.source} is not")
    if args.pace == "realtime":
        raise ConfigError(f"--jobs {jobs}: must be without --pace realtime")
    return jobs


def _read_parts(
    results: Generator[PartResult],
    measured: MeasuredSource,
    meter: IntervalMeter,
    parts: Sequence[RecordingPart],
    write: Write,
) -> int:
    """Let processes measure the parts, and write their rows in order; return the exit code."""
    source, first = measured.source, measured.span.first
    set_clock(meter, measured)
    has_rows = False
    try:
        with (
            ProgressBar(source.fs, measured.span.n_samples) as bar,
            closing(results),
        ):
            for part, result in zip(parts, results, strict=True):
                with interrupts_held():
                    write(result.rows)
                    has_rows |= bool(result.rows)
                    if isinstance(meter, LevelMeter) and result.total is not None:
                        meter.add_total(result.total)
                    for name, level, text in result.logged:
                        logging.getLogger(name).log(level, "%s", text)
                    for path, line in result.left_out:
                        source.left_out.note(path, line)
                bar.update(part.stop - first)
    except KeyboardInterrupt:
        if not has_rows:
            raise  # there is nothing to complete a file with
        return _INTERRUPTED
    return 0


def _read(
    source: Source,
    span: SampleRange,
    meter: IntervalMeter,
    write: Write,
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
