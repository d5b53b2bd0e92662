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
from homeassistant.core import HomeAssistant
from homeassistant.helpers import frame

schemas = {"sensor": sensor, "binary_sensor": binary_sensor, "event": event}

def wrong(component, config):
    try:
        read = schemas[component].DISCOVERY_SCHEMA(config)
    except voluptuous.Invalid as error:
        return str(error)
    return sorted(set(config) - set(map(str, read)))

async def main():  # templates belong to an instance
    frame.async_setup(HomeAssistant(""))
    print(json.dumps([wrong(*one) for one in json.load(sys.stdin)]))

asyncio.run(main())
"""
"""Prints what is wrong with each description: an error, or the keys that nobody reads."""

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="HOMEASSISTANT_PYTHON must name a Python with homeassistant"
)


def judged(descriptions):
    """Return what Home Assistant finds wrong with components and their descriptions."""
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        input=json.dumps(descriptions),
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
    """Return each kind of description, with the component in its topic."""
    topics = Topics("spectrod", "box")
    classes = {name: name for name in TRIGGER_CLASSES}
    discovery = Discovery("homeassistant", topics, 10.0, 1, classes)
    frame, bands = read("spectrum"), read("bands")
    sent = [
        *discovery.level_sensors(frame.topic, Meter(frame).levels()),
        *discovery.band_sensors(bands.topic, Meter(bands).levels(), read("bands_meta").f),
        *discovery.quantity_sensors(levels()),
        discovery.state_sensor("mic1"),
        *(one for name in classes for one in discovery.trigger_sensors("mic1", name)),
    ]
    return [(one.topic.split("/")[1], json.loads(one.payload)) for one in sent]


def test_home_assistant_takes_each_description_and_reads_all_of_it():
    """No key is wrong, and none is ignored."""
    descriptions = published()
    assert {component for component, _ in descriptions} == {"sensor", "binary_sensor", "event"}
    found = judged(descriptions)
    wrong = [(one, *rest) for one, rest in zip(found, descriptions, strict=True) if one]
    assert wrong == []


def test_home_assistant_refuses_a_description_with_a_mistake():
    """A class of devices or of states that it does not have, and a key that is none."""
    descriptions = published()
    (_, sensor), (_, trigger) = descriptions[0], descriptions[-2]
    found = judged(
        [
            ("binary_sensor", trigger | {"device_class": "loud"}),
            ("sensor", sensor | {"state_class": "measured"}),
            ("sensor", sensor | {"statetopic": "x"}),
        ]
    )
    assert "device_class" in found[0]
    assert "state_class" in found[1]
    assert found[2] == ["statetopic"]
