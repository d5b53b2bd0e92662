"""Sends files as they are finished, until a signal; waits for a bucket that is away."""

import datetime as dt
import logging
import select
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from spectrod.apps.upload.uploader import Uploader
from spectrod.daemon.service import Notifier, Signals
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import InputError, StorageError, UnavailableError
from spectrod.lib.text import printable
from spectrod.lib.wakeup import Wakeup
from spectrod.source.store.stores import request

PAUSE_FIRST_S, PAUSE_LAST_S = 5.0, 600.0
"""First and longest pause before a bucket that does not answer is asked again [s]."""
_PINGS = 2
"""Reports to the service manager in the time that it waits for one."""

_log = logging.getLogger(__name__)


class _StoppedError(Exception):
    """A signal ends the program.

    Parameters
    ----------
    exit_code : int
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class _Outage:
    """A fault that lasts: its begin and its end are a line each, whatever repeats between.

    Parameters
    ----------
    again : str
        Says that it is over.
    """

    def __init__(self, again: str) -> None:
        self._again = again
        self._since_s: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether it lasts."""
        return self._since_s is not None

    def note(self, text: str) -> None:
        """Log it, if it is new."""
        if self._since_s is None:
            self._since_s = time.monotonic()
            _log.warning("%s; trying again", text)

    def end(self, what: str) -> None:
        """Log that it is over, if it lasted."""
        if self._since_s is not None:
            lasted = dt.timedelta(seconds=round(time.monotonic() - self._since_s))
            self._since_s = None
            _log.warning("%s: %s, after %s", what, self._again, lasted)


class Following:
    """The main thread of the service: waits for answers, files and signals; one in a process.

    Parameters
    ----------
    folder : Path
        Folder of the recordings, for the log.
    address : str
        Bucket and folder, for the log.
    signals : Signals
        SIGTERM and SIGINT end it.
    notifier : Notifier
        Gets the state of the service.
    """

    def __init__(self, folder: Path, address: str, signals: Signals, notifier: Notifier) -> None:
        self._folder, self._address = printable(folder), address
        self._signals, self._notifier = signals, notifier
        self._wakeup = Wakeup()  # is not closed: a late answer may set it until the process ends
        self._poll = select.poll()
        self._poll.register(signals.fileno(), select.POLLIN)
        self._poll.register(self._wakeup.fileno(), select.POLLIN)
        self._away, self._refusing = _Outage("answers again"), _Outage("takes files again")
        self._unread = _Outage("can be read again")
        self._pause = Backoff(PAUSE_FIRST_S, PAUSE_LAST_S)
        self._uploader: Uploader | None = None
        self._shown = ""

    def ask(
        self, url: str, call: Callable[[], Coroutine[Any, Any, Any]], limit_s: float | None = None
    ) -> Any:
        """Make a request, again and again while the bucket does not answer; see ``Ask``."""
        while True:
            asked = request(url, call, limit_s)
            try:
                found = self._answer(asked)
            except UnavailableError as error:
                self._away.note(str(error))
                self._show()
                self._wait(self._pause.next_s())
                continue
            except OSError:
                self._note_answer()
                raise
            self._note_answer()
            return found

    def tick(self) -> None:
        """Report to the service manager; raises if a signal has come."""
        self._wait_once(0.0)

    def run(self, uploader: Uploader, interval_s: float) -> int:
        """Look for new files until a signal; return the exit code.

        Parameters
        ----------
        uploader : Uploader
            Its requests are made by ``ask``.
        interval_s : float
            From the end of one look to the next [s]; while files are refused it grows.

        Raises
        ------
        StorageError
            If the bucket refuses to be listed at the first time: a mistake is to be mended then.
        """
        self._uploader = uploader
        refused = Backoff(interval_s, max(interval_s, PAUSE_LAST_S))
        self._notifier.ready()
        try:
            while True:
                is_refused = self._look(uploader)
                self._show()
                if not is_refused:
                    refused.reset()
                self._wait(refused.next_s() if is_refused else interval_s)
        except _StoppedError as stop:
            return stop.exit_code
        finally:
            self._notifier.stopping()

    def _look(self, uploader: Uploader) -> bool:
        """Send and remove files; return whether the bucket refuses them."""
        try:
            uploader.look()
        except InputError as error:
            self._unread.note(str(error))
            return False
        except StorageError as error:
            if not uploader.has_listed:
                raise
            self._refusing.note(str(error))
            return True
        self._unread.end(self._folder)
        self._refusing.end(self._address)
        return False

    # ---- waiting

    def _answer(self, asked: Future[Any]) -> Any:
        asked.add_done_callback(lambda _: self._wakeup.set())
        try:
            while not asked.done():
                self._wait_once(None)
        finally:
            asked.cancel()
        return asked.result()

    def _wait(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0.0:
            self._wait_once(left_s)

    def _wait_once(self, seconds: float | None) -> None:
        """Wait for an answer, a signal, the time or the next report to the service manager."""
        ping_s = self._notifier.watchdog_s and self._notifier.watchdog_s / _PINGS
        limits = [one for one in (seconds, ping_s) if one is not None]
        self._poll.poll(min(limits) * 1e3 if limits else None)
        self._wakeup.clear()
        self._notifier.watchdog()
        exit_code = self._signals.exit_code()
        if exit_code is not None:
            raise _StoppedError(exit_code)

    def _note_answer(self) -> None:
        self._pause.reset()
        self._away.end(self._address)
        self._show()

    def _show(self) -> None:
        uploader = self._uploader
        if uploader is not None:
            is_well = not (self._away.is_on or self._refusing.is_on or self._unread.is_on)
            state = "sending" if is_well else "waiting"
            text = f"{state}; sent {uploader.n_sent} files, {uploader.n_waiting} wait"
            if text != self._shown:
                self._shown = text
                self._notifier.status(text)


class LogReport:
    """Lines of the log of the service, see ``UploadReport``."""

    def sent(self, name: str, size: int) -> None:
        """Log that a file was sent."""
        _log.info("%s: sent, %d bytes", printable(name), size)

    def removed(self, name: str) -> None:
        """Log that a file was removed."""
        _log.info("%s: is in the bucket, removed here", printable(name))

    def complain(self, text: str) -> None:
        """Log a fault."""
        _log.warning("%s", text)
