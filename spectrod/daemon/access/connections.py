"""Counts connections, and closes endpoints to new ones at a bound.

Each connection costs a descriptor before the peer is known. A process without free descriptors
cannot write recordings or read keys, and libzmq 4.3.5 aborts it when a peer connects to an IPC
endpoint. Hence a bound far below the limit of descriptors: when it is reached, all endpoints of the
transport refuse new connections until there is room again. Existing connections remain.
"""

import itertools
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from spectrod.daemon.access.tcp_links import Link, Transport, inode_of
from spectrod.lib.events import EventLog
from spectrod.lib.rate_limit import TokenBucket

RATE_MAX_PER_S = 500.0
"""Sustained rate of new connections of a transport [1/s]; the burst is the bound on connections.
Each connection costs processor time before it sends anything."""
IPC_SHARE = 4
"""``max_connections`` divided by this is the additional bound for IPC."""

FLOODS_PER_S, FLOODS_BURST = 1.0, 2.0
"""Rate [1/s] and burst of cuts for sending too much, above which new connections must wait."""

_REOPEN_SHARE = 7 / 8  # of the bound, above which a closed endpoint stays closed
_SHORT_SHARE = 7 / 8  # of the limit of descriptors, above which no new connection is accepted
_PERIOD_S = 0.1  # minimum time in one state, unless it must be closed
_SHORT_S = 1.0  # wait before it checks for free descriptors again
_RETRY_S = 1.0  # delay before a failed switch is retried
_FLOOD_HOLD_S = 1.0
_REPORT_LIMIT_S = 0.1  # that libzmq may take to report a connection after its first message
_NO_WAIT_S = 1.0  # after a connection that was not reported
_OPEN_REPORT_S = 10.0  # open for this long, it is reported as open
_Place = tuple[Transport, str]
_log = logging.getLogger("spectrod")


class Door(Protocol):
    """Endpoint that can refuse new connections, see ``ListeningSocket``."""

    def refuse_connections(self) -> None:
        """Refuse new connections; raises OSError."""

    def accept_connections(self) -> None:
        """Accept new connections again; raises OSError."""


def bounds(max_connections: int, descriptors: int) -> dict[Transport, int]:
    """Return the bound of each transport: half of all descriptors at most, a quarter of it for IPC.

    Parameters
    ----------
    max_connections : int
        Bound over TCP; a quarter of it over IPC.
    descriptors : int
        Limit of open descriptors of the process.
    """
    return {
        "tcp": max(1, min(max_connections, descriptors * 3 // 8)),
        "ipc": max(1, min(max_connections // IPC_SHARE, descriptors // 8)),
    }


class _Live(NamedTuple):
    """A connection, by its descriptor."""

    monitor: Hashable
    """The monitor that reported it."""
    place: _Place
    inode: int | None
    free_since: int
    """Moment at which an earlier connection freed the descriptor; 0 if there was none."""


class _Side:
    """The endpoints and connections of one transport."""

    def __init__(self, bound: int, now_s: float) -> None:
        self.bound = bound
        self.count = 0
        self.doors: tuple[Door, ...] = ()
        self.bucket = TokenBucket(RATE_MAX_PER_S, bound, now_s)
        self.floods = TokenBucket(FLOODS_PER_S, FLOODS_BURST, now_s)
        self.flood_until_s = -math.inf
        self.is_closed = False
        self.is_reported = False  # as closed, and not yet as open again
        self.has_failed = False
        self.closings = 0
        self.changed_s = self.failed_s = -math.inf

    def reason(self, now_s: float) -> str:
        """Return why it must be closed; empty if it may be open."""
        share = _REOPEN_SHARE if self.is_closed else 1.0
        if self.count >= max(1.0, self.bound * share):
            return f"{self.count} connections, at most {self.bound} are allowed"
        if self.bucket.wait_s(now_s):
            return f"more than {RATE_MAX_PER_S:g} new connections a second"
        if now_s < self.flood_until_s:
            return "peers send more than can be read, and connections were cut"
        return ""


class Connections:
    """Counts connections, and closes and opens the endpoints accordingly.

    Any thread may call ``add``, ``tell``, ``note_flood``, ``hold_new_connections`` and ``status``;
    the other methods belong to the thread that reads the monitors.

    Parameters
    ----------
    max_connections : int
        Bound over TCP; a quarter of it over IPC.
    descriptors : int
        Limit of open descriptors of the process.
    events : EventLog or None
        Receives an event when endpoints close and open.
    now_s : callable
        The clock [s].
    inode_of : callable
        Returns a descriptor's inode, see ``spectrod.daemon.access.tcp_links``.
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
        # By descriptor. A descriptor that is reported again was closed in between, even if no
        # monitor reported the end.
        self._live: dict[int, _Live] = {}
        # A logical clock; and the moment at which the last connection of each descriptor ended.
        self._moment = 0
        self._freed: dict[int, int] = {}
        self._counts = Counter[_Place]()
        self._on_accepted: tuple[Callable[[], None], ...] = ()
        self._lock = threading.Lock()
        self._is_reported = threading.Condition(self._lock)
        self._no_wait_until_s = -math.inf

    def add(self, transport: Transport, door: Door) -> None:
        """Add an endpoint, which is open; any thread."""
        with self._lock:
            side = self._sides[transport]
            side.doors = (*side.doors, door)

    def tell(self, on_accepted: Callable[[], None]) -> None:
        """Have a function called after each new connection, before its admission; any thread."""
        with self._lock:
            self._on_accepted = (*self._on_accepted, on_accepted)

    def note_flood(self, transport: Transport) -> None:
        """Record that a connection was cut because it sent too much; any thread.

        After a few of them new connections wait for a second, in which the backlog can be read: a
        peer that was cut reconnects at once.
        """
        now_s = self._now_s()
        with self._lock:
            side = self._sides[transport]
            if not side.floods.take(now_s):
                side.flood_until_s = now_s + _FLOOD_HOLD_S

    def hold_new_connections(self) -> None:
        """Refuse new connections for a second; any thread."""
        now_s = self._now_s()
        with self._lock:
            for side in self._sides.values():
                side.flood_until_s = now_s + _FLOOD_HOLD_S

    def status(self) -> dict[Transport, dict[str, Any]]:
        """Return count, bound, state and number of closings of each transport."""
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
        """Record that a connection is being admitted; return the moment, for ``link_of``.

        All earlier monitor events must have been processed.
        """
        self._moment += 1
        return self._moment

    def link_of(self, fd: int, admitted: int) -> Link | None:
        """Return the connection of a descriptor, admitted at a moment; any other thread.

        None if that connection has ended, even if another has its descriptor now. One thread of
        libzmq hands a new connection to another before it reports it, so the report may come after
        the connection's first message. It is awaited for 0.1 s, and if there is none, no report is
        awaited for a second.
        """
        inode = self._inode_of(fd)
        if inode is None:
            return None
        if not self.is_reported(Link(fd, inode)):
            self._wait_reported(Link(fd, inode))
        live = self._live.get(fd)
        if live is None or live.inode != inode or live.free_since > admitted:
            return None
        return Link(fd, inode)

    def is_reported(self, link: Link) -> bool:
        """Return whether libzmq has reported a connection; any thread."""
        live = self._live.get(link.fd)
        return live is not None and live.inode == link.inode

    def _wait_reported(self, link: Link) -> None:
        with self._is_reported:
            if self._now_s() < self._no_wait_until_s:
                return
            is_found = partial(self.is_reported, link)
            if not self._is_reported.wait_for(is_found, _REPORT_LIMIT_S):
                self._no_wait_until_s = self._now_s() + _NO_WAIT_S

    def accepted(self, monitor: Hashable, endpoint: str, fd: int) -> None:
        """Record a new connection, whose descriptor was the lowest free one."""
        now_s = self._now_s()
        self._forget(fd)
        place = _place(endpoint)
        with self._is_reported:
            self._live[fd] = _Live(monitor, place, self._inode_of(fd), self._freed.get(fd, 0))
            self._is_reported.notify_all()
        side = self._sides[place[0]]
        side.count += 1
        self._counts[place] += 1
        side.bucket.spend(now_s)
        if fd >= self._short_fd:
            self._short_until_s = now_s + _SHORT_S
        for call in self._on_accepted:
            call()

    def ended(self, monitor: Hashable, fd: int) -> None:
        """Record the end of a connection."""
        if fd in self._live and self._live[fd].monitor == monitor:
            self._forget(fd)

    def unbound(self, monitor: Hashable, endpoint: str) -> None:
        """Record that an endpoint was unbound, which ends its connections without an event."""
        place = _place(endpoint)
        here = [(one.monitor, one.place) == (monitor, place) for one in self._live.values()]
        for fd in itertools.compress(tuple(self._live), here):
            self._forget(fd)

    @property
    def due_s(self) -> float:
        """Latest time to call ``regulate`` again, by the clock; may be infinite."""
        return min(self._due_s(side) for side in self._sides.values())

    def regulate(self) -> None:
        """Close the endpoints that must be closed, and open those that may be open."""
        now_s = self._now_s()
        for transport, side in self._sides.items():
            is_short = now_s < self._short_until_s
            reason = "descriptors run short" if is_short else side.reason(now_s)
            is_due = now_s >= max(side.changed_s + _PERIOD_S, side.failed_s + _RETRY_S)
            if bool(reason) != side.is_closed and (is_due or (reason and not side.has_failed)):
                self._switch(transport, side, reason, now_s)
            if side.is_reported and not side.is_closed and now_s >= side.changed_s + _OPEN_REPORT_S:
                side.is_reported = False
                text = f"{transport}: open to new connections; closed {side.closings} times so far"
                self._report(logging.INFO, "listen.open", text)

    def _switch(self, transport: Transport, side: _Side, reason: str, now_s: float) -> None:
        try:
            for door in side.doors:
                (door.refuse_connections if reason else door.accept_connections)()
        except OSError as error:
            if not side.has_failed:
                doing = "closed" if reason else "opened"
                text = f"{transport}: cannot be {doing} to new connections: {error}"
                self._report(logging.ERROR, "listen.failed", text)
            side.has_failed, side.failed_s = True, now_s
            return
        side.has_failed = False
        side.is_closed, side.changed_s = bool(reason), now_s
        side.closings += side.is_closed
        if reason and not side.is_reported:
            side.is_reported = True
            text = f"{transport}: closed to new connections: {reason}"
            self._report(logging.WARNING, "listen.closed", text)

    def _due_s(self, side: _Side) -> float:
        if side.has_failed:
            return side.failed_s + _RETRY_S
        if side.is_closed:
            return self._now_s() + _PERIOD_S
        return side.changed_s + _OPEN_REPORT_S if side.is_reported else math.inf

    def _forget(self, fd: int) -> None:
        live = self._live.pop(fd, None)
        if live is not None:
            self._moment += 1
            self._freed[fd] = self._moment
            self._sides[live.place[0]].count -= 1
            self._counts[live.place] -= 1

    def _report(self, level: int, kind: str, text: str) -> None:
        _log.log(level, "%s", text, extra={"about": {"event": kind}})
        if self._events is not None:
            self._events.add(kind, text)


def _place(endpoint: str) -> _Place:
    """Return the part that an endpoint as bound and as reported for a connection share."""
    if endpoint.startswith("ipc:"):
        return "ipc", endpoint
    return "tcp", endpoint.rpartition(":")[2]
