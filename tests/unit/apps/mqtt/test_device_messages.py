"""Device messages of Home Assistant: when they are sent, in which order, and how many there are."""

import json

import pytest

from spectrod.apps.mqtt import device_messages as limits
from spectrod.apps.mqtt.device_messages import DEVICE_MAX_BYTES, DeviceMessages
from spectrod.apps.mqtt.discovery import Component, Discovery
from spectrod.apps.mqtt.mqtt_topics import Topics

MIGRATE = b'{"migrate_discovery": true}'


@pytest.fixture
def devices():
    return DeviceMessages(Discovery("ha", Topics("spectrod", "box"), 10.0, qos=1))


def made(*names, platform="sensor", config="{}"):
    return [Component(name, platform, config) for name in names]


def sent(devices, now_s):
    """Return what is due: topics without what they begin with, and payloads."""
    due = list(devices.due(now_s))
    for one in due:
        if one.topic.startswith("ha/device/"):
            json.loads(one.payload)
    return [(one.topic.removeprefix("ha/"), one.payload, one.retain) for one in due]


def components(devices, now_s):
    """Return the components of each retained device message that is due."""
    return [
        list(json.loads(payload)["components"])
        for topic, payload, retain in sent(devices, now_s)
        if topic.startswith("device/") and retain
    ]


def test_a_message_waits_until_a_source_has_been_the_same_for_a_second(devices):
    """What is heard one by one is one message."""
    devices.describe("roof", "state", made("s"), 100.0)
    assert sent(devices, 100.9) == []
    devices.describe("roof", "levels", made("a", "b"), 100.9)
    assert sent(devices, 101.8) == []
    assert components(devices, 101.9) == [["s", "a", "b"]]
    assert sent(devices, 1000.0) == []


def test_a_message_waits_five_seconds_at_most(devices):
    """A source that changes without end has a message in 5 s."""
    devices.describe("roof", "state", made("s"), 0.0)
    times = []
    for k in range(1, 201):
        now_s = 0.1 * k
        devices.describe("roof", "levels", made("a", config=f"[{k}]"), now_s)
        times += [now_s for _ in components(devices, now_s)]
    assert times == pytest.approx([5.0, 10.1, 15.2])


def test_what_is_the_same_is_no_change(devices):
    """Components come with each value; only others make a message."""
    devices.describe("roof", "levels", made("a"), 0.0)
    devices.describe("roof", "levels", made("a"), 0.9)
    assert components(devices, 1.0) == [["a"]]
    devices.describe("roof", "levels", made("a"), 2.0)
    assert sent(devices, 100.0) == []
    devices.describe("roof", "levels", made("a", config="[1]"), 100.0)
    ((topic, payload, retain),) = sent(devices, 101.0)
    assert (json.loads(payload)["components"], retain) == ({"a": [1]}, True)
    assert topic.startswith("device/spectrod-box-roof-")


def test_sources_wait_by_themselves(devices):
    """Changes of one source keep no other waiting."""
    devices.describe("roof", "state", made("r"), 0.0)
    devices.describe("pond", "state", made("p"), 0.5)
    assert components(devices, 1.0) == [["r"]]
    assert components(devices, 1.5) == [["p"]]


def test_components_move_from_messages_of_earlier_versions(devices):
    """Home Assistant unloads them, has them from the device, and the old messages are removed."""
    devices.describe("roof", "trigger", made("t", platform="binary_sensor"), 0.0)
    devices.describe("roof", "state", made("s"), 0.0)
    first, second, (device, payload, retain), *cleared = sent(devices, 1.0)
    old = ["binary_sensor/t/config", "sensor/s/config"]
    assert [first, second] == [(topic, MIGRATE, False) for topic in old]
    assert (list(json.loads(payload)["components"]), retain) == (["t", "s"], True)
    assert cleared == [(topic, b"", True) for topic in old]
    devices.describe("roof", "levels", made("a"), 2.0)
    assert [one[:2] for one in sent(devices, 3.0) if one[0] != device] == [
        ("sensor/a/config", MIGRATE),
        ("sensor/a/config", b""),
    ]


def test_a_component_that_is_gone_is_removed_for_those_who_listen(devices):
    """The message that the broker keeps comes after it, and has no trace of it."""
    devices.describe("roof", "levels", made("a", "b"), 0.0)
    assert components(devices, 1.0) == [["a", "b"]]
    devices.describe("roof", "levels", made("b"), 2.0)
    (_, removal, is_kept), (_, whole, is_whole_kept), cleared = sent(devices, 3.0)
    assert json.loads(removal)["components"] == {"b": {}, "a": {"platform": "sensor"}}
    assert json.loads(whole)["components"] == {"b": {}}
    assert (is_kept, is_whole_kept) == (False, True)
    assert cleared == ("sensor/a/config", b"", True)


def test_what_comes_and_goes_between_messages_is_in_none(devices):
    devices.describe("roof", "state", made("s"), 0.0)
    devices.describe("roof", "levels", made("a"), 0.1)
    devices.forget_part("roof", "levels", 0.2)
    assert [one[0].split("/")[1] for one in sent(devices, 1.2) if one[1] == b""] == ["s"]


def test_a_source_that_is_gone_is_removed_by_an_empty_message(devices):
    devices.describe("roof", "state", made("s"), 0.0)
    (_, (topic, _, _), _) = sent(devices, 1.0)
    devices.describe("roof", "levels", made("a"), 2.0)
    removal = devices.forget("roof")
    assert (removal.topic, removal.payload, removal.retain) == (f"ha/{topic}", b"", True)
    assert sent(devices, 100.0) == []
    assert devices.forget("never heard of").payload == b""


def test_a_new_connection_repeats_each_message_once(devices):
    """At once, without moving what has moved."""
    devices.describe("roof", "state", made("s"), 0.0)
    assert components(devices, 1.0) == [["s"]]
    devices.repeat()
    ((_, payload, retain),) = sent(devices, 1.0)
    assert (list(json.loads(payload)["components"]), retain) == (["s"], True)
    assert sent(devices, 100.0) == []


def test_a_part_is_removed_once_also_for_an_earlier_bridge(devices):
    devices.describe("roof", "state", made("s"), 0.0)
    devices.remove("roof", "fast", made("a"), 0.0)
    found = sent(devices, 1.0)
    (removal,) = (payload for topic, payload, retain in found if "device/" in topic and not retain)
    assert json.loads(removal)["components"] == {"s": {}, "a": {"platform": "sensor"}}
    assert ("sensor/a/config", b"", True) in found
    assert ("sensor/a/config", MIGRATE, False) not in found
    devices.remove("roof", "fast", made("a"), 2.0)
    assert sent(devices, 100.0) == []
    devices.describe("roof", "fast", made("a"), 100.0)
    assert components(devices, 101.0) == [["s", "a"]]


# ---- bounds


def test_a_message_has_512_kib_and_other_components_are_refused(devices):
    """Of a source with components without end there are as many as fit; they may be replaced."""
    big = "x" * 1000
    devices.describe("roof", "a", made(*map(str, range(400)), config=f'"{big}"'), 0.0)
    devices.describe("roof", "b", made(*map(str, range(400, 800)), config=f'"{big}"'), 0.0)
    (payload,) = (
        payload for topic, payload, _ in sent(devices, 1.0) if topic.startswith("device/")
    )
    assert DEVICE_MAX_BYTES - 1100 < len(payload) <= DEVICE_MAX_BYTES
    assert len(json.loads(payload)["components"]) + devices.refused == 800
    assert devices.refused > 250
    refused = devices.refused
    devices.describe("roof", "b", made(*map(str, range(1000, 1100)), config=f'"{big}"'), 2.0)
    assert devices.refused == refused
    (found,) = components(devices, 3.0)
    assert len(found) == 500
    devices.describe("pond", "a", made("p"), 3.0)
    assert components(devices, 4.0) == [["p"]]


def test_there_are_8192_components_of_all_sources(devices):
    """A source that has gone makes room."""
    names = [str(n) for n in range(5000)]
    devices.describe("roof", "a", made(*names), 0.0)
    devices.describe("pond", "a", made(*names), 0.0)
    assert devices.refused == 10_000 - limits.SENSORS_MAX
    assert sorted(map(len, components(devices, 1.0))) == [3192, 5000]
    devices.forget("roof")
    devices.describe("pond", "a", made(*names), 2.0)
    assert list(map(len, components(devices, 3.0))) == [5000]
    assert devices.refused == 10_000 - limits.SENSORS_MAX


def test_many_that_are_gone_are_removed_by_several_messages(devices):
    """A message that removes some has a bound of its own."""
    names = [str(n) for n in range(2500)]
    devices.describe("roof", "a", made(*names), 0.0)
    assert list(map(len, components(devices, 1.0))) == [2500]
    devices.forget_part("roof", "a", 2.0)
    removed = []
    for now_s in (3.0, 4.0, 5.0, 6.0):
        found = [json.loads(one[1])["components"] for one in sent(devices, now_s) if not one[2]]
        removed += [list(one) for one in found]
    assert list(map(len, removed)) == [1024, 1024, 452]
    assert [name for part in removed for name in part] == names


def test_what_earlier_bridges_left_is_bounded(devices):
    """Topics without end, of which none is described."""
    for n in range(1000):
        names = [f"{n}-{k}" for k in range(64)]
        devices.remove(f"s{n % 10}", f"t{n}", made(*names), 0.0)
    left = sum(len(one.sent) for one in devices._devices.values())
    assert left == 2 * limits.SENSORS_MAX
