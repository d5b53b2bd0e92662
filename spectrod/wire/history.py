"""The last messages of each topic, for those who have missed some. Knows no socket."""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

_OVERHEAD_BYTES = 400
"""What a message takes beside its bytes: objects, and places in two queues."""


class Stored(NamedTuple):
    """A message as it was sent."""

    seq: int
    parts: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """What it counts against the limit."""
        return sum(map(len, self.parts)) + _OVERHEAD_BYTES


Watcher = Callable[[Stored], None]


class History:
    """Messages with values, as they were sent. Any thread may ask; the publisher's adds.

    Bounded: limit_bytes over all topics; the oldest go first, whatever their topic. The newest of
    each topic is kept beside them, even where limit_bytes is 0.

    Parameters
    ----------
    limit_bytes : int
        What the messages may take, their objects included.
    epoch : int
        Of this start of the daemon.
    """

    def __init__(self, limit_bytes: int, epoch: int) -> None:
        self.limit_bytes = limit_bytes
        self.epoch = epoch
        self.size_bytes = 0
        """What the messages take now, without the newest of each topic where it is kept beside."""
        self._kept: dict[str, deque[Stored]] = {}
        self._order: deque[str] = deque()  # topics of all kept messages, oldest first
        self._newest: dict[str, Stored] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._lock = threading.Lock()

    def add(self, topic: str, message: Stored) -> None:
        """Take a message that is being sent, and tell those who watch its topic."""
        with self._lock:
            self._newest[topic] = message
            if message.size_bytes <= self.limit_bytes:
                self._keep(topic, message)
            watchers = tuple(self._watchers.get(topic, ()))
        for watcher in watchers:
            watcher(message)

    def since(self, topic: str, first_seq: int, epoch: int = 0, limit: int = 256) -> list[Stored]:
        """Return the oldest messages that are still there, from a number on, at most so many.

        Parameters
        ----------
        topic : str
            As the messages have it.
        first_seq : int
            Lowest sequence number wanted.
        epoch : int
            In which the number was read; 0 takes the current one. Of another there is nothing.
        limit : int
            Messages at most.
        """
        if epoch not in (0, self.epoch):
            return []
        with self._lock:  # copied, so that the publisher need not wait for the search
            kept = tuple(self._kept.get(topic, ()))
        start = bisect_left(kept, first_seq, key=attrgetter("seq"))
        return list(kept[start : start + limit])

    def newest(self, topic: str) -> Stored | None:
        """Return the last message of a topic; None if there was none."""
        with self._lock:
            return self._newest.get(topic)

    def topics(self) -> list[str]:
        """Return the topics that have had a message."""
        with self._lock:
            return list(self._newest)

    def watch(self, topic: str, callback: Watcher) -> Callable[[], None]:
        """Have each new message of a topic told; return what ends it, which is idempotent.

        The callback is called by the publisher's thread, must not block, and may still be called
        once while the watch is being ended.
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
        """Let go of a topic that is no more."""
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
