"""What a daemon has now: its sources, their topics, and what a broker keeps of them. Pure.

Memory follows what exists: what is not heard of is forgotten, and of everything there is a maximum.
"""

import math
from dataclasses import dataclass, field

import msgspec

from spectrod.apps.mqtt.discovery import trigger_part
from spectrod.apps.mqtt.mqtt_topics import NOT_AVAILABLE
from spectrod.wire.headers import HeartbeatHeader
from spectrod.wire.schema import HEARTBEAT_PERIOD_S

FORGET_S = 600.0
"""Time after which a source or a topic that a daemon sends no more is forgotten [s]. Only time
counts in which the daemon is heard, and for a topic time in which its source runs."""
SOURCES_MAX = 1024
"""Maximum number of sources; messages of others are ignored."""
TOPICS_MAX = 8192
"""Maximum number of topics with values, of all sources; messages of others are ignored."""
RETAINED_MAX = 32_768
"""Maximum number of topics that the broker keeps; others are published, and not kept."""
_TEXT_CHARS = 200
_WAITING_CHARS = 2000
_CHECKS = 16
TRIGGERS_MAX = 64
"""Maximum number of triggers of a source whose states are published."""
SILENCE_S = 3.0 * HEARTBEAT_PERIOD_S
"""Time without a heartbeat after which a source counts as unreachable [s]."""


@dataclass(slots=True)
class KnownTopic:
    """What a broker keeps of a topic, or of a source.

    Attributes
    ----------
    heard_s : float
        When it was last heard, by the clock of the daemon or of its source [s].
    retained : set of str
        MQTT topics with a retained message.
    """

    heard_s: float
    retained: set[str] = field(default_factory=set)


@dataclass(slots=True)
class KnownSource(KnownTopic):
    """A source: its last heartbeat, and what was published of it.

    Attributes
    ----------
    beat : HeartbeatHeader or None
        None before the first.
    beat_s : float
        When it came, by the caller's clock [s].
    running_s : float
        Time in which it gave samples [s]; the clock of its topics.
    published : tuple or None
        The state that was published last; None if it must be published again.
    topics : dict
        Its topics with values, and its triggers (``trigger_part``).
    triggers : set of str
        Names of triggers whose states the broker has by this connection.
    active : set of str
        Names of triggers whose event lasts.
    event_s : float
        When the last event of a trigger came, by the caller's clock [s].
    """

    beat: HeartbeatHeader | None = None
    beat_s: float = 0.0
    running_s: float = 0.0
    published: tuple[str, str, tuple[str, ...]] | None = None
    topics: dict[str, KnownTopic] = field(default_factory=dict)
    triggers: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    event_s: float = -math.inf


class Known:
    """The sources and topics of a daemon, bounded.

    Attributes
    ----------
    sources : dict
        Sources by their names.
    refused : int
        Messages for which there was no room.
    """

    def __init__(self) -> None:
        self.sources: dict[str, KnownSource] = {}
        self.refused = 0
        self._n_topics = self._n_retained = 0
        # The clock of the daemon: it stands still while nothing is heard.
        self._daemon_s = 0.0
        self._heard_at_s: float | None = None

    def hear(self, name: str, now_s: float) -> KnownSource | None:
        """Return the source of a message that has come; None if there is no room for it."""
        if self._heard_at_s is not None:
            self._daemon_s += min(now_s - self._heard_at_s, SILENCE_S)
        self._heard_at_s = now_s
        source = self.sources.get(name)
        if source is None:
            if len(self.sources) >= SOURCES_MAX:
                self.refused += 1
                return None
            source = self.sources[name] = KnownSource(self._daemon_s)
        source.heard_s = self._daemon_s
        return source

    def hear_beat(self, name: str, beat: HeartbeatHeader, now_s: float) -> KnownSource | None:
        """Return the source of a heartbeat; the topics that it lists are heard, too."""
        source = self.hear(name, now_s)
        if source is None:
            return None
        if source.beat is not None and source.beat.state not in NOT_AVAILABLE:
            source.running_s += min(now_s - source.beat_s, SILENCE_S)
        source.beat, source.beat_s = _bounded(beat), now_s
        triggers = [trigger_part(name, one) for one in beat.triggers]
        for topic in (*(one.topic for one in beat.interval_topics), *triggers):
            if topic in source.topics:
                source.topics[topic].heard_s = source.running_s
        return source

    def hear_topic(self, topic: str, now_s: float) -> KnownTopic | None:
        """Return the topic of a message with values or of its description; None without room."""
        source = self.hear(topic.split("/")[1], now_s)
        if source is None:
            return None
        found = source.topics.get(topic)
        if found is None:
            if self._n_topics >= TOPICS_MAX:
                self.refused += 1
                return None
            found = source.topics[topic] = KnownTopic(source.running_s)
            self._n_topics += 1
        found.heard_s = source.running_s
        return found

    def add_retained(self, owner: KnownTopic, topic: str) -> bool:
        """Note that the broker keeps a message of an MQTT topic; False if there is no room."""
        if topic in owner.retained:
            return True
        if self._n_retained >= RETAINED_MAX:
            self.refused += 1
            return False
        self._n_retained += 1
        owner.retained.add(topic)
        return True

    def forget(self) -> tuple[list[str], list[str], list[str]]:
        """Forget what was not heard for long.

        Returns
        -------
        sources, topics : list of str
            Names of sources and topics that are forgotten; topics of those sources among them.
        retained : list of str
            MQTT topics whose retained messages are of nothing now.
        """
        sources, topics, retained = [], [], []
        for name, source in list(self.sources.items()):
            is_gone = self._daemon_s - source.heard_s > FORGET_S
            for topic, known in list(source.topics.items()):
                if is_gone or source.running_s - known.heard_s > FORGET_S:
                    del source.topics[topic]
                    self._n_topics -= 1
                    topics.append(topic)
                    retained += self._retained(known)
            if is_gone:
                del self.sources[name]
                sources.append(name)
                retained += self._retained(source)
        return sources, topics, retained

    def _retained(self, known: KnownTopic) -> list[str]:
        self._n_retained -= len(known.retained)
        return list(known.retained)


def _bounded(beat: HeartbeatHeader) -> HeartbeatHeader:
    """Return what is kept of a heartbeat, whose header may have 512 KiB."""
    return msgspec.structs.replace(
        beat,
        state=beat.state[:_TEXT_CHARS],
        waiting_for=beat.waiting_for[:_WAITING_CHARS],
        checks=tuple(check[:_TEXT_CHARS] for check in beat.checks[:_CHECKS]),
        interval_topics=(),
        triggers=beat.triggers[:TRIGGERS_MAX],
        active_triggers=beat.active_triggers[:TRIGGERS_MAX],
        trigger_products=beat.trigger_products[:TRIGGERS_MAX],
    )
