"""Flags of the look of figures, of all commands that draw one."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from spectrod.cli.numbers import count
from spectrod.formats.figure.figure_look import DPI, FigureLook, parse_size
from spectrod.formats.values.value_writer import FIGURE_SUFFIXES
from spectrod.lib.errors import ConfigError

_FLAGS = ("title", "size", "dpi")


def add_figure_look(parser: argparse.ArgumentParser) -> None:
    """Add --title, --size and --dpi."""
    group = parser.add_argument_group("figures")
    group.add_argument("--title", metavar="TEXT", help="heading (of the measurement); '': none")
    group.add_argument(
        "--size",
        metavar="WxH",
        help="size in mm, or with cm or in: 180x120, 85 (its height follows), 7x5in (203)",
    )
    group.add_argument(
        "--dpi", type=count, metavar="N", help=f"pixels per inch of .png files ({DPI})"
    )


def figure_look(args: argparse.Namespace, paths: Iterable[str | Path]) -> FigureLook:
    """Return what the flags say of the figures among these files.

    Raises
    ------
    ConfigError
        If a value breaks its rule, or there is a flag and no figure.
    """
    has_figure = any(Path(path).suffix.lower() in FIGURE_SUFFIXES for path in paths)
    for name in _FLAGS:
        value = getattr(args, name)
        if value is not None and not has_figure:
            known = f"{', '.join(FIGURE_SUFFIXES[:-1])} or {FIGURE_SUFFIXES[-1]}"
            raise ConfigError(f"--{name} {value}: must be with -o NAME of a figure, {known}")
    look = FigureLook(args.title, dpi=DPI if args.dpi is None else args.dpi)
    if args.size is None:
        return look
    width_in, height_in = parse_size(args.size)
    return FigureLook(look.title, width_in, height_in, look.dpi)
