"""Which topics subscribers want: the prefixes that live now. Knows no socket."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

PREFIXES_MAX = 1024

_WORDS = (b"spec/", b"bands/")
_TOPIC_MAX_BYTES = len("bands/") + 3 * 65


class DemandBook:
    """The prefixes of topics with values that subscribers want, from an XPUB socket's messages.

    The socket must report each subscription, and of unsubscriptions the last of a prefix only
    (``XPUB_VERBOSE``, not ``XPUB_VERBOSER``): libzmq then tells exactly which prefixes live,
    whatever one peer subscribes to twice or another takes back without having asked for it.

    Bounded: prefixes that no topic can begin with are not kept. If there are more than
    ``PREFIXES_MAX``, all topics count as wanted from then on: nobody is left without what they have
    subscribed to, and what is lost is that idle products are not computed.

    Attributes
    ----------
    subscribers : int
        Subscriptions to values. Those of one prefix count from when they come until the last of
        them has gone, because libzmq tells of the last only.
    has_changed : bool
        True if there may be another answer than at the time it was set to False.
    """

    def __init__(self) -> None:
        self._arrivals: dict[bytes, int] = {}
        self._held: frozenset[bytes] = frozenset()
        self._is_full = False
        self.subscribers = 0
        self.has_changed = True

    def note(self, request: bytes) -> bytes | None:
        """Take a message of the socket; return the prefix if it is a subscription, else None."""
        prefix = request[1:]
        if request[:1] == b"\x01":
            self._add(prefix)
            return prefix
        if request[:1] == b"\x00" and prefix in self._arrivals:
            self.subscribers -= self._arrivals.pop(prefix)
            self.has_changed = True
        return None

    def covers(self, topics: Sequence[bytes]) -> bool:
        """Say whether somebody wants one of these topics.

        Parameters
        ----------
        topics : sequence of bytes
            Whole topics, sorted.
        """
        return bool(topics) and (self._is_full or any(self._matches(topics)))

    def hold(self) -> None:
        """Let what is wanted now count as wanted until ``release``, whoever goes meanwhile."""
        self._held = frozenset(self._arrivals)

    def release(self) -> None:
        """Let count only what is wanted by somebody who is there."""
        self.has_changed |= bool(self._held)
        self._held = frozenset()

    def _matches(self, topics: Sequence[bytes]) -> Iterator[bool]:
        for prefix in (*self._arrivals, *self._held):
            # Topics that begin with the prefix stand in a row, and the first of them here.
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
