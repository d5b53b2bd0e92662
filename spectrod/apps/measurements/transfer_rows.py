"""Transfer functions of intervals, for ``spectrod transfer --interval``."""

import argparse

from spectrod.apps.measurements.interval_rows import RowSource, check_paths, measure_rows, open_rows
from spectrod.apps.measurements.level_table import LevelTable
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.options import TIME
from spectrod.cli.times import parse_seconds
from spectrod.dsp.spectrum_rules import WIN_LENGTH_DEFAULT
from spectrod.formats.values.measurement_description import describe
from spectrod.lib.errors import ConfigError
from spectrod.measure.transfer.transfer_config import TRANSFER_DEFAULT, TransferConfig
from spectrod.measure.transfer.transfer_quantities import SPECTRA_UNITS, UNITS
from spectrod.source.open_source import Source

_OF_INTERVALS = {"quantity": "--quantity", "spectra": "--spectra", "start_time": "--start-time"}
"""Flags that only rows of intervals have."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of intervals."""
    group = parser.add_argument_group("intervals")
    group.add_argument(
        "--interval",
        metavar="TIME",
        help=f"a measurement for each interval, instead of each frequency: {TIME}",
    )
    group.add_argument(
        "--quantity",
        metavar="NAME,...",
        help=f"{', '.join(UNITS)} ({','.join(TRANSFER_DEFAULT)})",
    )
    group.add_argument(
        "--spectra",
        metavar="NAME,...",
        help=f"values of each bin, in .nc and .h5: {', '.join(SPECTRA_UNITS)} (none)",
    )
    group.add_argument(
        "--start-time",
        metavar="ISO8601",
        help="UTC of the first sample, by which intervals are aligned (from the file's header or "
        "name)",
    )


def refuse_flags(args: argparse.Namespace) -> None:
    """Refuse flags that only rows of intervals have; raises ConfigError."""
    for key, flag in _OF_INTERVALS.items():
        if getattr(args, key) is not None:
            raise ConfigError(f"{flag} {getattr(args, key)}: must be with --interval")


def check_pair(args: argparse.Namespace, source: Source) -> tuple[int, int]:
    """Return the channels of the reference and the response; raises ConfigError."""
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


def run(args: argparse.Namespace) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    if args.delay:
        raise ConfigError("--delay: must be without --interval, which measures that of each")
    with signals_as_interrupts():
        paths = check_paths(args)
        measured = open_rows(args)
        source = measured.source
        check_pair(args, source)
        bound = _config(args, measured).bind(measured.signals)
        meter = bound.open(0)
        about = describe(bound.signals, bound.facts, meter)
        is_live = source.is_live or args.pace == "realtime"
        table = LevelTable(about, is_live=is_live)
        return measure_rows(args, measured, meter, about, paths, table)


def _config(args: argparse.Namespace, measured: RowSource) -> TransferConfig:
    low_hz, high_hz = args.band or (0.0, 0.0)
    return TransferConfig(
        "transfer",
        reference=args.reference,
        responses=(args.response,),
        quantities=tuple(args.quantity.split(",")) if args.quantity else TRANSFER_DEFAULT,
        spectra=tuple(args.spectra.split(",")) if args.spectra else (),
        interval_s=parse_seconds("--interval", args.interval),
        align="utc" if measured.align(None) == "utc" else "start",
        window=args.taper,
        win_length=args.frame or WIN_LENGTH_DEFAULT,
        low_hz=low_hz,
        high_hz=high_hz,
    )
