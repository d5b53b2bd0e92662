"""``spectrod completion``: shell completion of commands and options."""

import argparse

import shtab

_SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))


def run(args: argparse.Namespace) -> int:
    """Print the script, for ``source <(spectrod completion bash)``."""
    from spectrod.cli import whole_parser  # noqa: PLC0415 - it imports this module

    print(shtab.complete(whole_parser(), shell=args.shell))
    return 0
