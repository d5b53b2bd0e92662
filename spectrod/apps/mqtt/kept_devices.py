"""Device messages that a broker keeps from an earlier bridge: each is read once, and taken apart.

A device message replaces the one before. That of a bridge that has started would lack each
component whose values have not come yet, so it has those of the message before as well.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from spectrod.apps.mqtt.discovery import PLATFORMS, Component, Discovery, is_identity
from spectrod.lib.json_text import decode_json

ANSWER_S: Final = 3.0
"""Longest time from the question to the message: a broker that has none says nothing [s]."""
CONNECTIONS_MAX: Final = 2
"""Connections on which a message is asked for: one that is too long ends each of them."""
KEPT_MAX: Final = 8192
"""Maximum number of components of a message that are read."""
_CONFIG_MAX_BYTES: Final = 4096


class AnsweringBroker(Protocol):
    """What a broker is asked: see ``Broker``."""

    def ask(self, topic: str) -> None:
        """Ask for the message that the broker keeps of a topic."""

    def answers(self) -> dict[str, bytes]:
        """Return the messages that have come since the last call, by their topics."""

    def end_question(self, topic: str) -> None:
        """Take no answer any more."""


class KeptDevices:
    """Reads the device message of each source once. Used by one thread.

    Parameters
    ----------
    broker : AnsweringBroker
    discovery : Discovery
    """

    def __init__(self, broker: AnsweringBroker, discovery: Discovery) -> None:
        self._broker = broker
        self._discovery = discovery
        self._asked: dict[str, tuple[str, float]] = {}
        self._n_asked: dict[str, int] = {}
        self._read: set[str] = set()

    def is_read(self, source: str) -> bool:
        """Return whether the message of a source was read, or there was none in time."""
        return source in self._read

    def read(self, sources: Iterable[str], now_s: float) -> Iterator[tuple[str, bytes]]:
        """Ask for the messages of new sources, and yield those that have come.

        Each source is yielded once: with its message, or an empty one if none came in time.
        """
        for source in sources:
            if source not in self._read and source not in self._asked:
                topic = self._discovery.device_topic(source)
                self._asked[source] = topic, now_s + ANSWER_S
                self._n_asked[source] = self._n_asked.get(source, 0) + 1
                self._broker.ask(topic)
        answers = self._broker.answers() if self._asked else {}
        for source, (topic, until_s) in list(self._asked.items()):
            if topic in answers or now_s >= until_s:
                self._end(source)
                del self._n_asked[source]
                self._read.add(source)
                yield source, answers.get(topic, b"")

    def ask_again(self) -> None:
        """Ask what has no answer once more: a new connection knows no question.

        After ``CONNECTIONS_MAX`` of them there is no answer.
        """
        for source, (topic, _) in list(self._asked.items()):
            if self._n_asked[source] < CONNECTIONS_MAX:
                self._end(source)
            else:
                self._asked[source] = topic, -math.inf

    def forget(self, source: str) -> None:
        """Forget a source."""
        self._read.discard(source)
        self._n_asked.pop(source, None)
        if source in self._asked:
            self._end(source)

    def _end(self, source: str) -> None:
        topic, _ = self._asked.pop(source)
        self._broker.end_question(topic)


class _KeptMessage(msgspec.Struct):
    components: dict[str, dict[str, Any]] = {}


class KeptPart(NamedTuple):
    """Components of a part, and the MQTT topics of their states."""

    components: list[Component]
    topics: set[str]


def kept_parts(discovery: Discovery, source: str, payload: bytes) -> dict[str, KeptPart]:
    """Return the components of a device message.

    Parameters
    ----------
    discovery : Discovery
    source : str
    payload : bytes
        From outside; empty for no message.

    Returns
    -------
    parts : dict of str to KeptPart
        Components by what they describe, see ``Discovery.part_of``; of "" those that this bridge
        would never describe.

    Raises
    ------
    ValueError
        If the payload is no device message.
    """
    parts: dict[str, KeptPart] = {}
    if not payload:
        return parts
    components = decode_json(payload, _KeptMessage).components
    for identity, config in islice(components.items(), KEPT_MAX):
        platform = config.get("platform")
        if not is_identity(identity) or platform not in PLATFORMS:
            continue
        text = discovery.config_text(config)
        is_known = config.get("unique_id") == identity and len(text) <= _CONFIG_MAX_BYTES
        topic = str(config.get("state_topic"))
        part = discovery.part_of(source, identity, topic) if is_known else ""
        kept = parts.setdefault(part, KeptPart([], set()))
        kept.components.append(Component(identity, platform, text))
        if part and platform != "event":  # events are not retained
            kept.topics.add(topic)
    return parts
