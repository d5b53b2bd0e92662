"""Device messages of the bridge, read by a Home Assistant that runs (``HOMEASSISTANT_PYTHON``)."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from mosquitto_broker import Mosquitto
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from spectrod.apps.mqtt.device_messages import DeviceMessages
from spectrod.apps.mqtt.discovery import Discovery
from spectrod.apps.mqtt.mqtt_topics import Topics

TIMEOUT_S = 60.0
PYTHON = os.environ.get("HOMEASSISTANT_PYTHON", "")
PROGRAM = Path(__file__).with_name("home_assistant.py")
DISCOVERY = Discovery("homeassistant", Topics("spectrod", "box"), 10.0, 1)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="HOMEASSISTANT_PYTHON must name a Python that has it"),
]


class House:
    """Home Assistant beside a broker."""

    def __init__(self, port, folder, log):
        self._client = Client(CallbackAPIVersion.VERSION2)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._process = subprocess.Popen(
            [PYTHON, PROGRAM, str(port), folder], stdout=subprocess.PIPE, stderr=log, text=True
        )

    def send(self, topic, payload, *, retain):
        self._client.publish(topic, payload, 1, retain).wait_for_publish(TIMEOUT_S)

    def ask(self, names=None, *, retain=False):
        """Return entities and devices after all that was sent; give entities other names."""
        self.send("asked", json.dumps(names or {}), retain=retain)
        answer = json.loads(self._process.stdout.readline())
        return answer["entities"], answer["devices"]

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def house(tmp_path):
    with contextlib.ExitStack() as made:
        broker = Mosquitto(tmp_path, "allow_anonymous true")
        broker.start()
        made.callback(broker.close)
        folder = tmp_path / "house"
        folder.mkdir()
        log = made.enter_context((tmp_path / "log").open("w"))
        house = House(broker.port, folder, log)
        made.callback(house.close)
        assert house.ask(retain=True) == ({}, [])  # it listens
        yield house
        assert "homeassistant.components.mqtt" not in (tmp_path / "log").read_text()  # no warning


def send_as_earlier_versions(house, source, components):
    """Send a retained message for each component, with all that a device message has once."""
    common = json.loads(DISCOVERY.device(source, ()).payload)
    del common["components"]
    for one in components:
        config = common | json.loads(one.config)
        topic = f"homeassistant/{config.pop('platform')}/{one.identity}/config"
        house.send(topic, json.dumps(config), retain=True)


def send_due(house, devices, now_s):
    """Send what is due."""
    for one in devices.due(now_s):
        house.send(one.topic, one.payload, retain=one.retain)


def test_entities_keep_what_home_assistant_knows_of_them(house):
    """Their settings survive the move to the device; what is gone is removed, and nothing else."""
    devices = DeviceMessages(DISCOVERY)
    state, triggers = DISCOVERY.state_sensor("roof"), list(DISCOVERY.trigger_sensors("roof", "hum"))
    send_as_earlier_versions(house, "roof", [state, *triggers])
    house.ask({"binary_sensor.roof_hum": "the fridge"})
    before, names = house.ask()
    assert (set(before), names) == ({one.identity for one in (state, *triggers)}, ["roof"])
    assert before[triggers[0].identity][1:] == ["binary_sensor.roof_hum", "the fridge", True]
    devices.describe("roof", "state", [state], 0.0)
    devices.describe("roof", "hum", triggers, 0.0)
    devices.describe("pond", "state", [DISCOVERY.state_sensor("pond")], 0.0)
    send_due(house, devices, 1.0)
    moved, names = house.ask()
    assert {name: moved[name] for name in before} == before
    assert (len(moved), names) == (4, ["roof", "pond"])
    devices.forget_part("roof", "hum", 2.0)
    send_due(house, devices, 3.0)
    left, names = house.ask()
    assert set(left) == set(moved) - {one.identity for one in triggers}
    assert (left[state.identity], names) == (before[state.identity], ["roof", "pond"])
    removal = devices.forget("roof")
    house.send(removal.topic, removal.payload, retain=removal.retain)
    left, names = house.ask()
    assert (list(left), names) == ([DISCOVERY.state_sensor("pond").identity], ["pond"])


def test_without_the_move_their_settings_would_be_lost(house):
    """What is tested above is not so by itself."""
    state = DISCOVERY.state_sensor("roof")
    send_as_earlier_versions(house, "roof", [state])
    before, _ = house.ask({"sensor.roof_state": "mine"})
    old = DISCOVERY.migration(state.identity, "sensor").topic
    device = DISCOVERY.device("roof", [state])
    house.send(old, b"", retain=True)
    house.ask()
    house.send(device.topic, device.payload, retain=True)
    after, _ = house.ask()
    assert set(after) == set(before)
    assert after[state.identity][2] is None
