"""Endpoints of one socket; cuts their connections after the server's key has changed."""

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import zmq

from spectrod.daemon.access.access import Access
from spectrod.daemon.access.bind import listen
from spectrod.daemon.access.listening import ListeningSocket
from spectrod.daemon.access.tcp_links import Links, cut
from spectrod.lib.backoff import Backoff
from spectrod.lib.errors import UnavailableError
from spectrod.wire.endpoint import Endpoint

_RETRY_FIRST_S, _RETRY_LAST_S = 0.1, 30.0
_log = logging.getLogger("spectrod")


@dataclass
class _PausedSocket:
    """A listening socket that accepts nothing until ZeroMQ has it again."""

    listening: ListeningSocket
    due_s: float
    has_failed: bool = False
    backoff: Backoff = field(default_factory=lambda: Backoff(_RETRY_FIRST_S, _RETRY_LAST_S))

    @property
    def must_wait(self) -> bool:
        """Whether it has to stay closed."""
        return self.listening.must_unbind


class Listeners:
    """Binds a socket to endpoints, with keys where they are needed. Used by the socket's owner.

    Parameters
    ----------
    sock : zmq.Socket
        Made with ``access.context``, options set.
    access : Access
        Started.
    wake : callable
        Called by any thread when ``refresh`` has something to do.
    linger_s : float
        Delay between a change of the server's key and the cut of connections, in which messages
        that were sent before go out [s].
    """

    def __init__(
        self,
        sock: zmq.SyncSocket,
        access: Access,
        wake: Callable[[], None],
        *,
        linger_s: float = 0.0,
    ) -> None:
        self._sock = sock
        self._access = access
        self._linger_s, self._cut_due_s = linger_s, math.inf
        self._generation = access.generation
        self._wake = wake
        self._all: list[ListeningSocket] = []
        self._waiting: list[_PausedSocket] = []
        access.watch(sock, wake)

    def bind(self, endpoint: Endpoint, cleanup: ExitStack) -> str:
        """Listen as ``bind.listen`` and accept; return the endpoint as bound.

        Raises
        ------
        BusyError, ConfigError, StorageError, UnavailableError
            If the endpoint cannot be bound.
        """
        listening = listen(endpoint, cleanup)
        listening.on_must_unbind = self._wake
        try:
            self._lend(listening)
        except OSError as error:
            raise UnavailableError(f"endpoint={endpoint.text!r}: {error.strerror}") from error
        self._access.connections.add(endpoint.transport, listening)
        self._all.append(listening)
        return listening.text

    @property
    def with_keys(self) -> tuple[str, ...]:
        """Endpoints that accept connections of known keys only, as they were bound."""
        access = self._access
        return tuple(one.text for one in self._all if access.is_curve(one.endpoint))

    @property
    def due_s(self) -> float:
        """Latest time to call ``refresh`` again, by the monotonic clock; may be infinite."""
        waiting = (one.due_s for one in self._waiting if not one.must_wait)
        return min([self._cut_due_s, *waiting])

    def refresh(self) -> bool:
        """Cut the connections of endpoints that must be cut; return whether any were.

        These are the endpoints with keys after a change of the server's key, and an endpoint that
        has to be closed to new connections where the system offers no other way. Clients that may
        connect reconnect by themselves; messages queued for them may be lost. If an endpoint cannot
        accept again at once, for lack of descriptors, that is logged, reported as an event and
        retried; until then new connections wait, and everything else continues.
        """
        now_s = time.monotonic()
        if self._generation != self._access.generation:
            self._generation = self._access.generation
            self._cut_due_s = min(self._cut_due_s, now_s + self._linger_s)
        has_key_gone = now_s >= self._cut_due_s
        if has_key_gone:
            self._cut_due_s = math.inf
        waiting = {id(one.listening) for one in self._waiting}
        is_cut = has_key_gone
        for listening in self._all:
            is_revoked = has_key_gone and self._access.is_curve(listening.endpoint)
            if (is_revoked or listening.must_unbind) and id(listening) not in waiting:
                self._cut(listening)
                self._waiting.append(_PausedSocket(listening, 0.0))
                is_cut = True
        self._accept_again()
        return is_cut

    def _cut(self, listening: ListeningSocket) -> None:
        # libzmq 4.3.5 aborts the process (session_base.cpp, errno_assert in clean_pipes) if a peer
        # that does not read goes after its endpoint was unbound: half of a message is in its queue,
        # and the queue has ended. So connections are cut first, as if their peers had gone.
        try:
            found = Links((listening.text,)).find()
        except OSError as error:  # without /proc only libzmq can cut them
            _log.warning("%s: unbinding cuts the connections: %s", listening.text, error)
        else:
            for link in found:
                cut(link)
            self._access.monitors.wait_ended(listening.text)
        closed = self._access.monitors.times_closed(listening.text)
        listening.take_back(self._sock)
        # Before connections of the new listener are counted.
        self._access.monitors.wait_closed(listening.text, closed + 1)

    def _lend(self, listening: ListeningSocket) -> None:
        self._access.prepare(self._sock, listening.endpoint)
        listening.lend(self._sock)

    def _accept_again(self) -> None:
        now_s = time.monotonic()
        for waiting in [one for one in self._waiting if now_s >= one.due_s and not one.must_wait]:
            text = waiting.listening.text
            try:
                self._lend(waiting.listening)
            except OSError as error:
                wait_s = waiting.backoff.next_s()
                waiting.due_s, waiting.has_failed = now_s + wait_s, True
                self._report(
                    logging.ERROR,
                    "listen.failed",
                    f"{text}: accepts no connections: {error.strerror}; next try in {wait_s:.1f} s",
                )
            else:
                self._waiting.remove(waiting)
                if waiting.has_failed:
                    self._report(logging.INFO, "listen.open", f"{text}: accepts connections again")

    def _report(self, level: int, kind: str, text: str) -> None:
        _log.log(level, "%s", text, extra={"about": {"event": kind}})
        if self._access.events is not None:
            self._access.events.add(kind, text)
