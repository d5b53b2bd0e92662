"""Replies that ZeroMQ holds until they are sent: bounded, as their memory is not ours to free."""

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spectrod.wire.answers import Answer, Later
from spectrod.wire.requests import Reply

LARGE_BYTES = 64 * 1024
"""A reply of more waits for room instead of being dropped [bytes]."""
REPLIES_A_PEER = 256
"""Replies that ZeroMQ may hold for one peer."""
A_PEER_MAX_BYTES = 10 << 20
"""Bytes that it may hold for one peer, unless a single reply is larger."""
TOTAL_MAX_BYTES = 64 << 20
"""Bytes that it may hold for all peers together, without those that are reserved."""
RESERVED_BYTES = 64 * 1024
"""Bytes that a peer may leave unread also where others have used up the total."""
RESERVED_PEERS = 256
"""Peers for whom so much is reserved."""

PART_BYTES = 200
"""What ZeroMQ and Python need for a part beside its bytes."""

_WAIT_S = 1.0


@dataclass(slots=True)
class _Held:
    """What ZeroMQ holds for one peer."""

    replies: int = 0
    n_bytes: int = 0


class UnreadReplies:
    """Counts what ZeroMQ still holds, because a peer does not read, or not yet.

    ZeroMQ lets go of a reply in a thread of its own, once the operating system has taken it, or
    when its peer has gone. Used by one thread, but for that.
    """

    def __init__(self) -> None:
        self._held: dict[bytes, _Held] = {}
        self._left: deque[tuple[bytes, int]] = deque()
        self._watchers: list[Callable[[], None]] = []
        self._n_bytes = 0

    @property
    def n_bytes(self) -> int:
        """What is held for all peers."""
        self._take_back()
        return self._n_bytes

    def has_room(self, peer: bytes, n_bytes: int) -> bool:
        """Whether a reply of a size may be sent to a peer."""
        self._take_back()
        held = self._held.get(peer, _Held())
        if held.replies >= REPLIES_A_PEER:
            return False
        after = held.n_bytes + n_bytes
        is_known = held.replies > 0 or len(self._held) < RESERVED_PEERS
        if is_known and after <= RESERVED_BYTES:
            return True
        is_within = after <= A_PEER_MAX_BYTES or held.replies == 0
        return is_within and self._n_bytes + n_bytes <= TOTAL_MAX_BYTES

    def hold(self, peer: bytes, last: bytes, n_bytes: int) -> memoryview:
        """Count a reply until the last view of its last part has gone, and return that view.

        Parameters
        ----------
        peer : bytes
            Whom it goes to.
        last : bytes
            The last part of it; parts leave in their order.
        n_bytes : int
            Size of the whole reply.

        Returns
        -------
        memoryview
            What to hand to ZeroMQ, without a copy.
        """
        view = memoryview(last)
        held = self._held.setdefault(peer, _Held())
        held.replies += 1
        held.n_bytes += n_bytes
        self._n_bytes += n_bytes
        weakref.finalize(view, self._let_go, peer, n_bytes).atexit = False
        return view

    def once_read(
        self, peer: bytes, n_bytes: int, answer: Callable[[], Answer | Later], late: Reply
    ) -> Later:
        """Make an answer that comes when there is room for it, or the reply that there is none."""
        return Later(
            look=lambda: answer() if self.has_room(peer, n_bytes) else None,
            watch=self._watch,
            timeout_s=_WAIT_S,
            otherwise=late,
        )

    def _watch(self, notify: Callable[[], None]) -> Callable[[], None]:
        self._watchers.append(notify)
        return partial(self._watchers.remove, notify)

    def _let_go(self, peer: bytes, n_bytes: int) -> None:
        # In whatever thread lets go of it last.
        self._left.append((peer, n_bytes))
        for notify in tuple(self._watchers):
            notify()

    def _take_back(self) -> None:
        while self._left:
            peer, n_bytes = self._left.popleft()
            held = self._held[peer]
            held.replies -= 1
            held.n_bytes -= n_bytes
            self._n_bytes -= n_bytes
            if not held.replies:
                del self._held[peer]
