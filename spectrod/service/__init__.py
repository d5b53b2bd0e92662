"""The daemon's outer shell: log lines, sd_notify, and the loop that runs until a signal.

It owns the main thread while a daemon runs in threads of its own, and knows nothing of what that
does: it reads counters. It imports the standard library and the leaves only.
"""

from spectrod.service.logs import LogLevel, LogStyle, configure_logging
from spectrod.service.loop import Daemon, Signals, caught_signals, serve
from spectrod.service.notify import Notifier
from spectrod.service.status import status_line

__all__ = [
    "Daemon",
    "LogLevel",
    "LogStyle",
    "Notifier",
    "Signals",
    "caught_signals",
    "configure_logging",
    "serve",
    "status_line",
]
