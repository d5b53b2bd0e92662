"""Log records as journal entries with fields of their own, over the journal's socket."""

import logging
import socket
import struct
import uuid
from pathlib import Path
from typing import Final

JOURNAL_SOCKET: Final = Path("/run/systemd/journal/socket")
MESSAGE_NAMESPACE: Final = uuid.UUID("5f0b1e54-3c1f-4d5c-9d0e-6f1d7a0c2b18")
"""Namespace of MESSAGE_ID, which is the UUID version 5 of an event's kind in it."""

_MESSAGE_BYTES_MAX: Final = 48 << 10
"""Longest text: a whole entry stays below the 64 KiB that any socket buffer takes."""
_VALUE_BYTES_MAX: Final = 1 << 10
_SEND_LIMIT_S: Final = 0.2


def message_id(kind: str) -> str:
    """Return the MESSAGE_ID of a kind of event: 32 hexadecimal digits, always the same."""
    return uuid.uuid5(MESSAGE_NAMESPACE, kind).hex


class JournalHandler(logging.Handler):
    """Sends each record as one entry; where that fails, another handler gets the record.

    Fields: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, SPECTROD_LOGGER, and of a record with ``about``
    (see ``spectrod.daemon.service.logs``) SPECTROD_SOURCE, SPECTROD_RECORDING, SPECTROD_EVENT and
    MESSAGE_ID. Texts longer than 48 KiB, and other values longer than 1 KiB, are cut.

    Parameters
    ----------
    fallback : logging.Handler
        Gets the records that cannot be sent within 0.2 s.
    path : Path
        The journal's socket.

    References
    ----------
    .. [1] systemd, "Native Journal Protocol"; systemd.journal-fields(7).
    """

    def __init__(self, fallback: logging.Handler, path: Path = JOURNAL_SOCKET) -> None:
        super().__init__()
        self._fallback, self._path = fallback, str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(_SEND_LIMIT_S)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        try:
            self._socket.sendto(self._entry(record), self._path)
        except OSError:
            self._fallback.handle(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        self._fallback.close()
        super().close()

    def _entry(self, record: logging.LogRecord) -> bytes:
        about: dict[str, str] = getattr(record, "about", {})
        fields = {
            "PRIORITY": str(priority(record.levelno)),
            "SYSLOG_IDENTIFIER": "spectrod",
            "SPECTROD_LOGGER": record.name,
            **{f"SPECTROD_{name.upper()}": value for name, value in about.items()},
        }
        if "event" in about:
            fields["MESSAGE_ID"] = message_id(about["event"])
        text = _field("MESSAGE", self.format(record), _MESSAGE_BYTES_MAX)
        return text + b"".join(_field(name, value) for name, value in fields.items())


def priority(level: int) -> int:
    """Return the journal's priority of a logging level: 3 (error), 4, 6 or 7 (debug)."""
    levels = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
    return next((number for least, number in levels if level >= least), 7)


def _field(name: str, value: str, bytes_max: int = _VALUE_BYTES_MAX) -> bytes:
    """Encode a field in the form with a length, which takes any bytes."""
    content = value.encode(errors="backslashreplace")[:bytes_max]
    return name.encode() + b"\n" + struct.pack("<Q", len(content)) + content + b"\n"
