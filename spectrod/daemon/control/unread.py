"""Bounds the replies that ZeroMQ holds until their peers read them."""

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spectrod.daemon.control.dispatch import Answer, Later
from spectrod.wire.requests import Reply

LARGE_BYTES = 64 * 1024
"""Size above which a reply waits for room instead of being dropped [bytes]."""
REPLIES_A_PEER = 256
"""Replies that ZeroMQ may hold for one peer."""
A_PEER_MAX_BYTES = 10 << 20
"""Bytes that ZeroMQ may hold for one peer, unless a single reply is larger."""
TOTAL_MAX_BYTES = 64 << 20
"""Bytes that ZeroMQ may hold for all peers together, without reserved bytes."""
RESERVED_BYTES = 64 * 1024
"""Bytes reserved for a peer, even if others have used up the total."""
RESERVED_PEERS = 256
"""Number of peers with reserved bytes."""

PART_BYTES = 200
"""Overhead of ZeroMQ and Python for each part [bytes]."""

_WAIT_S = 1.0


@dataclass(slots=True)
class _UnreadCount:
    """Replies that ZeroMQ holds for one peer."""

    replies: int = 0
    n_bytes: int = 0


class UnreadReplies:
    """Counts the replies that ZeroMQ still holds because their peers have not read them.

    ZeroMQ releases a reply in its own thread, when the operating system has accepted it or its peer
    has gone. One thread uses all other methods.
    """

    def __init__(self) -> None:
        self._held: dict[bytes, _UnreadCount] = {}
        self._left: deque[tuple[bytes, int]] = deque()
        self._watchers: list[Callable[[], None]] = []
        self._n_bytes = 0

    @property
    def n_bytes(self) -> int:
        """Bytes held for all peers."""
        self._take_back()
        return self._n_bytes

    def has_room(self, peer: bytes, n_bytes: int) -> bool:
        """Return whether a reply of a size may be sent to a peer."""
        self._take_back()
        held = self._held.get(peer, _UnreadCount())
        if held.replies >= REPLIES_A_PEER:
            return False
        after = held.n_bytes + n_bytes
        is_known = held.replies > 0 or len(self._held) < RESERVED_PEERS
        if is_known and after <= RESERVED_BYTES:
            return True
        is_within = after <= A_PEER_MAX_BYTES or held.replies == 0
        return is_within and self._n_bytes + n_bytes <= TOTAL_MAX_BYTES

    def hold(self, peer: bytes, last: bytes, n_bytes: int) -> memoryview:
        """Count a reply until the view of its last part is released, and return that view.

        Parameters
        ----------
        peer : bytes
            Receiver of the reply.
        last : bytes
            Its last part; parts are sent in order.
        n_bytes : int
            Size of the whole reply.

        Returns
        -------
        memoryview
            Last part to give to ZeroMQ without a copy.
        """
        view = memoryview(last)
        held = self._held.setdefault(peer, _UnreadCount())
        held.replies += 1
        held.n_bytes += n_bytes
        self._n_bytes += n_bytes
        weakref.finalize(view, self._release, peer, n_bytes).atexit = False
        return view

    def once_read(
        self, peer: bytes, n_bytes: int, answer: Callable[[], Answer | Later], late: Reply
    ) -> Later:
        """Return a deferred answer that waits for room, with the reply if there is none in time."""
        return Later(
            look=lambda: answer() if self.has_room(peer, n_bytes) else None,
            watch=self._watch,
            timeout_s=_WAIT_S,
            otherwise=late,
        )

    def _watch(self, notify: Callable[[], None]) -> Callable[[], None]:
        self._watchers.append(notify)
        return partial(self._watchers.remove, notify)

    def _release(self, peer: bytes, n_bytes: int) -> None:
        # Runs in whichever thread drops the last reference.
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
