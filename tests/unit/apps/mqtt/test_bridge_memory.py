"""The MQTT bridge beside a daemon that comes, goes and invents: memory follows what exists now."""

import gc
import json
import logging
import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectrod.apps.mqtt import device_messages as device_limits
from spectrod.apps.mqtt import known as known_limits
from spectrod.apps.mqtt.complaints import Complaints
from spectrod.apps.mqtt.discovery import Discovery
from spectrod.apps.mqtt.known import FORGET_S
from spectrod.apps.mqtt.mqtt import TRIGGERS_MAX, VALUES_MAX, Bridge
from spectrod.apps.mqtt.mqtt_topics import Topics

GOLDEN = {
    message["name"]: message
    for message in json.loads((Path(__file__).parents[3] / "data/golden_v1.json").read_text())
}
HEADERS = {name: json.loads(golden["header"]) for name, golden in GOLDEN.items()}
PAYLOADS = {
    name: [bytes.fromhex(one) for key in ("payload_hex", "edges_hex") if (one := golden.get(key))]
    for name, golden in GOLDEN.items()
}
TOPICS = Topics("spectrod", "box", retain=True)
STEP_S = 3.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class FakeConnection:
    """Messages of a daemon, which are there at once."""

    endpoint = SimpleNamespace(text="tcp://daemon:1")

    def __init__(self):
        self.waiting = deque()

    def wait(self, _):
        return bool(self.waiting)

    def receive(self):
        return self.waiting.popleft() if self.waiting else None


class FakeBroker:
    """A broker that is always there, and keeps retained messages."""

    connected, dropped = True, 0

    def __init__(self):
        self.retained, self.n_messages, self.last = {}, 0, {}
        self.removals = []
        self.is_new = False
        self._asked = {}

    def take_connected(self):
        is_new, self.is_new = self.is_new, False
        return is_new

    def publish(self, publication):
        self.n_messages += 1
        self.last[publication.topic.rpartition("/")[2]] = publication
        if publication.retain and publication.payload:
            self.retained[publication.topic] = publication.payload
        elif publication.retain:
            self.retained.pop(publication.topic, None)
        elif publication.topic.startswith("homeassistant/device/"):
            self.removals.append(json.loads(publication.payload)["components"])

    set_state = publish

    def ask(self, topic):
        """Answer at once, also that nothing is kept, which real brokers do not say."""
        self._asked[topic] = self.retained.get(topic, b"")

    def answers(self):
        answers, self._asked = self._asked, {}
        return answers

    def end_question(self, topic):
        self._asked.pop(topic, None)

    def pump(self):
        """Send nothing: all was sent."""

    def devices(self):
        """Return the retained device messages."""
        names = sorted(name for name in self.retained if name.startswith("homeassistant/device/"))
        return [json.loads(self.retained[name]) for name in names]

    def sensors(self):
        """Return the components of all devices, by their identities."""
        return {name: one for got in self.devices() for name, one in got["components"].items()}


class World:
    """A bridge between a daemon and a broker, by a clock of its own."""

    def __init__(self, classes=None, **options):
        self.now_s = 1000.0
        self.connection, self.broker = FakeConnection(), FakeBroker()
        discovery = Discovery("homeassistant", TOPICS, 10.0, 1, classes, **options)
        self.bridge = Bridge(
            self.connection, self.broker, TOPICS, discovery, 10.0, clock=lambda: self.now_s
        )
        self._seq = 0

    def send(self, name, topic, payload=None, **fields):
        """Send a golden message under another topic, with other fields of its header."""
        if name == "heartbeat":
            fields = dict.fromkeys(("interval_topics", "triggers", "active_triggers"), ()) | fields
        self._seq += 1
        header = HEADERS[name] | {"seq": self._seq} | fields
        parts = [topic.encode(), json.dumps(header).encode(), *PAYLOADS[name]]
        if payload is not None:
            parts[2:3] = [payload]
        self.connection.waiting.append(parts)

    def source(self, name, state="running", products=("dbfs",), **fields):
        """Send what a source sends in a step."""
        self.send("heartbeat", f"hb/{name}/", state=state, interval_topics=[], **fields)
        for product in products:
            self.send("meta", f"meta/{name}/0/{product}/")
            if state == "running":
                self.send("spectrum", f"spec/{name}/0/{product}/")

    def step(self, step_s=STEP_S):
        self.now_s += step_s
        self.bridge.turn()
        while self.connection.waiting:
            self.bridge.turn()

    def steps(self, n, *names, **fields):
        for _ in range(n):
            for name in names:
                self.source(name, **fields)
            self.step()


N_FORGET = int(FORGET_S / STEP_S) + 5


def test_a_source_that_is_gone_is_forgotten_with_all_that_the_broker_keeps():
    """After 10 minutes of a daemon without it, no retained message of a source remains."""
    world = World()
    world.steps(10, "roof", "pond")
    kept = set(world.broker.retained)
    assert {topic.split("/")[2] for topic in kept if topic.startswith("spectrod/")} == {
        "roof", "pond", "bridge"
    }  # fmt: skip
    assert len(world.broker.sensors()) == 6
    world.steps(N_FORGET // 2, "roof")
    assert set(world.broker.retained) == kept
    world.steps(N_FORGET, "roof")
    assert {topic for topic in kept if "pond" in topic} == kept - set(world.broker.retained)
    assert world.bridge.status().startswith("connected; roof: running;")


def test_a_product_that_is_gone_is_forgotten_and_a_slow_one_is_not():
    """A topic that is described stays, also without values; one that is not goes."""
    world = World()
    world.steps(10, "roof", products=("dbfs", "gone"))
    assert len(world.broker.sensors()) == 5
    world.steps(N_FORGET, "roof")
    assert len(world.broker.sensors()) == 3
    for _ in range(N_FORGET):
        world.send("heartbeat", "hb/roof/", state="running", interval_topics=[])
        world.send("meta", "meta/roof/0/dbfs/")
        world.step()
    assert len(world.broker.sensors()) == 3


def test_topics_of_intervals_stay_while_their_source_offers_them():
    """Sound levels once an hour are kept by the heartbeat's list of topics."""
    world = World()
    world.send("heartbeat", "hb/roof/", state="running")
    world.step()
    source = world.bridge._known.sources["roof"]
    world.bridge._known.hear_topic("levels/roof/0/slm/", world.now_s)
    listed = [{"topic": "levels/roof/0/slm/", "interval_s": 3600.0}]
    for topics, expected in ((listed, {"levels/roof/0/slm/"}), ([], set())):
        for _ in range(N_FORGET):
            world.send("heartbeat", "hb/roof/", state="running", interval_topics=topics)
            world.step()
        assert set(source.topics) == expected


@pytest.mark.parametrize("state", ["waiting", "paused"])
def test_a_source_that_waits_keeps_its_topics(state):
    """A source without samples for long is there, and so are its sensors."""
    world = World()
    world.steps(10, "roof")
    sensors = world.broker.sensors()
    for _ in range(2 * N_FORGET):
        world.send("heartbeat", "hb/roof/", state=state, interval_topics=[])
        world.step()
    assert world.broker.sensors() == sensors


def test_a_daemon_that_is_away_is_not_forgotten():
    """What a silent daemon had stays, however long it is away, until it is back without it."""
    world = World()
    world.steps(10, "roof", "pond")
    sensors = world.broker.sensors()
    world.step(7 * 86400.0)
    world.steps(N_FORGET)
    assert world.broker.sensors() == sensors
    world.steps(N_FORGET // 2, "roof", epoch=5)
    assert world.broker.sensors() == sensors
    world.steps(N_FORGET, "roof", epoch=5)
    assert len(world.broker.sensors()) == 3


def run_hours(world, hours, n_before):
    """Run a daemon with two sources for hours; each minute one comes for 90 s, with a product."""
    for n in range(n_before, n_before + round(hours * 3600 / STEP_S)):
        t_s = n * STEP_S
        world.source("roof")
        world.source("pond")
        for k in {int(t_s // 60), int((t_s - 30) // 60)}:
            if 60 * k <= t_s < 60 * k + 90:
                world.source(f"guest{k}", products=(f"p{k}",))
        world.step()
    return n + 1


@pytest.mark.parametrize(
    "hours",
    [
        0.7,
        pytest.param(24, marks=[pytest.mark.slow, pytest.mark.extended, pytest.mark.timeout(900)]),
    ],
)
def test_memory_is_flat_beside_a_daemon_whose_sources_come_and_go(hours):
    """From the first half hour on neither objects, retained messages nor memory grow."""
    # A process of its own: the heap of one that has run other tests has room for anything.
    command = [sys.executable, __file__, str(hours)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    growth = json.loads(run.stdout)
    assert growth["objects"] < 300
    assert growth["retained"] <= 6
    assert growth["resident_bytes"] < 3_000_000


def growth_of(hours):
    """Return what grows in a process from the first half hour on."""

    def count():
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
        return len(gc.get_objects()), len(world.broker.retained), resident

    world = World()
    n = run_hours(world, 0.5, 0)
    before = count()
    run_hours(world, hours, n)
    names = ("objects", "retained", "resident_bytes")
    return {name: b - a for name, a, b in zip(names, before, count(), strict=True)}


def test_what_a_daemon_invents_is_bounded(monkeypatch):
    """Sources, topics and sensors without end stop at their bounds; what was there goes on."""
    monkeypatch.setattr(known_limits, "SOURCES_MAX", 20)
    monkeypatch.setattr(known_limits, "TOPICS_MAX", 30)
    monkeypatch.setattr(device_limits, "SENSORS_MAX", 40)
    monkeypatch.setattr(known_limits, "RETAINED_MAX", 50)
    world = World()
    world.steps(10, "roof")
    for n in range(200):
        world.source(f"s{n}", products=("a", "b"))
    world.steps(10, "roof")
    known = world.bridge._known
    assert len(known.sources) == 20
    assert sum(len(source.topics) for source in known.sources.values()) == 30
    assert len(world.broker.sensors()) == 40
    assert len(world.broker.retained) - len(world.broker.devices()) <= 50 + 2
    devices = world.bridge._devices
    refused = json.loads(world.broker.retained["spectrod/box/bridge"])["refused"]
    assert refused == known.refused + devices.refused
    assert known.refused > 300
    assert devices.refused >= 20
    assert json.loads(world.broker.retained["spectrod/box/roof/state"])["state"] == "running"
    world.steps(N_FORGET, "roof")
    assert list(known.sources) == ["roof"]
    assert known._n_topics == 1
    assert devices._n_components == len(world.broker.sensors()) == 3
    assert len(world.broker.devices()) == 1


def test_long_heartbeats_are_cut():
    """Of a heartbeat of 500 KiB some kilobytes are kept."""
    world = World()
    checks = ["x" * 1000] * 200
    world.source("roof", products=(), waiting_for="y" * 200_000, checks=checks)
    world.step()
    beat = world.bridge._known.sources["roof"].beat
    assert len(beat.waiting_for) == 2000
    assert sum(map(len, beat.checks)) == 16 * 200


def test_topics_with_very_many_bands_are_not_bridged(caplog):
    """Their levels would be messages of megabytes."""
    world = World()
    n = VALUES_MAX + 1
    world.send("bands", "bands/roof/0/x/", bytes(4 * n), shape=[n], n_bands=n)
    world.step()
    assert f"bands/roof/0/x/: has {n} bands: at most {VALUES_MAX} are bridged" in caplog.text
    assert not world.bridge._meters


# ---- triggers


def send_event(world, name, state, source="roof"):
    facts = {
        "name": name, "kind": "band", "state": state, "product": "dbfs", "channel": "0",
        "f_min_hz": 10.0, "f_max_hz": 20.0, "frequency_hz": None, "level": -3.0, "threshold": -9.0,
        "unit": "dBFS", "begin_utc_ns": 0, "end_utc_ns": 0, "peak_utc_ns": 0, "duration_s": 1.0,
    }  # fmt: skip
    kind = f"trigger.{state}"
    world.send("event", f"event/{source}/", kind=kind, source=source, trigger=facts)


def trigger_of(world, name="alarm"):
    return json.loads(world.broker.retained[f"spectrod/box/roof/trigger/{name}"])


def test_a_trigger_is_a_binary_sensor_with_a_retained_state():
    """The state of a trigger is on from its begin to its end, and Home Assistant finds it."""
    world = World()
    world.steps(2, "roof")
    send_event(world, "alarm", "begun")
    world.step()
    found = trigger_of(world)
    assert (found["state"], found["trigger"]["level"]) == ("on", -3.0)
    world.step()
    world.step()
    (device,) = world.broker.devices()
    (config,) = (one for one in device["components"].values() if one["platform"] == "binary_sensor")
    assert (device["device"]["name"], config["name"]) == ("roof", "alarm")
    assert config["state_topic"] == "spectrod/box/roof/trigger/alarm"
    assert (config["payload_on"], config["payload_off"]) == ("on", "off")
    assert config["value_template"] == "{{ value_json.state }}"
    send_event(world, "alarm", "ended")
    world.step()
    assert trigger_of(world)["state"] == "off"
    world.steps(N_FORGET, "pond")
    assert not [one for one in world.broker.retained if "alarm" in one]


def test_a_trigger_ends_with_the_daemon_that_reported_its_begin():
    """A daemon that has started again is in no event of the last one, whose end may be lost."""
    world = World()
    world.steps(2, "roof")
    send_event(world, "alarm", "begun")
    world.step()
    world.steps(1, "roof", epoch=5)
    assert trigger_of(world) == {
        "node": "box", "source": "roof", "name": "alarm", "state": "off", "time": None
    }  # fmt: skip


def beat(world, active=(), triggers=("alarm", "bell"), seconds=1.0):
    """Send a heartbeat that lists triggers, and let time pass."""
    listed = {"triggers": list(triggers), "active_triggers": list(active)}
    world.send("heartbeat", "hb/roof/", state="running", interval_topics=[], **listed)
    world.step(seconds)


def test_triggers_are_announced_before_their_first_event():
    """A smoke alarm that never rang has its sensors, of the class that was said, and is off."""
    world = World(classes={"alarm": "smoke"})
    beat(world)
    assert [trigger_of(world, name)["state"] for name in ("alarm", "bell")] == ["off", "off"]
    beat(world)
    found = world.broker.sensors().values()
    triggers = {one["name"]: one for one in found if "trigger/" in one["state_topic"]}
    assert sorted(triggers) == ["alarm", "alarm event", "bell", "bell event"]
    assert (triggers["alarm"]["device_class"], triggers["bell"]["device_class"]) == (
        "smoke", "sound"
    )  # fmt: skip
    event = triggers["alarm event"]
    assert event["event_types"] == ["begun", "ended"]
    send_event(world, "alarm", "begun")
    world.step()
    assert world.broker.last["event"].topic == event["state_topic"]
    sent = json.loads(world.broker.last["event"].payload)
    assert (sent["event_type"], sent["trigger"]["level"]) == ("begun", -3.0)


def test_a_state_whose_event_was_missed_comes_with_a_heartbeat():
    """Not with one that was made before the event and came after it."""
    world = World()
    beat(world)
    send_event(world, "alarm", "begun")
    beat(world)
    assert trigger_of(world)["state"] == "on"
    beat(world)
    assert trigger_of(world)["state"] == "on"
    beat(world)
    assert trigger_of(world)["state"] == "off"
    beat(world, active=["alarm"])
    assert trigger_of(world)["state"] == "on"


def test_states_of_triggers_are_published_again_on_a_new_connection():
    """A broker that keeps nothing on its disk has lost them."""
    world = World()
    beat(world)
    world.broker.retained.clear()
    world.broker.is_new = True
    beat(world)
    beat(world)
    assert trigger_of(world)["state"] == "off"


def test_devices_are_described_to_a_broker_that_comes_or_comes_back():
    """What was heard while it was away is one message; one that has lost it gets it again."""
    world = World()
    world.broker.connected = False
    world.steps(10, "roof")
    assert world.broker.devices() == []
    world.broker.connected = world.broker.is_new = True
    world.steps(1, "roof")
    (device,) = world.broker.devices()
    assert {one["name"] for one in device["components"].values()} == {
        "state", "dbfs Leq", "dbfs Lmax"
    }  # fmt: skip
    world.broker.retained.clear()
    world.broker.is_new = True
    world.steps(1, "roof")
    assert world.broker.devices() == [device]


def test_triggers_of_heartbeats_without_end_are_bounded(caplog):
    """Other names in each heartbeat leave no more than 64 here and at the broker."""
    world = World()
    for k in range(50):
        names = [f"t{k}-{n}" for n in range(40)]
        beat(world, active=names, triggers=names)
    source = world.bridge._known.sources["roof"]
    assert len(source.triggers) <= TRIGGERS_MAX
    assert source.active <= source.triggers
    assert sum("/trigger/" in topic for topic in world.broker.retained) <= TRIGGERS_MAX
    assert f"roof: has more than {TRIGGERS_MAX} triggers" in caplog.text
    beat(world, active=[f"t{n}" for n in range(1000)], triggers=[])
    assert len(source.beat.active_triggers) == TRIGGERS_MAX


def test_triggers_without_end_are_bounded(caplog):
    """Of one source the states of 64 triggers are kept; events go on."""
    world = World()
    world.steps(2, "roof")
    n_before = world.broker.n_messages
    for n in range(3 * TRIGGERS_MAX):
        send_event(world, f"t{n}", "begun")
    world.step()
    assert sum("/trigger/" in topic for topic in world.broker.retained) <= TRIGGERS_MAX
    assert world.broker.n_messages - n_before >= 3 * TRIGGERS_MAX
    assert f"roof: has more than {TRIGGERS_MAX} triggers" in caplog.text


# ---- the log


def test_good_and_bad_messages_in_turn_are_a_line_a_minute(caplog):
    """The first problem is logged at once, later ones once a minute with their number."""
    world = World()
    for _ in range(40):
        world.connection.waiting.append([b"spec/roof/0/dbfs/", b"no header", b""])
        world.source("roof", products=())
        world.step()
    lines = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == 2
    assert lines[1].endswith("(and 19 more since the last line)")


def test_a_problem_that_lasts_is_one_line(caplog):
    """What goes on without a good message is logged once."""
    complaints = Complaints(logging.getLogger("spectrod.apps.mqtt"))
    for n in range(500):
        complaints.report("away", float(n))
    assert [record.message for record in caplog.records] == ["away"]
    complaints.end()
    complaints.report("away again", 500.0)
    assert [record.message for record in caplog.records] == ["away", "away again"]


if __name__ == "__main__":
    json.dump(growth_of(float(sys.argv[1])), sys.stdout)


def fast_sensors(world, **fields):
    """Return the products of the sensors after some steps with a product beside the main one."""
    world.steps(8, "roof", products=("dbfs", "fast"), **fields)
    names = [one["name"] for one in world.broker.sensors().values()]
    return sorted(name for name in names if name.startswith(("dbfs", "fast")))


def test_a_product_of_a_trigger_is_no_sensor():
    """What was a sensor is removed once, what no trigger examines any more is one again."""
    world = World()
    main, both = ["dbfs Leq", "dbfs Lmax"], ["dbfs Leq", "dbfs Lmax", "fast Leq", "fast Lmax"]
    assert fast_sensors(world, trigger_products=[]) == both
    n_before = world.bridge._devices._n_components
    assert fast_sensors(world, trigger_products=["fast"]) == main
    assert world.bridge._devices._n_components == n_before - 2
    assert fast_sensors(world, trigger_products=[]) == both
    assert world.bridge._devices._n_components == n_before
    assert fast_sensors(World(subscriptions=("spec/",)), trigger_products=["fast"]) == both


def test_sensors_that_an_earlier_bridge_left_are_removed():
    """Where a product has become a trigger's while no bridge ran; its levels go on."""
    earlier, world = World(), World()
    fast_sensors(earlier, trigger_products=[])
    world.broker.retained.update(earlier.broker.retained)
    names = {name for name, one in earlier.broker.sensors().items() if "fast" in one["name"]}
    assert len(names) == 2
    for name in earlier.broker.sensors():  # those of earlier versions
        world.broker.retained[f"homeassistant/sensor/{name}/config"] = b"{}"
    assert fast_sensors(world, trigger_products=["fast"]) == ["dbfs Leq", "dbfs Lmax"]
    (removal,) = (one for one in world.broker.removals if names <= set(one))
    assert [removal[name] for name in names] == [{"platform": "sensor"}] * 2
    assert not [name for name in world.broker.retained if name.startswith("homeassistant/sensor/")]
    assert "spectrod/box/roof/0/fast/level" in world.broker.retained


# ---- what an earlier bridge has described


def restarted(earlier, **options):
    """Return the world of the next bridge beside the same broker."""
    world = World(**options)
    world.broker.retained.update(earlier.broker.retained)
    return world


def listed(world, triggers=(), state="running", n=1):
    """Let a source send nothing but heartbeats."""
    for _ in range(n):
        world.send("heartbeat", "hb/roof/", state=state, triggers=triggers)
        world.step()


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_a_bridge_that_starts_beside_a_silent_source_keeps_its_sensors(state):
    """Also where the source runs, and has rare values; those that come change nothing."""
    earlier = World()
    earlier.steps(10, "roof", products=("dbfs", "fast"), triggers=["alarm"])
    before = earlier.broker.devices()
    assert len(before[0]["components"]) == 7
    world = restarted(earlier)
    listed(world, ["alarm"] if state == "running" else [], state, n=10)
    assert world.broker.devices() == before
    world.steps(10, "roof", products=("dbfs", "fast"), triggers=["alarm"])
    assert world.broker.devices() == before
    assert world.broker.removals == []


def test_what_is_gone_since_the_last_bridge_is_removed():
    """A product and a trigger after 10 minutes in which their source runs, and not before."""
    earlier = World()
    earlier.steps(10, "roof", products=("dbfs", "gone"), triggers=["alarm", "bell"])
    old = {name for name, one in earlier.broker.sensors().items() if "gone" in one["name"]}
    old |= {name for name, one in earlier.broker.sensors().items() if "alarm" in one["name"]}
    assert len(old) == 4
    world = restarted(earlier)
    listed(world, state="waiting", n=2 * N_FORGET)
    assert old <= set(world.broker.sensors())
    world.steps(N_FORGET // 2, "roof", triggers=["bell"])
    assert old <= set(world.broker.sensors())
    assert world.broker.removals == []
    world.steps(N_FORGET, "roof", triggers=["bell"])
    left = {one["name"] for one in world.broker.sensors().values()}
    assert left == {"state", "dbfs Leq", "dbfs Lmax", "bell", "bell event"}
    assert {name for one in world.broker.removals for name in one if len(one[name]) == 1} == old
    assert not [topic for topic in world.broker.retained if "gone" in topic or "alarm" in topic]


def test_a_trigger_that_its_source_lists_no_more_is_forgotten():
    """It goes with its state; one that comes again is there again."""
    world = World()
    world.steps(3, "roof", triggers=["alarm"], active_triggers=["alarm"])
    assert trigger_of(world)["state"] == "on"
    world.steps(N_FORGET, "roof", triggers=[])
    assert not [topic for topic in world.broker.retained if "/trigger/" in topic]
    assert {one["name"] for one in world.broker.sensors().values()} == {
        "state", "dbfs Leq", "dbfs Lmax"
    }  # fmt: skip
    assert world.bridge._known.sources["roof"].active == set()
    world.steps(3, "roof", triggers=["alarm"])
    assert trigger_of(world)["state"] == "off"
    assert "alarm" in {one["name"] for one in world.broker.sensors().values()}


def test_a_bridge_that_takes_less_removes_the_rest():
    """What --subscribe leaves out is no sensor any more."""
    earlier = World()
    earlier.steps(10, "roof", triggers=["alarm"])
    names = {one["name"]: name for name, one in earlier.broker.sensors().items()}
    world = restarted(earlier, subscriptions=("levels/",))
    listed(world, ["alarm"], n=5)
    (removal,) = world.broker.removals
    gone = {names["dbfs Leq"], names["dbfs Lmax"]}
    assert {name for name, one in removal.items() if one == {"platform": "sensor"}} == gone
    assert set(world.broker.sensors()) == set(names.values()) - gone


def test_a_quantity_that_the_next_value_lacks_is_removed():
    """Of a topic that both bridges describe."""
    earlier = World()
    earlier.steps(10, "roof")
    (device,) = earlier.broker.devices()
    (topic,) = (one for one in earlier.broker.retained if one.startswith("homeassistant/device/"))
    leq, lmax = (
        name for name, one in device["components"].items() if one["name"].startswith("dbfs")
    )
    assert "leq" in device["components"][leq]["value_template"]
    world = restarted(earlier)
    devices = world.bridge._devices
    listed(world, n=2)
    (part,) = (one for one in world.bridge._known.sources["roof"].topics)
    sensors = devices._devices["roof"].parts[part]
    devices.describe("roof", part, [sensors[leq]], world.now_s)
    listed(world, n=2)
    assert world.broker.removals[-1][lmax] == {"platform": "sensor"}
    assert lmax not in json.loads(world.broker.retained[topic])["components"]


HOSTILE = {
    "no JSON": b"{",
    "a list": b"[]",
    "no UTF-8": b'{"components": {"\xff": {}}}',
    "components that are texts": b'{"components": {"a": "b"}}',
    "very deep": b'{"components": {"a": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}}",
    "an endless number": b'{"components": {"a": {"platform": "sensor", "x": 1e999}}}',
}


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_a_kept_message_that_is_none_is_replaced(payload, caplog):
    """With a line of the log."""
    earlier = World()
    earlier.steps(10, "roof")
    (topic,) = (one for one in earlier.broker.retained if one.startswith("homeassistant/device/"))
    world = restarted(earlier)
    world.broker.retained[topic] = payload
    world.steps(10, "roof")
    assert world.broker.devices() == earlier.broker.devices()
    (line,) = caplog.messages
    assert line.startswith(f"{topic}: the broker's message is replaced: ")
    assert len(line) < 400


@pytest.mark.parametrize("options", [{}, {"subscriptions": ("",)}])
def test_components_of_others_in_a_kept_message_are_removed(options):
    """Of other sources, topics, identities and platforms nothing stays in the message."""
    earlier = World()
    earlier.steps(10, "roof", "pond")
    sensors = earlier.broker.sensors()
    roof = {name: one for name, one in sensors.items() if "/roof/" in one["state_topic"]}
    leq = next(name for name, one in roof.items() if one["name"] == "dbfs Leq")
    odd = {
        "mine": roof[leq],
        "strange": roof[leq] | {"unique_id": "strange"},
        "other": {"platform": "sensor", "unique_id": "other"},
        leq: roof[leq] | {"state_topic": "spectrod/box/roof/0/dbfs/LAeq"},
        "lock": {"platform": "lock", "unique_id": "lock"},
        "a.b": roof[leq] | {"unique_id": "a.b"},
        "a" * 600: roof[leq],
    }
    odd |= {name: one for name, one in sensors.items() if "/pond/" in one["state_topic"]}
    (topic,) = (one for one in earlier.broker.retained if "device/spectrod-box-roof" in one)
    world = restarted(earlier, **options)
    world.broker.retained[topic] = json.dumps({"components": odd}).encode()
    listed(world, n=5)
    kept = json.loads(world.broker.retained[topic])["components"]
    assert [one["name"] for one in kept.values()] == ["state"]
    removed = {name for one in world.broker.removals for name in one if len(one[name]) == 1}
    assert removed == set(odd) - {"lock", "a.b", "a" * 600}


def test_a_kept_message_is_bounded():
    """Components without end: as many as there is room for, and others are removed."""
    earlier = World()
    earlier.steps(10, "roof")
    discovery = earlier.bridge._devices.discovery
    sensors = [one for n in range(3000) for one in discovery.trigger_sensors("roof", f"t{n}")]
    (topic,) = (one for one in earlier.broker.retained if one.startswith("homeassistant/device/"))
    world = restarted(earlier)
    world.broker.retained[topic] = discovery.device("roof", sensors).payload
    listed(world, n=20)
    kept = world.broker.sensors()
    assert sum(one["platform"] == "event" for one in kept.values()) == TRIGGERS_MAX
    removed = {name for one in world.broker.removals for name in one if len(one[name]) == 1}
    assert removed == {one.identity for one in sensors} - set(kept)
