"""Reports that a driver compiles kernels if this takes noticeably long."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_AFTER_S: Final = 1.0
TEXT: Final = (
    "compiling OpenCL kernels for this machine (once for each analysis; it can take 20 s) ..."
)

_log = logging.getLogger(__name__)


class CompileNotice:
    """Reports once, as soon as all compilation together has taken a second.

    Thread-safe.

    Parameters
    ----------
    report : callable
        Called with the text; by default logs a warning, which commands show on standard error.
    after_s : float
        Compilation time after which it reports [s]; infinity for never.
    """

    def __init__(
        self, report: Callable[[str], None] = _log.warning, after_s: float = _AFTER_S
    ) -> None:
        self.after_s = after_s
        self._report = report
        self._spent_s = 0.0
        self._is_reported = False
        self._lock = threading.Lock()

    @contextmanager
    def during(self) -> Iterator[None]:
        """Count the time inside this context as compilation."""
        if self._is_reported or math.isinf(self.after_s):
            yield
            return
        timer = threading.Timer(max(0.0, self.after_s - self._spent_s), self._report_once)
        timer.daemon = True
        start_s = time.monotonic()
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            with self._lock:
                self._spent_s += time.monotonic() - start_s

    def _report_once(self) -> None:
        with self._lock:
            is_first, self._is_reported = not self._is_reported, True
        if is_first:
            self._report(TEXT)


NOTICE: Final = CompileNotice()
"""The notice of this process."""
