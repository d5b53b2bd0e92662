"""The start of the daemon: more time from the service manager, a status, and signals."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spectrod.daemon.service.loop import EXTENSION_S, START_LIMIT_S, Signals
from spectrod.daemon.service.notify import Notifier
from spectrod.lib.worker import Worker

_TICK_S = 0.1
_REPORT_AFTER_S = 5.0
_REPORT_PERIOD_S = 5.0
_END_LIMIT_S = 0.25
_WORK = "opening sources and compiling kernels"

_log = logging.getLogger(__name__)


@contextmanager
def watched_start(
    notifier: Notifier,
    signals: Signals,
    end: Callable[[int], object] = os._exit,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Keep the service manager informed while the caller starts the daemon in native code.

    From the fifth second on, every 5 s for at most 10 min, the manager is asked to wait for another
    30 s, and the status says how long the start has taken.

    SIGTERM and SIGINT stay in ``signals`` for the caller. If the start has not ended 0.25 s
    after one of them, the process ends at once: no driver can be interrupted while it compiles, and
    nothing has been published or recorded yet that a stop would have to finish.

    Parameters
    ----------
    notifier : Notifier
        Used by another thread within this context.
    signals : Signals
        From ``caught_signals``; read only to look for these two.
    end : callable
        Ends the process with an exit code.
    clock : callable
        Monotonic seconds.
    """
    ended = threading.Event()
    watch = _StartWatch(notifier, signals, end, clock)

    def run() -> None:
        while not ended.wait(_TICK_S):
            watch.look()

    worker = Worker("start", run)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.wait()


class _StartWatch:
    """Looks after a start; ``look`` is called ten times a second."""

    def __init__(
        self,
        notifier: Notifier,
        signals: Signals,
        end: Callable[[int], object],
        clock: Callable[[], float],
    ) -> None:
        self._notifier, self._signals, self._end, self._clock = notifier, signals, end, clock
        self._start_s = clock()
        self._report_s = self._start_s + _REPORT_AFTER_S
        self._end_s: float | None = None
        self._is_logged = False

    def look(self) -> None:
        now_s = self._clock()
        self._look_for_signals(now_s)
        elapsed_s = now_s - self._start_s
        if now_s < self._report_s or elapsed_s > START_LIMIT_S:
            return
        self._report_s = now_s + _REPORT_PERIOD_S
        self._notifier.extend_timeout(EXTENSION_S)
        self._notifier.status(f"starting for {elapsed_s:.0f} s: {_WORK}")
        if not self._is_logged:
            self._is_logged = True
            _log.info("the start takes longer than %.0f s: %s", _REPORT_AFTER_S, _WORK)

    def _look_for_signals(self, now_s: float) -> None:
        code = self._signals.pending_exit_code()
        if code is None:
            return
        if self._end_s is None:
            self._end_s = now_s + _END_LIMIT_S
        elif now_s >= self._end_s:
            _log.warning("stopped during the start, which did not end within %g s", _END_LIMIT_S)
            self._notifier.stopping()
            self._end(code)
