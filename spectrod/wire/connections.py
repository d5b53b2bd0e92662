"""How many connections there are, and when endpoints are closed to newcomers.

Whoever connects costs a descriptor before anything is known of it, and a process that has none left
can write no recording, read no keys, and is ended by libzmq 4.3.5 when somebody connects to an IPC
endpoint. Hence a bound, far below the limit of descriptors, at which all endpoints of a transport
are closed to newcomers until there is room again. Connections that live are not touched.
"""

import itertools
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

from spectrod.events import EventLog
from spectrod.wire.limits import TokenBucket
from spectrod.wire.links import Link, Transport, inode_of

RATE_MAX_PER_S = 500.0
"""New connections of a transport that are taken in the long run [1/s]; as many as the bound at
once. Each costs processor time before it has said anything."""
IPC_SHARE = 4
"""Of max_connections, one in so many may be over IPC besides."""

FLOODS_PER_S, FLOODS_BURST = 1.0, 5.0
"""Connections that may be cut off because they sent too much, before newcomers have to wait."""

_REOPEN_SHARE = 7 / 8  # of the bound, above which a closed endpoint stays closed
_SHORT_SHARE = 7 / 8  # of the limit of descriptors, above which nobody is let in
_PERIOD_S = 0.1  # for which it stays closed or open, unless it has to be closed
_SHORT_S = 1.0  # until it is tried whether there are descriptors again
_RETRY_S = 1.0  # after which what failed is tried again
_CALM_AFTER_FLOOD_S = 1.0
_CALM_S = 10.0  # open for so long, it is said that it is open
_Place = tuple[Transport, str]
_log = logging.getLogger("spectrod")


class Door(Protocol):
    """What can be closed to newcomers, see ``ListeningSocket``."""

    def close_to_newcomers(self) -> None:
        """Have nobody else connect; raises OSError."""

    def open_to_newcomers(self) -> None:
        """Let others connect again; raises OSError."""


def bounds(max_connections: int, descriptors: int) -> dict[Transport, int]:
    """Divide descriptors: at most half of them go to connections, a quarter of that half to IPC.

    Parameters
    ----------
    max_connections : int
        Over TCP; over IPC a quarter of it.
    descriptors : int
        That the process may have open.
    """
    return {
        "tcp": max(1, min(max_connections, descriptors * 3 // 8)),
        "ipc": max(1, min(max_connections // IPC_SHARE, descriptors // 8)),
    }


class _Live(NamedTuple):
    """A connection, by its descriptor."""

    monitor: Hashable
    """That has reported it."""
    place: _Place
    inode: int | None
    free_since: int
    """The last moment at which the descriptor was an earlier connection's; 0: it never was."""


class _Side:
    """The endpoints and connections of one transport."""

    def __init__(self, bound: int, now_s: float) -> None:
        self.bound = bound
        self.count = 0
        self.doors: tuple[Door, ...] = ()
        self.bucket = TokenBucket(RATE_MAX_PER_S, bound, now_s)
        self.floods = TokenBucket(FLOODS_PER_S, FLOODS_BURST, now_s)
        self.calm_s = -math.inf
        self.is_closed = False
        self.is_told = False  # that it was closed, and not yet that it is open
        self.has_failed = False
        self.closings = 0
        self.changed_s = self.failed_s = -math.inf

    def reason(self, now_s: float) -> str:
        """Say why it must be closed; empty if it may be open."""
        share = _REOPEN_SHARE if self.is_closed else 1.0
        if self.count >= max(1.0, self.bound * share):
            return f"{self.count} connections, at most {self.bound} may be"
        if self.bucket.wait_s(now_s):
            return f"more than {RATE_MAX_PER_S:g} new connections a second"
        if now_s < self.calm_s:
            return "more has come than can be taken in, and connections were cut off"
        return ""


class Connections:
    """Counts connections, and closes and opens the endpoints by their number.

    ``add``, ``note_flood``, ``hold_newcomers`` and ``facts`` are for any thread, the other methods
    for the one that reads the monitors.

    Parameters
    ----------
    max_connections : int
        Over TCP; over IPC a quarter of it.
    descriptors : int
        That the process may have open.
    events : EventLog or None
        Is told when endpoints close and open.
    now_s : callable
        The clock [s].
    inode_of : callable
        Gives a descriptor's inode, see ``spectrod.wire.links``.
    """

    def __init__(
        self,
        max_connections: int,
        descriptors: int,
        events: EventLog | None = None,
        now_s: Callable[[], float] = time.monotonic,
        inode_of: Callable[[int], int | None] = inode_of,
    ) -> None:
        self._events, self._now_s, self._inode_of = events, now_s, inode_of
        self._short_fd = int(descriptors * _SHORT_SHARE)
        self._short_until_s = -math.inf
        self._sides: Mapping[Transport, _Side] = {
            transport: _Side(bound, now_s())
            for transport, bound in bounds(max_connections, descriptors).items()
        }
        # By descriptor. If one is reported again, it was closed in between, even if no monitor
        # reported that.
        self._live: dict[int, _Live] = {}
        # Counts what happens; and when each descriptor's last connection ended, by that count.
        self._moment = 0
        self._freed: dict[int, int] = {}
        self._counts = Counter[_Place]()
        self._lock = threading.Lock()

    def add(self, transport: Transport, door: Door) -> None:
        """Take one more endpoint, which is open; any thread."""
        with self._lock:
            side = self._sides[transport]
            side.doors = (*side.doors, door)

    def note_flood(self, transport: Transport) -> None:
        """Note that a connection was cut off because it sent too much; any thread.

        After a few of them newcomers wait for a second, so that what has come can be taken in:
        whoever was cut off connects again at once.
        """
        now_s = self._now_s()
        with self._lock:
            side = self._sides[transport]
            if not side.floods.take(now_s):
                side.calm_s = now_s + _CALM_AFTER_FLOOD_S

    def hold_newcomers(self) -> None:
        """Have newcomers wait for a second; any thread."""
        now_s = self._now_s()
        with self._lock:
            for side in self._sides.values():
                side.calm_s = now_s + _CALM_AFTER_FLOOD_S

    def facts(self) -> dict[Transport, dict[str, Any]]:
        """Say of each transport how many there are and may be, and how often it was closed."""
        return {
            transport: {
                "count": side.count,
                "max": side.bound,
                "is_closed": side.is_closed,
                "closings": side.closings,
            }
            for transport, side in self._sides.items()
        }

    def count_of(self, endpoint: str) -> int:
        """Count the connections to an endpoint; any thread."""
        return self._counts[_place(endpoint)]

    def admit(self) -> int:
        """Note that a connection is about to be let in, and return the moment, for ``link_of``.

        All that was reported before must have been noted.
        """
        self._moment += 1
        return self._moment

    def link_of(self, fd: int, admitted: int) -> Link | None:
        """Return the connection of a descriptor that was let in at a moment; any thread.

        None if that connection has ended, whoever has its descriptor now.
        """
        live = self._live.get(fd)
        inode = self._inode_of(fd)
        if live is None or inode is None or live.inode != inode or live.free_since > admitted:
            return None
        return Link(fd, inode)

    def accepted(self, monitor: Hashable, endpoint: str, fd: int) -> None:
        """Note a new connection, whose descriptor was the lowest that was free."""
        now_s = self._now_s()
        self._forget(fd)
        place = _place(endpoint)
        self._live[fd] = _Live(monitor, place, self._inode_of(fd), self._freed.get(fd, 0))
        side = self._sides[place[0]]
        side.count += 1
        self._counts[place] += 1
        side.bucket.spend(now_s)
        if fd >= self._short_fd:
            self._short_until_s = now_s + _SHORT_S

    def ended(self, monitor: Hashable, fd: int) -> None:
        """Note that a connection has ended."""
        if fd in self._live and self._live[fd].monitor == monitor:
            self._forget(fd)

    def unbound(self, monitor: Hashable, endpoint: str) -> None:
        """Note that an endpoint was unbound, which ends its connections without a word."""
        place = _place(endpoint)
        here = [(one.monitor, one.place) == (monitor, place) for one in self._live.values()]
        for fd in itertools.compress(tuple(self._live), here):
            self._forget(fd)

    @property
    def due_s(self) -> float:
        """When ``regulate`` has to be called at the latest, by the clock; maybe never."""
        return min(self._due_s(side) for side in self._sides.values())

    def regulate(self) -> None:
        """Close and open what must be closed or may be open."""
        now_s = self._now_s()
        for transport, side in self._sides.items():
            is_short = now_s < self._short_until_s
            reason = "descriptors run short" if is_short else side.reason(now_s)
            is_due = now_s >= max(side.changed_s + _PERIOD_S, side.failed_s + _RETRY_S)
            if bool(reason) != side.is_closed and (is_due or (reason and not side.has_failed)):
                self._switch(transport, side, reason, now_s)
            if side.is_told and not side.is_closed and now_s >= side.changed_s + _CALM_S:
                side.is_told = False
                text = f"{transport}: open to newcomers; was closed {side.closings} times so far"
                self._tell(logging.INFO, "listen.open", text)

    def _switch(self, transport: Transport, side: _Side, reason: str, now_s: float) -> None:
        try:
            for door in side.doors:
                (door.close_to_newcomers if reason else door.open_to_newcomers)()
        except OSError as error:
            if not side.has_failed:
                doing = "closed" if reason else "opened"
                text = f"{transport}: cannot be {doing} to newcomers: {error}"
                self._tell(logging.ERROR, "listen.failed", text)
            side.has_failed, side.failed_s = True, now_s
            return
        side.has_failed = False
        side.is_closed, side.changed_s = bool(reason), now_s
        side.closings += side.is_closed
        if reason and not side.is_told:
            side.is_told = True
            text = f"{transport}: closed to newcomers: {reason}"
            self._tell(logging.WARNING, "listen.closed", text)

    def _due_s(self, side: _Side) -> float:
        if side.has_failed:
            return side.failed_s + _RETRY_S
        if side.is_closed:
            return self._now_s() + _PERIOD_S
        return side.changed_s + _CALM_S if side.is_told else math.inf

    def _forget(self, fd: int) -> None:
        live = self._live.pop(fd, None)
        if live is not None:
            self._moment += 1
            self._freed[fd] = self._moment
            self._sides[live.place[0]].count -= 1
            self._counts[live.place] -= 1

    def _tell(self, level: int, kind: str, text: str) -> None:
        _log.log(level, "%s", text)
        if self._events is not None:
            self._events.add(kind, text)


def _place(endpoint: str) -> _Place:
    """Name what an endpoint, as bound and as a connection came to it, has in common."""
    if endpoint.startswith("ipc:"):
        return "ipc", endpoint
    return "tcp", endpoint.rpartition(":")[2]
