"""Texts that wait for a client. Bounded."""

from collections import OrderedDict
from typing import Final

TEXTS_MAX: Final = 1024
"""Texts that wait."""
TEXTS_MAX_BYTES: Final = 4 << 20
"""Their length [characters]."""


class Outbox:
    """Texts for a client, in order, bounded whatever it reads: the oldest is dropped first.

    A text with a key replaces an earlier one with the same key, for what is of interest only as it
    is now.
    """

    def __init__(self) -> None:
        self._texts: OrderedDict[object, str] = OrderedDict()
        self._size = 0
        self._n_added = 0

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, text: str) -> None:
        """Add a text that no other replaces."""
        self._n_added += 1
        self.set(("added", self._n_added), text)

    def set(self, key: object, text: str) -> None:
        """Add a text in place of that with the same key."""
        self._size += len(text) - len(self._texts.pop(key, ""))
        self._texts[key] = text
        while len(self._texts) > TEXTS_MAX or (self._size > TEXTS_MAX_BYTES and len(self) > 1):
            _, oldest = self._texts.popitem(last=False)
            self._size -= len(oldest)

    def take(self) -> list[str]:
        """Return all texts in order, and forget them."""
        texts = list(self._texts.values())
        self._texts.clear()
        self._size = 0
        return texts
