"""The last messages of each topic, for replay. Knows no socket."""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

_OVERHEAD_BYTES = 400
"""Memory of a message beside its bytes: objects, and entries in two queues."""


class Stored(NamedTuple):
    """A sent message."""

    seq: int
    parts: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """Size that counts against the limit."""
        return sum(map(len, self.parts)) + _OVERHEAD_BYTES


Watcher = Callable[[Stored], None]


class History:
    """Sent messages with values. Any thread may read; the publisher's thread adds.

    Bounded by limit_bytes over all topics: the oldest message of any topic is dropped first. The
    newest message of each topic is kept in addition, even if limit_bytes is 0.

    Parameters
    ----------
    limit_bytes : int
        Limit of the memory of all messages, with their objects.
    epoch : int
        Epoch of this start of the daemon.
    """

    def __init__(self, limit_bytes: int, epoch: int) -> None:
        self.limit_bytes = limit_bytes
        self.epoch = epoch
        self.size_bytes = 0
        """Memory of the messages now, without newest messages that are kept in addition."""
        self._kept: dict[str, deque[Stored]] = {}
        self._order: deque[str] = deque()  # topics of all kept messages, oldest first
        self._newest: dict[str, Stored] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._lock = threading.Lock()

    def add(self, topic: str, message: Stored) -> None:
        """Add a message that is being sent, and call the watchers of its topic."""
        with self._lock:
            self._newest[topic] = message
            if message.size_bytes <= self.limit_bytes:
                self._keep(topic, message)
            watchers = tuple(self._watchers.get(topic, ()))
        for watcher in watchers:
            watcher(message)

    def since(self, topic: str, first_seq: int, epoch: int = 0, limit: int = 256) -> list[Stored]:
        """Return the oldest stored messages from a sequence number on.

        Parameters
        ----------
        topic : str
            Whole topic.
        first_seq : int
            Lowest sequence number.
        epoch : int
            Epoch of that number; 0 for the current one. No message of another epoch is stored.
        limit : int
            Maximum number of messages.
        """
        if epoch not in (0, self.epoch):
            return []
        with self._lock:  # a copy: the publisher does not wait for the search
            kept = tuple(self._kept.get(topic, ()))
        start = bisect_left(kept, first_seq, key=attrgetter("seq"))
        return list(kept[start : start + limit])

    def newest(self, topic: str) -> Stored | None:
        """Return the last message of a topic; None before the first."""
        with self._lock:
            return self._newest.get(topic)

    def topics(self) -> list[str]:
        """Return the topics that have had a message."""
        with self._lock:
            return list(self._newest)

    def watch(self, topic: str, callback: Watcher) -> Callable[[], None]:
        """Watch the messages of a topic; return a function that stops it, which is idempotent.

        The publisher's thread calls the callback, which must not block; one more call may come
        while the watch is being stopped.
        """
        with self._lock:
            self._watchers.setdefault(topic, []).append(callback)

        def end() -> None:
            with self._lock:
                watchers = self._watchers.get(topic, [])
                if callback in watchers:
                    watchers.remove(callback)
                if not watchers:
                    self._watchers.pop(topic, None)

        return end

    def forget(self, topic: str) -> None:
        """Drop all messages of a topic that has ended."""
        with self._lock:
            self._newest.pop(topic, None)
            gone = self._kept.pop(topic, None)
            if gone:
                self.size_bytes -= sum(message.size_bytes for message in gone)
                self._order = deque(name for name in self._order if name != topic)

    def _keep(self, topic: str, message: Stored) -> None:
        self._kept.setdefault(topic, deque()).append(message)
        self._order.append(topic)
        self.size_bytes += message.size_bytes
        while self.size_bytes > self.limit_bytes:
            oldest = self._order.popleft()
            kept = self._kept[oldest]
            self.size_bytes -= kept.popleft().size_bytes
            if not kept:
                del self._kept[oldest]
