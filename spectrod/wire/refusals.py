"""Connections that were refused: counted by kind, told of at a bounded rate."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from spectrod.events import EventLog

Kind = Literal["no_key", "wrong_server_key", "unknown_key", "revoked_key", "flood", "other"]
"""``other``: a handshake that its peer broke off; one without a key may, once it sees that one is
needed. What speaks no ZeroMQ is cut off without a word, also to us."""

PERIOD_S = 60.0

_WORDS: Mapping[Kind, str] = {
    "no_key": "without a key where one is needed, or with one where none is",
    "wrong_server_key": "with another server key than ours",
    "unknown_key": "with an unknown key",
    "revoked_key": "with a revoked key",
    "flood": "that sent more than a subscriber may, and was cut off",
    "other": "that broke its handshake off",
}
_log = logging.getLogger("spectrod")


class Refusals:
    """Counts of refused connections, by kind.

    The first of its kind is told at once, those after it in one line a minute: who knocks a
    thousand times a second fills neither the log nor the list of events. Any thread may read.

    Parameters
    ----------
    events : EventLog or None
        Is told what the log is told.
    now_s : callable
        The clock [s].
    """

    def __init__(
        self, events: EventLog | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._events = events
        self._now_s = now_s
        self._lock = threading.Lock()
        self._counts: Counter[Kind] = Counter()
        self._untold: Counter[Kind] = Counter()
        self._told_at_s: dict[Kind, float] = {}

    @property
    def counts(self) -> dict[Kind, int]:
        """How many there were since the start, of each kind."""
        with self._lock:
            return {kind: self._counts[kind] for kind in get_args(Kind)}

    @property
    def due_s(self) -> float | None:
        """When ``tell`` has something to say, by the clock; None if nothing waits."""
        with self._lock:
            return min((self._told_at_s[kind] for kind in self._untold), default=None)

    def add(self, kind: Kind, who: str = "") -> None:
        """Note one; who it was is told of the first only."""
        now_s = self._now_s()
        with self._lock:
            self._counts[kind] += 1
            if now_s < self._told_at_s.get(kind, now_s):
                self._untold[kind] += 1
                return
            # What waited until now, and this one, are told together.
            count = self._untold.pop(kind, 0) + 1
            self._told_at_s[kind] = now_s + PERIOD_S
        self._say(kind, count, who)

    def tell(self) -> None:
        """Say what has waited for a minute; to be called when it is due."""
        now_s = self._now_s()
        with self._lock:
            due = [kind for kind in self._untold if now_s >= self._told_at_s[kind]]
            counts = {kind: self._untold.pop(kind) for kind in due}
            self._told_at_s |= dict.fromkeys(due, now_s + PERIOD_S)
        for kind, count in counts.items():
            self._say(kind, count, "")

    def _say(self, kind: Kind, count: int, who: str) -> None:
        connections = "a connection" if count == 1 else f"{count} connections in a minute"
        text = f"refused {connections} {_WORDS[kind]}" + (f": {who}" if who else "")
        _log.warning("%s", text)
        if self._events is not None:
            self._events.add(f"security.{kind}", text)
