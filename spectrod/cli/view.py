"""``spectrod view``: a daemon's spectra in the terminal."""

import argparse
import sys

from spectrod.errors import ConfigError
from spectrod.view.terminal import view


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "endpoint",
        nargs="?",
        default="tcp://127.0.0.1:5556",
        metavar="ENDPOINT",
        help="where a daemon publishes (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Show until q or Ctrl-C."""
    if not sys.stdout.isatty():
        raise ConfigError("view: standard output is not a terminal")
    view(args.endpoint)
    return 0
