"""The daemon's outer shell: log lines, sd_notify, and the loop that runs until a signal.

It owns the main thread while a daemon runs in other threads, and only reads the daemon's counters.
It imports only the standard library and leaf modules, and loads each of its modules when it is
first used: most commands need only log lines.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectrod.daemon.service.logs import LogLevel, LogStyle, configure_logging
    from spectrod.daemon.service.loop import ServedDaemon, Signals, caught_signals, serve
    from spectrod.daemon.service.notify import Notifier
    from spectrod.daemon.service.starting import watched_start
    from spectrod.daemon.service.status_text import StatusChanges, status_line

_MODULES = {
    "ServedDaemon": "loop",
    "LogLevel": "logs",
    "LogStyle": "logs",
    "Notifier": "notify",
    "Signals": "loop",
    "StatusChanges": "status_text",
    "caught_signals": "loop",
    "configure_logging": "logs",
    "serve": "loop",
    "status_line": "status_text",
    "watched_start": "starting",
}

__all__ = [
    "LogLevel",
    "LogStyle",
    "Notifier",
    "ServedDaemon",
    "Signals",
    "StatusChanges",
    "caught_signals",
    "configure_logging",
    "serve",
    "status_line",
    "watched_start",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
