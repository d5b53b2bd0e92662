"""``spectrod transfer``: transfer function, coherence and delay between two channels."""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.apps.measurements import transfer_rows
from spectrod.apps.measurements.measured_source import add_source, frame_length, open_measured
from spectrod.apps.measurements.sample_blocks import read_blocks, report_left_out
from spectrod.apps.measurements.text_file import write_text
from spectrod.apps.measurements.transfer_rows import check_pair
from spectrod.cli import options
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import frequency
from spectrod.cli.sample_range import SampleRange
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError, InputError
from spectrod.lib.names import name_channels
from spectrod.lib.text import printable
from spectrod.measure.transfer.calibrated import common_unit, power_factors
from spectrod.measure.transfer.cross_spectra import TransferMeter
from spectrod.measure.transfer.delay import SAMPLES_MAX, Delay, measure_delay
from spectrod.measure.transfer.transfer_function import TransferFunction
from spectrod.measure.transfer.transfer_quantities import spectrum_of
from spectrod.recording.output_plan import check_outputs
from spectrod.source.kinds import forms
from spectrod.source.open_source import Source

_FRAME = 4096
_COLUMNS = (
    "frequency_hz,h1_db,h1_phase_deg,h2_db,h2_phase_deg,coherence,relative_sd,"
    "reference_density,response_density"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="SRC", help=forms())
    parser.add_argument(
        "--reference", type=int, default=0, metavar="N", help="channel of the input (%(default)s)"
    )
    parser.add_argument(
        "--response", type=int, default=1, metavar="N", help="channel of the output (%(default)s)"
    )
    parser.add_argument(
        "--delay",
        action="store_true",
        help="measure the delay of the response, and remove it before the transfer function",
    )
    parser.add_argument(
        "--band",
        nargs=2,
        type=frequency,
        metavar=("LO", "HI"),
        help="band of the delay, the level difference and the rows of --interval, as 100 4k (all)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        action="append",
        default=[],
        help="write a .csv, of intervals also .nc or .h5, instead of standard output; repeatable",
    )
    transfer_rows.add_arguments(parser)
    options.add_frames(parser, "hann", f"samples (up to {_FRAME})")
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and write one row for each frequency, or for each interval."""
    if args.interval is not None:
        return transfer_rows.run(args)
    with signals_as_interrupts():
        _check_output(args)
        source, span, settings = open_measured(args)
        chosen = check_pair(args, source)
        names = name_channels(settings.source.channel_names, source.channels)
        calibrations = settings.source.calibrations(source.channels) or (None,) * source.channels
        unit = common_unit([calibrations[n] for n in chosen])
        found, delay = _measure(args, source, span, chosen)
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
        "level_difference_db": f"{found.level_difference_db(_band(args)):.4f}",
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
    transfer_rows.refuse_flags(args)


def _measure(
    args: argparse.Namespace,
    source: Source,
    span: SampleRange,
    chosen: tuple[int, int],
) -> tuple[TransferFunction, Delay | None]:
    """Read the source; the delay is that of its first samples up to a gap."""
    kept: list[Float64Array] = []
    meter, delay = None if args.delay else _meter(args, source, span, 0), None
    n_kept = 0
    try:
        for block in read_blocks(source, span):
            pair = block.samples[list(chosen)].astype(np.float64)
            has_gap = bool(block.lost_samples or block.discontinuity)
            if meter is None:
                if has_gap and kept:
                    meter, delay = _aligned(args, source, span, kept)
                else:
                    kept.append(pair)
                    n_kept += pair.shape[1]
                    if n_kept >= SAMPLES_MAX:
                        meter, delay = _aligned(args, source, span, kept)
                    continue
            if has_gap:
                meter.restart()
            meter.push(*pair)
        if meter is None:
            meter, delay = _aligned(args, source, span, kept)
        return meter.result(), delay
    except InputError as error:
        raise InputError(f"{source.description}: {error}") from error


def _aligned(
    args: argparse.Namespace, source: Source, span: SampleRange, kept: list[Float64Array]
) -> tuple[TransferMeter, Delay]:
    """Measure the delay of the samples so far, and pass them to a meter that removes it."""
    samples = np.concatenate(kept, axis=1) if kept else np.empty((2, 0))
    reference, response = samples[:, :SAMPLES_MAX]
    delay = measure_delay(reference, response, source.fs, band_hz=_band(args))
    meter = _meter(args, source, span, round(delay.samples))
    meter.push(*samples)
    return meter, delay


def _band(args: argparse.Namespace) -> tuple[float, float] | None:
    return tuple(args.band) if args.band else None


def _meter(
    args: argparse.Namespace, source: Source, span: SampleRange, delay_samples: int
) -> TransferMeter:
    # Two frames, half overlapping, fit into short recordings too.
    n = None if span.n_samples is None else 2 * span.n_samples // 3
    fitting = SampleRange(span.first, n, span.max_samples)
    return TransferMeter(
        source.fs,
        window=args.taper,
        win_length=frame_length(args.frame, fitting, _FRAME),
        delay_samples=delay_samples,
    )


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
