"""By which key each connection came in, and cutting those whose key was revoked."""

import logging
import math
import time
from collections.abc import Collection

import zmq

from spectrod.wire.access import Access
from spectrod.wire.links import Link, Links, cut

_log = logging.getLogger("spectrod")

_LOOK_AT = 256  # connections after which those that have gone are looked for


class KeyHolders:
    """The connections of the sockets of one thread, by their keys. To be used by that thread.

    ZeroMQ asks about a key when a connection begins and never again, but it says with each message
    by which key its connection came. What a connection has sent may not be read yet: of a
    connection that is not known, a revocation takes the worst.

    Parameters
    ----------
    access : Access
        Knows which keys there are.
    endpoints : collection of str
        Of these sockets, as they were bound: those that ask for keys.
    linger_s : float
        After a key was revoked its connections live for so much longer, so that what was sent to
        them before can go out [s].
    """

    def __init__(
        self, access: Access, endpoints: Collection[str], *, linger_s: float = 0.0
    ) -> None:
        self._access, self._linger_s = access, linger_s
        self._links = Links(endpoints)
        self._keys: dict[Link, bytes] = {}
        self._look_at = _LOOK_AT
        self._revocations = access.revocations
        self._cut_due_s = math.inf

    @property
    def due_s(self) -> float:
        """When ``refresh`` has to be called at the latest, by the monotonic clock; maybe never."""
        return self._cut_due_s

    def note(self, link: Link, frame: zmq.Frame) -> None:
        """Note a connection by a frame that came over it, received with ``copy=False``.

        It is cut at once if its key has been revoked since it was let in.
        """
        key = self._access.key_of(frame)
        if key is None:
            return
        if not self._access.is_known(key):
            cut(link)
            return
        self._keys[link] = key
        if len(self._keys) > self._look_at:
            self._keys = {link: key for link, key in self._keys.items() if link.is_there}
            self._look_at = max(_LOOK_AT, 2 * len(self._keys))

    def refresh(self) -> None:
        """Cut the connections whose key was revoked, and those whose key is not known yet.

        Whoever is cut of these and may come in connects again by itself.
        """
        now_s = time.monotonic()
        if self._revocations != self._access.revocations:
            self._revocations = self._access.revocations
            self._cut_due_s = min(self._cut_due_s, now_s + self._linger_s)
        if now_s < self._cut_due_s:
            return
        self._cut_due_s = math.inf
        for link, key in tuple(self._keys.items()):
            if not self._access.is_known(key):
                cut(link)
                del self._keys[link]
        try:
            found = self._links.find()
        except OSError as error:  # without /proc: then they are cut by their first message
            _log.warning("connections whose key is not known yet are not cut: %s", error)
            return
        for link in found:
            if link not in self._keys:
                cut(link)
