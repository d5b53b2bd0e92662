"""``spectrod view``: a daemon's spectra in the terminal."""

import argparse

from spectrod.cli import options
from spectrod.view.terminal import view


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


def run(args: argparse.Namespace) -> int:
    """Show spectra until q or Ctrl-C (? lists the keys); without a terminal, a line per second."""
    view(args.endpoint, server_key=args.server_key, key_file=args.key)
    return 0
