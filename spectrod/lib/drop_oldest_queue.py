"""A bounded queue between threads that drops its oldest items: the producer never waits."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class DropOldestQueue(Generic[T]):
    """Items from one thread to another, in order.

    When an item does not fit, the oldest ones are dropped and counted until it does. A single item
    fits, whatever its size. A subclass decides how a drop is reported by the items that follow: it
    overrides ``_drop`` and ``_pass_on``, which are called under the lock.

    Parameters
    ----------
    limit : int
        Sum of the sizes of the items that may wait.
    size_of : callable, optional
        Returns the size of an item; without it ``limit`` is a number of items.

    Attributes
    ----------
    dropped : int
        Items dropped so far; in a subclass, the sum of what ``_drop`` returns.
    peak : int
        Largest sum of the sizes of items that have waited.
    """

    def __init__(self, limit: int, size_of: Callable[[T], int] = lambda _item: 1) -> None:
        self.limit = limit
        self.dropped = self.peak = 0
        self._size_of = size_of
        self._items: deque[T] = deque()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, *items: T) -> None:
        """Add items, which must not be changed afterwards; never waits."""
        with self._lock:
            for item in items:
                size = self._size_of(item)
                while self._items and self._size + size > self.limit:
                    self.dropped += self._drop(self._remove())
                self._items.append(item)
                self._size += size
                self.peak = max(self.peak, self._size)

    def take(self) -> T | None:
        """Remove the oldest item; None if there is none."""
        with self._lock:
            return self._pass_on(self._remove()) if self._items else None

    def _remove(self) -> T:
        item = self._items.popleft()
        self._size -= self._size_of(item)
        return item

    def _drop(self, _item: T) -> int:
        """Record that an item was dropped; return the number to count for it."""
        return 1

    def _pass_on(self, item: T) -> T:
        """Return a taken item; a subclass adds a report of the items dropped before it."""
        return item
