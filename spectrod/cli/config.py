"""``spectrod config``: print the defaults or the merged configuration, or check a file."""

import argparse
import sys

from spectrod import config
from spectrod.errors import SpectrodError
from spectrod.text import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    commands.add_parser("default", help="print the commented default configuration")
    show = commands.add_parser("show", help="print the merged configuration of a run")
    show.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    check = commands.add_parser("check", help="check a configuration file")
    check.add_argument("file", metavar="FILE")
    check.add_argument(
        "--deep",
        action="store_true",
        help="also open its sources, engine, folders and keys, and report each problem",
    )


def run(args: argparse.Namespace) -> int:
    """Print or check the configuration."""
    if args.what == "default":
        print(config.default_toml(), end="")
    elif args.what == "show":
        print(config.to_toml(config.load(args.config)), end="")
    else:
        return _check(args.file, is_deep=args.deep)
    return 0


def _check(path: str, *, is_deep: bool) -> int:
    from spectrod.cli.config_check import check_uris, checks, unchecked  # noqa: PLC0415 - show needs none

    settings = config.check_file(path)
    check_uris(settings)
    exit_code = 0
    for check in checks(settings) if is_deep else ():
        try:
            print(printable(check()))
        except SpectrodError as error:
            print(f"spectrod: {printable(f'{path}: {error}')}", file=sys.stderr)
            exit_code = exit_code or error.exit_code
    if exit_code == 0:
        for line in () if is_deep else unchecked(settings):
            print(printable(line))
        print(f"{printable(path)}: right")
    return exit_code
