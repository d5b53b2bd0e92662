"""The service manager's protocol (sd_notify): datagrams with the state of the daemon."""

import logging
import os
import socket
import time
from collections.abc import Mapping

from spectrod.lib.errors import ConfigError
from spectrod.lib.text import printable

_SEND_LIMIT_S = 0.2

_log = logging.getLogger(__name__)


class Notifier:
    """Reports the daemon's state to the service manager; without one every call does nothing.

    Parameters
    ----------
    environ : mapping
        Environment with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.

    Attributes
    ----------
    watchdog_s : float or None
        How long the manager waits for ``watchdog`` before it kills the daemon [s]; None if it does
        not watch this process.

    Raises
    ------
    ConfigError
        If one of the variables has a value that systemd never sets.

    Notes
    -----
    One thread at a time. An undeliverable datagram is logged once and never raises: the daemon
    survives the loss of its manager's socket.

    References
    ----------
    .. [1] sd_notify(3), sd_watchdog_enabled(3).
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = _notify_address(environ)
        self._has_failed = False
        self.watchdog_s = _watchdog_s(environ)

    def ready(self) -> None:
        """Report that the start or a reload is complete."""
        self._send("READY=1")

    def extend_timeout(self, seconds: float) -> None:
        """Ask for more time to start [s from now], beyond the manager's own limit."""
        self._send(f"EXTEND_TIMEOUT_USEC={round(seconds * 1e6)}")

    def reloading(self) -> None:
        """Report that a reload has started; ``ready`` ends it."""
        # Type=notify-reload requires the time stamp; Type=notify ignores it.
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def status(self, text: str) -> None:
        """Set the line that ``systemctl status`` shows."""
        self._send(f"STATUS={printable(text)}")

    def watchdog(self) -> None:
        """Report that the daemon has made progress."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Report that the daemon is stopping."""
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                # A manager that does not read would block this thread when its queue is full.
                sender.settimeout(_SEND_LIMIT_S)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            if not self._has_failed:
                _log.warning("NOTIFY_SOCKET: cannot notify the service manager: %s", error)
            self._has_failed = True


def _notify_address(environ: Mapping[str, str]) -> str:
    name = environ.get("NOTIFY_SOCKET", "")
    if name and name[0] not in "/@":
        raise ConfigError(f"NOTIFY_SOCKET={name!r}: must be an absolute path or an @abstract name")
    return "\0" + name[1:] if name.startswith("@") else name


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    usec, pid = environ.get("WATCHDOG_USEC"), environ.get("WATCHDOG_PID")
    if usec is None or (pid is not None and pid != str(os.getpid())):
        return None
    if not (usec.isdecimal() and int(usec) > 0):
        raise ConfigError(f"WATCHDOG_USEC={usec!r}: must be a positive whole number")
    return int(usec) / 1e6
