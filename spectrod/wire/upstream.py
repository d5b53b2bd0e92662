"""What peers send to a publisher: subscriptions within bounds. Whoever sends more is cut off.

libzmq keeps every subscription of every connection in a tree of its own, about 48 bytes for each
byte of a prefix, without a bound; and walks through all of it when a connection ends.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator

import zmq

from spectrod.wire.access import Access
from spectrod.wire.holders import KeyHolders
from spectrod.wire.links import Link, Transport, cut, fd_of

PREFIX_MAX_BYTES = 201
"""Length of the longest topic: ``bands/``, and three names of 64 with a slash each [bytes]."""
SUBSCRIPTIONS_A_LINK = 256
"""Different prefixes that one connection may subscribe to."""
PREFIXES_A_LINK_BYTES = 16 * 1024
"""Length of these together [bytes]."""
SUBSCRIPTIONS_MAX = 64 * 1024
"""Subscriptions of all connections together."""
PREFIXES_MAX_BYTES = 128 * 1024
"""Length of all different prefixes together [bytes]."""

_REQUESTS_A_TURN = 4096  # a flood of them must not hold the spectra up
_CHECK_S = 1.0


class Upstream:
    """Reads what peers have sent to a publisher's sockets. To be used by one thread.

    A connection is cut off that sends anything but a subscription or its end, or a prefix that is
    longer than any topic, or that subscribes to more than one may; and where all together have more
    than all may, the one that has most. Of a prefix that several have subscribed to, libzmq tells
    the end of the last subscription only: it may count for the others until they have gone.

    Parameters
    ----------
    access : Access
        Knows by which connection a message came.
    holders : KeyHolders
        Knows by which key each connection came in.
    on_cut : callable
        Called when a connection was cut off.
    """

    def __init__(
        self, access: Access, holders: KeyHolders, on_cut: Callable[[Transport], None]
    ) -> None:
        self._access, self._key_holders, self._on_cut = access, holders, on_cut
        self._of_link: dict[Link, set[bytes]] = {}
        self._lengths: Counter[Link] = Counter()
        self._holders: Counter[bytes] = Counter()
        self._n_subscriptions = 0
        self._prefixes_bytes = 0
        self._cut: set[Link] = set()
        self._check_s = 0.0

    def take(self, socket: zmq.SyncSocket) -> Iterator[bytes]:
        """Yield the subscriptions (``1`` and a prefix) and ends of such (``0`` and a prefix).

        At most some of what has come, so that spectra are sent meanwhile.
        """
        self._forget_gone()
        for _ in range(_REQUESTS_A_TURN):
            try:
                frame = socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            if fd_of(frame) is None:
                yield frame.bytes
                continue
            link, request = self._access.link_of(frame), frame.bytes
            # Of nothing else does a connection get anything.
            if link is not None and request[:1] == b"\x01" and link not in self._cut:
                self._key_holders.note(link, frame)
            if self._note(link, request):
                yield request

    def cut_revoked(self) -> None:
        """Cut the connections whose key was revoked."""
        self._key_holders.refresh()

    def _note(self, link: Link | None, request: bytes) -> bool:
        """Count what a connection has sent; say whether it is to be looked at."""
        if request[:1] not in (b"\x00", b"\x01") or len(request) > 1 + PREFIX_MAX_BYTES:
            self._cut_off(link)
            return False
        # Of a connection that has gone, or was cut off, libzmq takes its subscriptions back.
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
            # Neither is exceeded where nobody has any.
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
        self._check_s = now_s + _CHECK_S
        for link in [link for link in self._of_link if not link.is_there]:
            self._forget(link)
        self._cut = {link for link in self._cut if link.is_there}
