"""``spectrod record`` of samples: analyses a file, a sound card or a test signal."""

import argparse
import logging
import math
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from spectrod.analysis.engine import Engine, open_engine
from spectrod.analysis.engine_pool import KeptEngines
from spectrod.analysis.live_engine import LiveEngine
from spectrod.analysis.numpy_engine import NumpyEngine, numpy_duration_s
from spectrod.cli.absence import STILL_ABSENT, Absence
from spectrod.cli.calibration_dates import warn_of_validity
from spectrod.cli.csv_size import large_csv_hint
from spectrod.cli.data_options import data_options
from spectrod.cli.interrupts import interrupts_held
from spectrod.cli.long_term import apply_view, check_rows, clock_flag, long_term
from spectrod.cli.picture_options import picture_options
from spectrod.cli.progress import ProgressBar
from spectrod.cli.record_engine import StoredEngine
from spectrod.cli.record_files import OutputFiles, finish_all
from spectrod.cli.record_plan import (
    Asked,
    Outputs,
    asked,
    describe,
    make_outputs,
    picture_plan,
    picture_samples,
    picture_width,
)
from spectrod.cli.sample_range import SampleRange, sample_range
from spectrod.cli.short_windows import shortened
from spectrod.cli.times import parse_utc_ns, wait_for_start, zone_of_times
from spectrod.config.config import AnalysisConfig, Config, EngineConfig
from spectrod.daemon.pipeline import Pipeline
from spectrod.daemon.service import configure_logging
from spectrod.dsp.bands import REASSIGNED
from spectrod.dsp.constant_q import is_constant_q
from spectrod.dsp.notes import (
    bands_blurred,
    bands_left_out,
    frames_leave_out,
    rows_leave_out,
    samples_left_out,
)
from spectrod.dsp.row_grid import exact_row_step
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_rules import NFFT_MAX, REASSIGNED_HOPS_MAX
from spectrod.formats.export.minutes import minute_frames
from spectrod.formats.longterm.longterm_picture import read_statistics_picture
from spectrod.formats.longterm.presets import averaged
from spectrod.formats.picture.framing import (
    PRODUCT,
    hop_for,
    pooled,
    window_for,
    window_of_filters,
)
from spectrod.formats.picture.painter import EnginePainter
from spectrod.formats.picture.picture_settings import PictureOptions
from spectrod.formats.picture.pixelmap import read_pixel_map
from spectrod.lib.errors import ConfigError, InputError, SpectrodError
from spectrod.lib.text import printable
from spectrod.lib.time_zones import zone_attribute
from spectrod.recording.output_plan import Plan
from spectrod.source.base import SelectableSource
from spectrod.source.condition_track import ConditionTrack
from spectrod.source.open_source import Source, open_source

_log = logging.getLogger(__name__)

_INCOMPLETE = 65
_NOTES = (frames_leave_out, bands_left_out, bands_blurred)
_INTERRUPTED = 130
_SHORT_S = 0.2
"""Time for which a source is analysed without progress, as long as interrupts may wait [s]."""
_PAINTED_VALUES = 1 << 22
"""Values of columns and bins that NumPy paints in 40 ms."""


def record_samples(
    args: argparse.Namespace, settings: Config, kept: KeptEngines | None = None
) -> int:
    """Analyse the source to its end, and write the requested files."""
    configure_logging(settings.log.level, settings.log.style)
    found = asked(args)
    files = data_options(args, found.paths)
    if "picture" in found.contents:
        # Import now, while drivers load; it is needed later.
        import spectrod.formats.picture.sink  # noqa: F401, PLC0415
    # Ignore the configuration's pace and loop, which are for the daemon.
    pace = settings.source.pace if args.pace else "full"
    source = open_source(msgspec.structs.replace(settings.source, loop=bool(args.loop)), pace)
    source.start_utc_ns = _start_utc_ns(args, source)
    # Samples of a pipe or a test signal have the present time.
    is_undated = source.n_samples is not None and source.start_utc_ns is None
    span = sample_range(args, source)
    if isinstance(source, SelectableSource):
        source.start_at(span.first)
    has_utc = source.is_live or source.start_utc_ns is not None
    apply_view(args, has_utc=has_utc, is_iq=source.is_iq)
    if is_undated:
        source.start_utc_ns = 0
    title = source.description if args.source == "-" else ""
    look = picture_width(found, picture_options(args, title=title), args.tile)
    look = replace(look, signals=look.signals or settings.source.channel_names)
    pictured, data = _specs(args, settings, source, span, found, look)
    specs = [*([pictured] if "picture" in found.contents else []), data]
    if len(specs) > 1 and data is pictured:
        specs.pop()
    old_engine = ""
    if args.like:
        old_engine, cal_id = _earlier(Path(args.like))
        _compare_calibrations(args.like, cal_id, pictured.scale.cal_id)
    choice = StoredEngine(specs, source.layout, span.n_samples, old_engine, kept)
    engine = _open_engine(settings.engine, source, choice)
    try:
        if "rows" in found.contents and data.uncovered:
            _log.warning("%s", rows_leave_out(data))
        notes = [note(spec) for note in _NOTES for spec in specs]
        if any(path.lower().endswith(".csv") for path in found.paths):
            notes.append(large_csv_hint(data, found.file_samples(source.fs, span.n_samples)))
        for text in dict.fromkeys(filter(None, notes)):
            _log.warning("%s", text)
        warn_of_validity(args.source, source, span, data.calibration, has_utc=not is_undated)
        names = look.names(data.n_signals)
        of_source = settings.source
        place = of_source.site.attributes | zone_attribute(of_source.time_zone)
        described = describe(data, source.name, names, place)
        about = files.described(described, is_undated=is_undated)
        painting = _painting_engine(engine, look.width * pictured.n_values * pictured.n_signals)
        plan = Plan(
            describe(pictured, source.name, names),
            about,
            replace(
                picture_plan(found, look, EnginePainter(painting)),
                origin_sample=0 if source.is_stored else None,
            ),
            args.subtype,
            files.export,
            is_copy=source.is_stored,
        )
        pipeline = Pipeline(
            source,
            specs,
            engine,
            first_sample=span.first,
            max_samples=span.max_samples,
            conditions=_conditions(args, found, source),
        )
    except BaseException:
        engine.close()
        raise
    return _record(pipeline, found, plan, args, span)


def _conditions(args: argparse.Namespace, found: Asked, source: Source) -> ConditionTrack | None:
    """Return what marks rows; None of stored samples without a profile: it may take as long as all.

    Live samples are checked for nothing: the program waits for them.
    """
    is_marked = "rows" in found.contents and (bool(args.profile) or source.is_live)
    return ConditionTrack(source.channels, source.fs) if is_marked else None


def _open_engine(
    requested: EngineConfig, source: Source, choice: StoredEngine
) -> Engine | LiveEngine:
    if not source.is_live:
        return choice.open(requested)
    if requested.engine == "auto" and not requested.device:
        return LiveEngine(source.name)
    from spectrod.analysis.warm_up import warm_up  # noqa: PLC0415 - only needed here

    engine = open_engine(requested.engine, requested.device)
    warm_up(engine, choice.specs, source.layout)  # other sources wait while drivers compile
    return engine


def _painting_engine(engine: Engine | LiveEngine, n_values: int) -> Engine:
    """Return the engine that paints: NumPy where a device would first load or compile kernels.

    That takes longer than to paint a small picture, and nobody waits for it after a live recording.
    """
    is_small = n_values <= _PAINTED_VALUES
    return NumpyEngine() if is_small or isinstance(engine, LiveEngine) else engine


def _record(
    pipeline: Pipeline, found: Asked, plan: Plan, args: argparse.Namespace, span: SampleRange
) -> int:
    outputs: Outputs | None = None
    try:
        outputs = make_outputs(found, plan, time.time_ns())
        _connect(pipeline, outputs, plan)
        if not plan.data.has_utc:
            _warn_of_no_date(args, found)
        if args.start is not None and pipeline.source.is_live:
            wait_for_start(args.start, args.source, zone_of_times(args))
        if args.pace in (None, "full") and _is_short(pipeline, span):
            exit_code = _run_here(pipeline)
        else:
            exit_code = _run_to_the_end(pipeline, outputs, span)
        _report_left_out(pipeline, outputs, plan)
        files_code = _report_files(pipeline)
        failure = finish_all(outputs.all, interrupts_held)
    finally:
        with interrupts_held():
            pipeline.stop()
            if outputs is not None:
                outputs.abort()  # finished files stay
    if failure is not None:
        raise failure
    return exit_code or files_code


def _connect(pipeline: Pipeline, outputs: Outputs, plan: Plan) -> None:
    """Attach every output to its product; an output that fails is aborted, the others continue."""

    def give_up(files: OutputFiles[Any], error: SpectrodError) -> None:
        outputs.give_up(files, error)
        if all(one.is_over for one in outputs.all):
            pipeline.end()

    for product, some in ((PRODUCT, outputs.pictures), (plan.data.spec.product, outputs.rows)):
        for files in some:
            pipeline.attach(files, product, partial(give_up, files))
    for samples in outputs.samples:
        pipeline.tap(samples, partial(give_up, samples))
    for picture in outputs.pictures:
        if picture.strips:
            pipeline.tap(picture.strips, partial(give_up, picture))
    if not outputs.pictures and not outputs.rows:
        pipeline.demand.want(frozenset())


def _is_short(pipeline: Pipeline, span: SampleRange) -> bool:
    """Return whether the analysis takes so short that nobody waits for progress or Ctrl-C."""
    if not pipeline.source.is_stored or span.n_samples is None:
        return False
    return sum(numpy_duration_s(spec, span.n_samples) for spec in pipeline.specs) < _SHORT_S


def _run_here(pipeline: Pipeline) -> int:
    """Analyse a short source in this thread; files are finished after Ctrl-C too."""
    exit_code = 0
    _log.info("recording %s", pipeline.source.description)
    try:
        # Held: an interrupt in the middle of a block would leave files that are neither.
        with interrupts_held():
            pipeline.run()
    except KeyboardInterrupt:
        exit_code = _INTERRUPTED
    pipeline.raise_failure()
    return exit_code


def _run_to_the_end(pipeline: Pipeline, outputs: Outputs, span: SampleRange) -> int:
    """Run with a progress bar; Ctrl-C ends the recording, and its files are finished."""
    exit_code = 0
    with ProgressBar(pipeline.source.fs, span.n_samples) as bar:
        watch = _Watch(pipeline, span, bar)
        try:
            # Held: an interrupt between the start and the wait would leave nothing of the outputs.
            with interrupts_held():
                pipeline.start()
            watch.wait_to_the_end()
        except KeyboardInterrupt:
            exit_code = _INTERRUPTED
            # Hold interrupts: Python considers a thread ended if its join() is interrupted.
            with interrupts_held():
                pipeline.end()
            watch.wait_to_the_end()
    if pipeline.failure is not None and not pipeline.source.is_stored:
        # A live recording is kept up to the failure.
        finish_all(outputs.all, interrupts_held)
    pipeline.raise_failure()
    return exit_code


def _report_left_out(pipeline: Pipeline, outputs: Outputs, plan: Plan) -> None:
    """Report the number of samples in no row of the data files, in the log and in the files."""
    spec = plan.data.spec
    if not outputs.rows:
        return
    n_samples = pipeline.left_out_samples()[spec.product]
    for files in outputs.rows:
        files.note_left_out(n_samples)
    if n_samples:
        n_read, gaps = pipeline.range.read_samples, pipeline.stats().gaps
        note = samples_left_out(spec, n_samples, n_read, gaps)
        _log.warning("%s: %s", pipeline.source.name, note)


def _report_files(pipeline: Pipeline) -> int:
    """Log the files that were skipped or read in part; return the exit code for that."""
    source, left_out = pipeline.source, pipeline.source.left_out
    n_read, n_missing = pipeline.range.read_samples, pipeline.range.missing_samples
    n_samples = n_read + n_missing
    counts = f"{n_read} samples read + {n_missing} missing = {n_samples}"
    summary = f"{source.description}: {counts} ({n_samples / source.fs:.10g} s)"
    if not left_out.n_files:
        _log.info("%s", summary)
        return 0
    _log.warning("%s; files left out or read in part: %d", summary, left_out.n_files)
    for line in left_out.lines:
        _log.warning("%s", line)
    if left_out.n_unnamed:
        _log.warning("and %d more files (--log-level info names all)", left_out.n_unnamed)
    return _INCOMPLETE


class _Watch:
    """Shows a pipeline's progress, and ends it if a sound card is absent for too long."""

    def __init__(self, pipeline: Pipeline, span: SampleRange, bar: ProgressBar) -> None:
        self._pipeline, self._span, self._bar = pipeline, span, bar
        self._absence = Absence(pipeline.source)
        self._n_due = span.max_samples
        self._is_reported = False

    def wait_to_the_end(self) -> None:
        """Wait until the pipeline has ended."""
        if not self._is_reported:
            self._is_reported = True
            _log.info("recording %s", self._pipeline.source.description)
            self._bar.update(0)
        while not self._pipeline.finished:
            self._wait()

    def _wait(self) -> None:
        pipeline = self._pipeline
        pipeline.progress.wait(timeout_s=0.1)
        n_done = max(0, pipeline.ring.written - self._span.first)
        self._bar.update(n_done, pipeline.source.capture().waiting_for)
        if self._n_due and self._absence.reaches(pipeline.ring.written, self._n_due):
            _log.warning(STILL_ABSENT)
            pipeline.end()
            self._n_due = None


def _earlier(path: Path) -> tuple[str, str]:
    """Return the engine and the calibration of a picture that is repeated; empty if unknown."""
    statistics = read_statistics_picture(path)
    if statistics is not None:
        return "", statistics.cal_id
    pixels = read_pixel_map(path)
    return pixels.engine, pixels.cal_id or ""


def _start_utc_ns(args: argparse.Namespace, source: Source) -> int | None:
    if args.start_time is None:
        is_silent = source.n_samples is not None and source.start_utc_ns is None
        profile = f"--profile {args.profile}" if args.profile else ""
        for flag in (clock_flag(args), profile):
            if flag and is_silent:
                raise ConfigError(f"{flag}: {args.source} has no start time; give --start-time")
        return source.start_utc_ns
    if source.is_live:
        raise ConfigError(f"--start-time {args.start_time}: {args.source} starts when it is opened")
    return parse_utc_ns("--start-time", args.start_time, zone_of_times(args))


def _warn_of_no_date(args: argparse.Namespace, found: Asked) -> None:
    if found.contents != {"picture"} or found.period:
        _log.warning(
            "%s has no start time: times count from its beginning (--start-time sets it)",
            printable(args.source),
        )


def _specs(
    args: argparse.Namespace,
    settings: Config,
    source: Source,
    span: SampleRange,
    found: Asked,
    look: PictureOptions,
) -> tuple[SpectrumSpec, SpectrumSpec]:
    """Return the specs of pictures and of data files; checks only the requested ones.

    Window length and hop of the configuration are for the daemon: they apply to data, pictures have
    their own. A kind that is not requested gets the spec of the other.
    """
    of_contents: dict[str, SpectrumSpec] = {}
    # The data files of a long-term view hold its rows.
    is_long = found.view != "spectrogram"
    if "picture" in found.contents or (is_long and not args.profile):
        of_contents["picture"] = _pictured(args, settings, source, span, found, look)
    if "rows" in found.contents and args.profile:
        of_contents["rows"] = _bound(
            _of_profile(args, settings.analysis, source.fs), source, settings
        )
    elif "rows" in found.contents and not is_long:
        of_contents["rows"] = _bound(settings.analysis, source, settings)
    if args.profile and "rows" in of_contents:
        _check_length_of_profile(args, span, of_contents["rows"])
    of_contents = shortened(of_contents, span.n_samples, args.source)
    pictured, data = of_contents.get("picture"), of_contents.get("rows")
    if data is None:
        data = pictured or _bound(AnalysisConfig(), source, settings)
    elif data.product == PRODUCT:
        data = replace(data, product="data")
    return pictured or data, data


def _check_length_of_profile(
    args: argparse.Namespace, span: SampleRange, spec: SpectrumSpec
) -> None:
    """Refuse sources without a whole frame of a profile, which has fixed frames."""
    if span.n_samples is not None and span.n_samples < spec.win_length:
        raise InputError(
            f"{args.source}: too short: {span.n_samples} of the {spec.win_length} samples of one "
            f"frame (--profile {args.profile})"
        )


def _pictured(
    args: argparse.Namespace,
    settings: Config,
    source: Source,
    span: SampleRange,
    found: Asked,
    look: PictureOptions,
) -> SpectrumSpec:
    """Return the spec of pictures."""
    n_samples = picture_samples(found, look.width, source.fs, span.n_samples)
    analysis = settings.analysis
    if found.view == "spectrogram":
        win_length = analysis.win_length
        automatic = 0 if args.win_length else _picture_window(analysis, source.fs, look, n_samples)
        requested = _framed(
            args, analysis, source.fs, automatic or win_length, n_samples, look.width
        )
        try:
            spec = _bound(requested, source, settings)
        except ConfigError:
            if not (analysis.bands and automatic):
                raise
            # Bands may need the longer window of the data.
            requested = _framed(args, analysis, source.fs, win_length, n_samples, look.width)
            spec = _bound(requested, source, settings)
    else:
        requested, frames = long_term(args, analysis, source, n_samples)
        spec = averaged(_bound(requested, source, settings), frames)
        check_rows(args, spec, source)
    return pooled(spec, n_samples, look.width, look.pool)


def _picture_window(
    analysis: AnalysisConfig, fs: float, look: PictureOptions, n_samples: int | None
) -> int:
    longest = analysis.nfft or NFFT_MAX
    if is_constant_q(analysis.bands):
        return min(window_of_filters(analysis.bands, fs, look.f_min, n_samples), longest)
    # The transforms of a reassigned spectrogram are of half a window.
    return min(window_for(fs) * (2 if analysis.bands == REASSIGNED else 1), longest)


def _framed(
    args: argparse.Namespace,
    analysis: AnalysisConfig,
    fs: float,
    win_length: int,
    n_samples: int | None,
    width: int,
) -> AnalysisConfig:
    """Return the frames of a spectrogram's picture."""
    covered, least = win_length, 1
    if is_constant_q(analysis.bands):  # most filters are much shorter than the window
        covered = min(win_length, window_for(fs))
    elif analysis.bands == REASSIGNED:
        covered, least = win_length // 2, math.ceil(win_length / REASSIGNED_HOPS_MAX)
    hop = analysis.hop if args.hop else max(least, hop_for(covered, n_samples, width))
    if analysis.rate_hz and not args.hop:  # a row has at least one frame
        hop = max(1, min(hop, int(exact_row_step(fs, analysis.rate_hz))))
    scaling = "density" if args.scaling == "density" else "spectrum"
    return msgspec.structs.replace(analysis, win_length=win_length, hop=hop, scaling=scaling)


def _of_profile(args: argparse.Namespace, analysis: AnalysisConfig, fs: float) -> AnalysisConfig:
    """Return the rows of daily millidecade files, unless flags set them."""
    minutes = minute_frames(fs)
    if args.averaging == "none":  # of a rate, there would be one frame a row
        minutes |= {"rate_hz": 0.0, "align": "start"}
    chosen = {key: value for key, value in minutes.items() if not getattr(args, key)}
    return msgspec.structs.replace(analysis, **chosen)


def _compare_calibrations(picture: str, earlier: str, now: str) -> None:
    """Warn if a picture like another one has another calibration, and so other levels."""
    if earlier != now:
        _log.warning(
            "--like %s: its calibration is %s, this picture's is %s (--calibration)",
            printable(picture),
            printable(earlier) or "none",
            now or "none",
        )


def _bound(analysis: AnalysisConfig, source: Source, settings: Config) -> SpectrumSpec:
    n_signals = source.channels // 2 if source.is_iq else source.channels
    return analysis.spec(
        source.fs,
        source.channels,
        iq=source.is_iq,
        center_frequency_hz=source.center_frequency_hz,
        calibration=settings.source.calibrations(n_signals),
    )
