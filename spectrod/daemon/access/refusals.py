"""Counts refused connections by kind, and reports them at a bounded rate."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal, get_args

from spectrod.lib.events import EventLog

Kind = Literal["no_key", "wrong_server_key", "unknown_key", "revoked_key", "flood", "other"]
"""``other``: a handshake that the peer aborted; a peer without a key may abort it when it learns
that one is needed. libzmq drops peers that do not speak ZMTP without an event."""

PERIOD_S = 60.0

_WORDS: Mapping[Kind, str] = {
    "no_key": "without a key where one is required, or with one where none is",
    "wrong_server_key": "with a wrong server key",
    "unknown_key": "with an unknown key",
    "revoked_key": "with a revoked key",
    "flood": "that sent more than a subscriber may, and was cut off",
    "other": "that aborted the handshake",
}
_log = logging.getLogger("spectrod")


class Refusals:
    """Counters of refused connections, by kind.

    The first refusal of a kind is reported at once, later ones in one line a minute: a peer that
    tries a thousand times a second fills neither the log nor the list of events. Any thread may
    read.

    Parameters
    ----------
    events : EventLog or None
        Receives the same reports as the log.
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
        self._unreported: Counter[Kind] = Counter()
        self._reported_at_s: dict[Kind, float] = {}

    @property
    def counts(self) -> dict[Kind, int]:
        """Number of each kind since the start."""
        with self._lock:
            return {kind: self._counts[kind] for kind in get_args(Kind)}

    @property
    def due_s(self) -> float | None:
        """When ``report`` has something to report, by the clock; None if nothing waits."""
        with self._lock:
            return min((self._reported_at_s[kind] for kind in self._unreported), default=None)

    def add(self, kind: Kind, who: str = "") -> None:
        """Count a refusal; only the first report names the peer."""
        now_s = self._now_s()
        with self._lock:
            self._counts[kind] += 1
            if now_s < self._reported_at_s.get(kind, now_s):
                self._unreported[kind] += 1
                return
            # Report this one together with those that have waited.
            count = self._unreported.pop(kind, 0) + 1
            self._reported_at_s[kind] = now_s + PERIOD_S
        self._write(kind, count, who)

    def report(self) -> None:
        """Report the refusals that have waited for a minute; call when ``due_s`` is reached."""
        now_s = self._now_s()
        with self._lock:
            due = [kind for kind in self._unreported if now_s >= self._reported_at_s[kind]]
            counts = {kind: self._unreported.pop(kind) for kind in due}
            self._reported_at_s |= dict.fromkeys(due, now_s + PERIOD_S)
        for kind, count in counts.items():
            self._write(kind, count, "")

    def _write(self, kind: Kind, count: int, who: str) -> None:
        connections = "a connection" if count == 1 else f"{count} connections in a minute"
        text = f"refused {connections} {_WORDS[kind]}" + (f": {who}" if who else "")
        event = f"security.{kind}"
        _log.warning("%s", text, extra={"about": {"event": event}})
        if self._events is not None:
            self._events.add(event, text)
