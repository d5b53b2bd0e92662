"""The flags that say what a picture looks like, for every command that draws one."""

import argparse
from pathlib import Path

from spectrod.errors import ConfigError
from spectrod.record.picture.colormaps import colormap_names
from spectrod.record.picture.options import PictureOptions


def add_picture(parser: argparse.ArgumentParser) -> None:
    """Add the flags; what is not given is None."""
    group = parser.add_argument_group("picture")
    group.add_argument("--width", type=int, metavar="PX", help="of the plot (1000)")
    group.add_argument("--height", type=int, metavar="PX", help="of each channel's plot (512; 288)")
    group.add_argument("--f-scale", choices=("linear", "log"), help="frequency axis (linear)")
    group.add_argument("--f-min", type=float, metavar="HZ", help="its lower end")
    group.add_argument("--f-max", type=float, metavar="HZ", help="its upper end")
    group.add_argument(
        "--levels",
        metavar="LO,HI",
        help="ends of the colour scale in dB, as in --levels=-100,-20 (automatic)",
    )
    group.add_argument("--colormap", metavar="NAME", help=", ".join(colormap_names()))
    group.add_argument("--time-axis", choices=("elapsed", "utc"), help="time axis (elapsed)")
    group.add_argument("--theme", choices=("light", "dark"), help="of the paper (light)")
    group.add_argument("--title", help="first line (the source's name)")


def picture_options(args: argparse.Namespace) -> PictureOptions:
    """Make the options of what was given.

    Raises
    ------
    ConfigError
        With the flag, its value and the rule, if one is broken.
    """
    given = {
        "width": args.width,
        "height": args.height,
        "f_scale": args.f_scale,
        "f_min": args.f_min,
        "f_max": args.f_max,
        "levels": _levels(args.levels) if args.levels else None,
        "colormap": args.colormap,
        "time_axis": args.time_axis,
        "theme": args.theme,
        "title": Path(args.source).name if args.title is None else args.title,
    }
    return PictureOptions(**{key: value for key, value in given.items() if value is not None})


def _levels(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(
            f"--levels={text}: must be two numbers of dB, as in --levels=-100,-20"
        ) from None
    return low, high
