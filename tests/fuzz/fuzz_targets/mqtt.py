"""What an MQTT broker sends to the bridge: packets, whole and torn, and what it has kept."""

import random
import socket

from fuzzing import Target
from mutation import havoc, mutate_json, put_number
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from spectrod.apps.mqtt.broker import PACKET_MAX_BYTES, _Client
from spectrod.apps.mqtt.discovery import PLATFORMS, Discovery, is_identity
from spectrod.apps.mqtt.kept_devices import kept_parts
from spectrod.apps.mqtt.mqtt_topics import Topics

_DISCOVERY = Discovery("ha", Topics("spectrod", "box"), 10.0, qos=1)

_PACKETS = (
    *(b"\x20\x02\0\0", b"\x20\x02\x01\0", b"\x20\x02\0\x05", b"\x20\x02\0\x01", b"\x40\x02\0\x01"),
    *(b"\xd0\0", b"\xc0\0", b"\x30\x05\0\x01a12", b"\x34\x07\0\x01a\0\x0112", b"\x50\x02\0\x01"),
    *(b"\x62\x02\0\x01", b"\x70\x02\0\x01", b"\x90\x03\0\x01\0", b"\xb0\x02\0\x01", b"\xe0\0"),
    *(b"\x20\0", b"\x40\0", b"\x30\xff\xff\xff\x7f", b"\x40\xff\xff\xff\xff\xff", b"\xf0\0"),
)


def check(data: bytes) -> None:
    """Read the packets of a broker: the connection goes on or ends; nothing is kept."""
    client = _Client(CallbackAPIVersion.VERSION2, "box", reconnect_on_failure=False)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for one in (ours, theirs):
            one.settimeout(0.0)
        client._sock = ours
        for place in range(0, len(data), PACKET_MAX_BYTES):
            theirs.send(data[place : place + PACKET_MAX_BYTES])
            code = MQTTErrorCode.MQTT_ERR_SUCCESS
            while code == MQTTErrorCode.MQTT_ERR_SUCCESS:
                code = client._packet_read()
            if code != MQTTErrorCode.MQTT_ERR_AGAIN:
                break
        assert len(client._in_packet["packet"]) <= PACKET_MAX_BYTES
        assert not client._in_messages
        client._sock = None


def seeds() -> list[bytes]:
    """Make the packets of a connection: acceptance, acknowledgements, an answer to a ping."""
    return [b"\x20\x02\0\0\x40\x02\0\x01\xd0\0\x40\x02\0\x02", b"\x20\x02\x01\0", b"\x20\x02\0\x04"]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Insert packets, change numbers, and bytes."""
    match rng.randrange(3):
        case 0:
            return havoc(data, rng)
        case 1:
            changed = bytearray(data)
            put_number(changed, rng.randrange(len(changed) + 1), rng)
            return bytes(changed)
        case _:
            place = rng.choice((0, len(data), rng.randrange(len(data) + 1)))
            return data[:place] + rng.choice(_PACKETS) + data[place:]


def check_device(data: bytes) -> None:
    """Read the message of a device; its components have the names and topics of this bridge."""
    try:
        parts = kept_parts(_DISCOVERY, "roof", data)
    except ValueError:
        return
    for part, kept in parts.items():
        assert part or not kept.topics
        assert all(topic.startswith("spectrod/box/roof/") for topic in kept.topics)
        for one in kept.components:
            assert is_identity(one.identity)
            assert one.platform in PLATFORMS
            one.config.encode()


def device_seeds() -> list[bytes]:
    """Make the message of a source with its state and a trigger."""
    components = [_DISCOVERY.state_sensor("roof"), *_DISCOVERY.trigger_sensors("roof", "bark")]
    return [_DISCOVERY.device("roof", components).payload]


def mutate_device(data: bytes, rng: random.Random) -> bytes:
    """Change values of the message, or any bytes."""
    return mutate_json(data, rng) if rng.random() < 0.7 else havoc(data, rng)


TARGETS = {
    "mqtt_packet": Target(check, seeds, mutate),
    "mqtt_device": Target(check_device, device_seeds, mutate_device),
}
