"""The bridge to MQTT: receives a daemon's frames, publishes the levels of each interval."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import UNSET

from spectrod.apps.mqtt.complaints import Complaints
from spectrod.apps.mqtt.device_messages import DeviceMessages
from spectrod.apps.mqtt.discovery import STATE_PART, Discovery, is_trigger_part, trigger_part
from spectrod.apps.mqtt.kept_devices import KeptDevices, kept_parts
from spectrod.apps.mqtt.known import (
    SILENCE_S,
    TOPICS_MAX,
    TRIGGERS_MAX,
    Known,
    KnownSource,
    KnownTopic,
)
from spectrod.apps.mqtt.mqtt_topics import UNREACHABLE, Publication, Topics
from spectrod.client.bounded_dict import BoundedDict
from spectrod.client.connection import Connection
from spectrod.client.tracker import Tracker, described_topic
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import DeniedError, WireError
from spectrod.lib.names import is_name
from spectrod.lib.text import printable
from spectrod.wire.headers import EventHeader, HeartbeatHeader
from spectrod.wire.interval_levels import Meter, TopicLevels
from spectrod.wire.schema import (
    HEARTBEAT_PERIOD_S,
    BandFrame,
    EventMessage,
    Frame,
    Heartbeat,
    LevelsFrame,
    Meta,
)

if TYPE_CHECKING:
    from spectrod.apps.mqtt.broker import Broker  # paho-mqtt may be missing

VALUES_MAX = 1 << 14
"""Maximum number of bands of a topic; levels of topics with more are not published."""

_LAST_STATES = ("finished", "failed", "stopped")
_META_MAX_BYTES = 16 << 20
_METERS_MAX_BYTES = 32 << 20
_WHY_CHARS = 200
_SWEEP_S = 10.0
_SETTLED_S = 1.5 * HEARTBEAT_PERIOD_S
_TURN_S = 0.2
_MESSAGES_A_TURN = 512

_log = logging.getLogger(__name__)


class Bridge:
    """Subscribes, accumulates and publishes. Used by one thread.

    Nothing here waits for the broker: ``Broker`` keeps or drops messages that it cannot send.

    Parameters
    ----------
    connection : Connection
        Subscribed to the bridged topics, to ``meta/`` and to ``hb/``.
    broker : Broker
        Started.
    topics : Topics
    discovery : Discovery or None
        None for no discovery messages.
    interval_s : float
        Time from one message of a topic to the next [s].
    clock : callable
        Returns the time [s].
    """

    def __init__(
        self,
        connection: Connection,
        broker: "Broker",
        topics: Topics,
        discovery: Discovery | None,
        interval_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._broker = broker
        self._topics = topics
        self._devices = None if discovery is None else DeviceMessages(discovery)
        self._kept = None if discovery is None else KeptDevices(broker, discovery)
        self._interval_s = interval_s
        self._clock = clock
        self._next_s = clock() + interval_s
        self._forget_s = clock() + _SWEEP_S
        self._tracker = Tracker(connection.endpoint.text, meta_max_bytes=_META_MAX_BYTES)
        self._known = Known()
        self._meters: BoundedDict[Meter] = BoundedDict(TOPICS_MAX, _METERS_MAX_BYTES)
        self._complaints = Complaints(_log)

    @property
    def missed(self) -> int:
        """Messages of the daemon lost so far."""
        return self._tracker.missed

    def run(self, exit_code: Callable[[], int | None], on_turn: Callable[[], None]) -> int:
        """Run until there is an exit code, which is read five times a second."""
        while True:
            code = exit_code()
            if code is not None:
                break
            self.turn()
            on_turn()
        self._publish_levels()
        self._broker.publish(self._topics.online(is_online=False))
        return code

    def turn(self) -> None:
        """Receive what has come, and publish what is due."""
        self._read()
        self._publish_due(self._clock())
        self._broker.pump()

    def status(self) -> str:
        """Return a status line."""
        sources = self._known.sources
        states = ", ".join(f"{name}: {self._state(sources[name])}" for name in sorted(sources))
        broker = "connected" if self._broker.connected else "broker away"
        return f"{broker}; {states or 'no daemon'}; dropped {self._broker.dropped}"

    def _read(self) -> None:
        """Process the daemon's messages; wait briefly if there are none."""
        if not self._connection.wait(time.monotonic() + _TURN_S):
            return
        for _ in range(_MESSAGES_A_TURN):
            try:
                parts = self._connection.receive()
                if parts is None:
                    return
                self._take(parts)
                self._complaints.end()
            except (DeniedError, WireError) as error:
                self._complaints.report(str(error), self._clock())

    def _take(self, parts: list[bytes]) -> None:
        message = self._tracker.feed(parts)
        now_s = self._clock()
        match message:
            case Heartbeat() as beat:
                self._take_beat(beat, now_s)
            case Meta() as meta:
                self._known.hear_topic(described_topic(meta), now_s)
            case EventMessage() as event:
                self._tracker.events.clear()
                self._publish_event(event, now_s)
        while (frame := self._tracker.step()) is not None:
            match frame:
                case _ if frame.topic.startswith("last/"):
                    pass  # a value that came before, sent again
                case Frame() | BandFrame():
                    self._add(frame, now_s)
                case LevelsFrame():
                    self._publish_quantities(frame, now_s)

    def _take_beat(self, beat: Heartbeat, now_s: float) -> None:
        source = self._known.sources.get(beat.source)
        if (
            source is not None
            and source.beat is not None
            and source.beat.epoch != beat.header.epoch
        ):
            self._end_triggers(beat.source, source)  # the daemon's last messages may be lost
        source = self._known.hear_beat(beat.source, beat.header, now_s)
        if source is not None and source.beat is not None and is_name(beat.source):
            self._follow_triggers(beat.source, source, source.beat, now_s)

    def _follow_triggers(
        self, name: str, source: KnownSource, beat: HeartbeatHeader, now_s: float
    ) -> None:
        """Publish triggers that are new to the broker, and states whose events were missed.

        A heartbeat that was made just before an event may come after it: it does not count.
        """
        is_settled = now_s - source.event_s > _SETTLED_S
        for trigger in beat.triggers:
            is_on = trigger in beat.active_triggers
            has_changed = is_settled and is_on != (trigger in source.active)
            if trigger not in source.triggers or has_changed:
                self._publish_trigger(name, source, trigger, None, now_s, is_on=is_on)

    def _publish_trigger(
        self,
        name: str,
        source: KnownSource,
        trigger: str,
        event: EventHeader | None,
        now_s: float,
        *,
        is_on: bool,
    ) -> bool:
        """Publish the state of a trigger, and describe it; ``event``: what has changed it.

        Return whether there is room: names without end leave nothing here either.
        """
        part = trigger_part(name, trigger)
        topic = self._topics.trigger(name, trigger)
        known = self._hear_trigger(name, source, part, now_s)
        if known is None or not self._known.add_retained(known, topic):
            return False
        if self._devices is not None:
            sensors = self._devices.discovery.trigger_sensors(name, trigger)
            self._devices.describe(name, part, sensors, now_s)
        (source.active.add if is_on else source.active.discard)(trigger)
        source.triggers.add(trigger)
        self._broker.set_state(self._topics.trigger_state(name, trigger, event, is_on=is_on))
        return True

    def _hear_trigger(
        self, name: str, source: KnownSource, part: str, now_s: float
    ) -> KnownTopic | None:
        """Return what is known of a trigger; None if there is no room."""
        begin = trigger_part(name, "")
        n_triggers = sum(one.startswith(begin) for one in source.topics)
        if n_triggers >= TRIGGERS_MAX and part not in source.topics:
            self._complaints.report(f"{name}: has more than {TRIGGERS_MAX} triggers", now_s)
            return None
        return self._known.hear_topic(part, now_s)

    def _add(self, frame: Frame | BandFrame, now_s: float) -> None:
        if len(frame.values) > VALUES_MAX and isinstance(frame, BandFrame):
            text = f"{frame.topic}: has {len(frame.values)} bands: at most {VALUES_MAX} are bridged"
            self._complaints.report(text, now_s)
            return
        if self._known.hear_topic(frame.topic, now_s) is None:
            return
        meter = self._meters.get(frame.topic)
        if meter is not None and meter.fits(frame):
            meter.add(frame)
            return
        if meter is not None:
            self._publish_level(frame.topic, meter)  # the analysis was changed
        meter = Meter(frame)
        self._meters.put(frame.topic, meter, meter.size_bytes)

    def _publish_due(self, now_s: float) -> None:
        if self._broker.take_connected():
            self._announce()
        for name, source in self._known.sources.items():
            if source.beat is not None:
                self._publish_state(name, source, source.beat)
        if now_s >= self._next_s:
            self._next_s = max(self._next_s + self._interval_s, now_s)
            self._publish_levels()
            self._broker.set_state(
                self._topics.bridge(
                    dropped=self._broker.dropped, missed=self.missed, refused=self._refused()
                )
            )
        if now_s >= self._forget_s:
            self._forget_s = now_s + _SWEEP_S
            self._forget(now_s)
        if self._devices is not None and self._kept is not None and self._broker.connected:
            for name, payload in self._kept.read(self._devices.sources, now_s):
                self._take_kept(self._devices, name, payload, now_s)
            for publication in self._devices.due(now_s, self._kept.is_read):
                self._broker.set_state(publication)

    def _take_kept(self, devices: DeviceMessages, name: str, payload: bytes, now_s: float) -> None:
        """Keep what an earlier bridge has described, as if it had just been heard.

        What is no more is forgotten as all else; what this bridge does not describe is removed.
        """
        try:
            parts = kept_parts(devices.discovery, name, payload)
        except ValueError as error:
            topic = devices.discovery.device_topic(name)
            why = printable(str(error), _WHY_CHARS)
            self._complaints.report(f"{topic}: the broker's message is replaced: {why}", now_s)
            return
        for part, kept in parts.items():
            known = self._kept_topic(devices.discovery, name, part, now_s)
            if known is None:
                devices.remove(name, part, kept.components, now_s)
                continue
            devices.keep(name, part, kept.components, now_s)
            if self._topics.retain or is_trigger_part(part):
                for topic in kept.topics:
                    self._known.add_retained(known, topic)

    def _kept_topic(
        self, discovery: Discovery, name: str, part: str, now_s: float
    ) -> KnownTopic | None:
        """Return what is known of a part with sensors; None if it has none, or there is no room."""
        source = self._known.sources.get(name)
        if source is None or part == STATE_PART:
            return source
        if is_trigger_part(part):
            return self._hear_trigger(name, source, part, now_s)
        if not part or not discovery.is_bridged(part):
            return None
        is_left_out = self._is_of_triggers(part) and not discovery.has_all_products
        return None if is_left_out else self._known.hear_topic(part, now_s)

    def _refused(self) -> int:
        return self._known.refused + (self._devices.refused if self._devices is not None else 0)

    def _forget(self, now_s: float) -> None:
        """Forget sources and topics that are no more, also at the broker."""
        sources, topics, retained = self._known.forget()
        gone = [*topics, *(f"meta/{topic.partition('/')[2]}" for topic in topics)]
        for name in sources:
            _log.info("%s: is no more, and is forgotten", printable(name))
            gone += [f"hb/{name}/", f"event/{name}/"]
        for topic in topics:
            self._forget_trigger(topic)
        self._tracker.discard(gone)
        for topic in topics:
            self._meters.discard(topic)
        for topic in retained:
            self._broker.set_state(Publication(topic, b"", retain=True))
        if self._devices is not None:
            for topic in topics:
                self._devices.forget_part(topic.split("/")[1], topic, now_s)
            for name in sources:
                self._broker.set_state(self._devices.forget(name))
                if self._kept is not None:
                    self._kept.forget(name)

    def _forget_trigger(self, part: str) -> None:
        _, name, trigger, *_ = part.split("/")
        source = self._known.sources.get(name)
        if source is not None and is_trigger_part(part):
            source.triggers.discard(trigger)
            source.active.discard(trigger)

    def _announce(self) -> None:
        """Publish all states on a new connection, as the broker may not have them."""
        self._broker.set_state(self._topics.online(is_online=True))
        if self._devices is not None:
            self._devices.repeat()
        if self._kept is not None:
            self._kept.ask_again()
        for source in self._known.sources.values():
            source.published = None
            source.triggers.clear()

    def _state(self, source: KnownSource) -> str:
        beat = source.beat
        if beat is None:
            return UNREACHABLE
        is_silent = self._clock() - source.beat_s > SILENCE_S
        return UNREACHABLE if is_silent and beat.state not in _LAST_STATES else beat.state

    def _publish_state(self, name: str, source: KnownSource, beat: HeartbeatHeader) -> None:
        """Publish a source's state if it has changed or the connection is new."""
        if not self._broker.connected:
            return
        state = self._state(source)
        state_now = (state, beat.waiting_for, beat.checks)
        if state_now == source.published:
            return
        source.published = state_now
        if self._devices is not None:
            sensor = self._devices.discovery.state_sensor(name)
            self._devices.describe(name, STATE_PART, [sensor], self._clock())
        for publication in self._topics.source_state(name, state, beat):
            self._publish_kept(source, publication)

    def _publish_levels(self) -> None:
        for topic in list(self._meters):
            meter = self._meters[topic]
            self._meters.discard(topic)
            self._publish_level(topic, meter)

    def _publish_level(self, topic: str, meter: Meter) -> None:
        kind, _, _ = topic.partition("/")
        known = self._known.hear_topic(topic, self._clock())
        if known is None:
            return
        levels = meter.levels()
        centre_hz = None
        if kind == "bands":
            meta = self._tracker.meta.get(topic)
            if meta is None or len(meta.f) != len(levels.mean):
                return  # no levels without frequencies; the description comes every 10 s
            centre_hz = meta.f
        self._describe_levels(topic, levels, centre_hz)
        self._publish_value(known, self._topics.levels(topic, levels, centre_hz))

    def _describe_levels(
        self, topic: str, levels: TopicLevels, centre_hz: Float64Array | None
    ) -> None:
        if self._devices is None:
            return
        discovery = self._devices.discovery
        sensors = (
            discovery.level_sensors(topic, levels)
            if centre_hz is None
            else discovery.band_sensors(topic, levels, centre_hz)
        )
        is_left_out = self._is_of_triggers(topic) and not discovery.has_all_products
        put = self._devices.remove if is_left_out else self._devices.describe
        put(topic.split("/")[1], topic, sensors, self._clock())

    def _is_of_triggers(self, topic: str) -> bool:
        """Whether a spectrum is of a product that its source has for triggers."""
        _, name, _, product, _ = topic.split("/")
        beat = self._known.sources[name].beat
        return beat is not None and product in beat.trigger_products

    def _publish_quantities(self, frame: LevelsFrame, now_s: float) -> None:
        """Publish sound levels at once: the daemon has measured them over an interval."""
        known = self._known.hear_topic(frame.topic, now_s)
        if known is None:
            return
        if self._devices is not None:
            sensors = self._devices.discovery.quantity_sensors(frame)
            self._devices.describe(frame.topic.split("/")[1], frame.topic, sensors, now_s)
        for publication in self._topics.quantities(frame):
            self._publish_value(known, publication)

    def _publish_event(self, event: EventMessage, now_s: float) -> None:
        self._broker.publish(self._topics.event(event))
        name, facts = event.topic.split("/")[1], event.header.trigger
        if facts is UNSET or not is_name(facts.name) or not is_name(name):
            return
        source = self._known.hear(name, now_s)
        if source is None:
            return
        source.event_s = now_s
        is_on = facts.state == "begun"
        if self._publish_trigger(name, source, facts.name, event.header, now_s, is_on=is_on):
            change = self._topics.trigger_change(name, facts.name, event.header, facts.state)
            self._broker.publish(change)

    def _end_triggers(self, name: str, source: KnownSource) -> None:
        while source.active:
            trigger = source.active.pop()
            self._broker.set_state(self._topics.trigger_state(name, trigger, None, is_on=False))

    def _publish_kept(self, owner: KnownTopic, publication: Publication) -> None:
        """Publish what a broker keeps as long as its source exists, if there is room."""
        if self._known.add_retained(owner, publication.topic):
            self._broker.set_state(publication)

    def _publish_value(self, owner: KnownTopic, publication: Publication) -> None:
        if publication.retain and not self._known.add_retained(owner, publication.topic):
            publication = replace(publication, retain=False)
        self._broker.publish(publication)
