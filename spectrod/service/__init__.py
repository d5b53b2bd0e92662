"""The daemon's outer shell: log lines, sd_notify, and the loop that runs until a signal.

It owns the main thread while a pipeline runs in threads of its own, and knows nothing of what the
pipeline does: it reads counters. It imports the standard library and the leaves only.
"""

from spectrod.service.logs import LogLevel, LogStyle, configure_logging
from spectrod.service.loop import Pipeline, Signals, caught_signals, serve, status_line
from spectrod.service.notify import Notifier

__all__ = [
    "LogLevel",
    "LogStyle",
    "Notifier",
    "Pipeline",
    "Signals",
    "caught_signals",
    "configure_logging",
    "serve",
    "status_line",
]
