"""``spectrod levels``: measures sound levels in the time domain."""

import argparse
import logging

from spectrod.apps.measurements import interval_rows
from spectrod.apps.measurements.interval_rows import RowSource, check_paths, measure_rows, open_rows
from spectrod.apps.measurements.level_table import LevelTable
from spectrod.cli.interrupts import signals_as_interrupts
from spectrod.cli.numbers import frequency
from spectrod.cli.times import parse_seconds
from spectrod.formats.values.measurement_description import describe
from spectrod.lib.errors import ConfigError
from spectrod.measure.intervals import LEVEL_ALIGNS
from spectrod.measure.levels.level_quantities import FORMS, QUANTITIES_DEFAULT
from spectrod.measure.levels.levels_config import LevelsConfig
from spectrod.measure.levels.octave_levels import BAND_FORMS, BAND_QUANTITIES_DEFAULT, BAND_RANGE_HZ

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    interval_rows.add_arguments(parser)
    parser.add_argument(
        "--quantity",
        metavar="NAME,...",
        default=",".join(QUANTITIES_DEFAULT),
        help=f"{FORMS} (%(default)s)".replace("%", "%%").replace("%%(default)s", "%(default)s"),
    )
    parser.add_argument(
        "--align",
        dest="bounds",  # "align" is the key of the analysis
        choices=LEVEL_ALIGNS,
        help="intervals count from the start, in UTC, or from local midnight (utc with a date)",
    )
    parser.add_argument(
        "--time-zone",
        metavar="ZONE",
        default="",
        help="of Lden and of local intervals: Europe/Berlin",
    )
    parser.add_argument(
        "--lower-limit", metavar="DB", type=float, help="flag rows with a level below this"
    )
    parser.add_argument(
        "--channel-weights",
        metavar="W,...",
        help="of the loudness; 1, 2, 5 and 6 channels have one",
    )
    group = parser.add_argument_group("fractional octaves, by filters of IEC 61260-1")
    group.add_argument(
        "--bands",
        dest="octaves",  # "bands" is the key of the analysis
        metavar="NAME",
        default="",
        help=f"measure in bands as well: {BAND_FORMS}",
    )
    group.add_argument(
        "--band-quantity",
        metavar="NAME,...",
        default="",
        help="LZeq, LZE, or LZF or LZS alone or with max, min or a percentage exceeded "
        f"({','.join(BAND_QUANTITIES_DEFAULT)})",
    )
    group.add_argument(
        "--band-range",
        nargs=2,
        type=frequency,
        metavar=("LO", "HI"),
        help="nominal frequencies of the first and the last band (20 20k)",
    )
    interval_rows.add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure to the end of the source or of the duration, or until Ctrl-C."""
    with signals_as_interrupts():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    paths = check_paths(args)
    measured = open_rows(args)
    source = measured.source
    if source.is_iq:
        raise ConfigError(f"{args.source}: has pairs of I and Q, which have no sound levels")
    settings = _settings(args, measured)
    meter = settings.meter(source.fs, measured.calibrations, source.speakers)
    about = describe(measured.signals, settings.bind(measured.signals).facts, meter)
    for note in about.notes:
        _log.warning("%s", note)
    table = LevelTable(about, is_live=source.is_live or args.pace == "realtime")
    exit_code = measure_rows(args, measured, meter, about, paths, table)
    table.show_total(meter.summary())
    return exit_code


def _settings(args: argparse.Namespace, measured: RowSource) -> LevelsConfig:
    weights: list[float] = []
    if args.channel_weights is not None:
        try:
            weights = [float(text) for text in args.channel_weights.split(",")]
        except ValueError:
            raise ConfigError(
                f"--channel-weights {args.channel_weights}: must be numbers, as 1,1,0"
            ) from None
    low_hz, high_hz = args.band_range or BAND_RANGE_HZ
    given = {} if args.lower_limit is None else {"lower_limit_db": args.lower_limit}
    return LevelsConfig(
        "levels",
        quantities=tuple(args.quantity.split(",")),
        interval_s=parse_seconds("--interval", args.interval),
        align=measured.align(args.bounds),
        time_zone=args.time_zone,
        channel_weights=tuple(weights),
        bands=args.octaves,
        band_quantities=tuple(args.band_quantity.split(",")) if args.band_quantity else (),
        f_min_hz=low_hz,
        f_max_hz=high_hz,
        **given,
    )
