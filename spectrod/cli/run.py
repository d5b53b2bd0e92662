"""``spectrod run``: the daemon, in the foreground."""

import argparse
import faulthandler
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from typing import Final

from spectrod.cli import options
from spectrod.cli.daemon_rules import daemon_rules, start_rules
from spectrod.config import config
from spectrod.daemon.service import (
    Notifier,
    Signals,
    caught_signals,
    configure_logging,
    watched_start,
)
from spectrod.lib.allocator import share_arenas
from spectrod.lib.descriptors import raise_limit
from spectrod.lib.errors import DeviceError
from spectrod.source.kinds import forms

# By name: what is above the command line is loaded when it is asked for.
_PAGE: Final = "spectrod.apps.web.beside_daemon"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    options.add_config(parser)
    parser.add_argument(
        "--source",
        metavar="SRC",
        help=f"{forms()}; replaces all that the configuration names",
    )
    parser.add_argument("--name", help="the source's name in topics")
    parser.add_argument(
        "--publish", metavar="ENDPOINT", action="append", help="ZeroMQ endpoint; may be repeated"
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        default=None,
        help="allow endpoints that other machines can reach, without encryption",
    )
    parser.add_argument(
        "--show",
        choices=("auto", "live", "status", "none"),
        default="auto",
        help="output: a live spectrum, status lines (one a second on a terminal, elsewhere "
        "one for each change and one in ten minutes), or nothing; auto selects "
        "live on a terminal, none under systemd, otherwise status; live needs a terminal",
    )
    parser.add_argument(
        "--web",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help="serve a page with the spectra to this machine's browsers as well (127.0.0.1:8765, or "
        "another port if that is in use)",
    )
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    options.add_source(parser)
    options.add_iq(parser)
    options.add_analysis(parser)
    options.add_engine(parser)


def run(args: argparse.Namespace) -> int:
    """Run until a signal, the end of the source or a failure."""
    with caught_signals() as signals:
        try:
            return _run(args, signals)
        except DeviceError:
            # A driver's compiler (LLVM's) catches signals too and aborts its work: that is no
            # failure of the device if the end was requested.
            code = signals.exit_code()
            if code is None:
                raise
            return code


def _run(args: argparse.Namespace, signals: Signals) -> int:
    raise_limit()
    share_arenas()
    # Standard error may be closed (RuntimeError), or no file of the system (OSError).
    with suppress(OSError, RuntimeError):
        faulthandler.enable()  # tracebacks of all threads if the watchdog or a driver aborts
    flags = options.flags(args)
    notes: list[str] = []
    settings = config.load(args.config, flags, notes.append, start_rules)
    configure_logging(settings.log.level, settings.log.style)
    with _page(args.web, settings):
        return _run_daemon(args, settings, signals, notes)


def _page(address: str | None, settings: config.Config) -> AbstractContextManager[None]:
    if address is None:
        return nullcontext()
    beside: AbstractContextManager[None] = import_module(_PAGE).page_beside(address, settings)
    return beside


def _run_daemon(
    args: argparse.Namespace, settings: config.Config, signals: Signals, notes: list[str]
) -> int:
    with watched_start(Notifier(), signals):  # a busy machine takes seconds
        # Drivers load while the rest is imported.
        from spectrod.analysis.engine import preload_drivers  # noqa: PLC0415

        preload_drivers(settings.engine.engine)
        from spectrod.cli.run_daemon import run_daemon  # noqa: PLC0415

    flags = options.flags(args)
    load = lambda: config.load(args.config, flags, rules=daemon_rules)  # noqa: E731
    return run_daemon(settings, load, args.show, signals, notes)
