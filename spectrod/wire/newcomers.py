"""What is sent again because somebody has subscribed to it: only that, and not too often. Pure.

ZeroMQ cannot send to one subscriber alone. All who are subscribed to a topic get again what is sent
for the sake of one of them.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

AGAIN_S: Final = {b"meta/": 1.0, b"last/": 1.0, b"hb/": 0.25}
"""Of the topics with these words, how long after a message it may be sent again [s]."""

_LOOK_S = 0.05  # subscriptions that come together have one answer
_PREFIXES_MAX = 64


class Newcomers:
    """The topics that new subscriptions match, and when to send them again.

    Subscriptions are answered at once, but no more often than every 50 ms, and no topic more often
    than ``AGAIN_S`` says: then the answer waits for so long. Bounded: more than 64 prefixes of one
    word that wait for an answer become one, which stands for all of that word.
    """

    def __init__(self) -> None:
        self._prefixes: dict[bytes, set[bytes]] = {word: set() for word in AGAIN_S}
        self._sent_s: dict[bytes, float] = {}
        self._waiting_s: dict[bytes, float] = {}
        self._may_look_s = -math.inf

    def note(self, prefix: bytes) -> None:
        """Take a new subscription. It is answered if a topic with one of the words can match it."""
        for word, prefixes in self._prefixes.items():
            # Whoever subscribes to everything gets it as it comes, and nothing old.
            is_short = word != b"last/" and word.startswith(prefix)
            if is_short or prefix.startswith(word):
                is_kept = prefix.startswith(word) and len(prefixes) < _PREFIXES_MAX
                prefixes.add(prefix if is_kept else word)

    def note_sent(self, topic: bytes, now_s: float) -> None:
        """Note that a message of a topic was sent to all, whatever for."""
        self._sent_s[topic] = now_s
        self._waiting_s.pop(topic, None)

    @property
    def due_s(self) -> float:
        """When ``take`` has something to say, by the clock [s]; infinite if it has not."""
        has_new = any(self._prefixes.values())
        return min([self._may_look_s if has_new else math.inf, *self._waiting_s.values()])

    def take(self, topics: Callable[[], Iterable[bytes]], now_s: float) -> set[bytes]:
        """Return the topics that are to be sent now; all of them that are sent are then noted.

        Parameters
        ----------
        topics : callable
            Gives all topics that there are with one of the words; called only if it matters.
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
        # Topics that are no more are forgotten, and what there was of them.
        self._sent_s = {t: s for t, s in self._sent_s.items() if t in there}
        due = {topic for topic, due_s in self._waiting_s.items() if due_s <= now_s}
        self._waiting_s = {t: s for t, s in self._waiting_s.items() if t in there and t not in due}
        return due & there


def _again_s(topic: bytes) -> float:
    return AGAIN_S[topic[: topic.index(b"/") + 1]]
