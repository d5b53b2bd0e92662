"""``spectrod levels``: measures sound levels in the time domain."""

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

import spectrod
from spectrod import config
from spectrod.calibration import ChannelCalibration
from spectrod.cli import options
from spectrod.cli.interrupts import interrupts_held, signals_as_interrupts
from spectrod.cli.level_table import LevelTable
from spectrod.cli.progress import ProgressBar
from spectrod.cli.sample_blocks import blocks_of, report_left_out
from spectrod.cli.sample_range import SampleRange, sample_range
from spectrod.cli.times import parse_seconds, parse_utc_ns, wait_for_start
from spectrod.errors import ConfigError, InputError
from spectrod.formats.levels.description import LevelDescription
from spectrod.formats.levels.writer import LevelWriter, check_suffix, open_writer
from spectrod.formats.outputs import check_outputs
from spectrod.levels import LevelMeter, LevelRow
from spectrod.levels.intervals import LEVEL_ALIGNS, LevelAlign
from spectrod.levels.quantities import FORMS, QUANTITIES_DEFAULT
from spectrod.levels.values import UNCALIBRATED_DB
from spectrod.names import name_channels
from spectrod.service import configure_logging
from spectrod.source import Source, open_source
from spectrod.source.base import SelectableSource
from spectrod.source.kinds import forms

_log = logging.getLogger(__name__)

_INTERRUPTED = 130
UNCALIBRATED = "dBFS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
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
    parser.add_argument(
        "--quantity",
        metavar="NAME,...",
        default=",".join(QUANTITIES_DEFAULT),
        help=f"{FORMS} (%(default)s)".replace("%", "%%").replace("%%(default)s", "%(default)s"),
    )
    parser.add_argument(
        "--align",
        dest="bounds",  # "align" is the key of the analysis
        choices=LEVEL_ALIGNS,
        help="intervals count from the start, follow UTC, or are local days (utc with a date)",
    )
    parser.add_argument(
        "--time-zone", metavar="ZONE", default="", help="of Lden and of local days: Europe/Berlin"
    )
    parser.add_argument(
        "--lower-limit", metavar="DB", type=float, help="flag rows with a level below this"
    )
    parser.add_argument(
        "--channel-weights",
        metavar="W,...",
        help="of the loudness; 1, 2, 5 and 6 channels have one",
    )
    options.add_range(parser)
    options.add_source(parser, pace="full")
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    with signals_as_interrupts():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    paths = [Path(one) for one in args.output]
    for path in paths:
        check_suffix(path)
    check_outputs(args.output, Path(args.source) if Path(args.source).is_file() else None)
    settings = config.load(args.config, options.flags(args))
    configure_logging(settings.log.level, settings.log.style)
    pace = settings.source.pace if args.pace else "full"
    source = open_source(msgspec.structs.replace(settings.source, loop=bool(args.loop)), pace)
    if source.is_iq:
        raise ConfigError(f"{args.source}: has pairs of I and Q, which have no sound levels")
    if args.start_time is not None:
        if source.is_live:
            raise ConfigError(
                f"--start-time {args.start_time}: {args.source} starts when it is opened"
            )
        source.start_utc_ns = parse_utc_ns("--start-time", args.start_time)
    span = sample_range(args, source)
    if isinstance(source, SelectableSource):
        source.start_at(span.first)
    # Samples of a pipe or a test signal have the present time.
    has_utc = source.n_samples is None or source.start_utc_ns is not None
    calibrations = settings.source.calibrations(source.channels) or (None,) * source.channels
    meter = _meter(args, source, calibrations, has_utc=has_utc)
    names = name_channels(settings.source.channel_names, source.channels)
    about = _describe(args, source, meter, names, calibrations, has_utc=has_utc)
    for note in about.notes:
        _log.warning("%s", note)
    return _measure(args, source, span, meter, about, paths)


def _meter(
    args: argparse.Namespace,
    source: Source,
    calibrations: tuple[ChannelCalibration | None, ...],
    *,
    has_utc: bool,
) -> LevelMeter:
    align: LevelAlign = args.bounds or ("utc" if has_utc else "start")
    if align != "start" and not has_utc:
        raise ConfigError(f"--align {align}: {args.source} has no start time; give --start-time")
    weights = None
    if args.channel_weights is not None:
        try:
            weights = [float(text) for text in args.channel_weights.split(",")]
        except ValueError:
            raise ConfigError(
                f"--channel-weights {args.channel_weights}: must be numbers, as 1,1,0"
            ) from None
    scale = [UNCALIBRATED_DB if one is None else one.full_scale_db for one in calibrations]
    return LevelMeter(
        source.fs,
        source.channels,
        quantities=args.quantity.split(","),
        interval_s=parse_seconds("--interval", args.interval),
        align=align,
        time_zone=args.time_zone,
        full_scale_db=scale,
        channel_weights=weights,
        lower_limit_db=args.lower_limit,
    )


def _describe(
    args: argparse.Namespace,
    source: Source,
    meter: LevelMeter,
    names: tuple[str, ...],
    calibrations: tuple[ChannelCalibration | None, ...],
    *,
    has_utc: bool,
) -> LevelDescription:
    notes = []
    if any(one is not None and one.response is not None for one in calibrations):
        notes.append(
            "the frequency response of the calibration is not applied: levels in the time domain "
            "use the sensitivity alone"
        )
    return LevelDescription(
        source=source.description,
        channels=names,
        quantities=meter.quantities,
        units=tuple(UNCALIBRATED if one is None else one.unit for one in calibrations),
        cal_ids=tuple("" if one is None else one.cal_id for one in calibrations),
        fs=source.fs,
        interval_s=meter.interval_s,
        align=meter.align,
        time_zone=args.time_zone,
        has_utc=has_utc,
        software=f"spectrod {spectrod.__version__}",
        notes=tuple(notes),
    )


def _measure(
    args: argparse.Namespace,
    source: Source,
    span: SampleRange,
    meter: LevelMeter,
    about: LevelDescription,
    paths: list[Path],
) -> int:
    """Read the source to its end, and write and print the rows."""
    writers: list[LevelWriter] = []
    table = LevelTable(about, is_live=source.is_live or args.pace == "realtime")
    try:
        for path in paths:
            with interrupts_held():
                writers.append(open_writer(path, about))

        def take(rows: list[LevelRow]) -> None:
            for row in rows:
                for writer in writers:
                    writer.submit(row)
                if not writers:
                    table.show(row)

        if args.start is not None and source.is_live:
            wait_for_start(args.start, args.source)
        exit_code = _read(source, span, meter, take, has_utc=about.has_utc)
        with interrupts_held():
            take(meter.finish())
            summary = meter.summary()
            for writer in writers:
                writer.finish()
        table.show_total(summary)
    finally:
        with interrupts_held():
            for writer in writers:
                writer.abort()  # finished files stay
    return exit_code or report_left_out(source)


def _read(
    source: Source,
    span: SampleRange,
    meter: LevelMeter,
    take: Callable[[list[LevelRow]], None],
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
                for block in blocks_of(reader, span):
                    with interrupts_held():
                        rows = meter.feed(
                            block.samples, block.lost_samples, block.t_utc_ns if has_utc else None
                        )
                        take(rows)
                    bar.update(block.sample_index - span.first)
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
