"""Events: a bounded list of dated lines that operators and subscribers read."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spectrod.lib.text import printable

_KEPT = 1000
_WHO_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    number: int
    """Number from 0 at the daemon's start, without gaps."""
    t_utc_ns: int
    """Time of the event [ns since 1970]."""
    kind: str
    """Kind of the event, two words: ``source.waiting``, ``control.set``, ``record.start``, ..."""
    text: str
    """Description, for a person."""
    source: str = ""
    """Name of the source; empty for an event of the daemon."""
    who: str = ""
    """Peer that caused it; empty if none did."""
    trigger: Mapping[str, Any] | None = None
    """Numbers of a trigger's event, fields of ``wire.headers.TriggerFacts``; None for others."""


class EventLog:
    """The last 1000 events. Any thread may add and read; the oldest are dropped first.

    Parameters
    ----------
    on_event : callable
        Called by the thread that has added an event, without a lock; must not block.
    """

    def __init__(self, on_event: Callable[[], None] = lambda: None) -> None:
        self._on_event = on_event
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._next_number = 0
        self._lock = threading.Lock()

    def add(
        self,
        kind: str,
        text: str,
        *,
        source: str = "",
        who: str = "",
        trigger: Mapping[str, Any] | None = None,
    ) -> Event:
        """Add an event with the current time; the texts are made ``printable``."""
        text, who = printable(text), printable(who, _WHO_MAX_CHARS)
        with self._lock:
            event = Event(self._next_number, time.time_ns(), kind, text, source, who, trigger)
            self._next_number += 1
            self._events.append(event)
        self._on_event()
        return event

    def since(self, number: int = 0, limit: int = _KEPT) -> list[Event]:
        """Return the oldest stored events from a number on, up to a limit."""
        with self._lock:
            return [event for event in self._events if event.number >= number][:limit]
