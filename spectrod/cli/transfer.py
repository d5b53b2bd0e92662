"""``spectrod transfer``: transfer function, coherence and delay between two channels."""

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spectrod.calibration import ChannelCalibration
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.measured_source import add_source, frame_length, open_measured
from spectrod.cli.numbers import count
from spectrod.cli.sample_blocks import read_blocks, report_left_out
from spectrod.cli.sample_range import SampleRange
from spectrod.cli.text_file import write_text
from spectrod.errors import ConfigError, InputError
from spectrod.formats.outputs import check_outputs
from spectrod.names import name_channels
from spectrod.source import Source
from spectrod.source.kinds import forms
from spectrod.text import printable
from spectrod.two_channel.delay import SAMPLES_MAX, Delay, measure_delay
from spectrod.two_channel.transfer import TransferFunction, TransferMeter
from spectrod.units import Float64Array

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
        "-o", "--output", type=Path, metavar="OUT.csv", help="file instead of standard output"
    )
    group = parser.add_argument_group("frames")
    group.add_argument(
        "--window", dest="taper", default="hann", metavar="NAME", help="(%(default)s)"
    )
    group.add_argument(
        "--win-length", dest="frame", type=count, metavar="N", help=f"samples (up to {_FRAME})"
    )
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and write one row for each frequency."""
    with signals_as_interrupts():
        if args.output is not None:
            _check_output(args)
        source, span, settings = open_measured(args)
        chosen = _channels(args, source)
        names = name_channels(settings.source.channel_names, source.channels)
        calibrations = settings.source.calibrations(source.channels) or (None,) * source.channels
        scale, unit = _scale([calibrations[n] for n in chosen])
        found, delay = _measure(args, source, span, chosen, scale)
        found = _without_responses(found, [calibrations[n] for n in chosen])
    about = {
        "source": source.description,
        "reference": names[chosen[0]],
        "response": names[chosen[1]],
        "unit": unit,
        "density_unit": f"({unit})^2/Hz",
        "frames": found.n_frames,
        "independent_averages": f"{found.n_averages:.2f}",
        "significant_coherence": f"{found.significant_coherence:.4f}",
        "level_difference_db": f"{found.level_difference_db():.4f}",
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
    if args.output is None:
        sys.stdout.write(text)
    else:
        write_text(args.output, text)
    return report_left_out(source)


def _check_output(args: argparse.Namespace) -> None:
    if args.output.suffix.lower() != ".csv":
        raise ConfigError(f"{args.output}: must end in .csv")
    check_outputs([str(args.output)], Path(args.source) if Path(args.source).is_file() else None)


def _channels(args: argparse.Namespace, source: Source) -> tuple[int, int]:
    if source.is_iq:
        raise ConfigError(f"{args.source}: has pairs of I and Q: transfer needs two real channels")
    for flag, number in (("--reference", args.reference), ("--response", args.response)):
        if not 0 <= number < source.channels:
            raise ConfigError(
                f"{flag} {number}: must be a channel from 0 to {source.channels - 1} of "
                f"{args.source}"
            )
    if args.reference == args.response:
        raise ConfigError(f"--response {args.response}: must be another channel than --reference")
    return args.reference, args.response


def _scale(calibrations: list[ChannelCalibration | None]) -> tuple[Float64Array, str]:
    """Return the factors of reference and response, and their common unit."""
    known = [one for one in calibrations if one is not None]
    if not known:
        return np.ones(2), "FS"
    if len(known) == 1 or known[0].linear_unit != known[1].linear_unit:
        units = ", ".join("FS" if one is None else one.linear_unit for one in calibrations)
        raise ConfigError(f"calibration: both channels must have one unit, not {units}")
    return np.array([one.full_scale for one in known]), known[0].linear_unit


def _without_responses(
    found: TransferFunction, calibrations: list[ChannelCalibration | None]
) -> TransferFunction:
    """Divide by the frequency responses of the channels, where they are known."""
    factors = [
        np.ones(len(found.frequencies))
        if one is None or one.response is None
        else one.response.power_factors(found.frequencies)
        for one in calibrations
    ]
    return found.without_responses(*factors)


def _measure(
    args: argparse.Namespace,
    source: Source,
    span: SampleRange,
    chosen: tuple[int, int],
    scale: Float64Array,
) -> tuple[TransferFunction, Delay | None]:
    """Read the source; the delay is that of its first samples up to a gap."""
    kept: list[Float64Array] = []
    meter, delay = None if args.delay else _meter(args, source, span, 0), None
    n_kept = 0
    try:
        for block in read_blocks(source, span):
            pair = block.samples[list(chosen)].astype(np.float64) * scale[:, np.newaxis]
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
    delay = measure_delay(reference, response, source.fs)
    meter = _meter(args, source, span, round(delay.samples))
    meter.push(*samples)
    return meter, delay


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
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = (
            found.frequencies,
            20.0 * np.log10(np.abs(found.h1)),
            np.degrees(np.angle(found.h1)),
            20.0 * np.log10(np.abs(found.h2)),
            np.degrees(np.angle(found.h2)),
            found.coherence,
            found.relative_sd,
            found.gxx,
            found.gyy,
        )
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield ",".join(f"{one:.9g}" if math.isfinite(one) else "" for one in row)
