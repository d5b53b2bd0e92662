"""Log records to standard error or the journal: for a person or a machine.

A record may name what it is about: ``extra={"about": {"source": ..., "recording": ..., "event":
...}}``, with any of these keys. They become fields of journal entries and keys of JSON lines.
"""

import copy
import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import Literal, get_args

from spectrod.daemon.service.systemd_journal import JOURNAL_SOCKET, JournalHandler, priority
from spectrod.lib.errors import ConfigError
from spectrod.lib.text import json_text, printable

LogLevel = Literal["debug", "info", "warning", "error"]
LogStyle = Literal["auto", "journal", "human", "json"]

_STDERR_FD = 2


class _LineFormatter(logging.Formatter):
    """One line per message, whatever it contains; the lines of a traceback follow, indented.

    Messages contain names of files and devices and texts of peers; none of these can look like
    another message.
    """

    def format(self, record: logging.LogRecord) -> str:
        clean = copy.copy(record)
        clean.msg, clean.args = printable(record.getMessage().rstrip()), None
        first, *traceback = super().format(clean).split("\n")
        return "\n".join([first, *(f"    {printable(line)}" for line in traceback)])


class _JournalFormatter(_LineFormatter):
    """Lines with the priority prefix of sd-daemon(3); the journal has its own clock."""

    def format(self, record: logging.LogRecord) -> str:
        number = priority(record.levelno)
        # Each line is a separate entry: without a prefix it would lose its priority.
        return "\n".join(f"<{number}>{line}" for line in super().format(record).splitlines())


class _UtcFormatter(_LineFormatter):
    """Times in UTC with milliseconds, in the format of RFC 3339."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


class _JsonFormatter(_UtcFormatter):
    """One JSON object per line: ts, level, logger, event, and the traceback if there is one.

    A line that goes to the journal has a priority prefix, which the journal removes.
    """

    def __init__(self, *, has_priority: bool) -> None:
        super().__init__()
        self._has_priority = has_priority

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if about := getattr(record, "about", None):
            line["about"] = about
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        prefix = f"<{priority(record.levelno)}>" if self._has_priority else ""
        return f"{prefix}{json_text(line)}"


def configure_logging(level: LogLevel = "info", style: LogStyle = "auto") -> None:
    """Send all log records of this process to standard error.

    Parameters
    ----------
    level : {"debug", "info", "warning", "error"}
        Lowest level that is shown.
    style : {"auto", "journal", "human", "json"}
        ``journal`` prefixes each line with its sd-daemon priority and leaves the time to the
        journal; ``human`` writes time (UTC), level and text; ``json`` one object per line, with
        that prefix if standard error is the journal's own stream. ``auto`` selects human, or if
        standard error is that stream, entries with fields, see ``JournalHandler``.

    Raises
    ------
    ConfigError
        If level or style is not one of these.

    Notes
    -----
    Earlier handlers are closed. Python's warnings become log records.

    References
    ----------
    .. [1] sd-daemon(3) for the prefixes, systemd.exec(5) for JOURNAL_STREAM.
    """
    _require("log.level", level, get_args(LogLevel))
    _require("log.style", style, get_args(LogStyle))
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(style))
    if style == "auto" and _stderr_is_journal(os.environ):
        handler = JournalHandler(handler, JOURNAL_SOCKET)
        handler.setFormatter(_LineFormatter("%(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


def _require(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}={value!r}: must be one of {', '.join(allowed)}")


def _formatter(style: LogStyle) -> logging.Formatter:
    if style == "json":
        return _JsonFormatter(has_priority=_stderr_is_journal(os.environ))
    if style == "journal" or (style == "auto" and _stderr_is_journal(os.environ)):
        return _JournalFormatter("%(message)s")
    return _UtcFormatter("%(asctime)s %(levelname)-7s %(message)s")


def _stderr_is_journal(environ: Mapping[str, str]) -> bool:
    """Return whether descriptor 2 is the stream whose device and inode systemd announced."""
    try:
        stderr = os.fstat(_STDERR_FD)
    except OSError:
        return False  # closed
    return environ.get("JOURNAL_STREAM") == f"{stderr.st_dev}:{stderr.st_ino}"
