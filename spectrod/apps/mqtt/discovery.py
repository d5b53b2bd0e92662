"""Discovery by Home Assistant: what describes values, states and triggers of a source. Pure.

A source is a device, whose message has all its components. Home Assistant reads it since 2024.11.

References
----------
.. [1] Home Assistant, "MQTT", sections "Device discovery payload" and "Migration from single
   component to device-based discovery", "MQTT sensor", "MQTT binary sensor" and "MQTT event".
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

import spectrod
from spectrod.apps.mqtt.mqtt_topics import Publication, Topics
from spectrod.dsp.calibration import SPL_UNIT
from spectrod.dsp.units import Float64Array
from spectrod.lib.errors import ConfigError
from spectrod.lib.names import is_name
from spectrod.lib.text import printable_all
from spectrod.measure.levels import parse_quantity
from spectrod.wire.interval_levels import TopicLevels
from spectrod.wire.schema import LevelsFrame

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
_IDENTITY = re.compile(r"[A-Za-z0-9_-]{1,512}")
SUBSCRIPTIONS = ("spec/", "bands/", "levels/", "event/")
"""Default subscriptions; descriptions and heartbeats are always subscribed to."""
PLATFORMS = ("sensor", "binary_sensor", "event")
"""Platforms of components."""
STATE_PART = "state"
"""What stands for the state of a source among its topics."""
_TRIGGER_BEGIN = "trigger/"
_NOMINAL = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
_MISSED_INTERVALS = 3
_EXPIRES_AT_LEAST_S = 30
TRIGGER_CLASS = "sound"
"""Device class of a trigger of which nothing else is said."""
TRIGGER_CLASSES = (
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door",
    "garage_door", "gas", "heat", "light", "lock", "moisture", "motion", "moving", "occupancy",
    "opening", "plug", "power", "presence", "problem", "running", "safety", "smoke", "sound",
    "tamper", "update", "vibration", "window",
)  # fmt: skip
"""Device classes that Home Assistant has for binary sensors."""
BANDS_MAX = 64
"""Maximum number of bands of a topic with sensors; a topic with more has none."""
SENSORS_MAX = 64
"""Maximum number of sensors of a message of sound levels."""


@dataclass(frozen=True, slots=True)
class Component:
    """What a device message has of a sensor, a binary sensor or an event entity.

    Attributes
    ----------
    identity : str
        Its ``unique_id``, and its name in the message; of ``A-Z a-z 0-9 _ -``.
    platform : str
        ``sensor``, ``binary_sensor`` or ``event``.
    config : str
        JSON in ASCII.
    """

    identity: str
    platform: str
    config: str

    @property
    def size_bytes(self) -> int:
        """What it adds to a message [bytes]."""
        return len(self.identity) + len(self.config) + len('"": , ')


class Discovery:
    """Describes the topics of a node.

    Parameters
    ----------
    prefix : str
        Home Assistant's discovery prefix, by default ``homeassistant``.
    topics : Topics
    interval_s : float
        Interval of levels; a sensor without any for three intervals is unavailable [s].
    qos : int
        QoS for Home Assistant's subscription.
    classes : mapping of str to str
        Device classes of triggers by their names; of others it is ``TRIGGER_CLASS``.
    subscriptions : tuple of str
        What topics begin with that the user has named; none: ``SUBSCRIPTIONS``, but products that
        triggers examine, beside the main one, have no sensors.
    """

    def __init__(
        self,
        prefix: str,
        topics: Topics,
        interval_s: float,
        qos: int,
        classes: Mapping[str, str] | None = None,
        *,
        subscriptions: tuple[str, ...] = (),
    ) -> None:
        self._prefix = prefix
        self._topics = topics
        self._expire_s = _expire_s(interval_s)
        self._qos = qos
        self._classes = classes or {}
        self.has_all_products = bool(subscriptions)
        self._subscriptions = subscriptions or SUBSCRIPTIONS

    def device(
        self, source: str, components: Iterable[Component], gone: Mapping[str, str] | None = None
    ) -> Publication:
        """Return the message of a source and its components.

        Parameters
        ----------
        source : str
        components : iterable of Component
        gone : mapping of str to str, optional
            Platforms of components to remove, by their identities. Without them the broker keeps
            the message; with them it is for those who listen now.
        """
        topics = self._topics.status, self._topics.availability(source)
        head = {
            "device": self._device(source),
            "origin": {"name": "spectrod mqtt", "sw_version": spectrod.__version__},
            "availability": [{"topic": topic} for topic in topics],
            "availability_mode": "all",
        }
        listed = [f'"{one.identity}": {one.config}' for one in components]
        listed += [f'"{name}": {{"platform": "{its}"}}' for name, its in (gone or {}).items()]
        text = f'{_json(head)[:-1]}, "components": {{{", ".join(listed)}}}}}'
        return Publication(self.device_topic(source), text.encode(), retain=not gone)

    def device_topic(self, source: str) -> str:
        """Return the topic of the message of a source."""
        return f"{self._prefix}/device/{self._identity(source)}/config"

    def no_device(self, source: str) -> Publication:
        """Return the message that removes a source and its components."""
        return Publication(self.device_topic(source), b"", retain=True)

    def migration(self, identity: str, platform: str) -> Publication:
        """Return the message after which a component's own one no longer counts.

        Earlier versions sent a retained message for each component. Home Assistant then unloads the
        component and keeps its history and settings for the device message, while the removal of
        the old message alone would remove them.
        """
        topic = f"{self._prefix}/{platform}/{identity}/config"
        return Publication(topic, b'{"migrate_discovery": true}')

    def level_sensors(self, topic: str, levels: TopicLevels) -> Iterator[Component]:
        """Describe a spectrum's mean and highest level."""
        for figure, name in (("leq", "Leq"), ("max", "Lmax")):
            yield self._level(topic, levels, figure, name, f"{{{{ value_json.{figure} }}}}")

    def band_sensors(
        self, topic: str, levels: TopicLevels, centre_hz: Float64Array
    ) -> Iterator[Component]:
        """Describe each band's mean level."""
        if len(centre_hz) > BANDS_MAX:
            return
        for k, hertz in enumerate(centre_hz):
            yield self._level(
                topic, levels, f"leq-{k}", band_name(hertz), f"{{{{ value_json.leq[{k}] }}}}"
            )

    def quantity_sensors(self, frame: LevelsFrame) -> Iterator[Component]:
        """Describe the first ``SENSORS_MAX`` quantities of a message of sound levels."""
        h = frame.header
        for name, unit in islice(zip(h.quantities, h.units, strict=True), SENSORS_MAX):
            if is_name(name):
                yield self._value(
                    frame.topic,
                    name,
                    name,
                    {
                        "state_topic": self._topics.quantity(frame.topic, name),
                        "value_template": "{{ value_json.value }}",
                        **_measurement(unit, _weighting(name)),
                        "suggested_display_precision": 1 if unit != "FS" else 5,
                        "expire_after": _expire_s(h.interval_s),
                    },
                )

    def state_sensor(self, source: str) -> Component:
        """Describe the state of a source."""
        return self._component(
            "sensor",
            (source, "state"),
            {
                "name": "state",
                "state_topic": self._topics.state(source),
                "value_template": "{{ value_json.state }}",
                "json_attributes_topic": self._topics.state(source),
                "entity_category": "diagnostic",
                "availability": [{"topic": self._topics.status}],
            },
        )

    def trigger_sensors(self, source: str, name: str) -> Iterator[Component]:
        """Describe the state of a trigger, on while its event lasts, and the events themselves."""
        topic = self._topics.trigger(source, name)
        yield self._component(
            "binary_sensor",
            (source, "trigger", name),
            {
                "name": name,
                "device_class": self._classes.get(name, TRIGGER_CLASS),
                "state_topic": topic,
                "value_template": "{{ value_json.state }}",
                "payload_on": "on",
                "payload_off": "off",
                "json_attributes_topic": topic,
            },
        )
        yield self._component(
            "event",
            (source, "event", name),
            {
                "name": f"{name} event",
                "state_topic": self._topics.trigger_event(source, name),
                "event_types": ["begun", "ended"],
                "availability": [{"topic": self._topics.status}],
            },
        )

    def is_bridged(self, topic: str) -> bool:
        """Return whether values of a topic of the daemon are published."""
        return topic.startswith(self._subscriptions)

    def part_of(self, source: str, identity: str, state_topic: str) -> str:
        """Return what a component describes that a bridge of this node has made.

        Parameters
        ----------
        source : str
        identity : str
        state_topic : str
            What the component has as its ``state_topic``, from outside.

        Returns
        -------
        part : str
            A topic of the daemon, ``STATE_PART`` or ``trigger_part``; empty if no component of this
            identity has this topic.
        """
        begin = self._topics.of_source(source)
        if not state_topic.startswith(begin):
            return ""
        names = state_topic.removeprefix(begin).split("/")
        if not all(map(is_name, names)):
            return ""
        for part, own in _candidates(source, names):
            if identity == self._identity(*own):
                return part
        return ""

    def config_text(self, config: dict[str, Any]) -> str:
        """Return the JSON of a component's configuration; ValueError for what JSON lacks."""
        return json.dumps(printable_all(config), allow_nan=False)

    def _level(
        self, topic: str, levels: TopicLevels, figure: str, name: str, template: str
    ) -> Component:
        weighting = levels.header.weighting
        weighted = f" {weighting}" if weighting != "Z" else ""
        return self._value(
            topic,
            figure,
            f"{name}{weighted}",
            {
                "state_topic": self._topics.values(topic),
                "value_template": template,
                **_measurement(levels.unit, weighting),
                "suggested_display_precision": 1,
                "expire_after": self._expire_s,
            },
        )

    def _value(self, topic: str, figure: str, name: str, fields: dict[str, Any]) -> Component:
        """Describe a value of a topic of the daemon."""
        kind, source, channel, product, _ = topic.split("/")
        return self._component(
            "sensor",
            (kind, source, channel, product, figure),
            {
                "name": f"{product} {name}" if channel == "0" else f"{channel} {product} {name}",
                **fields,
                "state_class": "measurement",
            },
        )

    def _device(self, source: str) -> dict[str, Any]:
        """Describe a source as a device, whose name is put before those of its sensors."""
        node = self._topics.node
        return {
            "identifiers": [self._identity(source)],
            "name": source,
            "manufacturer": "spectrod",
            "model": f"spectrum analyzer at {node}",
            "sw_version": spectrod.__version__,
        }

    def _component(
        self, platform: str, names: tuple[str, ...], fields: dict[str, Any]
    ) -> Component:
        identity = self._identity(*names)
        # Home Assistant 2025.4 reads no qos of a device.
        config = {"platform": platform, "unique_id": identity, **fields, "qos": self._qos}
        return Component(identity, platform, _json(config))

    def _identity(self, *names: str) -> str:
        # Home Assistant forbids dots; the hash distinguishes names that become equal.
        node = self._topics.node
        whole = "/".join((self._topics.prefix, node, *names))
        mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
        return _NOT_IN_IDS.sub("_", "-".join(("spectrod", node, *names, mark)))


def trigger_part(source: str, name: str) -> str:
    """Return what stands for a trigger among the topics of a source of the daemon."""
    return f"{_TRIGGER_BEGIN}{source}/{name}"


def is_trigger_part(part: str) -> bool:
    """Return whether a part stands for a trigger."""
    return part.startswith(_TRIGGER_BEGIN)


def is_identity(text: str) -> bool:
    """Return whether a text can be the identity of a component."""
    return _IDENTITY.fullmatch(text) is not None


def _candidates(source: str, names: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what a state topic can be of: parts, and the names of identities."""
    match names:
        case ["state"]:
            yield STATE_PART, (source, "state")
        case ["trigger", name]:
            yield trigger_part(source, name), (source, "trigger", name)
        case [channel, product, last]:
            if channel == "trigger" and last == "event":
                yield trigger_part(source, product), (source, "event", product)
            figures = [("levels", last)]
            if last == "level":
                figures += [("spec", "leq"), ("spec", "max")]
            if last == "bands":
                figures += [("bands", f"leq-{k}") for k in range(BANDS_MAX)]
            for kind, figure in figures:
                topic = f"{kind}/{source}/{channel}/{product}/"
                yield topic, (kind, source, channel, product, figure)


def _json(fields: dict[str, Any]) -> str:
    return json.dumps(printable_all(fields))


def _expire_s(interval_s: float) -> int:
    """Return the time without a value after which a sensor is unavailable [s]."""
    return max(_EXPIRES_AT_LEAST_S, round(_MISSED_INTERVALS * interval_s))


def _weighting(quantity: str) -> str:
    """Return the frequency weighting of a quantity; Z for those of later versions."""
    try:
        return parse_quantity(quantity).weighting
    except ConfigError:
        return "Z"


def band_name(centre_hz: float) -> str:
    """Return the name of a band: its nominal centre frequency, or its exact one if it has none.

    References
    ----------
    .. [1] IEC 61260-1:2014, annex E: nominal mid-band frequencies of octaves and their thirds.
    """
    tenths = 10.0 * math.log10(centre_hz) if centre_hz > 0.0 else math.nan
    if abs(tenths - np.rint(tenths)) < 1e-3:
        decade, step = divmod(int(np.rint(tenths)), len(_NOMINAL))
        centre_hz = _NOMINAL[step] * 10.0**decade
    return f"{centre_hz / 1e3:.4g} kHz" if centre_hz >= 1e3 else f"{centre_hz:.4g} Hz"


def _measurement(unit: str, weighting: str) -> dict[str, str]:
    """Return unit and device class; only sound pressure levels re 20 uPa have a class."""
    if unit != SPL_UNIT:
        return {"unit_of_measurement": unit}
    # The only units that Home Assistant accepts for this class.
    shown = "dBA" if weighting == "A" else "dB"
    return {"unit_of_measurement": shown, "device_class": "sound_pressure"}
