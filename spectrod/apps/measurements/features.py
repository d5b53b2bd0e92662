"""``spectrod features``: measures features of spectra and acoustic indices of intervals."""

import argparse

from spectrod.apps.measurements import interval_rows
from spectrod.apps.measurements.interval_rows import RowSource, check_paths, measure_rows, open_rows
from spectrod.apps.measurements.level_table import LevelTable
from spectrod.cli import options
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import count, frequency
from spectrod.cli.times import parse_seconds
from spectrod.dsp.spectrum_rules import WIN_LENGTH_DEFAULT
from spectrod.formats.values.measurement_description import describe
from spectrod.measure.features.feature_quantities import FORMS, SPECTRA
from spectrod.measure.features.features_config import FEATURES_DEFAULT, FeaturesConfig

_ALIGNS = ("start", "utc")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    interval_rows.add_arguments(parser)
    parser.add_argument(
        "--quantity",
        metavar="NAME,...",
        default=",".join(FEATURES_DEFAULT),
        help=f"{FORMS} (%(default)s)",
    )
    parser.add_argument(
        "--align",
        dest="bounds",  # "align" is the key of the analysis
        choices=_ALIGNS,
        help="intervals count from the start, or follow UTC (utc with a date)",
    )
    parser.add_argument(
        "--band",
        nargs=2,
        type=frequency,
        metavar=("LO", "HI"),
        help="band that counts, as 200 10k, but for indices whose names have their own (all)",
    )
    parser.add_argument(
        "--spectra",
        metavar="NAME,...",
        default="",
        help=f"values of each bin, in .nc and .h5: {', '.join(SPECTRA)} (none)",
    )
    group = options.add_frames(parser, "hann", "samples (%(default)s)", WIN_LENGTH_DEFAULT)
    group.add_argument(
        "--hop", dest="frame_hop", type=count, default=0, metavar="N", help="(half of them)"
    )
    interval_rows.add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    with signals_as_interrupts():
        paths = check_paths(args)
        measured = open_rows(args)
        bound = _settings(args, measured).bind(measured.signals)
        meter = bound.open(0)
        about = describe(bound.signals, bound.facts, meter)
        is_live = measured.source.is_live or args.pace == "realtime"
        table = LevelTable(about, is_live=is_live)
        return measure_rows(args, measured, meter, about, paths, table)


def _settings(args: argparse.Namespace, measured: RowSource) -> FeaturesConfig:
    low_hz, high_hz = args.band or (0.0, 0.0)
    return FeaturesConfig(
        "features",
        quantities=tuple(args.quantity.split(",")),
        interval_s=parse_seconds("--interval", args.interval),
        align="utc" if measured.align(args.bounds) == "utc" else "start",
        window=args.taper,
        win_length=args.frame,
        hop=args.frame_hop,
        low_hz=low_hz,
        high_hz=high_hz,
        spectra=tuple(filter(None, args.spectra.split(","))),
    )
