"""Reads subscriptions within bounds; cuts peers that send more.

libzmq keeps every subscription of every connection in a tree without a bound, about 48 bytes for
each byte of a prefix, and walks through the whole tree when a connection ends.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator

import zmq

from spectrod.daemon.access.access import Access
from spectrod.daemon.access.holders import KeyHolders
from spectrod.daemon.access.tcp_links import Link, Transport, cut, fd_of

PREFIX_MAX_BYTES = 204
"""Longest topic: ``features/`` and three names of 64 bytes with a slash each [bytes]."""
SUBSCRIPTIONS_A_LINK = 256
"""Maximum number of different prefixes of one connection."""
PREFIXES_A_LINK_BYTES = 16 * 1024
"""Maximum total length of one connection's prefixes [bytes]."""
SUBSCRIPTIONS_MAX = 64 * 1024
"""Maximum number of subscriptions of all connections together."""
PREFIXES_MAX_BYTES = 128 * 1024
"""Maximum total length of all different prefixes [bytes]."""

_REQUESTS_A_TURN = 4096  # a flood must not delay the spectra
CHECK_S = 1.0
"""Time between searches for connections that have gone [s]."""


class Upstream:
    """Reads the messages of peers to a publisher's sockets. Used by one thread.

    A connection is cut if it sends anything but subscriptions and unsubscriptions, sends a prefix
    longer than any topic, or exceeds the bounds of one connection; when the total bounds are
    exceeded, the connection with most is cut. If several connections subscribe to a prefix, libzmq
    reports only the last unsubscription: an earlier one may count until its connection has gone.

    Parameters
    ----------
    access : Access
        Finds the connection of a message.
    holders : KeyHolders
        Records the key of each connection.
    on_cut : callable
        Called when a connection was cut.
    check_s : float
        Time between searches for connections that have gone [s].
    """

    def __init__(
        self,
        access: Access,
        holders: KeyHolders,
        on_cut: Callable[[Transport], None],
        check_s: float = CHECK_S,
    ) -> None:
        self._every_s = check_s
        self._access, self._key_holders, self._on_cut = access, holders, on_cut
        self._of_link: dict[Link, set[bytes]] = {}
        self._lengths: Counter[Link] = Counter()
        self._holders: Counter[bytes] = Counter()
        self._n_subscriptions = 0
        self._prefixes_bytes = 0
        self._cut: set[Link] = set()
        self._check_s = 0.0

    def take(self, socket: zmq.SyncSocket) -> Iterator[bytes]:
        """Yield subscriptions (``1`` and a prefix) and unsubscriptions (``0`` and a prefix).

        It yields a bounded number, so spectra are sent in between.
        """
        self._forget_gone()
        # Each connection is looked up once a turn: system calls cost as much as all the rest.
        links: dict[int, Link | None] = {}
        for _ in range(_REQUESTS_A_TURN):
            try:
                frame = socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            if fd_of(frame) is None:
                yield frame.bytes
                continue
            admission = self._access.admission_of(frame)
            if admission not in links:
                links[admission] = self._access.link_of(frame)
            link, request = links[admission], frame.bytes
            # Only a subscription makes a connection receive messages.
            if request[:1] == b"\x01" and link not in self._cut:
                self._key_holders.note(link, frame)
            if self._note(link, request):
                yield request

    @property
    def due_s(self) -> float:
        """Latest time to call ``cut_revoked`` again, by the monotonic clock; may be infinite."""
        return self._key_holders.due_s

    def cut_revoked(self) -> None:
        """Cut the connections whose key was revoked."""
        self._key_holders.refresh()

    def _note(self, link: Link | None, request: bytes) -> bool:
        """Count a request of a connection; return whether to process it."""
        if request[:1] not in (b"\x00", b"\x01") or len(request) > 1 + PREFIX_MAX_BYTES:
            self._cut_off(link)
            return False
        # libzmq removes the subscriptions of a connection that has ended or was cut.
        if link is None or link in self._cut:
            return True
        prefix = request[1:]
        mine = self._of_link.setdefault(link, set())
        if request[:1] == b"\x00":
            if prefix in mine:
                self._remove(link, prefix)
        elif prefix not in mine:
            self._add(link, prefix)
        return True

    def _add(self, link: Link, prefix: bytes) -> None:
        self._of_link[link].add(prefix)
        self._lengths[link] += len(prefix)
        self._n_subscriptions += 1
        self._holders[prefix] += 1
        if self._holders[prefix] == 1:
            self._prefixes_bytes += len(prefix)
        n_mine = len(self._of_link[link])
        if n_mine > SUBSCRIPTIONS_A_LINK or self._lengths[link] > PREFIXES_A_LINK_BYTES:
            self._cut_off(link)
        while (
            self._n_subscriptions > SUBSCRIPTIONS_MAX or self._prefixes_bytes > PREFIXES_MAX_BYTES
        ):
            # If a bound is exceeded, some connection has subscriptions.
            self._cut_off(max(self._of_link, key=lambda link: self._lengths[link]))

    def _remove(self, link: Link, prefix: bytes) -> None:
        self._of_link[link].remove(prefix)
        self._lengths[link] -= len(prefix)
        self._n_subscriptions -= 1
        self._holders[prefix] -= 1
        if not self._holders[prefix]:
            del self._holders[prefix]
            self._prefixes_bytes -= len(prefix)

    def _cut_off(self, link: Link | None) -> None:
        if link is None or link in self._cut:
            return
        self._forget(link)
        self._cut.add(link)
        transport = cut(link)
        if transport is not None:
            self._on_cut(transport)

    def _forget(self, link: Link) -> None:
        for prefix in tuple(self._of_link.get(link, ())):
            self._remove(link, prefix)
        self._of_link.pop(link, None)
        self._lengths.pop(link, None)

    def _forget_gone(self) -> None:
        now_s = time.monotonic()
        if now_s < self._check_s:
            return
        self._check_s = now_s + self._every_s
        for link in [link for link in self._of_link if not link.is_there]:
            self._forget(link)
        self._cut = {link for link in self._cut if link.is_there}
