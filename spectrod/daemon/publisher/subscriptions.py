"""Prefixes that subscribers have subscribed to, and the topics that they match."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from spectrod.wire.headers import WORDS

PREFIXES_MAX = 1024

_WORDS = tuple(f"{word}/".encode() for word in WORDS)
_TOPIC_MAX_BYTES = max(map(len, _WORDS)) + 3 * 65


class SubscribedPrefixes:
    """Prefixes of topics with values that subscribers want, from an XPUB socket's messages.

    The socket must report each subscription, but only the last unsubscription of a prefix
    (``XPUB_VERBOSE``, not ``XPUB_VERBOSER``): libzmq then reports exactly which prefixes are
    active, even if a peer subscribes twice or unsubscribes from a prefix that it never subscribed
    to.

    Bounded: prefixes that no topic can start with are ignored. After more than ``PREFIXES_MAX`` all
    topics count as wanted: no subscriber misses a topic, but unused products are computed.

    Attributes
    ----------
    subscribers : int
        Subscriptions to values. All subscriptions to one prefix count until the last of them ends,
        because libzmq reports only that one.
    has_changed : bool
        True if ``covers`` may answer differently than when the flag was last set to False.
    """

    def __init__(self) -> None:
        self._arrivals: dict[bytes, int] = {}
        self._held: frozenset[bytes] = frozenset()
        self._is_full = False
        self.subscribers = 0
        self.has_changed = True

    def note(self, request: bytes) -> bytes | None:
        """Process a message of the socket; return the prefix if it is a subscription, else None."""
        prefix = request[1:]
        if request[:1] == b"\x01":
            self._add(prefix)
            return prefix
        if request[:1] == b"\x00" and prefix in self._arrivals:
            self.subscribers -= self._arrivals.pop(prefix)
            self.has_changed = True
        return None

    def covers(self, topics: Sequence[bytes]) -> bool:
        """Return whether a subscription matches one of these topics.

        Parameters
        ----------
        topics : sequence of bytes
            Whole topics, sorted.
        """
        return bool(topics) and (self._is_full or any(self._matches(topics)))

    def hold(self) -> None:
        """Keep the current prefixes wanted until ``release``, even if their subscribers leave."""
        self._held = frozenset(self._arrivals)

    def release(self) -> None:
        """Count only prefixes of current subscribers."""
        self.has_changed |= bool(self._held)
        self._held = frozenset()

    def _matches(self, topics: Sequence[bytes]) -> Iterator[bool]:
        for prefix in (*self._arrivals, *self._held):
            # Topics that start with the prefix are adjacent; the first of them is here.
            k = bisect_left(topics, prefix)
            yield k < len(topics) and topics[k].startswith(prefix)

    def _add(self, prefix: bytes) -> None:
        if len(prefix) > _TOPIC_MAX_BYTES or not _may_match(prefix):
            return
        if prefix in self._arrivals:
            self._arrivals[prefix] += 1
        elif len(self._arrivals) < PREFIXES_MAX:
            self._arrivals[prefix] = 1
        else:
            self.has_changed |= not self._is_full
            self._is_full = True
            return
        self.subscribers += 1
        self.has_changed = True


def _may_match(prefix: bytes) -> bool:
    return any(prefix.startswith(word) or word.startswith(prefix) for word in _WORDS)
