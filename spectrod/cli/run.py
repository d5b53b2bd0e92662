"""``spectrod run``: the daemon, in the foreground."""

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from logging.handlers import MemoryHandler

import spectrod
from spectrod import config
from spectrod.cli import options
from spectrod.control.controlled import ControlledDaemon
from spectrod.daemon import Daemon, build_daemon
from spectrod.errors import DeviceError
from spectrod.member import Member
from spectrod.service import (
    Notifier,
    Signals,
    caught_signals,
    configure_logging,
    serve,
    status_line,
)
from spectrod.stats import Stats
from spectrod.view.status import write_line

_log = logging.getLogger("spectrod")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    options.add_config(parser)
    parser.add_argument(
        "--source",
        metavar="SRC",
        help=f"{options.SOURCES}; replaces all that the configuration names",
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
        help="on standard output: a live spectrum, a status line a second, or nothing; auto takes "
        "live on a terminal, none under systemd, status otherwise; live needs a terminal",
    )
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    options.add_source(parser)
    options.add_iq(parser)
    options.add_analysis(parser)
    options.add_engine(parser)


def run(args: argparse.Namespace) -> int:
    """Run until a signal, the source's end or a failure."""
    with caught_signals() as signals:
        try:
            return _run(args, signals)
        except DeviceError:
            # A compiler inside a driver (LLVM's) catches signals too, and drops what it does: that
            # is no failure of the device where the end was asked for.
            code = signals.exit_code()
            if code is None:
                raise
            return code


def _run(args: argparse.Namespace, signals: Signals) -> int:
    flags = options.flags(args)
    notes: list[str] = []
    settings = config.load(args.config, flags, notes.append)
    configure_logging(settings.log.level, settings.log.style)
    for note in notes:
        _log.warning("%s", note)
    notifier = Notifier()
    show = _choose_show(args.show)
    daemon = build_daemon(settings)
    controlled = ControlledDaemon(daemon, settings, lambda: config.load(args.config, flags))
    try:
        controlled.start()
    except BaseException:
        controlled.stop()
        raise
    _announce(daemon, controlled.endpoints)
    return _serve(controlled, daemon, show, signals, notifier)


def _serve(
    controlled: ControlledDaemon, daemon: Daemon, show: str, signals: Signals, notifier: Notifier
) -> int:
    reload = controlled.settings.reload
    on_tick = _print_status if show == "status" else None
    with _live_view(daemon) if show == "live" else nullcontext():
        return serve(controlled, signals=signals, reload=reload, notifier=notifier, on_tick=on_tick)


def _choose_show(wanted: str) -> str:
    if wanted == "auto" and "NOTIFY_SOCKET" in os.environ:  # systemd has the status line already
        return "none"
    if wanted in ("auto", "live"):
        return "live" if sys.stdout.isatty() else "status"
    return wanted


def _announce(daemon: Daemon, control: Sequence[str]) -> None:
    endpoint, *others = daemon.publisher.endpoints
    _log.info("spectrod %s", spectrod.__version__)
    for member in daemon.members:
        _log.info("source %s: %s", member.name, _description(member))
    _log.info("publishing at %s", ", ".join([endpoint, *others]))
    if control:
        _log.info("control at %s", ", ".join(control))
    _log.info("watch it: spectrod view %s", endpoint)


def _description(member: Member) -> str:
    pipeline = member.pipeline
    if pipeline is None:
        return "not there yet"
    source = pipeline.source
    return f"{source.description}, {source.fs:g} Hz, engine {pipeline.engine.name}"


def _print_status(stats: Sequence[Stats]) -> None:
    write_line(status_line(stats), sys.stdout)


@contextmanager
def _live_view(daemon: Daemon) -> Iterator[None]:
    """Show our own messages in the terminal, as any subscriber would see them.

    Log lines wait until the terminal is given back. The view's end (q) ends the daemon, and so
    does its failure, which is raised here.
    """
    from spectrod.view.terminal import view  # noqa: PLC0415 - no need to load it otherwise

    endpoint = daemon.publisher.endpoints[0]
    stop = threading.Event()

    def end_daemon(_: Future[None]) -> None:
        if not stop.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    with _held_log(), ThreadPoolExecutor(1, "spectrod-view") as executor:
        shown = executor.submit(view, endpoint, stop=stop.is_set)
        shown.add_done_callback(end_daemon)
        try:
            yield
        finally:
            stop.set()
        shown.result()


@contextmanager
def _held_log() -> Iterator[None]:
    root = logging.getLogger()
    shown = root.handlers[:]
    held = MemoryHandler(1000, flushLevel=logging.CRITICAL + 1, target=shown[0] if shown else None)
    root.handlers[:] = [held]
    try:
        yield
    finally:
        root.handlers[:] = shown
        held.close()
