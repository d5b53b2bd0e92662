"""``spectrod transfer``: transfer function, coherence and delay between two channels."""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from spectrod.apps.measurements import intervals
from spectrod.apps.measurements.measured_source import (
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
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.sample_range import SampleRange
from spectrod.lib.durations import TIME_FORMS
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.text import printable
from spectrod.measure.transfer.calibrated import common_unit, power_factors
from spectrod.measure.transfer.cross_spectra import TransferMeter
from spectrod.measure.transfer.delay import SAMPLES_MAX, Delay, measure_delay
from spectrod.measure.transfer.transfer_config import TransferConfig
from spectrod.measure.transfer.transfer_function import TransferFunction
from spectrod.measure.transfer.transfer_quantities import spectrum_of
from spectrod.recording.output_plan import check_outputs, make_folders
from spectrod.source.kinds import forms

if TYPE_CHECKING:
    from spectrod.dsp.units import Float64Array

_SETTINGS = TransferConfig("transfer", responses=(1,), spectra=())
_OF_MEAN = ("window", "win_length", "low_hz", "high_hz", "reference", "responses")
_HELPS = {
    "interval_s": f"a measurement for each interval, instead of each frequency: {TIME_FORMS}",
    "win_length": f"samples (up to {_SETTINGS.win_length})",
}
_COLUMNS = (
    "frequency_hz,h1_db,h1_phase_deg,h2_db,h2_phase_deg,coherence,relative_sd,"
    "reference_density,response_density"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help=forms())
    parser.add_argument(
        "--delay",
        action="store_true",
        help="measure the delay of the response, and remove it before the transfer function",
    )
    intervals.add_output(
        parser,
        f"write a .csv, or of intervals {intervals.FILES}, instead of standard output; repeatable",
    )
    add_settings(parser, _SETTINGS, _HELPS, _OF_MEAN)
    add_mean_range(parser)
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and write one row for each frequency, or for each interval."""
    if has_interval(args):
        if args.delay:
            raise ConfigError("--delay: must be without --interval, which measures that of each")
        return intervals.run(args, _SETTINGS)
    with signals_as_interrupts():
        _check_output(args)
        given = mean_settings(args, TransferConfig, _OF_MEAN)
        settings = msgspec.structs.replace(_SETTINGS, **given)
        measured = open_measured(args, is_mean=True)
        source, names, calibrations = measured.source, measured.names, measured.calibrations
        settings.check(channels=source.channels, iq=source.is_iq)
        chosen, span, band_hz = settings.pairs(source.channels), measured.span, band_of(given)
        if len(chosen) > 2:
            raise ConfigError(f"{len(chosen) - 1} channels: must be with --interval", responses=...)
        unit = common_unit([calibrations[n] for n in chosen])
        # Two frames, half overlapping, fit into short recordings too.
        n = None if span.n_samples is None else 2 * span.n_samples // 3
        fitting = SampleRange(span.first, n, span.max_samples)
        length = frame_length(given.get("win_length"), fitting, _SETTINGS.win_length)

        def make_meter(delay_samples: int) -> TransferMeter:
            return TransferMeter(
                source.fs,
                window=settings.window,
                win_length=length,
                delay_samples=delay_samples,
            )

        found, delay = _measure(measured, chosen, make_meter, band_hz, has_delay=args.delay)
        found = found.scaled(*(power_factors(calibrations[n], found.frequencies) for n in chosen))
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
    }
    for name, n in zip(("reference", "response"), chosen, strict=True):
        known = calibrations[n]
        if known is not None and known.response_hz is not None:
            low, high = known.response_hz
            about[f"{name}_calibrated_hz"] = f"{low:g} to {high:g}"
    if delay is not None:
        about |= {"delay_s": f"{delay.seconds:.9g}", "delay_samples": f"{delay.samples:.4f}",
                  "removed_delay_samples": round(delay.samples)}  # fmt: skip
    text = "".join(f"{line}\n" for line in _lines(about, found))
    for path in args.output:
        write_text(Path(path), text)
    if not args.output:
        sys.stdout.write(text)
    return report_left_out(source)


def _check_output(args: argparse.Namespace) -> None:
    for path in args.output:
        if Path(path).suffix.lower() != ".csv":
            raise ConfigError(f"{path}: must end in .csv, or --interval must be given")
    check_outputs(args.output, Path(args.source) if Path(args.source).is_file() else None)
    make_folders(args.output)


def _measure(
    measured: MeasuredSource,
    chosen: Sequence[int],
    make_meter: Callable[[int], TransferMeter],
    band_hz: tuple[float, float] | None,
    *,
    has_delay: bool,
) -> tuple[TransferFunction, Delay | None]:
    """Read the source; the delay is that of its first samples up to a gap."""
    source = measured.source
    kept: list[Float64Array] = []
    meter, delay = None if has_delay else make_meter(0), None
    n_kept = 0

    def aligned() -> tuple[TransferMeter, Delay]:
        """Measure the delay of the samples so far, and pass them to a meter that removes it."""
        samples = np.concatenate(kept, axis=1) if kept else np.empty((2, 0))
        reference, response = samples[:, :SAMPLES_MAX]
        found = measure_delay(reference, response, source.fs, band_hz=band_hz)
        aligned_meter = make_meter(round(found.samples))
        aligned_meter.push(*samples)
        return aligned_meter, found

    try:
        for block in read_blocks(source, measured.span):
            pair = block.samples[list(chosen)].astype(np.float64)
            has_gap = bool(block.lost_samples or block.discontinuity)
            if meter is None:
                if has_gap and kept:
                    meter, delay = aligned()
                else:
                    kept.append(pair)
                    n_kept += pair.shape[1]
                    if n_kept >= SAMPLES_MAX:
                        meter, delay = aligned()
                    continue
            if has_gap:
                meter.restart()
            meter.push(*pair)
        if meter is None:
            meter, delay = aligned()
        return meter.result(), delay
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error


def _lines(about: dict[str, Any], found: TransferFunction) -> Iterator[str]:
    yield from (f"# {key}: {printable(str(value))}" for key, value in about.items())
    yield _COLUMNS
    names = ("h1", "h1_phase", "h2", "h2_phase", "coherence", "relative_sd")
    columns = (
        found.frequencies,
        *(spectrum_of(found, name) for name in names),
        found.gxx,
        found.gyy,
    )
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield ",".join(f"{one:.9g}" if math.isfinite(one) else "" for one in row)
