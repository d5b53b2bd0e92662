import contextlib
import json
import queue
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import zmq
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from spectrod import client
from spectrod.errors import DeniedError

sys.path.insert(0, str(Path(__file__).parents[1] / "systemd"))
from container import Machine, MissingToolError, require_tools

# The first fixture may have to build a Debian.
pytestmark = [pytest.mark.systemd, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
UNIT = "spectrod.service"
CONFIG = "/etc/spectrod/spectrod.toml"
IPC = "/run/spectrod/spectrum.ipc"
RECEIVE_LIMIT_MS = 30_000


@pytest.fixture(scope="session")
def _tools():
    try:
        require_tools()
    except MissingToolError as error:
        pytest.fail(f"tests under a real systemd: {error}")


@pytest.fixture(scope="session")
def wheels(_tools, tmp_path_factory):
    """Make a folder of all wheels that pip needs to install spectrod without a network."""
    folder = tmp_path_factory.mktemp("wheels")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    needed += project["project"]["optional-dependencies"]["mqtt"]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    subprocess.run([*download, f"--dest={folder}", *needed], check=True)
    return folder


@pytest.fixture(scope="session")
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def machine(wheels):
    """Boot a Debian in which ``make install`` has installed spectrod from this tree."""
    with Machine({ROOT: "/src", wheels: "/wheels"}) as machine:
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
        machine.run("make", "--directory=/src", "install", environ=offline)
        yield machine


@pytest.fixture
def config(machine, free_port):
    """Write the installed example configuration, on a test tone, with changes."""
    path = machine.path(CONFIG)
    example = machine.path("/opt/spectrod/share/spectrod/spectrod.toml").read_text()

    def write(*changes):
        tone = ('uri = "soundcard"', 'uri = "signal:sine,1000,-20"')
        text = example
        for old, new in (tone, (":5556", f":{free_port}"), *changes):
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)

    write()
    return write


@pytest.fixture
def service(machine, config):
    """Restart the service; return a function that runs systemctl on its unit."""

    def systemctl(*arguments, check=True):
        return machine.run("systemctl", *arguments, UNIT, check=check).stdout

    systemctl("stop")
    systemctl("reset-failed", check=False)
    systemctl("start")
    return systemctl


def _show(service, *names):
    lines = service("show", *(f"--property={name}" for name in names)).splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def subscribe():
    """Connect a ZeroMQ subscriber; return a function that receives the next header."""
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(zmq.Context())

        def connect(endpoint, prefix=b"spec/"):
            subscriber = stack.enter_context(context.socket(zmq.SUB))
            subscriber.linger = 0
            subscriber.rcvtimeo = RECEIVE_LIMIT_MS
            subscriber.reconnect_ivl = 50
            subscriber.subscribe(prefix)
            subscriber.connect(endpoint)
            return lambda: json.loads(subscriber.recv_multipart()[1])

        yield connect


@pytest.fixture
def headers(subscribe, free_port):
    """Return a function that receives the next header over TCP."""
    return subscribe(f"tcp://127.0.0.1:{free_port}")


def _journal(machine, since):
    """Return (priority, text) of the service's log entries after a cursor."""
    output = machine.run("journalctl", f"--unit={UNIT}", since, "--output=json").stdout
    entries = [json.loads(line) for line in output.splitlines()]
    # The manager's own lines about the service are among them.
    return [(one["PRIORITY"], one["MESSAGE"]) for one in entries if one["_PID"] != "1"]


def _wait_for_journal(machine, since, search):
    """Wait until a search of log entries finds something, and return that.

    The journal has an entry some time after the service has written it.
    """
    deadline_s = time.monotonic() + 30.0
    while not (found := search(_journal(machine, since))):
        assert time.monotonic() < deadline_s
    return found


def _cursor(machine):
    output = machine.run("journalctl", "--lines=0", "--show-cursor").stdout
    return "--after-cursor=" + output.partition("cursor: ")[2].strip()


def test_the_unit_is_sound_and_confined(machine):
    """Systemd finds no error in the unit, and its exposure is at most 2.0 of 10."""
    unit = f"/etc/systemd/system/{UNIT}"
    assert machine.run("systemd-analyze", "verify", unit).stderr == ""
    machine.run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)


def test_active_means_that_messages_are_out(service):
    """The start job ends with READY=1, when the status already counts messages."""
    state = _show(service, "ActiveState", "StatusText")
    assert state["ActiveState"] == "active"
    status = re.search(r"running: (.+), 48000 Hz x 1, .+ (\d+) messages", state["StatusText"])
    assert "sine,1000,-20" in status[1]
    assert int(status[2]) >= 1


def test_subscribers_hear_it_over_tcp_and_ipc(service, machine, headers, subscribe):
    """Both endpoints of the example configuration deliver spectra to another process."""
    over_ipc = subscribe(f"ipc://{machine.path(IPC)}")
    header = headers()
    assert (header["fs"], header["unit"]) == (48000, "dBFS")
    assert over_ipc()["epoch"] == header["epoch"]


def test_root_asks_and_changes_it(service, machine):
    """Root controls the service without an endpoint, with files in its state folder.

    An ordinary user is denied.
    """
    spectrod = "/opt/spectrod/bin/spectrod"
    cursor = _cursor(machine)
    status = json.loads(machine.run(spectrod, "ctl", "status", "--json").stdout)
    assert [source["state"] for source in status["sources"]] == ["running"]
    assert status["daemon"]["control"] == ["ipc:///run/spectrod/control-spectrum.ipc"]
    assert machine.path("/opt/spectrod/share/spectrod/control.md").exists()
    machine.run(spectrod, "ctl", "record", "start", "--name", "tone")
    try:
        while not _recorded_frames(machine):
            pass
    finally:
        stopped = machine.run(spectrod, "ctl", "record", "stop").stdout
    assert stopped.startswith("/var/lib/spectrod/tone.png: finished, ")
    picture = machine.path("/var/lib/spectrod/tone.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    line = re.compile(r"record\.start: .*tone\.png \(by uid 0 pid \d+\)")
    _wait_for_journal(machine, cursor, lambda found: any(line.fullmatch(t) for _, t in found))
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    denied = machine.run(*nobody, spectrod, "ctl", "status", check=False)
    assert denied.returncode == 77


def test_configured_recordings_are_written_under_the_confinement(machine, config, service):
    """Confined recordings go to the state folder or, with the drop-in, another, after a reload."""
    elsewhere = machine.path("/srv/recordings")
    group = "spectrod-recordings"
    machine.run("groupadd", "--system", "--force", group)
    machine.run("install", "-d", "-o", "root", "-g", group, "-m", "1770", "/srv/recordings")
    drop_in = machine.path(f"/etc/systemd/system/{UNIT}.d/40-recordings.conf")
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text(machine.path("/opt/spectrod/share/spectrod/40-recordings.conf").read_text())
    try:
        machine.run("systemctl", "daemon-reload")
        service("restart")
        example = "# [recordings.night]"
        here, there = "[recordings.here]", '[recordings.there]\nfolder = "/srv/recordings"'
        config((example, f"{here}\nsamples = 'flac'\npyramid = true\n{there}\n{example}"))
        service("reload")
        while {one["state"] for one in _recorders(machine)} != {"recording"}:
            pass
        while not all(one["rows"] > 10 for one in _recorders(machine)):
            pass
        service("stop")
        names = {"flac", "pyramid", "spd"}
        state = machine.path("/var/lib/private/spectrod/recordings/here/signal")
        assert {one.name.split(".")[-1] for one in state.iterdir()} == names
        assert [one.suffix for one in (elsewhere / "there" / "signal").iterdir()] == [".spd"]
    finally:
        drop_in.unlink()
        machine.run("systemctl", "daemon-reload")


def _recorders(machine):
    status = machine.run("/opt/spectrod/bin/spectrod", "ctl", "status", "--json").stdout
    return json.loads(status)["recorders"] or [{"state": "none", "rows": 0}]


def _recorded_frames(machine):
    status = machine.run("/opt/spectrod/bin/spectrod", "ctl", "status", "--json").stdout
    return json.loads(status)["recordings"][-1]["frames"]


def test_confinement_leaves_opencl_working(service, machine, headers):
    """PoCL compiles and runs under the unit's rules, and caches in the unit's cache folder."""
    while not headers()["engine"].startswith("opencl:"):  # NumPy's while kernels are compiled
        pass
    assert list(machine.path("/var/cache/spectrod/pocl").iterdir())


def test_the_journal_knows_each_lines_priority(machine, config, service):
    """The log prefix becomes the journal entry's priority and is not in its text."""
    entry = ("6", "ready: the first message is out")
    _wait_for_journal(machine, "--boot", lambda found: entry in found)


def test_sigkill_is_survived_within_five_seconds(service, headers):
    """A killed daemon is active and sending with a new epoch within 5 s."""
    before = headers()
    start_s = time.monotonic()
    service("kill", "--kill-whom=main", "--signal=SIGKILL")
    while headers()["epoch"] == before["epoch"]:
        assert time.monotonic() - start_s < 5.0
    assert time.monotonic() - start_s < 5.0
    service("is-active")


def test_a_stuck_daemon_is_restarted(service, machine, subscribe, free_port):
    """A daemon that makes no progress misses the watchdog and is restarted."""
    folder = machine.path(f"/run/systemd/system/{UNIT}.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "short.conf").write_text("[Service]\nWatchdogSec=2\n")
    machine.run("systemctl", "daemon-reload")
    try:
        service("restart")
        # Only now: an older subscriber would hold messages from before this restart.
        headers = subscribe(f"tcp://127.0.0.1:{free_port}")
        before = headers()
        service("kill", "--kill-whom=main", "--signal=SIGSTOP")
        while headers()["epoch"] == before["epoch"]:
            pass
        assert _show(service, "NRestarts") == {"NRestarts": "1"}
    finally:
        (folder / "short.conf").unlink()
        machine.run("systemctl", "daemon-reload")


def test_a_unit_without_subscribers_continues(service, machine, subscribe, free_port):
    """A unit without subscribers computes nothing, and the watchdog is still fed."""
    folder = machine.path(f"/run/systemd/system/{UNIT}.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "short.conf").write_text("[Service]\nWatchdogSec=3\n")
    machine.run("systemctl", "daemon-reload")
    try:
        service("restart")
        beats = _heartbeats(subscribe, free_port)
        first, frames = beats(), set()
        while (beat := beats())["t_mono_ns"] - first["t_mono_ns"] < 9 * 10**9:
            assert (beat["state"], beat["epoch"]) == ("running", first["epoch"])
            frames.add(beat["frames"])
        assert len(frames) <= 2
        assert _show(service, "NRestarts") == {"NRestarts": "0"}
        status = _show(service, "StatusText")["StatusText"]
        assert "0 subscribers, computing nothing" in status
    finally:
        (folder / "short.conf").unlink()
        machine.run("systemctl", "daemon-reload")


TONE = 'uri = "signal:sine,1000,-20"'


def _heartbeats(subscribe, port):
    return subscribe(f"tcp://127.0.0.1:{port}", b"hb/")


def test_a_unit_without_its_microphone_starts_and_continues(
    service, machine, config, subscribe, free_port
):
    """A unit without its microphone is active with a reason, and its search feeds the watchdog."""
    folder = machine.path(f"/run/systemd/system/{UNIT}.d")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "short.conf").write_text("[Service]\nWatchdogSec=8\n")
    machine.run("systemctl", "daemon-reload")
    cursor = _cursor(machine)
    config((TONE, 'uri = "soundcard:usb=1-1.2"'))
    try:
        service("restart")
        state = _show(service, "ActiveState", "StatusText")
        assert state["ActiveState"] == "active"
        assert state["StatusText"].startswith("waiting: soundcard: no audio input on this machine")
        beats = _heartbeats(subscribe, free_port)
        first = beats()
        while (beat := beats())["t_mono_ns"] - first["t_mono_ns"] < 12 * 10**9:
            assert (beat["state"], beat["epoch"]) == ("waiting", first["epoch"])
        assert _show(service, "NRestarts") == {"NRestarts": "0"}
    finally:
        (folder / "short.conf").unlink()
        machine.run("systemctl", "daemon-reload")
    warnings = [text for priority, text in _journal(machine, cursor) if priority == "4"]
    assert warnings == ["usb-1-1.2: waiting: soundcard: no audio input on this machine"]
    start_s = time.monotonic()
    service("stop")
    assert time.monotonic() - start_s < 4.0


def test_the_capture_process_works_under_the_confinement(service, machine, config):
    """The confined capture process has shared memory and wake-ups, and ends with the unit."""
    alsa = machine.path("/etc/asound.conf")
    # A device without hardware that delivers any request at once, too fast for the analysis, so
    # that the losses on the way through shared memory prove that samples came.
    alsa.write_text("pcm.nothing { type null hint { show on description nothing } }\n")
    config((TONE, 'uri = "soundcard:nothing"'), ("samplerate = 0", "samplerate = 48000"))
    try:
        service("stop")
        service("start", "--no-block")
        end_s = time.monotonic() + 30.0
        overran = re.compile(r"nothing.* [1-9]\d* overruns")
        while not overran.search(_show(service, "StatusText")["StatusText"]):
            assert time.monotonic() < end_s
        daemon = _show(service, "MainPID")["MainPID"]
        children = machine.run("sh", "-c", f"cat /proc/{daemon}/task/*/children")
        (child,) = children.stdout.split()
        service("stop")
        assert machine.run("test", "-e", f"/proc/{child}", check=False).returncode == 1
        assert _show(service, "Result") == {"Result": "success"}
    finally:
        alsa.unlink()


def test_keys_reach_the_service_as_a_credential(machine, config, service, free_port):
    """Root's secret reaches the service, a key in the folder connects, and a revocation cuts it."""
    spectrod = "/opt/spectrod/bin/spectrod"
    for folder, name in (("server", "server"), ("alice", "alice")):
        machine.path(f"/etc/spectrod/{folder}").mkdir(exist_ok=True)
        if not machine.path(f"/etc/spectrod/{folder}/{name}.key").exists():
            machine.run(spectrod, "keys", "new", f"/etc/spectrod/{folder}", "--name", name)
    clients = machine.path("/etc/spectrod/clients")
    clients.mkdir(exist_ok=True)
    alice = clients / "alice.pub"
    alice.write_text(machine.path("/etc/spectrod/alice/alice.pub").read_text())
    drop_in = machine.path(f"/etc/systemd/system/{UNIT}.d/30-keys.conf")
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text(machine.path("/opt/spectrod/share/spectrod/30-keys.conf").read_text())
    credential = f"/run/credentials/{UNIT}/server.key"
    keys = {
        "server_key": machine.path("/etc/spectrod/server/server.pub"),
        "key_file": machine.path("/etc/spectrod/alice/alice.key"),
    }
    try:
        config(
            ('server_key = ""', f'server_key = "{credential}"'),
            ('client_keys = ""', 'client_keys = "/etc/spectrod/clients"'),
            ('require = "remote"', 'require = "always"'),
        )
        machine.run("systemctl", "daemon-reload")
        service("restart")
        endpoint = f"tcp://127.0.0.1:{free_port}"
        with client.subscribe(endpoint, timeout_s=RECEIVE_LIMIT_MS / 1e3, **keys) as frames:
            next(frames)
            alice.unlink()
            service("reload")
            with pytest.raises(DeniedError, match="the daemon refuses the key"):
                list(frames)
    finally:
        drop_in.unlink()
        machine.run("systemctl", "daemon-reload")


def test_reload_applies_live_settings_and_names_the_rest(service, machine, config, headers):
    """After SIGHUP a new hop is in the messages, and a longer queue is reported as pending."""
    cursor = _cursor(machine)
    config(("hop = 1024", "hop = 2048"), ("queue_frames = 256", "queue_frames = 512"))
    service("reload")
    while headers()["hop"] != 2048:
        pass
    lines = {"reload: applied analysis.hop", "reload: publish.queue_frames needs a restart"}
    _wait_for_journal(machine, cursor, lambda found: lines <= {text for _, text in found})


def test_a_refused_reload_changes_nothing(service, machine, config, headers):
    """An invalid configuration is an error in the log, and the old one stays in use."""
    cursor = _cursor(machine)
    before = headers()
    config(("hop = 1024", "hop = 0"))
    service("reload")
    while headers()["seq"] < before["seq"] + 100:
        pass
    (text,) = _wait_for_journal(
        machine, cursor, lambda found: [text for priority, text in found if priority == "3"]
    )
    assert text.startswith("reload refused: hop=0")
    assert headers()["epoch"] == before["epoch"]


def test_stop_is_quick_and_clean(service, machine):
    """A stop takes less than 2 s, exits with code 0, and removes the run folder."""
    start_s = time.monotonic()
    service("stop")
    assert time.monotonic() - start_s < 2.0
    state = _show(service, "ActiveState", "Result", "ExecMainStatus")
    assert state == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert not machine.path("/run/spectrod").exists()


def test_a_bad_configuration_is_not_retried(service, machine, config):
    """An invalid configuration ends the start with code 2 and a warning, without a restart."""
    service("stop")
    cursor = _cursor(machine)
    config(("hop = 1024", "hop = 0"))
    service("start", check=False)
    state = _show(service, "ActiveState", "ExecMainStatus", "NRestarts")
    assert state == {"ActiveState": "failed", "ExecMainStatus": "2", "NRestarts": "0"}
    (mistake,) = _wait_for_journal(
        machine, cursor, lambda found: [entry for entry in found if "hop=0: must be" in entry[1]]
    )
    assert mistake == ("4", "spectrod: hop=0: must be at least 1 sample")


def test_uninstall_leaves_the_configuration(machine, config):
    """Uninstall removes program and unit, keeps configuration and state, and allows a reinstall."""
    machine.run("make", "--directory=/src", "uninstall")
    assert not machine.path("/opt/spectrod").exists()
    assert not machine.path(f"/etc/systemd/system/{UNIT}").exists()
    assert machine.path(CONFIG).exists()
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    machine.run("make", "--directory=/src", "install", environ=offline)


@pytest.fixture
def broker(tmp_path):
    """Start a broker on this machine, whose network the container shares; return its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_dest stderr\n")
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    assert program, "mosquitto is missing: make test installs it"
    with subprocess.Popen([program, "-c", config], stderr=subprocess.PIPE, text=True) as process:
        assert any(" running" in line for line in process.stderr)
        yield port
        process.kill()


def test_the_bridge_to_mqtt_runs_confined(machine, service, free_port, broker):
    """The MQTT bridge's unit is sound, has the access that it needs, and reports its status."""
    unit = "spectrod-mqtt.service"
    assert service("is-active").strip() == "active"
    path = f"/etc/systemd/system/{unit}"
    assert machine.run("systemd-analyze", "verify", path).stderr == ""
    machine.run("systemd-analyze", "security", "--offline=true", "--threshold=20", path)
    machine.path("/etc/spectrod/mqtt.env").write_text(
        f"SPECTROD_MQTT=tcp://127.0.0.1:{free_port} --broker mqtt://127.0.0.1:{broker} "
        "--node rack --interval 1\n"
    )
    received = queue.Queue()
    watcher = Client(CallbackAPIVersion.VERSION2)
    watcher.on_connect = lambda client, *_: client.subscribe("spectrod/rack/#")
    watcher.on_message = lambda _client, _userdata, message: received.put(message)
    watcher.connect("127.0.0.1", broker)
    watcher.loop_start()
    try:
        machine.run("systemctl", "start", unit)
        message = received.get(timeout=30)
        while not message.topic.endswith("/level"):
            message = received.get(timeout=30)
        assert abs(json.loads(message.payload)["leq"] + 20.0) < 0.05
        # The source's state comes with a heartbeat, which may be later than its level.
        deadline_s, shown = time.monotonic() + 30.0, ""
        while not re.fullmatch(r"StatusText=connected; \S+: running; dropped 0\n", shown):
            assert time.monotonic() < deadline_s, shown
            shown = machine.run("systemctl", "show", "--property=StatusText", unit).stdout
        machine.run("systemctl", "stop", unit)
        while message.payload != b"offline":
            message = received.get(timeout=30)
        assert message.topic == "spectrod/rack/status"
        result = machine.run("systemctl", "show", "--property=Result", unit).stdout
        assert result == "Result=success\n"
    finally:
        watcher.disconnect()
        watcher.loop_stop()
