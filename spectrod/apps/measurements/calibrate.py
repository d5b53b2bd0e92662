"""``spectrod calibrate``: measure a calibrator's tone, and write a calibration file."""

import argparse
import datetime as dt
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from spectrod.analysis.samples import to_float32
from spectrod.apps.measurements.calibration_update import Calibrated, Update, updated
from spectrod.apps.measurements.calibrator import DURATION_MAX_S, DURATION_MIN_S, Tone, measure_tone
from spectrod.apps.measurements.calibrator_figure import LevelHistory, Stretch, draw_calibration
from spectrod.apps.measurements.figure_flags import add_figure_look, figure_look
from spectrod.apps.measurements.steady_tone import find_steady
from spectrod.apps.measurements.text_file import write_text
from spectrod.cli import options
from spectrod.cli.numbers import frequency, seconds
from spectrod.cli.sample_range import sample_range
from spectrod.config import config
from spectrod.dsp.calibration import parse_reference
from spectrod.dsp.units import Float64Array
from spectrod.formats.figure.drawing import need_matplotlib, write_figure
from spectrod.formats.values.value_writer import FIGURE_SUFFIXES
from spectrod.lib.errors import (
    ConfigError,
    InputError,
    UnavailableError,
)
from spectrod.recording.output_plan import make_folders
from spectrod.source.base import SelectableSource
from spectrod.source.open_source import Source, open_source

_WAIT_S = 10.0
"""Time without samples after which a source counts as unavailable [s]."""
_READ_SAMPLES = 1 << 15
_SAMPLES_MAX = 1 << 27
"""Samples of a measurement: 60 s at 2 MHz are fewer."""
SEARCHED_MAX = 1 << 31
"""Samples of a recording that is searched for the steadiest tone: half a day at 48 kHz."""
_LEVEL_MIN_DB, _LEVEL_MAX_DB = -200.0, 300.0
_UNCERTAINTY_MAX_DB = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help="as for spectrod record; one channel")
    parser.add_argument(
        "--level", required=True, type=float, metavar="DB", help="level of the calibrator, as 94"
    )
    parser.add_argument(
        "--frequency", type=frequency, default=1000.0, metavar="HZ", help="its frequency (1000)"
    )
    parser.add_argument(
        "--reference", default="20 uPa", metavar="VALUE", help="0 dB of the level (20 uPa)"
    )
    parser.add_argument(
        "--level-uncertainty",
        type=float,
        default=0.4,
        metavar="DB",
        help="expanded uncertainty of the level (k = 2), from the calibrator's data sheet (0.4)",
    )
    parser.add_argument(
        "--seconds", type=seconds, default=5.0, metavar="S", help="duration, 3 to 60 s (5)"
    )
    parser.add_argument(
        "--start",
        metavar="WHEN",
        help=f"measure from there on: {options.WHEN} (of a recording, where the tone is steadiest)",
    )
    parser.set_defaults(duration=None, stop=None, start_time=None)
    parser.add_argument("--serial", default="", metavar="TEXT", help="serial number to store")
    parser.add_argument(
        "--channel", default="", metavar="NAME", help="write the table [channels.NAME] of the file"
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        action="append",
        metavar="FILE",
        help="calibration file (TOML); repeated, a figure of the measurement as well: "
        f"{' '.join(FIGURE_SUFFIXES)}",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="accept another serial number and a change of more than 0.5 dB",
    )
    add_figure_look(parser)
    options.add_config(parser)
    options.add_source(parser, pace="full")


def run(args: argparse.Namespace) -> int:
    """Measure, show the numbers, and write the file."""
    _check(args)
    look = figure_look(args, args.output)
    figures = [path for path in args.output if _is_figure(path)]
    if figures:
        need_matplotlib()
    outputs = args.output
    args.output = _calibration_file(args.output)
    settings = config.load(args.config, options.flags(args)).source
    settings = msgspec.structs.replace(settings, loop=bool(args.loop), calibration="")
    pace = settings.pace if args.pace else "full"
    source = open_source(settings, pace)
    if source.channels != 1 or source.is_iq:
        raise ConfigError(
            f"{source.description}: {source.channels} channels: must be one; "
            "select it by --select N"
        )
    searched = LevelHistory(source.fs)
    first = _first_sample(
        args, source, lambda: searched.passed(_parts(open_source(settings, pace)))
    )
    if isinstance(source, SelectableSource):
        source.start_at(first)
    measured = LevelHistory(source.fs, first)
    samples = _record(source, args.seconds, measured)
    try:
        tone = measure_tone(samples, source.fs, args.frequency)
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
    result = Calibrated(
        args.reference,
        args.level,
        tone.level_dbfs,
        args.frequency,
        tone.expanded_uncertainty_db(args.level_uncertainty),
        dt.datetime.now(dt.UTC).date(),
        args.serial,
    )
    update = updated(args.output, result, args.channel, force=args.force)
    report = _report(args, tone, result, update)
    stretch = Stretch(source.fs, first, samples, tone, measured if searched.is_empty else searched)
    make_folders(outputs)
    title = f"Calibration from {source.description}, {args.level:g} dB re {args.reference}"
    for path in figures:
        write_figure(path, partial(draw_calibration, title, report[:-1], stretch, look))
    write_text(args.output, update.text)
    if first:
        begin_s, length_s = first / source.fs, len(samples) / source.fs
        sys.stdout.write(f"measured: {length_s:g} s from {begin_s:.3f} s on\n")
    sys.stdout.write("".join(f"{line}\n" for line in report))
    return 0


def _is_figure(path: Path) -> bool:
    return path.suffix.lower() in FIGURE_SUFFIXES


def _calibration_file(paths: Sequence[Path]) -> Path:
    """Return the only path that is no figure; raises ConfigError."""
    found = [path for path in paths if not _is_figure(path)]
    if len(found) != 1:
        raise ConfigError(f"-o: {len(found)} calibration files: must be one, as mic.toml")
    return found[0]


def _first_sample(
    args: argparse.Namespace,
    source: Source,
    read_again: Callable[[], Iterator[Float64Array]],
) -> int:
    """Return the index of the first sample to measure; a source is read once, so read another."""
    if args.start is not None:
        if source.n_samples is None or not isinstance(source, SelectableSource):
            raise ConfigError(f"--start {args.start}: {args.source} is no recording: it starts now")
        return sample_range(args, source).first
    if not (source.is_stored and source.n_samples and isinstance(source, SelectableSource)):
        return 0
    n = round(args.seconds * source.fs)
    if not n < source.n_samples <= SEARCHED_MAX:
        return 0
    return find_steady(read_again(), source.fs, args.frequency, n) or 0


def _check(args: argparse.Namespace) -> None:
    """Check what is known before the source is opened."""
    parse_reference(args.reference)
    if not DURATION_MIN_S <= args.seconds <= DURATION_MAX_S:
        raise ConfigError(
            f"--seconds {args.seconds:g}: must be {DURATION_MIN_S:g} to {DURATION_MAX_S:g} s"
        )
    if not _LEVEL_MIN_DB <= args.level <= _LEVEL_MAX_DB:
        raise ConfigError(
            f"--level {args.level:g}: must be {_LEVEL_MIN_DB:g} to {_LEVEL_MAX_DB:g} dB"
        )
    if not 0.0 <= args.level_uncertainty <= _UNCERTAINTY_MAX_DB:
        raise ConfigError(
            f"--level-uncertainty {args.level_uncertainty:g}: must be 0 to "
            f"{_UNCERTAINTY_MAX_DB:g} dB"
        )


def _record(source: Source, duration_s: float, history: LevelHistory) -> Float64Array:
    """Read the only channel of a source, with its levels over time.

    Returns
    -------
    samples : (n,) float64
        As many as there are, up to duration_s [FS].

    Raises
    ------
    ConfigError, InputError, UnavailableError
        If the source loses samples, or delivers none.
    """
    n = round(duration_s * source.fs)
    if n > _SAMPLES_MAX:
        raise ConfigError(f"--seconds {duration_s:g}: {n} samples: must be at most {_SAMPLES_MAX}")
    parts = list(history.passed(_parts(source, n)))
    samples: Float64Array = np.concatenate(parts) if parts else np.empty(0)
    if source.failure and len(samples) < n:
        raise source.failure
    if not np.isfinite(samples).all():
        raise InputError(f"{source.description}: samples must be finite")
    return samples


def _parts(source: Source, n_left: int = SEARCHED_MAX) -> Iterator[Float64Array]:
    """Yield up to so many samples of a source's only channel, (n,) [FS]; raises like _record."""
    reader = source.open_reader()
    is_first = True
    try:
        source.start(reader)
        deadline_s = time.monotonic() + _WAIT_S
        while n_left and not reader.exhausted:
            block = reader.read(min(n_left, _READ_SAMPLES))
            if block is None:
                if time.monotonic() > deadline_s:
                    waiting = source.capture().waiting_for
                    raise UnavailableError(
                        f"{source.description}: no samples in {_WAIT_S:g} s; {waiting}".rstrip("; ")
                    )
                reader.wait(1.0)
                continue
            deadline_s = time.monotonic() + _WAIT_S
            if not is_first and (block.lost_samples or block.discontinuity):
                raise InputError(f"{source.description}: samples were lost; try again")
            is_first = False
            yield to_float32(block.samples, source.layout.sample_format)[0].astype(float)
            n_left -= block.n_samples
    finally:
        source.stop()
        reader.release()


def _report(args: argparse.Namespace, tone: Tone, result: Calibrated, update: Update) -> list[str]:
    found = update.calibration
    change = []
    if update.change_db is not None:
        since = update.last or "the last calibration"
        change = [f"sensitivity changed by {-update.change_db:+.2f} dB since {since}"]
    return [
        (
            f"tone: {tone.frequency_hz:.2f} Hz, {tone.level_dbfs:.3f} dBFS, fluctuation "
            f"{tone.fluctuation_db:.3f} dB (F), THD+N {tone.thd_n:.2%}"
        ),
        (
            f"full scale (rms 1.0): {found.full_scale_db:.3f} {found.unit} +- "
            f"{result.uncertainty_db:.2f} dB (k = 2; scatter {2 * tone.uncertainty_db:.3f} dB)"
        ),
        *change,
        f"{args.output}: calibration {found.cal_id}",
    ]
