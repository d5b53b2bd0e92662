"""What Home Assistant has of each source, and when its next message is due. Pure, bounded.

Components are heard of one by one, and each message has all of them: it waits until no more come.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from spectrod.apps.mqtt.discovery import Component, Discovery
from spectrod.apps.mqtt.mqtt_topics import Publication

SETTLED_S = 1.0
"""Time without a change after which the message of a source is sent [s]."""
LATEST_S = 5.0
"""Longest time from a change to the message [s]."""
SENSORS_MAX = 8192
"""Maximum number of components, of all sources; others are not described."""
DEVICE_MAX_BYTES = 512 << 10
"""Maximum size of the message of a source, half of what EMQX takes by default; further components
are not described."""
GONE_MAX = 1024
"""Maximum number of components that a message removes; the next one removes others."""


@dataclass(slots=True)
class _Device:
    """The components of a source.

    Attributes
    ----------
    n_bytes : int
        Size of the message.
    parts : dict
        Components by their identities, by what they describe: a topic, a trigger or the state. An
        empty part was removed.
    sent : dict
        Platforms of the components that Home Assistant has, by their identities.
    kept : set of str
        Identities of components that an earlier bridge has described, and this one not yet.
    changed_s, newest_s : float
        When the first and the last change came that no message has; infinity before [s].
    """

    n_bytes: int
    parts: dict[str, dict[str, Component]] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    changed_s: float = math.inf
    newest_s: float = math.inf

    def change(self, now_s: float) -> None:
        self.changed_s = min(self.changed_s, now_s)
        self.newest_s = now_s

    def is_due(self, now_s: float) -> bool:
        return now_s >= min(self.changed_s + LATEST_S, self.newest_s + SETTLED_S)


class DeviceMessages:
    """The devices of Home Assistant, one for each source.

    Parameters
    ----------
    discovery : Discovery

    Attributes
    ----------
    discovery : Discovery
    refused : int
        Components for which there was no room.
    """

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        self.refused = 0
        self._devices: dict[str, _Device] = {}
        self._n_components = 0

    @property
    def sources(self) -> list[str]:
        """Names of the sources that are described."""
        return list(self._devices)

    def describe(
        self, source: str, part: str, components: Iterable[Component], now_s: float
    ) -> None:
        """Replace the components of a part of a source, as far as there is room."""
        device = self._device(source)
        kept = self._fitting(device, device.parts.get(part, {}), components)
        if kept != device.parts.get(part, {}):
            self._replace(device, part, kept)
            device.change(now_s)

    def keep(self, source: str, part: str, components: list[Component], now_s: float) -> None:
        """Describe a part as an earlier bridge did, unless it is described; that counts as sent.

        What a description lacks is removed, as if this bridge had sent it.
        """
        device = self._device(source)
        before = device.parts.get(part)
        self._add_sent(device, components)
        device.kept |= device.sent.keys() & {one.identity for one in components}
        if before is None:
            self.describe(source, part, components, now_s)
        else:
            device.change(now_s)

    def remove(self, source: str, part: str, components: Iterable[Component], now_s: float) -> None:
        """Remove the components of a part once, also those that an earlier bridge has described."""
        device = self._device(source)
        if device.parts.get(part) == {}:
            return
        self._add_sent(device, components)
        self._replace(device, part, {})
        device.change(now_s)

    def forget_part(self, source: str, part: str, now_s: float) -> None:
        """Forget a part of a source: the next message removes its components."""
        if source in self._devices:
            self.describe(source, part, (), now_s)
            self._devices[source].parts.pop(part, None)

    def forget(self, source: str) -> Publication:
        """Forget a source; return the message that removes its device."""
        device = self._devices.pop(source, None)
        if device is not None:
            self._n_components -= sum(map(len, device.parts.values()))
        return self.discovery.no_device(source)

    def repeat(self) -> None:
        """Make all messages due: a broker may have lost them."""
        for device in self._devices.values():
            device.change(-math.inf)

    def due(
        self, now_s: float, is_ready: Callable[[str], bool] = lambda _: True
    ) -> Iterator[Publication]:
        """Yield the messages that are due, in the order in which they are to be sent.

        Those of sources that are not ready stay due.
        """
        for source, device in self._devices.items():
            if device.is_due(now_s) and is_ready(source):
                device.changed_s = device.newest_s = math.inf
                yield from self._messages(source, device, now_s)

    def _messages(self, source: str, device: _Device, now_s: float) -> Iterator[Publication]:
        components = {name: one for part in device.parts.values() for name, one in part.items()}
        platforms = {name: one.platform for name, one in components.items()}
        left = {name: its for name, its in device.sent.items() if name not in platforms}
        gone = dict(islice(left.items(), GONE_MAX))
        known = device.sent.keys() - device.kept
        new = {name: its for name, its in platforms.items() if name not in known}
        device.kept.clear()
        device.sent = dict(islice(left.items(), GONE_MAX, None)) | platforms
        if len(left) > GONE_MAX:
            device.change(now_s)
        migrations = [self.discovery.migration(*one) for one in new.items()]
        yield from migrations
        if gone:
            yield self.discovery.device(source, components.values(), gone)
        yield self.discovery.device(source, components.values())
        migrations += [self.discovery.migration(*one) for one in gone.items()]
        for one in migrations:
            yield replace(one, payload=b"", retain=True)

    def _add_sent(self, device: _Device, components: Iterable[Component]) -> None:
        room = 2 * SENSORS_MAX - sum(len(one.sent) for one in self._devices.values())
        device.sent |= {one.identity: one.platform for one in islice(components, max(0, room))}

    def _device(self, source: str) -> _Device:
        device = self._devices.get(source)
        if device is None:
            n_bytes = len(self.discovery.device(source, ()).payload)
            device = self._devices[source] = _Device(n_bytes)
        return device

    def _fitting(
        self, device: _Device, before: dict[str, Component], components: Iterable[Component]
    ) -> dict[str, Component]:
        """Return the components for which there is room in the place of others, by identities."""
        room = SENSORS_MAX - self._n_components + len(before)
        room_bytes = DEVICE_MAX_BYTES - device.n_bytes + _size_bytes(before)
        kept: dict[str, Component] = {}
        for one in components:
            if len(kept) >= room or one.size_bytes > room_bytes:
                self.refused += 1
                continue
            room_bytes -= one.size_bytes
            kept[one.identity] = one
        return kept

    def _replace(self, device: _Device, part: str, components: dict[str, Component]) -> None:
        before = device.parts.get(part, {})
        device.n_bytes += _size_bytes(components) - _size_bytes(before)
        self._n_components += len(components) - len(before)
        device.parts[part] = components


def _size_bytes(components: dict[str, Component]) -> int:
    return sum(one.size_bytes for one in components.values())
