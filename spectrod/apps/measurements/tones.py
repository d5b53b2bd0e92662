"""``spectrod tones``: the tones, the distortion and the bandwidth of some seconds of samples."""

import argparse
import dataclasses
import math
from pathlib import Path
from typing import Any, get_args

import numpy as np

from spectrod.analysis.numpy_engine import Float64Engine
from spectrod.analysis.stream import FrameStream
from spectrod.apps.measurements import intervals
from spectrod.apps.measurements.figure_flags import figure_look
from spectrod.apps.measurements.measured_source import (
    FRAME_DEFAULT,
    MeasuredSource,
    add_mean_range,
    add_source,
    frame_length,
    open_measured,
)
from spectrod.apps.measurements.sample_blocks import read_blocks, report_left_out
from spectrod.apps.measurements.setting_flags import (
    add_settings,
    band_of,
    has_interval,
    mean_settings,
)
from spectrod.apps.measurements.text_file import write_text
from spectrod.apps.measurements.tone_lines import PEAK_COLUMNS, report_lines
from spectrod.apps.measurements.tone_table import tones_text
from spectrod.cli import options
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import count, frequency
from spectrod.dsp.spectrum import SpectrumSpec, taper_for
from spectrod.dsp.units import FULL_SCALE, Float64Array
from spectrod.formats.event_files import FORMATS
from spectrod.formats.figure.drawing import write_figure
from spectrod.formats.figure.tone_figure import check_panels, draw_tones
from spectrod.formats.values.value_writer import FIGURE_SUFFIXES
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.text import json_text, printable_all
from spectrod.measure.rows import tone_level
from spectrod.measure.tones.channel_power import (
    adjacent_channel_ratio,
    channel_power,
    occupied_bandwidth,
)
from spectrod.measure.tones.distortion import measure_distortion
from spectrod.measure.tones.intermodulation import IntermodulationKind, measure_intermodulation
from spectrod.measure.tones.mean import MeanRow
from spectrod.measure.tones.peaks import Peaks, find_peaks
from spectrod.measure.tones.tones_config import TonesConfig
from spectrod.source.kinds import forms

_SETTINGS = TonesConfig("tones")
_OF_MEAN = ("window", "win_length", "low_hz", "high_hz", "harmonics")
_HELPS = {
    "interval_s": f"figures of each interval, instead of those of all samples: {TIME_FORMS}",
    "win_length": f"samples (up to {FRAME_DEFAULT}; of intervals {_SETTINGS.win_length})",
}
_NOT_OF_INTERVALS = ("peaks", "folded", "fundamental", "imd", "channel", "json")
_PEAKS_DEFAULT = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help=forms())
    parser.add_argument(
        "--peaks", type=count, metavar="N", help=f"tones to list ({_PEAKS_DEFAULT})"
    )
    parser.add_argument(
        "--folded", action="store_true", help="count harmonics above fs/2 where they are folded to"
    )
    parser.add_argument(
        "--fundamental", type=frequency, metavar="HZ", help="about its frequency (strongest tone)"
    )
    parser.add_argument(
        "--imd",
        choices=get_args(IntermodulationKind),
        help="also the intermodulation of the two strongest tones",
    )
    parser.add_argument(
        "--channel",
        action="append",
        default=[],
        type=_channel_power,
        metavar="HZ,WIDTH[,SPACING]",
        help="also the power of a channel, as 433.92M,25k, and with the spacing of channels that "
        "of the adjacent ones over it; repeatable",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    intervals.add_output(
        parser,
        f"write the tones, .csv, or draw the spectrum, {' '.join(FIGURE_SUFFIXES)}, or with "
        f"--interval write intervals, {intervals.FILES}; repeatable",
    )
    parser.add_argument(
        "--tracks",
        metavar="OUT",
        action="append",
        default=[],
        help="with --interval: write the tones that go on from interval to interval to a file of "
        f"events, *{' *'.join(FORMATS)}; repeatable",
    )
    parser.add_argument(
        "--track-points",
        action="store_true",
        help="with --tracks: an event for each interval of a track, with its own frequency",
    )
    intervals.add_jobs(parser)
    add_settings(parser, _SETTINGS, _HELPS, _OF_MEAN)
    add_mean_range(parser)
    add_source(parser)
    options.add_iq(parser)


def _channel_power(text: str) -> tuple[float, ...]:
    """Parse the middle, the width and optionally the spacing of channels [Hz]."""
    found = tuple(frequency(part) for part in text.split(","))
    if len(found) not in (2, 3):
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be HZ,WIDTH or HZ,WIDTH,SPACING, such as 433.92M,25k"
        )
    return found


def run(args: argparse.Namespace) -> int:
    """Measure all channels of the mean spectrum, or of intervals, and print what is found."""
    _check_flags(args)
    if has_interval(args):
        return intervals.run(args, _SETTINGS)
    look = figure_look(args, args.output)
    intervals.check_output(args, (".csv", *FIGURE_SUFFIXES))
    given = mean_settings(args, TonesConfig, _OF_MEAN)
    with signals_as_interrupts():
        measured = open_measured(args, is_mean=True)
        source = measured.source
        if any(Path(path).suffix.lower() in FIGURE_SUFFIXES for path in args.output):
            check_panels(len(measured.names))
        length = frame_length(given.get("win_length"), measured.span)
        taper = taper_for(given.get("window", _SETTINGS.window), length)
        spec = SpectrumSpec(
            source.fs,
            source.channels,
            taper.name,
            len(taper.samples),
            max(1, len(taper.samples) // 2),
            iq=source.is_iq,
            center_frequency_hz=source.center_frequency_hz,
            taper=taper,
            calibration=measured.calibrations,
        )
        rows, mean, clipped = _measure(measured, spec)
        found = {
            "source": source.description,
            "fs": source.fs,
            "window": spec.window,
            "win_length": spec.win_length,
            "frames": mean.averaging_frames,
            "channels": [
                {"channel": name, "clipped_samples": n_clipped}
                | _channel(args, given, row, _spec_of(mean, signal))
                for signal, (name, row, n_clipped) in enumerate(
                    zip(measured.names, rows, clipped, strict=True)
                )
            ],
        }
        specs = [_spec_of(mean, signal) for signal in range(len(rows))]
        for path in map(Path, args.output):
            if path.suffix.lower() == ".csv":
                write_text(path, tones_text(found))
            else:
                write_figure(path, lambda: draw_tones(found, rows, specs, look))
    if args.json:
        print(json_text(_without_nan(found), indent=2))
    else:
        for text in report_lines(printable_all(found)):
            print(text)
    return report_left_out(source)


def _check_flags(args: argparse.Namespace) -> None:
    """Refuse flags of intervals without these, and others with them; raises ConfigError."""
    if has_interval(args):
        for key in _NOT_OF_INTERVALS:
            if getattr(args, key):
                raise ConfigError(f"--{key}: must be without --interval")
        return
    if args.jobs is not None:
        raise ConfigError(f"--jobs {args.jobs}: must be with --interval")
    if args.tracks or args.track_points:
        flag = f"--tracks {args.tracks[0]}" if args.tracks else "--track-points"
        raise ConfigError(f"{flag}: must be with --interval")


def _measure(
    measured: MeasuredSource, spec: SpectrumSpec
) -> tuple[Float64Array, SpectrumSpec, list[int]]:
    """Return the mean row of each signal, its definition, and the samples at full scale."""
    source = measured.source
    stream, mean = FrameStream(spec, Float64Engine()), MeanRow(spec)
    clipped = np.zeros(source.channels, np.int64)
    for block in read_blocks(source, measured.span):
        clipped += (np.abs(block.samples) >= FULL_SCALE).sum(axis=1)
        for batch in stream.push(block):
            mean.push(batch)
    for batch in stream.finish():
        mean.push(batch)
    try:
        rows, defined = mean.result()
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
    return rows, defined, clipped.reshape(spec.n_signals, -1).sum(axis=1).tolist()


def _spec_of(spec: SpectrumSpec, signal: int) -> SpectrumSpec:
    """Return the definition of the rows of one signal."""
    calibration = spec.calibration[signal : signal + 1]
    channels = 2 if spec.iq else 1
    return dataclasses.replace(spec, channels=channels, calibration=calibration)


def _channel(
    args: argparse.Namespace, given: dict[str, Any], row: Float64Array, spec: SpectrumSpec
) -> dict[str, Any]:
    peaks = find_peaks(row, spec, max_peaks=args.peaks or _PEAKS_DEFAULT)
    occupied = occupied_bandwidth(row, spec)
    found: dict[str, Any] = {
        "unit": peaks.unit,
        "peaks": _table(peaks),
        "occupied_hz": [float(occupied.low_hz[0, 0]), float(occupied.high_hz[0, 0])],
        "distortion": None,
        "not_measured": "",
    }
    is_wanted = "harmonics" in given or "low_hz" in given or args.fundamental or args.folded
    try:
        distortion = measure_distortion(
            row,
            spec,
            harmonics=given.get("harmonics", _SETTINGS.harmonics),
            folded=args.folded,
            band_hz=band_of(given),
            fundamental_hz=args.fundamental,
        )
        found["distortion"] = dataclasses.asdict(distortion)
    except (ConfigError, InputError) as error:
        if is_wanted:
            raise
        found["not_measured"] = str(error)
    if args.imd:
        found["intermodulation"] = dataclasses.asdict(measure_intermodulation(row, spec, args.imd))
    if args.channel:
        found["channel_powers"] = [_power(row, spec, *channel) for channel in args.channel]
    return found


def _power(
    row: Float64Array, spec: SpectrumSpec, middle_hz: float, width_hz: float, *spacing_hz: float
) -> dict[str, Any]:
    """Return the power of a channel as a level, and the ratios of adjacent ones."""
    edges_hz = (middle_hz - width_hz / 2.0, middle_hz + width_hz / 2.0)
    power = channel_power(row, spec, *edges_hz)
    found: dict[str, Any] = {
        "low_hz": edges_hz[0],
        "high_hz": edges_hz[1],
        "level_db": float(tone_level(power, spec)[0, 0]),
    }
    for spacing in spacing_hz:
        ratios = adjacent_channel_ratio(row, spec, middle_hz, width_hz, spacing)
        lower_db, upper_db = (float(one[0, 0]) for one in ratios)
        found |= {"spacing_hz": spacing, "lower_db": lower_db, "upper_db": upper_db}
    return found


def _table(peaks: Peaks) -> list[dict[str, float]]:
    """Return the peaks, the strongest first."""
    keys = [column.key for column in PEAK_COLUMNS]
    return [
        {key: float(getattr(peaks, key)[n]) for key in keys}
        for n in np.argsort(-peaks.level_db, kind="stable")
    ]


def _without_nan(value: Any) -> Any:
    """Replace numbers that JSON lacks by None."""
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
