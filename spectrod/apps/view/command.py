"""``spectrod view``: a daemon's spectra in the terminal."""

import argparse

from spectrod.apps.view.axes import LevelRange
from spectrod.apps.view.controls import Look, check_levels
from spectrod.apps.view.live import ViewOptions, view
from spectrod.apps.view.scales import AXIS_KINDS
from spectrod.cli import options
from spectrod.cli.numbers import seconds
from spectrod.dsp.ballistics import BALLISTICS_MAX_S, DECAY_MAX_DB_S, Ballistics
from spectrod.lib.durations import TIME_RULE, parse_time
from spectrod.lib.errors import ConfigError

_ONCE_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "endpoint",
        nargs="?",
        default="tcp://127.0.0.1:5556",
        metavar="ENDPOINT",
        help="publish endpoint of the daemon (%(default)s)",
    )
    options.add_keys(parser)
    picture = parser.add_argument_group("picture (keys change it; ? lists them)")
    picture.add_argument(
        "--channel", default="", metavar="SOURCE/CHANNEL", help="channel that is shown first"
    )
    picture.add_argument(
        "--axis", choices=AXIS_KINDS, default=AXIS_KINDS[0], help="frequency axis (%(default)s)"
    )
    picture.add_argument(
        "--levels",
        type=_levels,
        metavar="BOTTOM,TOP",
        help="levels from the bottom of the picture to its top [dB], as --levels=-100,-20, or auto",
    )
    picture.add_argument(
        "--decay",
        type=_decay,
        default=0.0,
        metavar="DB_S",
        help="rate at which max hold falls and min hold rises [dB/s]; 0 holds until a reset (0)",
    )
    picture.add_argument(
        "--hold-time",
        type=_ballistics_s,
        default=0.0,
        metavar="TIME",
        help="time from a peak until its decay (0 s)",
    )
    picture.add_argument(
        "--time-constant",
        type=_ballistics_s,
        default=0.0,
        metavar="TIME",
        help="of the average, as 125ms (F) or 1s (S); 0 averages since the reset (0 s)",
    )
    picture.add_argument("--peaks", action="store_true", help="list peaks: level, frequency, note")
    picture.add_argument(
        "--ascii",
        action="store_true",
        help="ASCII characters only, as in a locale without UTF-8",
    )
    picture.add_argument(
        "--no-color", action="store_true", help="no colours, as with NO_COLOR in the environment"
    )
    picture.add_argument(
        "--no-graphics",
        action="store_true",
        help="waterfall of characters, also where the terminal shows pixels (kitty, sixel)",
    )
    once = parser.add_argument_group("a single picture")
    once.add_argument(
        "--once",
        action="store_true",
        help="write one picture as text and end, also without a terminal; COLUMNS and LINES are "
        "its size there",
    )
    once.add_argument(
        "--duration", type=seconds, metavar="TIME", help=f"how much it shows ({_ONCE_S:g} s)"
    )


def run(args: argparse.Namespace) -> int:
    """Show spectra until q or Ctrl-C (? lists the keys); without a terminal, a line per second."""
    if args.duration is not None and not args.once:
        raise ConfigError("--duration: is the time of a single picture, and needs --once")
    look = Look(
        axis=args.axis,
        ballistics=Ballistics(args.decay, args.hold_time, args.time_constant),
        is_listing=args.peaks,
        is_pixels=not args.no_graphics,
    )
    if args.levels == "auto":
        look.is_fitting = True
    else:
        look.levels = args.levels
    view(
        args.endpoint,
        server_key=args.server_key,
        key_file=args.key,
        options=ViewOptions(
            look=look,
            channel=args.channel,
            is_ascii=args.ascii,
            has_colour=not args.no_color,
            once_s=(args.duration or _ONCE_S) if args.once else None,
        ),
    )
    return 0


def _decay(text: str) -> float:
    """Parse a rate [dB/s]."""
    try:
        rate_db_s = float(text)
    except ValueError:
        rate_db_s = -1.0
    if not 0.0 <= rate_db_s <= DECAY_MAX_DB_S:
        raise argparse.ArgumentTypeError(f"{text!r}: must be 0 to {DECAY_MAX_DB_S:g} dB/s")
    return rate_db_s


def _ballistics_s(text: str) -> float:
    """Parse a hold time or a time constant [s]."""
    value = parse_time(text)
    if value is None:
        raise argparse.ArgumentTypeError(f"{text!r}: {TIME_RULE}")
    if not 0.0 <= value <= BALLISTICS_MAX_S:
        raise argparse.ArgumentTypeError(f"{text!r}: must be 0 to {BALLISTICS_MAX_S:g} s")
    return value


def _levels(text: str) -> LevelRange | str:
    """Parse ``-100,-20`` or ``auto``."""
    if text == "auto":
        return text
    try:
        bottom_db, top_db = map(float, text.split(","))
        return check_levels(LevelRange(bottom_db, top_db))
    except ValueError as error:
        rule = error if isinstance(error, ConfigError) else "must be BOTTOM,TOP in dB, or auto"
        raise argparse.ArgumentTypeError(f"{text!r}: {rule}") from None
