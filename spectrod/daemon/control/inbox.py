"""Queue of unprocessed requests, bounded for each peer and in total. Pure."""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

A_PEER_MAX_BYTES = 1 << 20
"""Size of the requests of one peer in the queue [bytes]."""
TOTAL_MAX_BYTES = 32 << 20
"""Size of the requests of all peers in the queue [bytes]."""
OVERHEAD_BYTES = 300
"""Overhead that is counted for each request beside its own size [bytes]."""

_T = TypeVar("_T")


class _Queue(Generic[_T]):
    """Queued requests of one peer."""

    def __init__(self) -> None:
        self.items: deque[tuple[_T, int]] = deque()
        self.n_bytes = 0


class Inbox(Generic[_T]):
    """Queues the requests of each peer in order, and serves the peers in turn."""

    def __init__(self) -> None:
        self._queues: OrderedDict[bytes, _Queue[_T]] = OrderedDict()
        self.n_bytes = 0
        """Size of all queued requests, with their overhead."""

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, peer: bytes, request: _T, n_bytes: int) -> bytes | None:
        """Queue a request; return the peer that now exceeds a bound, if any."""
        n_bytes += OVERHEAD_BYTES
        queue = self._queues.setdefault(peer, _Queue())
        queue.items.append((request, n_bytes))
        queue.n_bytes += n_bytes
        self.n_bytes += n_bytes
        if queue.n_bytes > A_PEER_MAX_BYTES:
            return peer
        if self.n_bytes > TOTAL_MAX_BYTES:
            return max(self._queues, key=lambda peer: self._queues[peer].n_bytes)
        return None

    def take(self) -> _T | None:
        """Return the oldest request of the peer whose turn it is; None if the queue is empty."""
        if not self._queues:
            return None
        peer, queue = next(iter(self._queues.items()))
        request, n_bytes = queue.items.popleft()
        queue.n_bytes -= n_bytes
        self.n_bytes -= n_bytes
        self._queues.move_to_end(peer)
        if not queue.items:
            del self._queues[peer]
        return request

    def forget(self, peer: bytes) -> None:
        """Drop the queued requests of a peer."""
        queue = self._queues.pop(peer, None)
        if queue is not None:
            self.n_bytes -= queue.n_bytes
