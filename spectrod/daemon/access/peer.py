"""Who has sent a request, and what it may do."""

from dataclasses import dataclass

from spectrod.wire.requests import Right


@dataclass(frozen=True, slots=True)
class Peer:
    """Sender of a message."""

    name: str
    """Name of its key; the key itself if it was revoked; without a key its address, or its user and
    process."""
    right: Right | None
    """None if the key was revoked."""
