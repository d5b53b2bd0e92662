"""The daemon in the foreground, and what the terminal shows of it."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib import import_module
from logging.handlers import MemoryHandler

import spectrod
from spectrod.config.config import Config
from spectrod.daemon.control.controlled import ControlledDaemon
from spectrod.daemon.daemon import Daemon, build_daemon
from spectrod.daemon.service import (
    Notifier,
    Signals,
    StatusChanges,
    serve,
    status_line,
    watched_start,
)
from spectrod.daemon.source_runner import SourceRunner
from spectrod.lib.errors import ConfigError
from spectrod.lib.output_line import write_line
from spectrod.lib.stats import Stats
from spectrod.wire.endpoint import parse_endpoint

_log = logging.getLogger("spectrod")


def run_daemon(
    settings: Config,
    load: Callable[[], Config],
    show: str,
    signals: Signals,
    notes: Sequence[str] = (),
) -> int:
    """Run a daemon until a signal, the end of the source or a failure.

    Parameters
    ----------
    settings : Config
        Its configuration.
    load : callable
        Loads the configuration again, for a reload.
    show : {"auto", "live", "status", "none"}
        What standard output shows.
    signals : Signals
        Signals that end the daemon.
    notes : sequence of str
        Warnings for the log.

    Returns
    -------
    exit_code : int
    """
    for note in notes:
        _log.warning("%s", note)
    notifier = Notifier()
    with watched_start(notifier, signals):  # both may compile for minutes
        daemon = build_daemon(settings)
        controlled = _started(ControlledDaemon(daemon, settings, load))
    try:
        watched = _watchable(daemon)
        chosen = _choose_show(show, watched)
    except BaseException:
        controlled.stop()
        raise
    metrics = controlled.http.address if controlled.http else ""
    _announce(daemon, watched, controlled.endpoints, metrics)
    view = _live_view(watched) if watched and chosen == "live" else nullcontext()
    on_tick = _status_printer(controlled) if chosen == "status" else None
    reload = controlled.settings.reload
    with view:
        return serve(controlled, signals=signals, reload=reload, notifier=notifier, on_tick=on_tick)


def _started(controlled: ControlledDaemon) -> ControlledDaemon:
    try:
        controlled.start()
    except BaseException:
        controlled.stop()
        raise
    return controlled


def _watchable(daemon: Daemon) -> str | None:
    """Return the first endpoint that requires no key, because this process has no client key."""
    for endpoint in daemon.publisher.endpoints:
        if not daemon.access.is_curve(parse_endpoint(endpoint)):
            return endpoint
    return None


def _choose_show(requested: str, watched: str | None) -> str:
    if requested == "live" and watched is None:
        raise ConfigError(
            "show='live': all endpoints of [publish] ask for keys; add an ipc:// one, or watch it "
            "with spectrod view"
        )
    if (
        requested == "auto" and "NOTIFY_SOCKET" in os.environ
    ):  # systemd shows the status line already
        return "none"
    if requested in ("auto", "live"):
        return "live" if watched and sys.stdout.isatty() else "status"
    return requested


def _announce(daemon: Daemon, watched: str | None, control: Sequence[str], metrics: str) -> None:
    endpoints = daemon.publisher.endpoints
    _log.info("spectrod %s", spectrod.__version__)
    for runner in daemon.runners:
        _log.info("source %s: %s", runner.name, _description(runner))
    _log.info("publishing at %s", ", ".join(endpoints))
    if control:
        _log.info("control at %s", ", ".join(control))
    if metrics:
        _log.info("metrics at http://%s/metrics", metrics)
    with_keys = f"{endpoints[0]} --server-key FILE --key FILE"
    _log.info("watch it: spectrod view %s", watched or with_keys)


def _description(runner: SourceRunner) -> str:
    pipeline = runner.pipeline
    if pipeline is None:
        return "not yet available"
    source = pipeline.source
    return f"{source.description}, {source.fs:.10g} Hz, engine {pipeline.stats().engine}"


def _status_printer(daemon: ControlledDaemon) -> Callable[[Sequence[Stats]], None]:
    """Return what prints the status: each second on a terminal, changes elsewhere."""
    changes = None if sys.stdout.isatty() else StatusChanges()

    def print_status(stats: Sequence[Stats]) -> None:
        troubles = daemon.troubles()
        if changes is None or changes.is_due(stats, troubles, time.monotonic()):
            write_line(status_line(stats, troubles), sys.stdout)

    return print_status


@contextmanager
def _live_view(endpoint: str) -> Iterator[None]:
    """Show the daemon's messages in the terminal, like any other subscriber.

    Log lines wait until the view releases the terminal. The view's end (q) ends the daemon, and so
    does its failure, which is raised here.
    """
    view = import_module("spectrod.apps.view.live").view  # a program of its own, loaded by name
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
