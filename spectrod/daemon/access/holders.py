"""The key of each connection; cuts the connections of revoked keys."""

import logging
import math
import time
from collections.abc import Collection

import zmq

from spectrod.daemon.access.access import Access
from spectrod.daemon.access.tcp_links import Link, Links, cut, fd_of

_log = logging.getLogger("spectrod")

_LOOK_AT = 256  # connections after which ended ones are removed
_UNREPORTED_MAX = 256  # connections whose keys are kept until they are reported
_REPORT_LIMIT_S = 1.0  # that libzmq may take to report a connection after a revocation
_REPORT_CHECK_S = 0.05


class KeyHolders:
    """Keys of the connections of one thread's sockets. Used by that thread only.

    ZeroMQ authenticates a key only when a connection starts, but reports with each message the key
    of its connection. Messages of a connection may not be read yet: a revocation therefore also
    cuts connections whose key is unknown.

    Parameters
    ----------
    access : Access
        Has the keys in force.
    endpoints : collection of str
        Endpoints of these sockets that require keys, as they were bound.
    linger_s : float
        Delay between the revocation of a key and the cut of its connections, in which messages that
        were sent before go out [s].
    """

    def __init__(
        self, access: Access, endpoints: Collection[str], *, linger_s: float = 0.0
    ) -> None:
        self._access, self._linger_s = access, linger_s
        self._links = Links(endpoints)
        self._keys: dict[Link, bytes] = {}
        # Keys by descriptor and moment of admission, of connections that have ended or that libzmq
        # has not reported yet: where other programs hold the processors, reports come late.
        self._unreported: dict[tuple[int, int], bytes] = {}
        self._look_at = _LOOK_AT
        self._revocations = access.revocations
        self._cut_due_s = math.inf
        self._reports_due_s = -math.inf

    @property
    def due_s(self) -> float:
        """Latest time to call ``refresh`` again, by the monotonic clock; may be infinite."""
        return self._cut_due_s

    def note(self, link: Link | None, frame: zmq.Frame) -> None:
        """Record a connection's key from one of its frames, received with ``copy=False``.

        The connection is cut at once if its key has been revoked since it was admitted. Without a
        link its key is kept for the next ``refresh`` that cuts.
        """
        key = self._access.key_of(frame)
        if key is None:
            return
        if link is None:
            self._note_unreported(frame, key)
            return
        if not self._access.is_known(key):
            cut(link)
            return
        self._keys[link] = key
        if len(self._keys) > self._look_at:
            self._keys = {link: key for link, key in self._keys.items() if link.is_there}
            self._look_at = max(_LOOK_AT, 2 * len(self._keys))

    def refresh(self) -> None:
        """Cut the connections whose key was revoked, and those whose key is still unknown.

        A client that is cut although its key is valid reconnects by itself. A connection that
        libzmq is yet to report, at a descriptor whose last message came with a valid key, is spared
        until it is reported, for a second at most.
        """
        now_s = time.monotonic()
        if self._revocations != self._access.revocations:
            self._revocations = self._access.revocations
            self._cut_after_linger(now_s)
        if now_s < self._cut_due_s:
            return
        self._cut_due_s = math.inf
        for link, key in tuple(self._keys.items()):
            if not self._access.is_known(key):
                cut(link)
                del self._keys[link]
        try:
            found = self._links.find()
        except OSError as error:  # without /proc: ``note`` cuts them at their first message
            _log.warning("connections whose key is still unknown are not cut: %s", error)
            return
        waiting = self._note_reported(found)
        for link in found:
            if link in self._keys and self._access.is_known(self._keys[link]):
                continue
            if link in waiting and now_s < self._reports_due_s:
                self._cut_due_s = now_s + _REPORT_CHECK_S
                continue
            cut(link)
            self._keys.pop(link, None)

    def _note_unreported(self, frame: zmq.Frame, key: bytes) -> None:
        fd = fd_of(frame)
        if fd is None:
            return
        self._unreported[fd, self._access.admission_of(frame)] = key
        if len(self._unreported) > _UNREPORTED_MAX:
            del self._unreported[next(iter(self._unreported))]
        if not self._access.is_known(key):
            self._cut_after_linger(time.monotonic())

    def _cut_after_linger(self, now_s: float) -> None:
        self._cut_due_s = min(self._cut_due_s, now_s + self._linger_s)
        self._reports_due_s = self._cut_due_s + _REPORT_LIMIT_S

    def _note_reported(self, found: Collection[Link]) -> set[Link]:
        """Record the keys of connections reported since ``note``; return those yet to be."""
        connections, by_fd = self._access.connections, {link.fd: link for link in found}
        waiting = set()
        for (fd, admitted), key in tuple(self._unreported.items()):
            link = by_fd.get(fd)
            if link and not connections.is_reported(link) and self._access.is_known(key):
                waiting.add(link)
                continue
            del self._unreported[fd, admitted]
            if link and connections.is_reported(link) and connections.link_of(fd, admitted):
                self._keys[link] = key
        return waiting
