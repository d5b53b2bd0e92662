"""Large replies that ZeroMQ holds: few for each peer, as their memory is not ours to free."""

import weakref
from collections import Counter, deque
from collections.abc import Callable
from functools import partial

from spectrod.wire.answers import Answer, Later
from spectrod.wire.requests import Reply

LARGE_BYTES = 64 * 1024
"""A reply of more is large [bytes]."""

_A_PEER_MAX = 2
_MAX = 16
_WAIT_S = 1.0


class LargeReplies:
    """Counts those that ZeroMQ still holds, because a peer does not read, or not yet.

    ZeroMQ lets go of one in a thread of its own, at times only when its peer has long asked for
    more. Hence who finds no room waits a little before it is refused.
    """

    def __init__(self) -> None:
        self._held: Counter[bytes] = Counter()
        self._left: deque[bytes] = deque()
        self._watchers: list[Callable[[], None]] = []

    def has_room(self, peer: bytes) -> bool:
        """Whether one more may be sent to a peer."""
        while self._left:
            whose = self._left.popleft()
            self._held[whose] -= 1
            if not self._held[whose]:
                del self._held[whose]
        return self._held[peer] < _A_PEER_MAX and self._held.total() < _MAX

    def hold(self, peer: bytes, data: bytes) -> memoryview:
        """Count one until the last view of its last part has gone, and return that view.

        Parameters
        ----------
        peer : bytes
            Whom it goes to.
        data : bytes
            The last part of it; parts leave in their order.

        Returns
        -------
        memoryview
            What to hand to ZeroMQ, without a copy.
        """
        view = memoryview(data)
        self._held[peer] += 1
        weakref.finalize(view, self._let_go, peer).atexit = False
        return view

    def once_read(self, peer: bytes, answer: Callable[[], Answer | Later], late: Reply) -> Later:
        """Make an answer that comes when there is room for it, or the reply that there is none."""
        return Later(
            look=lambda: answer() if self.has_room(peer) else None,
            watch=self._watch,
            timeout_s=_WAIT_S,
            otherwise=late,
        )

    def _watch(self, notify: Callable[[], None]) -> Callable[[], None]:
        self._watchers.append(notify)
        return partial(self._watchers.remove, notify)

    def _let_go(self, peer: bytes) -> None:
        # In whatever thread lets go of it last.
        self._left.append(peer)
        for notify in tuple(self._watchers):
            notify()
