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

from spectrod.errors import SpectrodError
from spectrod.service.notify import Notifier
from spectrod.service.progress import ProgressWatch, is_up
from spectrod.service.status import status_line
from spectrod.stats import Stats
from spectrod.wakeup import Wakeup
from spectrod.worker import Worker

_TICK_S = 1.0
_STOP_LIMIT_S = 4.0
_RELOAD_JOIN_S = 1.0
_STDERR_FD = 2

_log = logging.getLogger(__name__)


class Daemon(Protocol):
    """What ``serve`` needs of a started daemon."""

    @property
    def progress(self) -> Wakeup:
        """Set when a first message is out, a source is waited for, and something has ended."""

    @property
    def finished(self) -> bool:
        """True once all sources have ended and all of them is analysed, or a part has failed."""

    def stats(self) -> Sequence[Stats]:
        """Return the counters of each source as they are now."""

    def raise_failure(self) -> None:
        """Raise the SpectrodError that ended the daemon, if one did."""

    def stop(self) -> None:
        """Stop all threads and processes; a second call does nothing."""


def serve(
    daemon: Daemon,
    *,
    signals: "Signals",
    reload: Callable[[], list[str]],
    notifier: Notifier,
    on_tick: Callable[[Sequence[Stats]], None] | None = None,
) -> int:
    """Run until a signal, the end of all sources or a failure; then stop the daemon.

    Parameters
    ----------
    daemon : Daemon
        Started; this function stops it, whatever happens.
    signals : Signals
        From ``caught_signals``; what has arrived before the call counts too.
    reload : callable
        Called on SIGHUP, by a thread of its own, since it may compile for seconds; returns lines
        for the log: what was applied and what needs a restart. If it raises a SpectrodError, that
        is logged and nothing has changed. At the end it has 1 s more, then it is left to itself.
    notifier : Notifier
        Hears READY=1 once the first message of every source is out that is not waited for,
        RELOADING=1 to READY=1 around a reload, STATUS once a second, WATCHDOG=1 as the notes say,
        STOPPING=1.
    on_tick : callable, optional
        Called with the counters once a second, on this thread.

    Returns
    -------
    exit_code : int
        0 on SIGTERM or when all sources have ended, 130 on SIGINT.

    Raises
    ------
    SpectrodError
        What ended the daemon, from ``daemon.raise_failure``.

    Notes
    -----
    Watchdog: WATCHDOG=1 is sent when every source has got on since it was last sent, see
    ``ProgressWatch``.

    A stop that hangs (native code may) ends the process after 4 s with every thread's traceback
    on standard error and exit code 1.
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


def _stop_in_time(daemon: Daemon) -> None:
    faulthandler.dump_traceback_later(_STOP_LIMIT_S, exit=True, file=_STDERR_FD)
    try:
        daemon.stop()
    finally:
        faulthandler.cancel_dump_traceback_later()


_EXIT_CODES = {signal.SIGTERM: 0, signal.SIGINT: 130}


class Signals:
    """SIGTERM, SIGINT and SIGHUP, kept as they arrive; made by ``caught_signals``."""

    def __init__(self, reader: socket.socket) -> None:
        self._reader = reader

    def fileno(self) -> int:
        """Descriptor that is readable while signals wait to be read."""
        return self._reader.fileno()

    def read(self) -> list[signal.Signals]:
        """Return what has arrived since the last call, the oldest first; does not wait."""
        try:
            return [signal.Signals(number) for number in self._reader.recv(4096)]
        except BlockingIOError:
            return []

    def exit_code(self) -> int | None:
        """Read what has arrived; return the code of the first that ends, None if none does."""
        return next((_EXIT_CODES[number] for number in self.read() if number in _EXIT_CODES), None)


@contextmanager
def caught_signals() -> Iterator[Signals]:
    """Keep SIGTERM, SIGINT and SIGHUP from acting; what handled them is put back at the end.

    To be entered before anything is opened, so that no moment of the start is left in which a
    signal kills the process with things half done. Thread: main, because signals are.
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0.0)
        writer.settimeout(0.0)
        # A full socket holds thousands of signals unread: losing more of them changes nothing.
        old_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        # Only a signal with a handler of Python's is written to the descriptor.
        caught = (*_EXIT_CODES, signal.SIGHUP)
        old_handlers = {number: signal.signal(number, lambda *_: None) for number in caught}
        try:
            yield Signals(reader)
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(old_fd)


class _Every:
    """Says once a period that it has passed; a late caller does not have to catch up."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self.due_s = time.monotonic() + period_s

    def has_passed(self, now_s: float) -> bool:
        if now_s < self.due_s:
            return False
        self.due_s = now_s + self._period_s
        return True


class _Reloader:
    """Reloads in a thread of its own, so that signals, status and watchdog go on meanwhile.

    What is asked for while a reload is under way is one more, behind it: what it reads may have
    changed since. Thread: main; ``_run`` is the other's.
    """

    def __init__(self, reload: Callable[[], list[str]], progress: Wakeup) -> None:
        self._reload, self._progress = reload, progress
        self._worker: Worker | None = None
        self._is_asked_again = False
        self._has_ended = threading.Event()

    def ask(self) -> None:
        """Reload, now or once the reload that is under way has ended."""
        if self._worker is not None:
            self._is_asked_again = True
        else:
            self._has_ended.clear()
            self._worker = Worker("reload", self._run, self._ended)
            self._worker.start()

    def has_ended(self) -> bool:
        """Say, once, that nothing is being reloaded any more; raise what ought not to happen."""
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
        """Wait for a reload that is under way, for so long."""
        if self._worker is not None:
            self._worker.wait(timeout_s)

    def _run(self) -> None:
        try:
            for line in self._reload():
                _log.info("reload: %s", line)
        except SpectrodError as error:
            _log.error("reload refused: %s", error)

    def _ended(self, _failure: SpectrodError | None) -> None:
        self._has_ended.set()
        self._progress.set()


class _Loop:
    """What ``serve`` does between two signals."""

    def __init__(
        self,
        daemon: Daemon,
        reloader: _Reloader,
        notifier: Notifier,
        on_tick: Callable[[Sequence[Stats]], None] | None,
    ) -> None:
        self._daemon = daemon
        self._reloader = reloader
        self._notifier = notifier
        self._on_tick = on_tick
        self._is_ready = False
        self._progress_watch = ProgressWatch()
        self._tick = _Every(_TICK_S)
        # Four looks in the manager's period leave time for one that comes just too early.
        self._watch = _Every(min(_TICK_S, (notifier.watchdog_s or _TICK_S) / 4))

    def run(self, signals: Signals) -> int:
        poll = select.poll()
        poll.register(signals, select.POLLIN)
        poll.register(self._daemon.progress, select.POLLIN)
        while True:
            poll.poll(self._wait_ms())
            # Of each once: one reload does for all that were asked for meanwhile.
            for number in dict.fromkeys(signals.read()):
                if number in _EXIT_CODES:
                    _log.info("%s: stopping", number.name)
                    return _EXIT_CODES[number]
                if number == signal.SIGHUP:
                    self._begin_reload()
            if self._look():
                _log.info("all sources have ended: stopping")
                return 0

    def _wait_ms(self) -> float:
        due_s = min(self._tick.due_s, self._watch.due_s)
        return max(0.0, due_s - time.monotonic()) * 1e3

    def _look(self) -> bool:
        """Report on the daemon, and say whether it has finished."""
        # The order matters: clear before reading, or what happens in between is slept over; and
        # finished before the failure, or one that comes in between passes for the source's end.
        self._daemon.progress.clear()
        if self._reloader.has_ended() and self._is_ready:
            self._notifier.ready()
        finished = self._daemon.finished
        self._daemon.raise_failure()
        stats = self._daemon.stats()
        self._announce(stats, time.monotonic())
        return finished

    def _announce(self, stats: Sequence[Stats], now_s: float) -> None:
        if not self._is_ready and is_up(stats):
            self._is_ready = True
            self._notifier.status(status_line(stats))
            self._notifier.ready()
            _log.info("ready: %s", _what_is_ready(stats))
        if self._watch.has_passed(now_s) and self._progress_watch.has_advanced(stats):
            self._notifier.watchdog()
        if self._tick.has_passed(now_s):
            self._notifier.status(status_line(stats))
            if self._on_tick:
                self._on_tick(stats)

    def _begin_reload(self) -> None:
        # READY=1 ends a reload, but before the first message it would be untrue.
        if self._is_ready:
            self._notifier.reloading()
        self._reloader.ask()


def _what_is_ready(stats: Sequence[Stats]) -> str:
    awaited = ", ".join(one.name for one in stats if one.state == "waiting")
    sent = "the first message is out" if any(one.messages for one in stats) else ""
    return "; ".join(filter(None, (sent, awaited and f"waiting for {awaited}")))
