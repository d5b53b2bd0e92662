"""The MQTT bridge between a real daemon and a real broker; all waits are for messages or lines."""

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
import time

import pytest
from mosquitto_broker import Mosquitto
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from spectrod import client
from spectrod.apps.mqtt.address import parse_broker
from spectrod.apps.mqtt.broker import Broker
from spectrod.apps.mqtt.mqtt_topics import Publication
from spectrod.cli import main
from spectrod.config.config import (
    AnalysisConfig,
    Config,
    EngineConfig,
    LevelsConfig,
    ProductConfig,
    PublishConfig,
    SourceConfig,
    SourceTable,
)
from spectrod.daemon.daemon import build_daemon
from spectrod.measure.triggers.trigger_config import TriggerConfig

TIMEOUT_S = 60.0
pytestmark = pytest.mark.slow


@pytest.fixture
def mosquitto(tmp_path):
    """Make brokers, open to everyone by default, and kill them after the test."""
    with contextlib.ExitStack() as made:

        def make(*lines):
            broker = Mosquitto(tmp_path, *(lines or ["allow_anonymous true"]))
            made.callback(broker.close)
            return broker

        yield make


class Watcher:
    """A client that receives all messages."""

    def __init__(self, port):
        self.messages = messages = queue.Queue()
        self._client = Client(CallbackAPIVersion.VERSION2)
        # Not of ourselves: in a cycle its sockets would be collected before it closes them.
        self._client.on_message = lambda _c, _u, message: messages.put(message)
        self._client.reconnect_delay_set(1, 1)
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert subscribed.wait(TIMEOUT_S)

    def next(self, matches):
        """Return the next message for which ``matches`` is true, given topic and payload."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            message = self.messages.get(timeout=max(0.01, deadline_s - time.monotonic()))
            if matches(message.topic, message.payload.decode()):
                return message

    def wait_for_all(self, *expected):
        """Wait until a message was received for each; retained ones come in a broker's own order.

        Which ones are retained when a watcher subscribes again depends on who reconnects first.
        """
        missing = list(expected)
        while missing:
            message = self.next(lambda *_: True)
            text = message.payload.decode()
            missing = [matches for matches in missing if not matches(message.topic, text)]

    def json(self, topic):
        """Return the next message in a topic."""
        return json.loads(self.next(lambda name, _: name == topic).payload)

    def components(self, *names):
        """Return the components of the next device message whose components have these names."""
        while True:
            message = self.next(lambda topic, _: topic.startswith("homeassistant/device/"))
            components = json.loads(message.payload).get("components", {}).values()
            if {one.get("name") for one in components} == set(names):
                return {one["name"]: one for one in components}

    def keep(self, topic, payload):
        """Publish a message that the broker keeps."""
        self._client.publish(topic, payload, qos=1, retain=True).wait_for_publish(TIMEOUT_S)

    def close(self):
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def watch():
    """Make watchers, and close them after the test."""
    with contextlib.ExitStack() as made:

        def make(broker):
            watcher = Watcher(broker.port)
            made.callback(watcher.close)
            return watcher

        yield make


class BridgeProcess:
    """``spectrod mqtt``, whose log is read line by line."""

    def __init__(self, endpoint, broker_url, *options):
        arguments = [endpoint, "--broker", broker_url, "--node", "box", "--interval", "1", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spectrod", "mqtt", *arguments],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log = ""

    def wait_for_line(self, text):
        for line in self.process.stderr:
            self.log += line
            if text in line:
                return
        pytest.fail(f"{text!r} is not in: {self.log}")

    def terminate(self):
        """Stop the bridge as a service manager does; return its exit code."""
        self.process.terminate()
        self.log += self.process.communicate(timeout=TIMEOUT_S)[1]
        return self.process.returncode


@pytest.fixture
def bridge():
    """Start bridges, and kill them after the test."""
    with contextlib.ExitStack() as started:

        def start(endpoint, broker_url, *options):
            made = BridgeProcess(endpoint, broker_url, *options)
            started.enter_context(made.process)
            started.callback(made.process.kill)
            return made

        yield start


@pytest.fixture
def start_daemon():
    """Start daemons, and stop them after the test."""
    with contextlib.ExitStack() as started:

        def start(endpoint="tcp://127.0.0.1:*", **fields):
            fields = fields or {"source": SourceConfig(uri="signal:sine,1500,-20", name="tone")}
            publish = PublishConfig(endpoints=(endpoint,))
            daemon = build_daemon(Config(publish=publish, engine=EngineConfig("numpy"), **fields))
            daemon.start()
            started.callback(daemon.stop)
            return daemon

        yield start


def url(broker, user=""):
    return f"mqtt://{user}127.0.0.1:{broker.port}"


def test_levels_of_tones_and_noise_are_right(mosquitto, watch, bridge, start_daemon):
    """Levels are right to 0.05 dB with any window and scaling, and none are missed."""
    daemon = start_daemon(
        sources=(
            SourceTable(uri="signal:sine,1234.5,-20", name="tone"),
            SourceTable(
                uri="signal:sine,1500,-31.5",
                name="flat",
                analysis=AnalysisConfig(window="flattop", scaling="spectrum"),
            ),
            SourceTable(
                uri="signal:white,-20",
                name="noise",
                samplerate=192_000,
                analysis=AnalysisConfig(win_length=2048, hop=1024, scaling="density"),
            ),
        )
    )
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    bridge(daemon.publisher.endpoints[0], url(broker), "--interval", "2")
    seen = {}
    while len(seen) < 3:
        message = watcher.next(lambda topic, _: topic.endswith("/level"))
        payload = json.loads(message.payload)
        if payload["seconds"] > 1.5:  # the first interval is short
            seen[message.topic.removeprefix("spectrod/box/")] = payload
    expected = {"tone/0/dbfs/level": -20.0, "flat/0/spectrum/level": -31.5}
    expected["noise/0/density/level"] = -20.0
    assert {topic: payload["leq"] for topic, payload in seen.items()} == pytest.approx(
        expected, abs=0.05
    )
    for payload in seen.values():
        assert (payload["unit"], payload["missed"], payload["node"]) == ("dBFS", 0, "box")
        assert payload["max"] >= payload["leq"]


LEVELS = ("state", "dbfs Leq", "dbfs Lmax")


def test_sensors_are_discovered_and_stay_the_same(mosquitto, watch, bridge, start_daemon):
    """A source is a retained message, so Home Assistant finds it later; it survives a restart."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    first = bridge(endpoint, url(broker), "--discovery", "homeassistant")
    components = watcher.components(*LEVELS)
    assert first.terminate() == 0
    watcher.next(lambda topic, payload: (topic, payload) == ("spectrod/box/status", "offline"))
    bridge(endpoint, url(broker), "--discovery", "homeassistant")
    watcher.next(lambda topic, payload: (topic, payload) == ("spectrod/box/status", "online"))
    assert watcher.components(*LEVELS) == components
    late = watch(broker)
    missing = {"spectrod/box/status", "spectrod/box/tone/availability", "device"}
    while missing:
        message = late.next(lambda *_: True)
        if message.retain:
            missing -= {message.topic, message.topic.removeprefix("homeassistant/").split("/")[0]}


def device_messages(watcher, is_last):
    """Return the components of device messages, up to the first for which ``is_last`` is true."""
    found = []
    while not found or not is_last(found[-1]):
        message = watcher.next(lambda topic, _: topic.startswith("homeassistant/device/"))
        found.append(json.loads(message.payload)["components"])
    return found


def test_a_bridge_that_restarts_beside_a_silent_source_keeps_its_sensors(
    mosquitto, watch, bridge, start_daemon
):
    """It knows them from the broker; one that takes less removes the rest, also at the broker."""
    daemon = start_daemon()
    endpoint = daemon.publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    first = bridge(endpoint, url(broker), "--discovery", "homeassistant")
    before = {one["unique_id"]: one for one in watcher.components(*LEVELS).values()}
    daemon.runner("tone").pause()
    while watcher.json("spectrod/box/tone/state")["state"] != "paused":
        pass
    assert first.terminate() == 0
    watcher.next(lambda topic, payload: (topic, payload) == ("spectrod/box/status", "offline"))
    second = bridge(endpoint, url(broker), "--discovery", "homeassistant")
    assert device_messages(watcher, lambda _: True) == [before]
    assert second.terminate() == 0
    options = ("--discovery", "homeassistant", "--subscribe", "levels/")
    bridge(endpoint, url(broker), *options)
    removal, rest = device_messages(watcher, lambda one: len(one) == 1)
    (state,) = (name for name, one in before.items() if one["name"] == "state")
    assert rest == {state: before[state]}
    gone = {"platform": "sensor"}
    assert removal == {name: before[name] if name == state else gone for name in before}
    assert device_messages(watch(broker), lambda _: True) == [rest]


def test_a_kept_message_that_is_too_long_is_replaced(mosquitto, watch, bridge, start_daemon):
    """It ends two connections, and not every one."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    watcher.keep("homeassistant/device/spectrod-box-tone-0eededec/config", b" " * (2 << 20) + b"{}")
    started = bridge(endpoint, url(broker), "--discovery", "homeassistant")
    for _ in range(2):
        started.wait_for_line("the connection is lost")
    messages = watch(broker)
    messages.components(*LEVELS)
    assert started.terminate() == 0
    assert started.log.count("the connection is lost") == 2


def test_messages_of_earlier_versions_are_replaced(mosquitto, watch, bridge, start_daemon):
    """A sensor that had a message of its own moves to that of its source before it is removed."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    old = "homeassistant/sensor/spectrod-box-tone-state-8127501d/config"
    watcher.keep(old, "{}")
    bridge(endpoint, url(broker), "--discovery", "homeassistant")
    device = "homeassistant/device/spectrod-box-tone-0eededec/config"
    found = []
    while not found or found[-1] != (old, ""):
        message = watcher.next(lambda topic, _: topic in (old, device))
        found.append((message.topic, message.payload.decode()))
    assert [topic for topic, _ in found] == [old, old, device, old]
    assert [payload for topic, payload in found if topic == old] == [
        "{}",
        '{"migrate_discovery": true}',
        "",
    ]
    assert "spectrod-box-tone-state-8127501d" in json.loads(found[2][1])["components"]
    late = watch(broker)
    kept = []
    while (message := late.next(lambda *_: True)).retain:  # before all others
        kept.append(message.topic)
    assert [topic for topic in kept if topic.startswith("homeassistant/")] == [device]


def test_triggers_are_discovered_without_an_event(mosquitto, watch, bridge, start_daemon):
    """A bridge that comes after an event has begun knows it, and that another one never was."""
    limits = {"unit": "dBFS", "f_min_hz": 100.0, "f_max_hz": 2000.0}
    triggers = (
        TriggerConfig(name="hum", threshold=-60.0, **limits),
        TriggerConfig(name="smoke", threshold=10.0, product="fast", **limits),
    )
    products = (ProductConfig("fast", win_length=256, hop=128),)
    source = SourceConfig(uri="signal:sine,1000,-20", name="tone")
    daemon = start_daemon(source=source, products=products, triggers=triggers)
    endpoint = daemon.publisher.endpoints[0]
    with client.subscribe(endpoint, "spec/tone/", timeout_s=TIMEOUT_S) as frames:
        for _ in frames:
            if (beat := frames.heartbeat) is not None and beat.active_triggers:
                break
    assert (beat.triggers, beat.active_triggers) == (("hum", "smoke"), ("hum",))
    assert beat.trigger_products == ("fast",)
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    options = ("--discovery", "homeassistant", "--device-class", "smoke=smoke")
    bridge(endpoint, url(broker), *options)
    states = {}
    while len(states) < 2:
        message = watcher.next(lambda topic, _: "/trigger/" in topic)
        state = json.loads(message.payload)
        states[state["name"]] = state["state"]
    assert states == {"hum": "on", "smoke": "off"}
    found = watcher.components("hum", "hum event", "smoke", "smoke event", *LEVELS)
    classes = [found[name].get("device_class") for name in ("hum", "smoke", "hum event")]
    assert classes == ["sound", "smoke", None]
    assert found["smoke event"]["platform"] == "event"


def test_sound_levels_are_published_and_discovered(mosquitto, watch, bridge, start_daemon):
    """Each quantity of a product of sound levels has its topic and its sensor."""
    endpoint = start_daemon(
        source=SourceConfig(uri="signal:sine,1000,-20", name="tone"),
        levels=(LevelsConfig("meter", quantities=("LAeq", "LUFS_M"), interval_s=0.5),),
    ).publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    bridge(endpoint, url(broker), "--discovery", "homeassistant", "--subscribe", "levels/")
    components = watcher.components("state", "meter LAeq", "meter LUFS_M")
    values = {}
    while len(values) < 2:
        message = watcher.next(lambda topic, _: topic.startswith("spectrod/box/tone/0/meter/"))
        payload = json.loads(message.payload)
        if "settling" not in payload["flags"]:
            values[message.topic] = payload
    found = {topic.rsplit("/", 1)[1]: (one["value"], one["unit"]) for topic, one in values.items()}
    assert found == {
        "LAeq": (pytest.approx(-20.0, abs=0.05), "dBFS"),
        # K weighting at 1 kHz: 0.69 dB, less the offset of the scale; -3.01 of a sine's mean square
        "LUFS_M": (pytest.approx(-23.01, abs=0.05), "LUFS"),
    }
    assert {one["state_topic"] for one in components.values()} == {
        "spectrod/box/tone/state", *values
    }  # fmt: skip


def test_a_bridge_that_is_killed_is_offline(mosquitto, watch, bridge, start_daemon):
    """For a killed bridge the broker publishes and retains the state offline."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    killed = bridge(endpoint, url(broker))
    watcher.next(lambda topic, payload: (topic, payload) == ("spectrod/box/status", "online"))
    killed.process.kill()
    watcher.next(lambda topic, payload: (topic, payload) == ("spectrod/box/status", "offline"))
    message = watch(broker).next(lambda topic, _: topic == "spectrod/box/status")
    assert (message.payload, message.retain) == (b"offline", True)


def test_a_stopped_bridge_publishes_its_end(mosquitto, watch, bridge, start_daemon):
    """A stopped bridge publishes its last interval and exits with code 0."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    ended = bridge(endpoint, url(broker), "--interval", "3600")
    while watcher.json("spectrod/box/tone/state")["state"] != "running":
        pass
    with client.subscribe(endpoint, timeout_s=TIMEOUT_S) as frames:
        for _ in range(48):  # one second of them, to which the bridge has subscribed before
            next(frames)
    assert ended.terminate() == 0
    assert abs(watcher.json("spectrod/box/tone/0/dbfs/level")["leq"] + 20.0) < 0.05
    watcher.next(lambda topic, payload: (topic, payload) == ("spectrod/box/status", "offline"))
    assert "WARNING" not in ended.log


def test_a_broker_may_come_late_and_come_back(mosquitto, watch, bridge, start_daemon):
    """An absent broker is reported once, and levels queued meanwhile are sent later."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    started = bridge(endpoint, url(broker), "--discovery", "homeassistant")
    started.wait_for_line("cannot be reached")
    broker.start()
    started.wait_for_line("connected")
    watcher = watch(broker)
    assert watcher.json("spectrod/box/tone/0/dbfs/level")["missed"] == 0
    broker.kill()
    started.wait_for_line("the connection is lost")
    broker.start()
    started.wait_for_line("connected")
    watcher.wait_for_all(
        lambda topic, payload: (topic, payload) == ("spectrod/box/status", "online"),
        lambda topic, _: topic.startswith("homeassistant/device/"),
        lambda topic, payload: topic.endswith("availability") and payload == "online",
    )
    assert watcher.json("spectrod/box/tone/0/dbfs/level")["missed"] == 0
    assert started.terminate() == 0
    assert started.log.count("cannot be reached") == 1
    assert started.log.count("the connection is lost: the broker or the network has closed") == 1


def test_a_bridge_without_a_broker_can_be_stopped(mosquitto, bridge, start_daemon):
    """Without a broker, a bridge still stops when it is asked to."""
    endpoint = start_daemon().publisher.endpoints[0]
    broker = mosquitto()
    started = bridge(endpoint, url(broker))
    started.wait_for_line("cannot be reached")
    assert started.terminate() == 0


def test_a_daemon_that_ends_and_comes_back_is_followed(mosquitto, watch, bridge, start_daemon):
    """While a daemon is away its sources are unavailable, and the interval reports its restart."""
    first = start_daemon()
    endpoint = first.publisher.endpoints[0]
    broker = mosquitto()
    broker.start()
    watcher = watch(broker)
    bridge(endpoint, url(broker))
    watcher.json("spectrod/box/tone/0/dbfs/level")
    first.stop()
    watcher.next(lambda topic, payload: topic.endswith("availability") and payload == "offline")
    assert watcher.json("spectrod/box/tone/state")["state"] == "stopped"
    start_daemon(endpoint)
    watcher.next(lambda topic, payload: topic.endswith("availability") and payload == "online")
    while watcher.json("spectrod/box/tone/0/dbfs/level")["restarts"] != 1:
        pass


def test_a_full_queue_drops_its_oldest_and_counts_them(mosquitto, watch, caplog):
    """A full queue drops and counts its oldest items."""
    server = mosquitto()
    will = Publication("will", b"offline")
    broker = Broker(parse_broker(url(server)), will, client_id="test", queue_messages=3)
    for k in range(10):
        broker.publish(Publication("numbers", b"%d" % k))
    assert broker.dropped == 7
    assert "3 messages wait already, the oldest are dropped" in caplog.text
    server.start()
    watcher = watch(server)
    broker.start()
    received = []
    while len(received) < 3:
        broker.pump()
        with contextlib.suppress(queue.Empty):
            received.append(watcher.messages.get(timeout=0.1).payload)
    assert received == [b"7", b"8", b"9"]
    assert broker.take_connected()
    assert not broker.take_connected()
    broker.stop()


class Line:
    """A connection to a broker that can go dead, as if unplugged, without being closed."""

    def __init__(self, broker):
        self._broker = broker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._is_dead = threading.Event()
        self._open = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self):
        self._is_dead.set()

    def mend(self):
        """Restore the line; connections made before stay dead."""
        self._is_dead = threading.Event()

    def close(self):
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._broker.port))
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    self._threads.append(
                        threading.Thread(target=self._forward, args=(*pair, self._is_dead))
                    )
                    self._threads[-1].start()

    def _forward(self, one, other, is_dead):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if not is_dead.is_set():
                    other.sendall(data)


@pytest.mark.parametrize("qos", [0, 1])
def test_a_line_that_goes_dead_is_noticed_and_outlived(mosquitto, watch, caplog, qos):
    """A dead line is noticed; a message lost to it is repeated with QoS, or else counted."""
    server = mosquitto()
    server.start()
    watcher = watch(server)
    line = Line(server)
    address = parse_broker(f"mqtt://127.0.0.1:{line.port}")
    will = Publication("will", b"offline")
    broker = Broker(address, will, client_id="test", qos=qos, keepalive_s=1)
    broker.start()

    def pump_until(condition):
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline_s
            broker.pump()
            with contextlib.suppress(queue.Empty):
                received.append(watcher.messages.get(timeout=0.01))

    received = []
    broker.publish(Publication("numbers", b"0"))
    pump_until(lambda: received)
    is_lost = threading.Event()

    def send_into_the_void(*_):
        if not is_lost.is_set():
            broker.publish(Publication("numbers", b"1"))
            broker.pump()
            is_lost.set()

    broker._client.on_socket_close = send_into_the_void
    assert broker.take_connected()
    line.cut()
    assert is_lost.wait(TIMEOUT_S)
    line.mend()
    pump_until(broker.take_connected)
    broker.publish(Publication("numbers", b"2"))
    pump_until(lambda: any(message.payload == b"2" for message in received))
    broker.stop()
    broker._client.on_socket_close = None
    line.close()
    assert "the connection is lost" in caplog.text
    numbers = [message.payload for message in received if message.topic == "numbers"]
    assert numbers == ([b"0", b"1", b"2"] if qos else [b"0", b"2"])
    assert broker.dropped == (0 if qos else 1)


def test_levels_that_wait_keep_no_state_out(mosquitto, watch, bridge, start_daemon):
    """Queued levels displace no descriptions or states, which are kept separately."""
    server = mosquitto()
    server.start()
    watcher = watch(server)
    endpoint = start_daemon().publisher.endpoints[0]
    bridge(endpoint, url(server), "--queue", "1", "--discovery", "homeassistant")
    states = {"spectrod/box/status", "spectrod/box/tone/availability", "spectrod/box/tone/state"}
    topics = set()
    while not states <= topics:
        topics.add(watcher.next(lambda topic, _: topic not in topics).topic)
    watcher.components(*LEVELS)


def test_a_password_is_accepted_and_a_wrong_one_reported_once(
    mosquitto, watch, bridge, start_daemon, tmp_path
):
    """A wrong password is reported once with the broker's reason, a right one works."""
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "me", "right"], check=True)
    passwords.chmod(0o644)  # the broker drops root's rights
    tmp_path.chmod(0o755)
    broker = mosquitto("allow_anonymous false", f"password_file {passwords}", "user root")
    broker.start()
    endpoint = start_daemon().publisher.endpoints[0]
    password = tmp_path / "password"
    password.write_text("wrong\n")
    password.chmod(0o600)
    refused = bridge(endpoint, url(broker, "me@"), "--password-file", password)
    for _ in range(2):
        broker.wait_for_line("not authorised")
    assert refused.terminate() == 0
    assert refused.log.count("refused the connection: Not authorized; trying again") == 1
    password.write_text("right\n")
    bridge(endpoint, url(broker, "me@"), "--password-file", password).wait_for_line("connected")


def make_certificates(folder):
    """Make a certificate authority, and a broker's certificate signed by it."""
    authority = ["-CA", folder / "ca.crt", "-CAkey", folder / "ca.key"]
    extensions = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"]
    # Python 3.13 refuses an authority that does not say what its key is for.
    usage = ["-addext", "keyUsage=critical,keyCertSign"]
    for name, options in (("ca", usage), ("broker", [*authority, *extensions])):
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", f"/CN={name}", "-keyout", folder / f"{name}.key"),
                *("-out", folder / f"{name}.crt", *options),
            ],
            check=True,
            capture_output=True,
        )


def test_a_brokers_certificate_is_checked(mosquitto, bridge, start_daemon, tmp_path):
    """Over TLS only certificates of known authorities, or of --ca-file, are accepted."""
    make_certificates(tmp_path)
    lines = [f"certfile {tmp_path}/broker.crt", f"keyfile {tmp_path}/broker.key", "user root"]
    broker = mosquitto(*lines, "allow_anonymous true")
    broker.start()
    endpoint = start_daemon().publisher.endpoints[0]
    secure = f"mqtts://127.0.0.1:{broker.port}"
    stranger = bridge(endpoint, secure)
    stranger.wait_for_line("certificate verify failed")
    assert stranger.terminate() == 0
    bridge(endpoint, secure, "--ca-file", tmp_path / "ca.crt").wait_for_line("connected")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            [],
            "--broker: must be given, as mqtts://spectrod@broker.lan; for the service in the",
        ),
        (["--broker", "http://box"], "broker='http://box': must be mqtt://"),
        (["--broker", "mqtt://box", "--interval", "0"], "interval='0': must be 1 to 86400"),
        (["--broker", "mqtt://box", "--interval", "soon"], "interval='soon': must be 1 to 86400"),
        (["--broker", "mqtt://box", "--queue", "0"], "queue='0': must be 1 to 1e+06"),
        (["--broker", "mqtt://box", "--node", "a/b"], "node='a/b': must be 1 to 64 of A-Z"),
        (["--broker", "mqtt://box", "--prefix", "#"], "prefix='#': must be levels"),
        (["--broker", "mqtt://box", "--discovery", "+"], "discovery='+': must be levels"),
        (["--broker", "mqtt://box", "--ca-file", "/none"], "ca-file='/none': is for mqtts://"),
        (["--broker", "mqtts://box", "--ca-file", "/none"], "/none: No such file"),
        (["--broker", "mqtt://box", "--password-file", "/none"], "/none: No such file"),
        (["tcp://*:1", "--broker", "mqtt://box"], "endpoint='tcp://*:1': to connect, name"),
        (["--broker", "mqtt://box", "--device-class", "a=smoke"], "--device-class: needs --disc"),
        (
            ["--broker", "mqtt://box", "--discovery", "ha", "--device-class", "a=fire"],
            "device-class='a=fire': must be TRIGGER=CLASS, with one of battery, ",
        ),
        (["--broker", "mqtt://box:0"], "broker='mqtt://box:0': must be mqtt"),
        (["--broker", "mqtt://a..b"], "broker='mqtt://a..b': must be mqtt"),
        (["--broker", "mqtt://box", "--prefix", "\udcff"], "prefix='\\udcff': must be levels"),
        (["--broker", "mqtt://box", "--subscribe", "\udcff"], "prefix='\\udcff': must be ASCII"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, error, capsys):
    """Wrong arguments are one line with name, value and rule, before anything is opened."""
    assert main(["mqtt", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"spectrod: {error}")
    assert err.count("\n") == 1


def test_without_its_library_the_bridge_names_it(monkeypatch, capsys):
    """Without its optional library the bridge is an error that names the extra."""
    monkeypatch.setattr("spectrod.apps.mqtt.command.find_spec", lambda _: None)
    assert main(["mqtt", "--broker", "mqtt://box"]) == 69
    expected = "spectrod: paho-mqtt is not installed: pip install 'spectrod[mqtt]'\n"
    assert capsys.readouterr().err == expected
