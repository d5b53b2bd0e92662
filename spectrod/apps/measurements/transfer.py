"""``spectrod transfer``: transfer function, coherence and delay between two channels."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from spectrod.apps.measurements import intervals
from spectrod.apps.measurements.delay_removal import (
    CLEAR_PEAK,
    MEASURED,
    DelayRemoval,
    delay_removal,
)
from spectrod.apps.measurements.figure_flags import figure_look
from spectrod.apps.measurements.measured_source import (
    MeasuredSource,
    add_mean_range,
    add_source,
    frame_length,
    open_measured,
)
from spectrod.apps.measurements.response_output import SUFFIXES, write_response
from spectrod.apps.measurements.sample_blocks import read_blocks, report_left_out
from spectrod.apps.measurements.setting_flags import (
    add_settings,
    band_of,
    has_interval,
    mean_settings,
)
from spectrod.apps.measurements.transfer_sweep import add_sweep, refuse_without_sweep, run_sweep
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.calibration import ChannelCalibration
from spectrod.formats.figure.transfer_figure import transfer_columns
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.transfer.calibrated import common_unit, power_factors
from spectrod.measure.transfer.cross_spectra import TransferMeter
from spectrod.measure.transfer.delay import SAMPLES_MAX
from spectrod.measure.transfer.transfer_config import TransferConfig
from spectrod.measure.transfer.transfer_function import TransferFunction
from spectrod.source.kinds import forms

if TYPE_CHECKING:
    from spectrod.dsp.units import Float64Array

_SETTINGS = TransferConfig("transfer", responses=(1,), spectra=())
_OF_MEAN = ("window", "win_length", "low_hz", "high_hz", "reference", "responses")
_HELPS = {
    "interval_s": f"a measurement for each interval, instead of each frequency: {TIME_FORMS}",
    "win_length": f"samples (up to {_SETTINGS.win_length})",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help=forms())
    parser.add_argument(
        "--delay",
        metavar="TIME",
        nargs="?",
        const=MEASURED,
        help="delay of the response that is removed first, as 5ms; 0: none; without a time: the "
        f"measured one in any case (the measured one if its peak is {CLEAR_PEAK:g} or more)",
    )
    intervals.add_output(
        parser,
        f"write {' '.join(SUFFIXES)}, or of intervals {intervals.FILES}, instead of standard "
        "output; repeatable",
    )
    add_sweep(parser)
    add_settings(parser, _SETTINGS, _HELPS, _OF_MEAN)
    add_mean_range(parser)
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and write one row for each frequency, or for each interval."""
    if args.sweep is None:
        refuse_without_sweep(args)
    if has_interval(args):
        _check_flags_of_intervals(args)
        return intervals.run(args, _SETTINGS)
    with signals_as_interrupts():
        _check_output(args)
        given = mean_settings(args, TransferConfig, _OF_MEAN)
        settings = msgspec.structs.replace(_SETTINGS, **given)
        measured = open_measured(args, is_mean=True)
        source = measured.source
        if args.sweep is not None and source.channels == 1:
            return run_sweep(args, measured, given, [0])
        if source.channels == 1:
            raise ConfigError(
                f"{args.source}: has one channel; a transfer function is that between two, or of a "
                "recording of a sweep: --sweep 20,20k,10 (from, to, duration)"
            )
        settings.check(channels=source.channels, iq=source.is_iq)
        chosen = settings.pairs(source.channels)
        if len(chosen) > 2:
            raise ConfigError(f"{len(chosen) - 1} channels: must be with --interval", responses=...)
        if args.sweep is not None:
            return run_sweep(args, measured, given, chosen)
        return _run_mean(args, measured, given, chosen)


def _run_mean(
    args: argparse.Namespace, measured: MeasuredSource, given: dict[str, Any], chosen: Sequence[int]
) -> int:
    """Measure the mean of all frames, and write one row for each frequency."""
    source, names, span, band_hz = measured.source, measured.names, measured.span, band_of(given)
    known = [measured.calibrations[n] for n in chosen]
    unit = common_unit(known)
    # Two frames, half overlapping, fit into short recordings too.
    n = None if span.n_samples is None else 2 * span.n_samples // 3
    fitting = SampleRange(span.first, n, span.max_samples)
    length = frame_length(given.get("win_length"), fitting, _SETTINGS.win_length)

    def make_meter(delay_samples: int) -> TransferMeter:
        return TransferMeter(
            source.fs,
            window=given.get("window", _SETTINGS.window),
            win_length=length,
            delay_samples=delay_samples,
        )

    removal = delay_removal(args.delay, source.fs, length, band_hz)
    found = _measure(measured, chosen, make_meter, removal)
    found = found.scaled(*(power_factors(one, found.frequencies) for one in known))
    about = {
        "source": source.description,
        "reference": names[chosen[0]],
        "response": names[chosen[1]],
        "unit": unit,
        "density_unit": f"({unit})^2/Hz",
        "frames": found.n_frames,
        "independent_averages": f"{found.n_averages:.2f}",
        "significant_coherence": f"{found.significant_coherence:.4f}",
        "level_difference_db": f"{found.level_difference_db(band_hz):.4f}",
        **_calibrated_ranges(known),
        **removal.about(),
    }
    write_response(args.output, about, transfer_columns(found), figure_look(args, args.output))
    removal.report()
    if found.outlasts_frames:
        print(
            f"resonances: the response goes on for longer than {length} samples show, and h1 is "
            "too low at its peaks; take a longer --win-length, or a sweep (--sweep)",
            file=sys.stderr,
        )
    return report_left_out(source)


def _calibrated_ranges(known: Sequence[ChannelCalibration | None]) -> dict[str, str]:
    found = {}
    for name, one in zip(("reference", "response"), known, strict=True):
        if one is not None and one.response_hz is not None:
            low, high = one.response_hz
            found[f"{name}_calibrated_hz"] = f"{low:g} to {high:g}"
    return found


def _check_flags_of_intervals(args: argparse.Namespace) -> None:
    if args.delay is not None:
        text = "" if args.delay == MEASURED else f" {args.delay}"
        raise ConfigError(f"--delay{text}: must be without --interval; see --delay-samples")
    if args.sweep is not None:
        raise ConfigError(f"--sweep {args.sweep}: must be without --interval")


def _check_output(args: argparse.Namespace) -> None:
    impulse = args.impulse_response
    if impulse is not None and Path(impulse).suffix.lower() != ".wav":
        raise ConfigError(f"--impulse-response {impulse}: must end in .wav")
    figure_look(args, args.output)
    intervals.check_output(args, SUFFIXES, [] if impulse is None else [impulse])


def _measure(
    measured: MeasuredSource,
    chosen: Sequence[int],
    make_meter: Callable[[int], TransferMeter],
    removal: DelayRemoval,
) -> TransferFunction:
    """Read the source; a delay that is measured is that of its first samples up to a gap."""
    source = measured.source
    kept: list[Float64Array] = []
    meter = None if removal.samples is None else make_meter(removal.samples)
    n_kept = 0

    def aligned() -> TransferMeter:
        """Measure the delay of the samples so far, and pass them to a meter that removes it."""
        samples = np.concatenate(kept, axis=1) if kept else np.empty((2, 0))
        aligned_meter = make_meter(removal.measure(*samples[:, :SAMPLES_MAX]))
        aligned_meter.push(*samples)
        return aligned_meter

    try:
        for block in read_blocks(source, measured.span):
            pair = block.samples[list(chosen)].astype(np.float64)
            has_gap = bool(block.lost_samples or block.discontinuity)
            if meter is None:
                if has_gap and kept:
                    meter = aligned()
                else:
                    kept.append(pair)
                    n_kept += pair.shape[1]
                    if n_kept >= SAMPLES_MAX:
                        meter = aligned()
                    continue
            if has_gap:
                meter.restart()
            meter.push(*pair)
        if meter is None:
            meter = aligned()
        return meter.result()
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error
