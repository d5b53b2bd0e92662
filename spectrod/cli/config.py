"""``spectrod config``: what can be set, what is set, and whether a file is right."""

import argparse

from spectrod import config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    commands.add_parser("default", help="print the commented default configuration")
    show = commands.add_parser("show", help="print the merged configuration that a run would have")
    show.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    check = commands.add_parser("check", help="say whether a configuration file is right")
    check.add_argument("file", metavar="FILE")


def run(args: argparse.Namespace) -> int:
    """Print, merge or check."""
    if args.what == "default":
        print(config.default_toml(), end="")
    elif args.what == "show":
        print(config.to_toml(config.load(args.config)), end="")
    else:
        config.check_file(args.file)
        print(f"{args.file}: right")
    return 0
