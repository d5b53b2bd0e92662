"""MQTT topics and payloads of a bridge. Pure: knows no broker."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, to_builtins

from spectrod.dsp.units import Float64Array
from spectrod.lib.names import is_name
from spectrod.lib.text import printable_all
from spectrod.wire.headers import EventHeader, HeartbeatHeader
from spectrod.wire.interval_levels import TopicLevels
from spectrod.wire.schema import EventMessage, LevelsFrame

ONLINE, OFFLINE = b"online", b"offline"
UNREACHABLE = "unreachable"
"""State of a source whose daemon is silent; the other states are the daemon's."""

_DECIMALS = 2
_DECIMALS_OF = {"FS": 6}


@dataclass(frozen=True, slots=True)
class Publication:
    """A message to a broker."""

    topic: str
    payload: bytes
    retain: bool = False


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one node, ``PREFIX/NODE/...``, and their payloads.

    Every payload except ``online`` and ``offline`` is a JSON object with ``node``.
    """

    prefix: str
    node: str
    retain: bool = False
    """Whether the broker keeps the last levels; it always keeps states."""

    @property
    def status(self) -> str:
        """Topic of the bridge's availability."""
        return f"{self.prefix}/{self.node}/status"

    def of_source(self, source: str) -> str:
        """Return what the topics of a source begin with."""
        return f"{self.prefix}/{self.node}/{source}/"

    def availability(self, source: str) -> str:
        """Return the topic of a source's availability."""
        return f"{self.of_source(source)}availability"

    def state(self, source: str) -> str:
        """Return the topic of a source's state."""
        return f"{self.prefix}/{self.node}/{source}/state"

    def values(self, topic: str) -> str:
        """Return the topic for the levels or bands of a topic of the daemon."""
        kind, source, channel, product, _ = topic.split("/")
        name = "bands" if kind == "bands" else "level"
        return f"{self.prefix}/{self.node}/{source}/{channel}/{product}/{name}"

    def online(self, *, is_online: bool) -> Publication:
        """Return the message that the bridge is online or about to stop."""
        return Publication(self.status, ONLINE if is_online else OFFLINE, retain=True)

    def source_state(
        self, source: str, state: str, beat: HeartbeatHeader | None
    ) -> list[Publication]:
        """Return the messages of a source's availability and state."""
        available = OFFLINE if state in NOT_AVAILABLE else ONLINE
        payload = self._json(
            source=source,
            state=state,
            waiting_for=beat.waiting_for if beat is not None else "",
            checks=list(beat.checks) if beat is not None else [],
        )
        return [
            Publication(self.availability(source), available, retain=True),
            Publication(self.state(source), payload, retain=True),
        ]

    def levels(
        self, topic: str, levels: TopicLevels, centre_hz: Float64Array | None = None
    ) -> Publication:
        """Return the message with a topic's levels; for bands with their centre frequencies."""
        _, source, channel, product, _ = topic.split("/")
        h = levels.header
        if centre_hz is None:
            figures: dict[str, Any] = {
                "leq": _rounded(levels.mean[0]),
                "max": _rounded(levels.highest[0]),
            }
        else:
            figures = {
                "centre_hz": [_finite(float(f"{hertz:.6g}")) for hertz in centre_hz],
                "leq": [_rounded(level) for level in levels.mean],
                "max": [_rounded(level) for level in levels.highest],
            }
        payload = self._json(
            source=source,
            channel=channel,
            product=product,
            time=_iso(h.t_utc_ns),
            **figures,
            unit=levels.unit,
            weighting=h.weighting,
            averaging=h.averaging,
            frames=levels.frames,
            seconds=_finite(round(levels.frames * h.hop / h.fs, 3)),
            missed=levels.missed,
            gap_samples=levels.gap_samples,
            restarts=levels.restarts,
        )
        return Publication(self.values(topic), payload, retain=self.retain)

    def quantity(self, topic: str, name: str) -> str:
        """Return the topic for a quantity of a topic of sound levels of the daemon."""
        _, source, channel, product, _ = topic.split("/")
        return f"{self.prefix}/{self.node}/{source}/{channel}/{product}/{name}"

    def quantities(self, frame: LevelsFrame) -> Iterator[Publication]:
        """Yield a message for each quantity of a message of sound levels.

        A quantity whose name is not valid in a topic has none.
        """
        _, source, channel, product, _ = frame.topic.split("/")
        h = frame.header
        values = zip(h.quantities, h.units, frame.values.tolist(), strict=True)
        for name, unit, value in values:
            if not is_name(name):
                continue
            payload = self._json(
                source=source,
                channel=channel,
                product=product,
                quantity=name,
                value=_finite(round(value, _DECIMALS_OF.get(unit, _DECIMALS))),
                unit=unit,
                time=_iso(h.t_utc_ns),
                seconds=_finite(round(h.n_samples / h.fs, 3)),
                flags=list(h.flags),
                missed=frame.missed,
                restarts=int(frame.restarted),
            )
            yield Publication(self.quantity(frame.topic, name), payload, retain=self.retain)

    def event(self, event: EventMessage) -> Publication:
        """Return the message of an event."""
        h, source = event.header, event.topic.split("/")[1]
        where = "event" if source == "-" else f"{source}/event"
        payload = self._json(
            source=h.source,
            time=_iso(h.t_utc_ns),
            kind=h.kind,
            text=h.text,
            who=h.who,
            number=h.number,
            **self._facts(h),
        )
        return Publication(f"{self.prefix}/{self.node}/{where}", payload)

    def trigger(self, source: str, name: str) -> str:
        """Return the topic of the state of a trigger of a source."""
        return f"{self.prefix}/{self.node}/{source}/trigger/{name}"

    def trigger_event(self, source: str, name: str) -> str:
        """Return the topic of the events of a trigger of a source."""
        return f"{self.trigger(source, name)}/event"

    def trigger_state(
        self, source: str, name: str, event: EventHeader | None, *, is_on: bool
    ) -> Publication:
        """Return the message with the state of a trigger, and the event that has changed it."""
        payload = self._json(
            source=source,
            name=name,
            state="on" if is_on else "off",
            time=_iso(event.t_utc_ns) if event is not None else None,
            **self._facts(event),
        )
        return Publication(self.trigger(source, name), payload, retain=True)

    def trigger_change(self, source: str, name: str, event: EventHeader, state: str) -> Publication:
        """Return the message that an event of a trigger has begun or ended, which is not kept."""
        payload = self._json(
            source=source,
            name=name,
            event_type=state,
            time=_iso(event.t_utc_ns),
            **self._facts(event),
        )
        return Publication(self.trigger_event(source, name), payload)

    def _facts(self, event: EventHeader | None) -> dict[str, Any]:
        if event is None or event.trigger is UNSET:
            return {}
        return {"trigger": to_builtins(event.trigger)}

    def bridge(self, **counts: int) -> Publication:
        """Return the message with the bridge's own losses."""
        return Publication(f"{self.prefix}/{self.node}/bridge", self._json(**counts), retain=True)

    def _json(self, **fields: Any) -> bytes:
        # In ASCII, with texts of the daemon bounded and on one line.
        return json.dumps(printable_all({"node": self.node, **fields}), allow_nan=False).encode()


NOT_AVAILABLE = ("starting", "paused", "waiting", "finished", "failed", "stopped", UNREACHABLE)
"""States of a source that gives no samples."""


def _rounded(level: float) -> float | None:
    return _finite(round(float(level), _DECIMALS))


def _finite(number: float) -> float | None:
    """Return the number, or None, JSON's null, if it is not finite."""
    return number if math.isfinite(number) else None


def _iso(t_utc_ns: int) -> str:
    """Format a time as ISO 8601; out of the calendar's range, the nearest valid time."""
    seconds = min(max(t_utc_ns // 1_000_000_000, 0), 253_402_300_799)
    milliseconds = t_utc_ns // 1_000_000 % 1000
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"
