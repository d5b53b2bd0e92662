"""Descriptions of the bridge, by Home Assistant's own schemas of MQTT discovery.

Home Assistant pins some hundred packages and the version of Python, so it is not installed here:
HOMEASSISTANT_PYTHON names an interpreter that has it, as ``docs/mqtt.md`` says.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spectrod.apps.mqtt.discovery import TRIGGER_CLASSES, Discovery
from spectrod.apps.mqtt.mqtt_topics import Topics
from spectrod.wire.headers import LevelsHeader
from spectrod.wire.interval_levels import Meter
from spectrod.wire.schema import LevelsFrame, decode

PYTHON = os.environ.get("HOMEASSISTANT_PYTHON", "")
GOLDEN = json.loads((Path(__file__).parents[1] / "data/golden_v1.json").read_text())
SCRIPT = """
import asyncio, json, sys
import voluptuous
from homeassistant.components.mqtt import binary_sensor, event, sensor
from homeassistant.components.mqtt.schemas import DEVICE_DISCOVERY_SCHEMA, SHARED_OPTIONS
from homeassistant.core import HomeAssistant
from homeassistant.helpers import frame

platforms = {"sensor": sensor, "binary_sensor": binary_sensor, "event": event}

def wrong(schema, config):
    try:
        read = schema(config)
    except voluptuous.Invalid as error:
        return str(error)
    return sorted(set(config) - set(map(str, read)))

def wrong_in_device(message):
    found = {"": wrong(DEVICE_DISCOVERY_SCHEMA, message)}
    common = {key: message[key] for key in ("device", "origin", *SHARED_OPTIONS) if key in message}
    for name, config in message["components"].items():
        platform = config.pop("platform")
        if config:  # else it is removed
            schema = platforms[platform].DISCOVERY_SCHEMA
            found[name] = wrong(schema, common | config)
    return {name: problem for name, problem in found.items() if problem}

async def main():  # templates belong to an instance
    frame.async_setup(HomeAssistant(""))
    print(json.dumps([wrong_in_device(one) for one in json.load(sys.stdin)]))

asyncio.run(main())
"""
"""Prints what is wrong with each device message and its components: an error, or the keys that
nobody reads. A component has what it shares with its device, as in Home Assistant."""

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="HOMEASSISTANT_PYTHON must name a Python with homeassistant"
)


def judged(messages):
    """Return what Home Assistant finds wrong with device messages, by component; "" is the rest."""
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        input=json.dumps(messages),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def read(name):
    """Return a golden message."""
    (golden,) = (one for one in GOLDEN if one["name"] == name)
    payloads = [golden["payload_hex"], golden.get("edges_hex")]
    head = [golden["topic"].encode(), golden["header"].encode()]
    return decode([*head, *(bytes.fromhex(one) for one in payloads if one is not None)])


def levels():
    """Return quantities in each unit that has a device class of its own, or none."""
    units = {"LAeq": "dB SPL", "LCpeak": "dB SPL", "LAE": "dB re (20 uPa)^2 s", "LUFS_S": "LUFS"}
    header = LevelsHeader(
        seq=1, epoch=7, t_utc_ns=1_767_225_600_000_000_000, t_mono_ns=0, sample_index=0,
        fs=48000.0, interval_s=60.0, n_samples=2_880_000, due_samples=2_880_000,
        quantities=tuple(units), units=tuple(units.values()), shape=(len(units),), ref="",
    )  # fmt: skip
    return LevelsFrame("levels/mic1/0/meter/", header, np.zeros(len(units)))


def published():
    """Return a device message with each kind of component, and one that removes some."""
    topics = Topics("spectrod", "box")
    classes = {name: name for name in TRIGGER_CLASSES}
    discovery = Discovery("homeassistant", topics, 10.0, 1, classes)
    frame, bands = read("spectrum"), read("bands")
    components = [
        discovery.state_sensor("mic1"),
        *discovery.level_sensors(frame.topic, Meter(frame).levels()),
        *discovery.band_sensors(bands.topic, Meter(bands).levels(), read("bands_meta").f),
        *discovery.quantity_sensors(levels()),
        *(one for name in classes for one in discovery.trigger_sensors("mic1", name)),
    ]
    gone = {one.identity: one.platform for one in components[1:]}
    sent = [
        discovery.device("mic1", components),
        discovery.device("mic1", components[:1], gone),
        discovery.device("mic1", ()),
    ]
    return [json.loads(one.payload) for one in sent]


def test_home_assistant_takes_each_device_and_reads_all_of_it():
    """No key of it or of its components is wrong, and none is ignored."""
    messages = published()
    platforms = [[one["platform"] for one in got["components"].values()] for got in messages]
    assert set(platforms[0]) == {"sensor", "binary_sensor", "event"}
    assert platforms[1] == platforms[0]
    assert judged(messages) == [{}, {}, {}]


def changed(message, name, **fields):
    """Return a copy of a message with other fields of a component."""
    components = message["components"]
    return message | {"components": components | {name: components[name] | fields}}


def test_home_assistant_refuses_a_device_with_a_mistake():
    """A class of devices or of states that it does not have, and keys that are none."""
    message, _, empty = published()
    of = {one["platform"]: name for name, one in message["components"].items()}
    plain = {"platform": "sensor", "state_topic": "x"}
    found = judged(
        [
            changed(message, of["binary_sensor"], device_class="loud"),
            changed(message, of["sensor"], state_class="measured"),
            changed(message, of["event"], statetopic="x"),
            message | {"available": "x"},
            empty | {"components": {"a": plain}},
        ]
    )
    assert [list(one) for one in found] == [
        [of["binary_sensor"]],
        [of["sensor"]],
        [of["event"]],
        [""],
        [""],
    ]
    assert "device_class" in found[0][of["binary_sensor"]]
    assert "state_class" in found[1][of["sensor"]]
    assert found[2][of["event"]] == ["statetopic"]
    assert found[3][""] == "extra keys not allowed @ data['available']"
    assert "unique_id" in found[4][""]
