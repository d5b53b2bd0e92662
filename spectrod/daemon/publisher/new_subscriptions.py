"""Messages that are resent for new subscribers, at a limited rate. Pure.

ZeroMQ cannot send to a single subscriber: all subscribers of a topic receive a message that is
resent for one of them.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

AGAIN_S: Final = {b"meta/": 1.0, b"last/": 1.0, b"hb/": 0.25}
"""Minimum time between two messages of a topic, by the first word of the topic [s]."""

_LOOK_S = 0.05  # one answer for subscriptions that come together
_PREFIXES_MAX = 64


class NewSubscriptions:
    """Topics that new subscriptions match, and when to resend them.

    Subscriptions are answered at once, but at most every 50 ms, and no topic more often than
    ``AGAIN_S`` allows: then the answer waits. Bounded: more than 64 unanswered prefixes of one word
    become one prefix that covers all topics of that word.
    """

    def __init__(self) -> None:
        self._prefixes: dict[bytes, set[bytes]] = {word: set() for word in AGAIN_S}
        self._sent_s: dict[bytes, float] = {}
        self._waiting_s: dict[bytes, float] = {}
        self._may_look_s = -math.inf

    def note(self, prefix: bytes) -> None:
        """Add a new subscription; ignore it if no topic with one of the words can match it."""
        for word, prefixes in self._prefixes.items():
            # A subscriber to all topics gets no old messages.
            is_short = word != b"last/" and word.startswith(prefix)
            if is_short or prefix.startswith(word):
                is_kept = prefix.startswith(word) and len(prefixes) < _PREFIXES_MAX
                prefixes.add(prefix if is_kept else word)

    def note_sent(self, topic: bytes, now_s: float) -> None:
        """Record that a message of a topic was sent, for whatever reason."""
        self._sent_s[topic] = now_s
        self._waiting_s.pop(topic, None)

    @property
    def due_s(self) -> float:
        """When ``take`` will return topics, by the clock [s]; infinite if it will not."""
        has_new = any(self._prefixes.values())
        return min([self._may_look_s if has_new else math.inf, *self._waiting_s.values()])

    def take(self, topics: Callable[[], Iterable[bytes]], now_s: float) -> set[bytes]:
        """Return the topics to resend now; the caller sends them and calls ``note_sent``.

        Parameters
        ----------
        topics : callable
            Returns all current topics with one of the words; called only if needed.
        now_s : float
            The clock [s].
        """
        if now_s < self.due_s:
            return set()
        there = set(topics())
        if now_s >= self._may_look_s:
            self._may_look_s = now_s + _LOOK_S
            prefixes = tuple(prefix for several in self._prefixes.values() for prefix in several)
            for several in self._prefixes.values():
                several.clear()
            for topic in there:
                if prefixes and topic.startswith(prefixes):
                    self._waiting_s[topic] = self._sent_s.get(topic, -math.inf) + _again_s(topic)
        # Forget topics that have ended.
        self._sent_s = {t: s for t, s in self._sent_s.items() if t in there}
        due = {topic for topic, due_s in self._waiting_s.items() if due_s <= now_s}
        self._waiting_s = {t: s for t, s in self._waiting_s.items() if t in there and t not in due}
        return due & there


def _again_s(topic: bytes) -> float:
    return AGAIN_S[topic[: topic.index(b"/") + 1]]
