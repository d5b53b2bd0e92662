"""The main thread of the daemon: signals in, readiness, watchdog and status out."""

import faulthandler
import logging
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from spectrod.daemon.service.analysis_progress import ProgressWatch, is_up
from spectrod.daemon.service.notify import Notifier
from spectrod.daemon.service.status_text import status_line
from spectrod.lib.errors import SpectrodError
from spectrod.lib.stats import Stats
from spectrod.lib.wakeup import Wakeup
from spectrod.lib.worker import Worker

_TICK_S = 1.0
_LOOKING_SHARE = 0.2
"""Largest share of the time in which the daemon is looked at: with hundreds of sources a look takes
long, and each of them reports its changes."""
_REST_MAX_S = 0.5
_STOP_LIMIT_S = 4.0
_RELOAD_JOIN_S = 1.0
_STDERR_FD = 2
START_LIMIT_S = 600.0
"""Time for which the service manager is asked to wait for a start, or for a first message [s]."""
EXTENSION_S = 30.0
"""How much time each request asks for [s]."""

_log = logging.getLogger(__name__)


class ServedDaemon(Protocol):
    """The part of a started daemon that ``serve`` uses."""

    @property
    def progress(self) -> Wakeup:
        """Set when a first message was sent, a source starts to wait, or a part has ended."""

    @property
    def finished(self) -> bool:
        """True after all sources have ended and are fully analysed, or a part has failed."""

    def stats(self) -> Sequence[Stats]:
        """Return the current counters of each source."""

    def troubles(self) -> Sequence[str]:
        """Return the failures that the counters do not show, such as those of recordings."""

    def raise_failure(self) -> None:
        """Raise the SpectrodError that ended the daemon, if any."""

    def stop(self) -> None:
        """Stop all threads and processes; idempotent."""


def serve(
    daemon: ServedDaemon,
    *,
    signals: "Signals",
    reload: Callable[[], list[str]],
    notifier: Notifier,
    on_tick: Callable[[Sequence[Stats]], None] | None = None,
) -> int:
    """Run until a signal, the end of all sources or a failure; then stop the daemon.

    Parameters
    ----------
    daemon : ServedDaemon
        Started; this function stops it in any case.
    signals : Signals
        From ``caught_signals``; signals that arrived before the call count too.
    reload : callable
        Called on SIGHUP in a separate thread, since it may compile for seconds; returns lines for
        the log: the changes applied, and those that need a restart. If it raises a SpectrodError,
        the error is logged and nothing has changed. At the end it may run for another 1 s, and is
        then abandoned.
    notifier : Notifier
        Receives READY=1 when the daemon is up, see ``is_up``, until then EXTEND_TIMEOUT_USEC while
        samples are analysed (for 10 min at most), RELOADING=1 and READY=1 around a reload, STATUS
        once a second, WATCHDOG=1 as described in the notes, and STOPPING=1.
    on_tick : callable, optional
        Called with the counters once a second, on this thread.

    Returns
    -------
    exit_code : int
        0 on SIGTERM or when all sources have ended, 130 on SIGINT.

    Raises
    ------
    SpectrodError
        Error that ended the daemon, from ``daemon.raise_failure``.

    Notes
    -----
    Watchdog: WATCHDOG=1 is sent when every source has made progress since it was last sent, see
    ``ProgressWatch``.

    If the stop hangs (native code may), the process ends after 4 s with every thread's traceback on
    standard error and exit code 1.
    """
    reloader = _Reloader(reload, daemon.progress)
    try:
        return _Loop(daemon, reloader, notifier, on_tick).run(signals)
    except SpectrodError as error:
        notifier.status(f"failed: {error}")
        raise
    finally:
        notifier.stopping()
        reloader.join(_RELOAD_JOIN_S)
        _stop_in_time(daemon)


def _stop_in_time(daemon: ServedDaemon) -> None:
    faulthandler.dump_traceback_later(_STOP_LIMIT_S, exit=True, file=_STDERR_FD)
    try:
        daemon.stop()
    finally:
        faulthandler.cancel_dump_traceback_later()


_EXIT_CODES = {signal.SIGTERM: 0, signal.SIGINT: 130}


class Signals:
    """Queue of SIGTERM, SIGINT and SIGHUP; made by ``caught_signals``."""

    def __init__(self, reader: socket.socket) -> None:
        self._reader = reader

    def fileno(self) -> int:
        """Descriptor that is readable while there are unread signals."""
        return self._reader.fileno()

    def read(self) -> list[signal.Signals]:
        """Return the signals since the last call, the oldest first; does not wait."""
        try:
            return [signal.Signals(number) for number in self._reader.recv(4096)]
        except BlockingIOError:
            return []

    def pending_exit_code(self) -> int | None:
        """Return the exit code of the first unread signal that ends the daemon; any thread."""
        try:
            numbers = self._reader.recv(4096, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        unread = (signal.Signals(number) for number in numbers)
        return next((_EXIT_CODES[number] for number in unread if number in _EXIT_CODES), None)

    def exit_code(self) -> int | None:
        """Read all signals; return the exit code of the first that ends the daemon, else None."""
        return next((_EXIT_CODES[number] for number in self.read() if number in _EXIT_CODES), None)


@contextmanager
def caught_signals() -> Iterator[Signals]:
    """Queue SIGTERM, SIGINT and SIGHUP instead of acting on them; restore the handlers at the end.

    Enter it before anything is opened: then no signal kills the process in the middle of the start.
    Thread: main, as signal handlers require.
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0.0)
        writer.settimeout(0.0)
        # A full socket holds thousands of unread signals: losing more changes nothing.
        old_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        # Python writes only signals with a Python handler to the descriptor.
        caught = (*_EXIT_CODES, signal.SIGHUP)
        old_handlers = {number: signal.signal(number, lambda *_: None) for number in caught}
        try:
            yield Signals(reader)
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(old_fd)


class _Every:
    """Periodic timer; a late caller does not have to catch up."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self.due_s = time.monotonic() + period_s

    def has_passed(self, now_s: float) -> bool:
        if now_s < self.due_s:
            return False
        self.due_s = now_s + self._period_s
        return True


class _Reloader:
    """Reloads in a separate thread while signals, status and watchdog continue.

    Requests during a reload cause one more reload after it: the files may have changed since.
    Thread: main; the other thread runs ``_run``.
    """

    def __init__(self, reload: Callable[[], list[str]], progress: Wakeup) -> None:
        self._reload, self._progress = reload, progress
        self._worker: Worker | None = None
        self._is_asked_again = False
        self._has_ended = threading.Event()

    def ask(self) -> None:
        """Reload now, or after the current reload."""
        if self._worker is not None:
            self._is_asked_again = True
        else:
            self._has_ended.clear()
            self._worker = Worker("reload", self._run, self._ended)
            self._worker.start()

    def has_ended(self) -> bool:
        """Return True once after the last reload; raise an unexpected error."""
        if self._worker is None or not self._has_ended.is_set():
            return False
        failure, self._worker = self._worker.failure, None
        if failure is not None:
            raise failure
        if not self._is_asked_again:
            return True
        self._is_asked_again = False
        self.ask()
        return False

    def join(self, timeout_s: float) -> None:
        """Wait for the current reload, up to a timeout."""
        if self._worker is not None:
            self._worker.wait(timeout_s)

    def _run(self) -> None:
        try:
            for line in self._reload():
                _log.info("reload: %s", line)
        except SpectrodError as error:
            for line in error.lines:
                _log.error("reload refused: %s", line)

    def _ended(self, _failure: SpectrodError | None) -> None:
        self._has_ended.set()
        self._progress.set()


class _Loop:
    """The main loop of ``serve``."""

    def __init__(
        self,
        daemon: ServedDaemon,
        reloader: _Reloader,
        notifier: Notifier,
        on_tick: Callable[[Sequence[Stats]], None] | None,
    ) -> None:
        self._daemon = daemon
        self._reloader = reloader
        self._notifier = notifier
        self._on_tick = on_tick
        self._is_ready = False
        self._rest_s = 0.0
        self._start_s, self._analysed = time.monotonic(), 0
        self._progress_watch = ProgressWatch()
        self._tick = _Every(_TICK_S)
        # Four checks per period of the manager allow for one that comes just too early.
        self._watch = _Every(min(_TICK_S, (notifier.watchdog_s or _TICK_S) / 4))

    def run(self, signals: Signals) -> int:
        only_signals, poll = select.poll(), select.poll()
        only_signals.register(signals, select.POLLIN)
        poll.register(signals, select.POLLIN)
        poll.register(self._daemon.progress, select.POLLIN)
        while True:
            only_signals.poll(self._rest_s * 1e3)
            poll.poll(self._wait_ms())
            # Each signal once: one reload serves all requests.
            for number in dict.fromkeys(signals.read()):
                if number in _EXIT_CODES:
                    _log.info("%s: stopping", number.name)
                    return _EXIT_CODES[number]
                if number == signal.SIGHUP:
                    self._start_reload()
            if self._look():
                _log.info("all sources have ended: stopping")
                return 0

    def _wait_ms(self) -> float:
        due_s = min(self._tick.due_s, self._watch.due_s)
        return max(0.0, due_s - time.monotonic()) * 1e3

    def _look(self) -> bool:
        """Report on the daemon; return whether it has finished."""
        start_s = time.monotonic()
        # The order matters: clear before reading, or a wake-up in between would be lost; read
        # ``finished`` before the failure, or a failure in between would count as the source's end.
        self._daemon.progress.clear()
        if self._reloader.has_ended() and self._is_ready:
            self._notifier.ready()
        finished = self._daemon.finished
        self._daemon.raise_failure()
        stats = self._daemon.stats()
        self._announce(stats, time.monotonic())
        look_s = time.monotonic() - start_s
        self._rest_s = min(look_s / _LOOKING_SHARE - look_s, _REST_MAX_S)
        return finished

    def _announce(self, stats: Sequence[Stats], now_s: float) -> None:
        if not self._is_ready and is_up(stats):
            self._is_ready = True
            self._notifier.status(status_line(stats, self._daemon.troubles()))
            self._notifier.ready()
            _log.info("ready: %s", _ready_text(stats))
        if self._watch.has_passed(now_s) and self._progress_watch.has_advanced(stats):
            self._notifier.watchdog()
        if self._tick.has_passed(now_s):
            self._extend_start(stats, now_s)
            self._notifier.status(status_line(stats, self._daemon.troubles()))
            if self._on_tick:
                self._on_tick(stats)

    def _extend_start(self, stats: Sequence[Stats], now_s: float) -> None:
        """Ask for more time while samples are analysed that make no first message yet."""
        analysed, before = sum(one.analysed for one in stats), self._analysed
        self._analysed = analysed
        if not self._is_ready and analysed > before and now_s - self._start_s < START_LIMIT_S:
            self._notifier.extend_timeout(EXTENSION_S)

    def _start_reload(self) -> None:
        # READY=1 ends a reload, but before the first message it would be untrue.
        if self._is_ready:
            self._notifier.reloading()
        self._reloader.ask()


def _ready_text(stats: Sequence[Stats]) -> str:
    awaited = ", ".join(one.name for one in stats if one.state == "waiting")
    slow = ", ".join(one.name for one in stats if one.state == "running" and not one.messages)
    sent = "the first message is out" if any(one.messages for one in stats) else ""
    later = slow and f"the first row of {slow} comes later"
    return "; ".join(filter(None, (sent, later, awaited and f"waiting for {awaited}")))
