"""``spectrod record``: a recording or a live source to a spectrogram picture."""

import argparse
import datetime as dt
import logging
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

import spectrod
from spectrod import config
from spectrod.analysis.engine import open_engine, transpose
from spectrod.analysis.warm_up import warm_up
from spectrod.cli import options
from spectrod.cli.picture_options import add_picture, picture_options, repeat
from spectrod.cli.progress import ProgressBar
from spectrod.config import AnalysisConfig
from spectrod.errors import ConfigError, InputError
from spectrod.pipeline import Pipeline
from spectrod.record.picture.sink import PictureSink
from spectrod.service import configure_logging
from spectrod.source import Source, open_source
from spectrod.source.pcm import StreamSource
from spectrod.types import SpectrumSpec

_log = logging.getLogger(__name__)

_INTERRUPTED = 130
_WINDOW_SECONDS = 0.043
_WINDOW_MIN, _WINDOW_MAX = 64, 8192
_YEAR_MIN, _YEAR_MAX = 1700, 2200
"""Years that 64 bits of nanoseconds since 1970 hold, with room for any recording."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help=options.SOURCES)
    parser.add_argument(
        "-o", "--output", metavar="OUT", action="append", required=True, help="picture, OUT.png"
    )
    parser.add_argument("--duration", metavar="S", type=float, help="stop after so many seconds")
    parser.add_argument(
        "--start-time",
        metavar="ISO8601",
        help="UTC of the first sample, as 2026-05-01T04:30:00Z (what a file's header or name says)",
    )
    add_picture(parser)
    options.add_source(parser, pace="full")
    options.add_analysis(
        parser, win_length="about 43 ms", hop="a frame a pixel, at most half a window"
    )
    options.add_engine(parser)
    options.add_config(parser)
    parser.add_argument("--log-level", metavar="LEVEL", default="warning", help="(%(default)s)")


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does; by themselves they would leave partial files."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler == signal.SIG_DFL:  # nohup's SIG_IGN stays
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@_signals_as_interrupts()
def run(args: argparse.Namespace) -> int:
    """Analyse the source to its end and write the pictures."""
    repeat(args)
    settings = config.load(args.config, options.flags(args))
    configure_logging(settings.log.level, settings.log.style)
    picture = picture_options(args)
    # The configuration's pace and loop are the daemon's.
    pace = settings.source.pace if args.pace else "full"
    source = open_source(msgspec.structs.replace(settings.source, loop=bool(args.loop)), pace)
    source.start_utc_ns = _start_utc_ns(args, source)
    max_samples = _max_samples(args, source)
    spec = _spec(args, settings.analysis, source, max_samples, picture.width)
    engine = open_engine(settings.engine.engine, settings.engine.device)
    if source.is_live:  # others wait while drivers compile
        warm_up(engine, spec)
    software = f"spectrod {spectrod.__version__}"
    turn = partial(transpose, engine)
    sinks = [PictureSink(path, picture, turn, spec, software) for path in args.output]
    pipeline = Pipeline(source, spec, engine, sinks=sinks, max_samples=max_samples)
    for sink in sinks:
        if sink.wants_samples:
            pipeline.tap(sink)
    try:
        exit_code = _run_to_the_end(pipeline, max_samples or source.n_samples)
        for sink in sinks:
            sink.finish()
    finally:
        pipeline.stop()
    return exit_code


def _run_to_the_end(pipeline: Pipeline, n_samples: int | None) -> int:
    """Run with a progress bar; Ctrl-C ends what has no end of its own, and leaves a picture."""
    exit_code, absence = 0, _Absence(pipeline)
    has_no_end = pipeline.source.is_live or isinstance(pipeline.source, StreamSource)
    with ProgressBar(pipeline.source.fs, n_samples) as bar:
        bar.update(0)
        pipeline.start()
        _log.info("recording %s", pipeline.source.description)
        while not pipeline.finished:
            try:
                pipeline.progress.wait(timeout_s=0.1)
                bar.update(pipeline.ring.written, pipeline.source.capture().waiting_for)
                if n_samples and absence.reaches(n_samples):
                    _log.warning("the duration is over, and the source has not come back")
                    pipeline.end()
                    n_samples = None
            except KeyboardInterrupt:
                if exit_code or not has_no_end:
                    raise
                exit_code = _INTERRUPTED
                pipeline.end()
    pipeline.raise_failure()
    return exit_code


class _Absence:
    """Says when a sound card that is waited for would have to come back in vain."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._written, self._since_s = -1, 0.0

    def reaches(self, n_samples: int) -> bool:
        """Say whether the next sample, missing ones counted, would be beyond the first so many."""
        written, now_s = self._pipeline.ring.written, time.monotonic()
        if written != self._written:
            self._written, self._since_s = written, now_s
        source = self._pipeline.source
        if not (source.is_live and source.capture().waiting_for):
            return False
        return written + (now_s - self._since_s) * source.fs >= n_samples


def _start_utc_ns(args: argparse.Namespace, source: Source) -> int | None:
    if args.start_time is None:
        is_silent = source.n_samples is not None and source.start_utc_ns is None
        if args.time_axis == "utc" and is_silent:
            raise ConfigError(
                f"--time-axis utc: {args.source} does not say when it begins; give --start-time"
            )
        return source.start_utc_ns
    if source.is_live:
        raise ConfigError(
            f"--start-time {args.start_time}: {args.source} begins when it is started"
        )
    try:
        time = dt.datetime.fromisoformat(args.start_time)
    except ValueError:
        raise ConfigError(
            f"--start-time {args.start_time}: must be ISO 8601, as in 2026-05-01T04:30:00Z"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    if not _YEAR_MIN <= time.year <= _YEAR_MAX:
        raise ConfigError(f"--start-time {args.start_time}: must be {_YEAR_MIN} to {_YEAR_MAX}")
    epoch = dt.datetime.fromtimestamp(0, dt.UTC)
    return (time - epoch) // dt.timedelta(microseconds=1) * 1000


def _max_samples(args: argparse.Namespace, source: Source) -> int | None:
    if args.duration is not None:
        if not 0.0 < args.duration < 1e9:
            raise ConfigError(f"--duration {args.duration:g}: must be a positive number of seconds")
        return max(1, round(float(args.duration) * source.fs))
    is_signal = args.source.startswith("signal:") or (args.source == "auto" and not source.is_live)
    if (is_signal or args.loop) and source.n_samples is None:
        raise ConfigError(f"{args.source}: has no end; give --duration")
    return None


def _window_for(fs: float) -> int:
    """Window that shows speech and music well: the power of two nearest to 43 ms."""
    exponent = round(math.log2(fs * _WINDOW_SECONDS))
    return int(min(max(2**exponent, _WINDOW_MIN), _WINDOW_MAX))


def _spec(
    args: argparse.Namespace,
    analysis: AnalysisConfig,
    source: Source,
    max_samples: int | None,
    width: int,
) -> SpectrumSpec:
    """Fill in what no flag asks for: a picture wants other frames than a live stream.

    The configuration's window length and hop are the daemon's, and do not count here.
    Short recordings get a frame for each pixel, so that they are not made of blocks; long ones
    get half-overlapping frames, which use every sample about evenly.
    """
    automatic = min(_window_for(source.fs), analysis.nfft or _WINDOW_MAX)
    win_length = analysis.win_length if args.win_length else automatic
    n_samples = min(n for n in (source.n_samples, max_samples, 1 << 62) if n is not None)
    if n_samples < win_length:
        raise InputError(
            f"{args.source}: too short: {n_samples} of the {win_length} samples of one window "
            "(--win-length)"
        )
    hop = analysis.hop if args.hop else max(1, min(win_length // 2, n_samples // width))
    scaling = "density" if args.scaling == "density" else "spectrum"
    wanted = msgspec.structs.replace(analysis, win_length=win_length, hop=hop, scaling=scaling)
    return wanted.spec(source.fs, source.channels)
