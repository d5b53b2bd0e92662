"""The newest value of each name, bounded in number and in size."""

from collections import OrderedDict
from typing import TypeVar

T = TypeVar("T")


class BoundedDict(OrderedDict[str, T]):
    """A dictionary that drops the least recently stored names.

    Parameters
    ----------
    max_names : int
        Upper bound on the number of names, >= 1.
    max_bytes : int
        Upper bound on the sum of the sizes given to ``put``; the newest value is always kept.
    """

    def __init__(self, max_names: int, max_bytes: int) -> None:
        super().__init__()
        self._max_names, self._max_bytes = max_names, max_bytes
        self._sizes: dict[str, int] = {}
        self._n_bytes = 0

    def put(self, name: str, value: T, size_bytes: int) -> None:
        """Store a value; replace an earlier one of the same name."""
        self._n_bytes += size_bytes - self._sizes.get(name, 0)
        self._sizes[name] = size_bytes
        self[name] = value
        self.move_to_end(name)
        while len(self) > self._max_names or (self._n_bytes > self._max_bytes and len(self) > 1):
            oldest, _ = self.popitem(last=False)
            self._n_bytes -= self._sizes.pop(oldest)

    def discard(self, name: str) -> None:
        """Remove a name, if it is there."""
        if self.pop(name, None) is not None:
            self._n_bytes -= self._sizes.pop(name)
