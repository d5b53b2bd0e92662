"""``spectrod config``: print the defaults or the merged configuration, or check a file."""

import argparse
import os
import sys
from collections.abc import Iterator

from spectrod.cli import options
from spectrod.config import config
from spectrod.lib.errors import ConfigError, SpectrodError
from spectrod.lib.text import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    commands.add_parser("default", help="print the commented default configuration")
    show = commands.add_parser("show", help="print the merged configuration of a run")
    options.add_config(show)
    show.add_argument(
        "--origin", action="store_true", help="name the file and line of each value, or default"
    )
    check = commands.add_parser("check", help="check a configuration file and its drop-ins")
    check.add_argument("file", metavar="FILE", nargs="?", help="by default the one that is used")
    check.add_argument("--client-keys", action="store_true", help="also read the keys of clients")
    check.add_argument(
        "-q", "--quiet", action="store_true", help="print nothing; the exit code tells"
    )
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
        loaded = config.load_layers(args.config)
        print(config.to_toml(loaded.config, loaded.where if args.origin else None), end="")
    else:
        return _check_command(args)
    return 0


def _check_command(args: argparse.Namespace) -> int:
    from spectrod.cli.daemon_rules import client_key_rules, daemon_rules  # noqa: PLC0415

    file = config.find_file(args.file)
    if file is None:
        if not args.quiet:
            print("no configuration file: the defaults are right")
        return 0
    path = os.fspath(file)

    def rules(settings: config.Config) -> Iterator[tuple[config.SettingPath, str]]:
        yield from daemon_rules(settings)
        if args.client_keys:
            yield from client_key_rules(settings)

    try:
        loaded = config.check_file_layers(path, rules)
    except ConfigError as error:
        if args.quiet:
            return error.exit_code
        raise
    if args.quiet:
        return 0
    return _check_deeply(path, loaded.config) if args.deep else _report(path, loaded)


def _report(path: str, loaded: config.Loaded) -> int:
    """Print the warnings about a file without mistakes, and what was not checked."""
    from spectrod.cli.daemon_rules import unchecked, warnings  # noqa: PLC0415 - show needs no sources

    for setting, text in warnings(loaded.config):
        _print_error(f"warning: {loaded.where(setting)}: {text}")
    for line in unchecked(loaded.config):
        print(printable(line))
    print(f"{printable(path)}: right")
    return 0


def _check_deeply(path: str, settings: config.Config) -> int:
    """Open what the configuration names; return the exit code of the first problem."""
    from spectrod.apps.setup.config_check import checks  # noqa: PLC0415 - loads the engine

    exit_code = 0
    for check in checks(settings):
        try:
            print(printable(check()))
        except SpectrodError as error:
            _print_error(f"{path}: {error}")
            exit_code = exit_code or error.exit_code
    if exit_code == 0:
        print(f"{printable(path)}: right")
    return exit_code


def _print_error(text: str) -> None:
    print(f"spectrod: {printable(text)}", file=sys.stderr)
