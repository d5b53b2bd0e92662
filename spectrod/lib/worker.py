"""Threads: named, guarded at the top, and joined with a timeout."""

import logging
import threading
from collections.abc import Callable

from spectrod.lib import tasks
from spectrod.lib.errors import InternalError, SpectrodError, UnavailableError

_log = logging.getLogger(__name__)


class Worker(threading.Thread):
    """A daemon thread that runs one function and never loses the exception that ends it.

    Parameters
    ----------
    task : str
        The task in one or two words: the thread is named ``spectrod-TASK``, and errors say "TASK
        failed".
    act : callable
        Runs once in the thread. It raises SpectrodError for expected failures; any other exception
        is a defect, which is logged with its traceback and becomes an InternalError.
    on_end : callable
        Called by the thread as its last action, with ``failure``.

    Attributes
    ----------
    failure : SpectrodError or None
        Exception that ended the function, if it did not return.
    """

    def __init__(
        self,
        task: str,
        act: Callable[[], None],
        on_end: Callable[[SpectrodError | None], None] = lambda _failure: None,
    ) -> None:
        super().__init__(name=f"spectrod-{task.replace(' ', '-')}", daemon=True)
        self._task, self._act, self._on_end = task, act, on_end
        self.failure: SpectrodError | None = None

    def start(self) -> None:
        """Start the thread.

        Raises
        ------
        UnavailableError
            If the system allows no more threads.
        """
        try:
            super().start()
        except RuntimeError as error:  # Python's for EAGAIN
            if self.ident is not None:
                raise
            limit = tasks.current_limit()
            rule = f": the limit is {limit.n} ({limit.name})" if limit else ""
            raise UnavailableError(
                f"{self._task}: cannot start a thread beside {threading.active_count()} of this "
                f"process{rule}"
            ) from error

    def run(self) -> None:
        """Run the function; called by the thread."""
        try:
            self._act()
        except SpectrodError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001
            # The top of the thread: its owner must see every exception.
            self.failure = defect(self._task, error)
        self._on_end(self.failure)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the thread to end; return whether it has. True if it was never started."""
        if self.ident is not None:
            self.join(timeout_s)
        return not self.is_alive()

    def require_end(self, timeout_s: float) -> None:
        """Wait for the thread to end.

        Raises
        ------
        InternalError
            If it is still running after the timeout [s].
        """
        if not self.wait(timeout_s):
            raise InternalError(f"{self._task}: its thread did not end within {timeout_s:g} s")


def defect(task: str, error: Exception) -> InternalError:
    """Log an unexpected exception of a task with its traceback; return it as an InternalError."""
    _log.error("%s failed", task, exc_info=error)
    failure = InternalError(f"{task} failed: {error!r}; please report this")
    failure.__cause__ = error
    return failure
