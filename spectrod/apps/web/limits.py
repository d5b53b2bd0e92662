"""Bounds of the server, which every page is told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a server, for each of its clients unless a text says otherwise."""

    clients: int = 32
    """Clients of the server."""
    streams: int = 40
    """Streams of a view: eight channels, each with waterfall, line and three holds."""
    values: int = 16384
    """Values of a row, and bands of a topic that is shown."""
    rows_s: float = 200.0
    """Rows a second of a stream [1/s]."""
    message_bytes: int = 16384
    """Size of a text from the page [bytes]."""
    queue_rows: int = 512
    """Rows that wait."""
    queue_bytes: int = 1 << 20
    """Their size [bytes]."""
    unacked_messages: int = 8
    """Binary messages that are sent without an acknowledgement."""
    unacked_s: float = 0.4
    """Time from the oldest of them after which no other is sent, beside the line's own delay, which
    counts up to as much [s]."""
    silent_s: float = 60.0
    """Time without an acknowledgement after which a visible client is closed [s]."""
    hold_bytes: int = 64 << 20
    """Holds of all bins [bytes]."""
