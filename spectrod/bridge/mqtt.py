"""The bridge to MQTT: receives a daemon's frames, publishes the levels of each interval."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from spectrod.bridge.discovery import Discovery
from spectrod.bridge.levels import Meter
from spectrod.bridge.topics import UNREACHABLE, Publication, Topics
from spectrod.client.connection import Connection
from spectrod.errors import DeniedError, WireError
from spectrod.wire.headers import HeartbeatHeader
from spectrod.wire.schema import (
    HEARTBEAT_PERIOD_S,
    BandFrame,
    EventMessage,
    Frame,
    Heartbeat,
    LevelsFrame,
    Meta,
    decode,
)

if TYPE_CHECKING:
    from spectrod.bridge.broker import Broker  # paho-mqtt may be missing

SUBSCRIPTIONS = ("spec/", "bands/", "levels/", "event/")
"""Default subscriptions; descriptions and heartbeats are always subscribed to."""

_KINDS = (b"spec/", b"bands/", b"levels/", b"meta/", b"hb/", b"event/")
_LAST_STATES = ("finished", "failed", "stopped")
_SILENCE_S = 3.0 * HEARTBEAT_PERIOD_S
_TURN_S = 0.2
_MESSAGES_A_TURN = 512

_log = logging.getLogger(__name__)
_F = TypeVar("_F", Frame, BandFrame, LevelsFrame)


@dataclass(slots=True)
class _Source:
    """State of a source: its last heartbeat, and the state that was published."""

    beat: HeartbeatHeader
    last_beat_s: float = 0.0
    published: tuple[str, str, tuple[str, ...]] | None = None


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

    Attributes
    ----------
    missed : int
        Messages of the daemon lost so far.
    """

    def __init__(
        self,
        connection: Connection,
        broker: "Broker",
        topics: Topics,
        discovery: Discovery | None,
        interval_s: float,
    ) -> None:
        self._connection = connection
        self._broker = broker
        self._topics = topics
        self._discovery = discovery
        self._interval_s = interval_s
        self._next_s = time.monotonic() + interval_s
        self._meters: dict[str, Meter] = {}
        self._meta: dict[str, Meta] = {}
        self._sources: dict[str, _Source] = {}
        self._last_seen: dict[str, tuple[int, int]] = {}
        self._sensors: dict[str, Publication] = {}
        self._complaint = ""
        self.missed = 0

    def run(self, exit_code: Callable[[], int | None], on_turn: Callable[[], None]) -> int:
        """Run until there is an exit code, which is read five times a second."""
        while True:
            code = exit_code()
            if code is not None:
                break
            self._read()
            self._publish_due(time.monotonic())
            self._broker.pump()
            on_turn()
        self._publish_levels()
        self._broker.publish(self._topics.online(is_online=False))
        return code

    def status(self) -> str:
        """Return a status line."""
        states = ", ".join(f"{name}: {self._state(name)}" for name in sorted(self._sources))
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
                self._complaint = ""
            except (DeniedError, WireError) as error:
                self._report_failure(str(error))

    def _report_failure(self, text: str) -> None:
        """Log the first of successive problems."""
        if not self._complaint:
            _log.warning("%s", text)
        self._complaint = text

    def _take(self, parts: list[bytes]) -> None:
        if not parts[0].startswith(_KINDS):
            return  # a kind of topic of a later version
        match decode(parts):
            case Frame() as frame:
                self._add(self._compare(frame))
            case BandFrame() as bands:
                self._add(self._compare(bands))
            case LevelsFrame() as levels:
                self._publish_quantities(self._compare(levels))
            case Meta() as meta:
                self._meta[meta.topic.removeprefix("meta/")] = meta
            case Heartbeat() as beat:
                source = self._sources.setdefault(beat.source, _Source(beat.header))
                source.beat, source.last_beat_s = beat.header, time.monotonic()
            case EventMessage() as event:
                self._broker.publish(self._topics.event(event))

    def _compare(self, frame: _F) -> _F:
        """Set the number of messages missing before a frame."""
        epoch, seq = frame.header.epoch, frame.header.seq
        last_epoch, last_seq = self._last_seen.get(frame.topic, (epoch, seq - 1))
        self._last_seen[frame.topic] = epoch, seq
        if epoch != last_epoch:
            return replace(frame, restarted=True)
        missed = max(0, seq - last_seq - 1)
        self.missed += missed
        return replace(frame, missed=missed) if missed else frame

    def _add(self, frame: Frame | BandFrame) -> None:
        meter = self._meters.get(frame.topic)
        if meter is not None and meter.fits(frame):
            meter.add(frame)
            return
        if meter is not None:
            self._publish_level(frame.topic, meter)  # the analysis was changed
        self._meters[frame.topic] = Meter(frame)

    def _publish_due(self, now_s: float) -> None:
        if self._broker.take_connected():
            self._announce()
        for name in self._sources:
            self._publish_state(name)
        if now_s >= self._next_s:
            self._next_s = max(self._next_s + self._interval_s, now_s)
            self._publish_levels()
            self._broker.set_state(
                self._topics.bridge(dropped=self._broker.dropped, missed=self.missed)
            )

    def _announce(self) -> None:
        """Publish all states on a new connection, as the broker may not have them."""
        self._broker.set_state(self._topics.online(is_online=True))
        for sensor in self._sensors.values():
            self._broker.set_state(sensor)
        for source in self._sources.values():
            source.published = None

    def _state(self, name: str) -> str:
        source = self._sources[name]
        is_silent = time.monotonic() - source.last_beat_s > _SILENCE_S
        is_expected = source.beat.state not in _LAST_STATES
        return UNREACHABLE if is_silent and is_expected else source.beat.state

    def _publish_state(self, name: str) -> None:
        """Publish a source's state if it has changed or the connection is new."""
        if not self._broker.connected:
            return
        source, state = self._sources[name], self._state(name)
        state_now = (state, source.beat.waiting_for, source.beat.checks)
        if state_now == source.published:
            return
        source.published = state_now
        if self._discovery is not None:
            self._publish_sensors([self._discovery.state_sensor(name)])
        for publication in self._topics.source_state(name, state, source.beat):
            self._broker.set_state(publication)

    def _publish_levels(self) -> None:
        meters, self._meters = self._meters, {}
        for topic, meter in meters.items():
            self._publish_level(topic, meter)

    def _publish_level(self, topic: str, meter: Meter) -> None:
        kind, _, rest = topic.partition("/")
        levels = meter.levels()
        if kind == "spec":
            if self._discovery is not None:
                self._publish_sensors(self._discovery.level_sensors(topic, levels))
            self._broker.publish(self._topics.levels(topic, levels))
            return
        meta = self._meta.get(rest)
        if meta is None or len(meta.f) != len(levels.mean):
            return  # no levels without frequencies; the description comes first, and every 10 s
        if self._discovery is not None:
            self._publish_sensors(self._discovery.band_sensors(topic, levels, meta.f))
        self._broker.publish(self._topics.levels(topic, levels, meta.f))

    def _publish_quantities(self, frame: LevelsFrame) -> None:
        """Publish sound levels at once: the daemon has measured them over an interval."""
        if self._discovery is not None:
            self._publish_sensors(self._discovery.quantity_sensors(frame))
        for publication in self._topics.quantities(frame):
            self._broker.publish(publication)

    def _publish_sensors(self, sensors: Iterable[Publication]) -> None:
        """Publish sensors that are new or have changed; ``_announce`` repeats all."""
        for sensor in sensors:
            if self._sensors.get(sensor.topic) != sensor:
                self._sensors[sensor.topic] = sensor
                self._broker.set_state(sensor)
