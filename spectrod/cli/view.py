"""``spectrod view``: a daemon's spectra in the terminal."""

import argparse

from spectrod.cli import options
from spectrod.cli.numbers import seconds
from spectrod.errors import ConfigError
from spectrod.view.axes import LevelRange
from spectrod.view.controls import Look, check_levels
from spectrod.view.live import ViewOptions, view
from spectrod.view.scales import AXIS_KINDS

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
    look = Look(axis=args.axis, is_listing=args.peaks, is_pixels=not args.no_graphics)
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
