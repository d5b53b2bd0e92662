import contextlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections import deque
from pathlib import Path

import pytest
import zmq
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from spectrod import client
from spectrod.apps.bench.usage import processor_seconds
from spectrod.lib.errors import DeniedError

sys.path.insert(0, str(Path(__file__).parents[1] / "systemd"))
from container import Machine, MissingToolError, require_tools

# The first fixture may have to build a Debian.
pytestmark = [pytest.mark.systemd, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
UNIT = "spectrod.service"
CONFIG = "/etc/spectrod/spectrod.toml"
IPC = "/run/spectrod/spectrum.ipc"
SPECTROD = "/opt/spectrod/bin/spectrod"
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
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    download.append(f"--dest={folder}")
    lock = ROOT / "packaging/requirements.lock"
    subprocess.run([*download, "--require-hashes", f"--requirement={lock}"], check=True)
    subprocess.run([*download, *project["build-system"]["requires"]], check=True)
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
    """Systemd finds no error in the unit, and its exposure is at most 1.5 of 10."""
    unit = f"/etc/systemd/system/{UNIT}"
    assert machine.run("systemd-analyze", "verify", unit).stderr == ""
    machine.run("systemd-analyze", "security", "--offline=true", "--threshold=15", unit)


OWNED = ("/var/lib/spectrod", "/var/log/spectrod", "/run/spectrod", "/var/cache/spectrod")
SYSTEM = ("/", "/etc", "/usr", "/opt", "/srv", "/var", "/sys", "/proc/sys", "/sys/fs/cgroup")
ALLOWED_SOCKETS = {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"}


def test_the_confinement_holds_from_inside(machine, config, service):
    """A program in the daemon's place has its folders, its sockets, and nothing else.

    The same program as the same user outside of the unit may do the most of it.
    """
    probe = ["/opt/spectrod/bin/python", "-I", "/src/tests/systemd/probe.py"]
    probe += [",".join(OWNED), ",".join(SYSTEM)]
    as_user = ("setpriv", "--reuid=spectrod", "--regid=spectrod", "--init-groups")
    free = json.loads(machine.run(*as_user, *probe).stdout)
    service("stop")
    answers = "/run/probe.json"
    in_its_place = f"""
[Service]
Type=oneshot
WatchdogSec=0
Restart=no
ExecStart=
ExecStart={" ".join(probe)}
StandardOutput=truncate:{answers}
"""
    with _drop_in(machine, "probe", in_its_place):
        service("start")
        found = json.loads(machine.path(answers).read_text())
    assert found["user"] == machine.run("id", "-u", "spectrod").stdout.strip()
    assert found["written"] == dict.fromkeys(OWNED, "done")
    assert found["read_only"] == list(SYSTEM)
    assert set(found["hidden"].values()) == {"EACCES"}
    # Kernels that PoCL has compiled are programs; nothing else is.
    *others, cache = OWNED
    assert found["executed"] == dict.fromkeys(others, "EACCES") | {cache: "done"}
    assert found["processes"] == [found["user"]]
    status = found["status"]
    sets = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert {int(status[name], 16) for name in sets} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    sockets = found["sockets"]
    assert {name for name, answer in sockets.items() if answer == "done"} == ALLOWED_SOCKETS
    refused = {answer for name, answer in sockets.items() if name not in ALLOWED_SOCKETS}
    assert refused == {"EAFNOSUPPORT"}
    assert set(found["calls"].values()) == {"EPERM"}
    assert set(free["calls"].values()) == {"done"}
    assert set(free["executed"].values()) <= {"done", "ENOENT"}
    assert "/etc" not in free["read_only"]


@contextlib.contextmanager
def _throttled(machine, share):
    """Let the unit's processes run for a share of the time only; yield what they have taken [s].

    The container's systemd has no processor controller on some hosts, and CPUQuota= no effect.
    """
    paths = [
        machine.path(f"/sys/fs/cgroup/{hierarchy}system.slice/{UNIT}/cgroup.procs")
        for hierarchy in ("systemd/", "")
    ]
    taken, end = {}, threading.Event()

    def processes():
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                return [int(line) for line in path.read_text().splitlines()]
        return []

    def send(sign):
        for pid in processes():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                taken[pid] = processor_seconds(pid)
                os.kill(pid, sign)

    def throttle():
        start_s = time.monotonic()
        while not end.is_set():
            send(signal.SIGCONT)
            end.wait(0.1 * share)
            while not end.is_set():
                send(signal.SIGSTOP)  # new ones, too
                end.wait(0.1 * (1.0 - share))
                # On a busy machine they have run for longer than they were meant to.
                if sum(taken.copy().values()) <= share * (time.monotonic() - start_s):
                    break
        send(signal.SIGCONT)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield lambda: sum(taken.copy().values())
    finally:
        end.set()
        thread.join()


@pytest.mark.extended
def test_a_fifth_of_a_core_and_empty_caches_are_enough_to_start(machine, service, headers):
    """With empty caches and 20 % of a core it is active at the first try, and then streams."""
    service("stop")
    machine.run("find", "/var/cache/spectrod", "-mindepth", "1", "-delete")
    slow = "[Service]\nCPUAffinity=0\n"
    with _drop_in(machine, "slow", slow), _throttled(machine, 0.2) as taken_s:
        start_s = time.monotonic()
        service("start")
        state = _show(service, "ActiveState", "NRestarts")
        assert state == {"ActiveState": "active", "NRestarts": "0"}
        share = taken_s() / (time.monotonic() - start_s)
        assert share < 0.25, f"the premise fails: {share:.0%} of a core"
        first = headers()
        while headers()["sample_index"] - first["sample_index"] < 5 * 48_000:  # it compiles kernels
            pass
        assert _show(service, "NRestarts") == {"NRestarts": "0"}
    service("stop")


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
    spectrod = "spectrod"
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


def test_a_cache_from_which_nothing_may_be_executed_leaves_numpy(machine, service, headers):
    """With the cache noexec the unit starts with NumPy and one warning, not with an abort."""
    cache = "/var/cache/spectrod"
    service("stop")
    machine.run("mount", "-t", "tmpfs", "-o", "noexec,uid=spectrod", "tmpfs", cache)
    try:
        cursor = _cursor(machine)
        service("start")
        (text,) = _wait_for_journal(
            machine, cursor, lambda found: [text for priority, text in found if priority == "4"]
        )
        assert f"{cache}/pocl: PoCL's cache is mounted noexec" in text
        assert headers()["engine"] == "numpy"
        assert _show(service, "NRestarts") == {"NRestarts": "0"}
    finally:
        service("stop")
        machine.run("umount", cache)


def test_configured_recordings_are_written_under_the_confinement(machine, config, service):
    """Confined recordings go to the state folder or, with the drop-in, another, after a reload."""
    elsewhere = machine.path("/srv/recordings")
    owner = ("-o", "spectrod", "-g", "spectrod", "-m", "2750")
    machine.run("install", "-d", *owner, "/srv/recordings")
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
        state = machine.path("/var/lib/spectrod/recordings/here/signal")
        assert {one.name.split(".")[-1] for one in state.iterdir()} == names
        (file,) = (elsewhere / "there" / "signal").iterdir()
        assert file.suffix == ".spd"
        for one in (file, next(state.glob("*.spd"))):
            _check_readers(machine, f"/{one.relative_to(machine.path('/'))}")
    finally:
        drop_in.unlink()
        machine.run("systemctl", "daemon-reload")
        shutil.rmtree(elsewhere)


def _check_readers(machine, path):
    """Check that the service's group can read a file, and that others cannot."""
    as_user = ("setpriv", "--reuid=4321", "--clear-groups")
    machine.run(*as_user, "--regid=spectrod", "head", "-c1", path)
    assert machine.run(*as_user, "--regid=4321", "head", "-c1", path, check=False).returncode == 1
    machine.run(*as_user, "--regid=spectrod", "sh", "-c", f"! rm -f {path}")


@pytest.mark.parametrize("is_folder_there", [False, True])
def test_a_disk_that_is_mounted_later_is_recorded_to_from_then_on(
    machine, config, service, is_folder_there
):
    """Without its disk the service runs and records nothing; with it recording begins."""
    drop_in = machine.path(f"/etc/systemd/system/{UNIT}.d/40-recordings.conf")
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text(machine.path("/opt/spectrod/share/spectrod/40-recordings.conf").read_text())
    mount_point = machine.path("/srv/recordings")
    if is_folder_there:
        mount_point.mkdir()
    folder = "/srv/recordings"
    try:
        machine.run("systemctl", "daemon-reload")
        table = f"[recordings.there]\nfolder = '{folder}'\nmust_be_mounted = '{folder}'\n"
        config(("# [recordings.night]", table))
        service("restart")
        while (one := _recorders(machine)[0])["state"] != "failed":
            pass
        assert one["error"] == f"{folder}: no disk is mounted there (must_be_mounted)"
        assert not is_folder_there or not list(mount_point.iterdir())
        mount_point.mkdir(exist_ok=True)
        machine.run("mount", "-t", "tmpfs", "-o", "uid=spectrod,mode=2750", "tmpfs", folder)
        while (one := _recorders(machine)[0])["state"] != "recording":
            pass
        assert one["lost_rows"] > 0
        service("stop")
        assert list((mount_point / "there" / "signal").glob("*.spd"))
    finally:
        service("stop")
        machine.run("umount", folder, check=False)
        if mount_point.exists():
            mount_point.rmdir()  # which fails if something was recorded below the disk
        drop_in.unlink()
        machine.run("systemctl", "daemon-reload")


@contextlib.contextmanager
def _drop_in(machine, name, text):
    """Add a drop-in to the unit meanwhile; a restart is the caller's."""
    file = machine.path(f"/run/systemd/system/{UNIT}.d/{name}.conf")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    machine.run("systemctl", "daemon-reload")
    try:
        yield
    finally:
        file.unlink()
        machine.run("systemctl", "daemon-reload")


DISK = "/srv/recordings"


@pytest.fixture
def mount_disk(machine, config, service):
    """Record to a disk of 3 MB, with the drop-in; return a function that mounts another one."""
    mount_point = machine.path(DISK)
    mount_point.mkdir()

    def mount(options="size=3m"):
        options += ",uid=spectrod,gid=spectrod,mode=2750"
        machine.run("mount", "-t", "tmpfs", "-o", options, "tmpfs", DISK)

    mount()
    table = f"[recordings.there]\nfolder = '{DISK}'\nmust_be_mounted = '{DISK}'\n"
    config(("# [recordings.night]", f"{table}samples = 'wav'\nmin_free_mb = 0\n"))
    text = machine.path("/opt/spectrod/share/spectrod/40-recordings.conf").read_text()
    with _drop_in(machine, "40-recordings", text):
        service("restart")
        yield mount
        service("stop")
    machine.run("umount", DISK, check=False)
    mount_point.rmdir()  # which fails if something was recorded below the disk


def _wait_for_recorder(machine, state):
    deadline_s = time.monotonic() + 60.0
    while (one := _recorders(machine)[0])["state"] != state:
        assert time.monotonic() < deadline_s, one
    return one


def _wait_for_status(service, pattern):
    deadline_s = time.monotonic() + 30.0
    while not re.match(pattern, text := _show(service, "StatusText")["StatusText"]):
        assert time.monotonic() < deadline_s, text


def _check_stream(headers):
    """Check that one spectrum follows the other for a second."""
    first = headers()
    for i in range(1, 47):
        header = headers()
        assert (header["seq"], header["gap_samples"]) == (first["seq"] + i, 0)


def test_a_full_disk_stops_the_recording_alone(machine, service, mount_disk, headers):
    """On a full disk the stream goes on, the status has the reason, and room is enough to resume.

    Nothing of it goes to another disk.
    """
    epoch = headers()["epoch"]
    one = _wait_for_recorder(machine, "failed")
    assert re.search(rf"{DISK}/there/signal/\S+: No space left on device", one["error"])
    assert one["free_bytes"] < 100_000
    reason = r"recording there of signal: failed: \S+: No space left on device.* \| running: "
    _wait_for_status(service, reason)
    asked = machine.run(SPECTROD, "ctl", "status", check=False)
    assert asked.returncode == 74
    assert "No space left on device" in asked.stdout
    _check_stream(headers)
    machine.run("mount", "-o", "remount,size=64m", DISK)
    one = _wait_for_recorder(machine, "recording")
    assert one["lost_rows"] > 0
    assert one["lost_samples"] > 0
    _wait_for_status(service, "running: ")
    assert headers()["epoch"] == epoch
    assert machine.run(SPECTROD, "ctl", "status").returncode == 0


def test_a_disk_that_vanishes_is_not_replaced_by_the_root_disk(
    machine, service, mount_disk, headers
):
    """A disk that is taken away under a recording ends it, until there is a disk again."""
    epoch = headers()["epoch"]
    machine.run("mount", "-o", "remount,size=64m", DISK)
    _wait_for_recorder(machine, "recording")
    machine.run("umount", "--lazy", DISK)
    one = _wait_for_recorder(machine, "failed")
    assert one["error"] == f"{DISK}: no disk is mounted there (must_be_mounted)"
    assert one["free_bytes"] is None
    _wait_for_status(service, f"recording there of signal: failed: {DISK}: no disk is mounted")
    _check_stream(headers)
    assert not list(machine.path(DISK).iterdir())
    mount_disk("size=64m")
    one = _wait_for_recorder(machine, "recording")
    assert one["lost_rows"] > 0
    assert headers()["epoch"] == epoch
    service("stop")
    assert {file.suffix for file in machine.path(f"{DISK}/there/signal").iterdir()} == {
        ".spd",
        ".wav",
    }


def test_an_upgrade_from_a_dynamic_user_loses_nothing(machine, service):
    """What a service with a dynamic user left becomes that of the static user, in its place."""
    drop_in = machine.path(f"/etc/systemd/system/{UNIT}.d/dynamic.conf")
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text(
        "[Service]\nDynamicUser=yes\nUser=spectrod-old\nGroup=spectrod-old\n"
        "StateDirectoryMode=0755\n"
    )
    try:
        machine.run("systemctl", "daemon-reload")
        service("restart")
        kept = machine.path("/var/lib/private/spectrod/recordings/old/signal/kept.spd")
        kept.parent.mkdir(parents=True)
        kept.write_bytes(b"row")
        folder = "/var/lib/private/spectrod"
        machine.run("chown", "-R", f"--reference={folder}", folder)
        before = kept.stat().st_uid
    finally:
        drop_in.unlink()
        machine.run("systemctl", "daemon-reload")
    service("restart")
    service("is-active")
    state = machine.path("/var/lib/spectrod")
    assert not state.is_symlink()
    kept = state / "recordings/old/signal/kept.spd"
    owner = int(machine.run("id", "-u", "spectrod").stdout)
    assert (kept.read_bytes(), kept.stat().st_uid) == (b"row", owner)
    assert before != owner
    shutil.rmtree(state / "recordings" / "old")


def _recorders(machine):
    # Its exit code is 74 while a recording has failed.
    status = machine.run("spectrod", "ctl", "status", "--json", check=False).stdout
    return json.loads(status)["recorders"] or [{"state": "none", "rows": 0}]


def _recorded_frames(machine):
    status = machine.run("/opt/spectrod/bin/spectrod", "ctl", "status", "--json").stdout
    return json.loads(status)["recordings"][-1]["frames"]


def test_confinement_leaves_opencl_working(service, machine, headers):
    """PoCL compiles and runs under the unit's rules, and caches in the unit's cache folder."""
    while not headers()["engine"].startswith("opencl:"):  # NumPy's while kernels are compiled
        pass
    # Debian's copy alone: that of pyopencl's wheel would be loaded beside it.
    pid = _show(service, "MainPID")["MainPID"]
    maps = machine.path(f"/proc/{pid}/maps").read_text()
    assert re.search(r"/usr/lib/\S*/libpocl\.so", maps)
    assert not re.search(r"/opt/\S*pocl", maps)
    assert list(machine.path("/var/cache/spectrod/pocl").iterdir())


def test_the_journal_knows_each_lines_priority(machine, config, service):
    """The log prefix becomes the journal entry's priority and is not in its text."""
    entry = ("6", "ready: the first message is out")
    _wait_for_journal(machine, "--boot", lambda found: entry in found)


def test_entries_of_the_journal_have_fields(service, machine, config):
    """The journal finds the entries of a recording and of an event by their fields."""
    config(("# [recordings.night]", "[recordings.all]\nfolder = '/srv/elsewhere'\n"))
    cursor = _cursor(machine)
    service("restart")
    _wait_for_journal(machine, cursor, lambda found: any("may not write" in t for _, t in found))
    fields = ("SPECTROD_RECORDING=all", "SPECTROD_EVENT=record.failed")
    # With a cursor, journalctl 252 leaves out the first entry that has the fields.
    output = machine.run("journalctl", "--boot", *fields, "--output=json").stdout
    (entry,) = [json.loads(line) for line in output.splitlines()]
    assert (entry["PRIORITY"], entry["_SYSTEMD_UNIT"]) == ("4", UNIT)
    assert entry["SYSLOG_IDENTIFIER"] == "spectrod"
    assert len(entry["MESSAGE_ID"]) == 32


@pytest.mark.parametrize("style", ["json", "journal"])
def test_every_style_keeps_its_priority(service, machine, config, style):
    """Lines of information are no warnings in the journal, in JSON too."""
    config(('style = "auto"', f'style = "{style}"'))
    cursor = _cursor(machine)
    service("restart")
    (priority,) = _wait_for_journal(
        machine,
        cursor,
        lambda found: [p for p, text in found if "the first message is out" in text],
    )
    assert priority == "6"


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
    # What is stopped does not hear the abort, and is killed later: the unit's 5 s show no more.
    (folder / "short.conf").write_text("[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\n")
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


TONE_URI = "signal:sine,1000,-20"
TONE = f'uri = "{TONE_URI}"'


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


def test_a_pipe_that_the_service_cannot_see_is_waited_for_with_a_reason(service, machine, config):
    """The status of a service that waits for a pipe in /tmp says that it has a /tmp of its own."""
    machine.run("mkfifo", "/tmp/audio.fifo")  # noqa: S108 - of the machine
    config((TONE, 'uri = "pcm:/tmp/audio.fifo"'))
    service("restart")
    state = _show(service, "ActiveState", "StatusText")
    assert state["ActiveState"] == "active"
    reason = "No such file or directory; the service has a /tmp of its own (PrivateTmp=)"
    assert state["StatusText"].startswith(f"waiting: /tmp/audio.fifo: {reason}")


def test_a_folder_that_the_service_may_not_write_is_named_with_the_remedy(service, machine, config):
    """A recording outside the confinement names the drop-in that opens the folder."""
    table = "[recordings.there]\nfolder = '/srv/elsewhere'\n"
    config(("# [recordings.night]", table))
    service("restart")
    while (one := _recorders(machine)[0])["state"] != "failed":
        pass
    assert one["error"] == (
        "/srv/elsewhere/there/signal: Read-only file system; the service may not write there "
        "(ReadWritePaths=, see 40-recordings.conf)"
    )


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
        # Another child compiles kernels if the cache is cold.
        (child,) = [
            one
            for one in children.stdout.split()
            if b"spectrod.source.capture" in machine.path(f"/proc/{one}/cmdline").read_bytes()
        ]
        service("stop")
        assert machine.run("test", "-e", f"/proc/{child}", check=False).returncode == 1
        journal = machine.run("journalctl", "--unit", UNIT, "--lines", "80", "--no-pager").stdout
        assert _show(service, "Result") == {"Result": "success"}, journal
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
            alice_key = alice.read_text()
            alice.write_text("nonsense")
            assert machine.run("systemctl", "reload", UNIT, check=False).returncode != 0
            next(frames)
            alice.write_text(alice_key)
            service("reload")
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
    """A file with mistakes fails the reload, each is in the log, and the old one stays in use."""
    cursor = _cursor(machine)
    before = headers()
    assert machine.run("systemctl", "reload", UNIT, check=False).returncode == 0
    config(("hop = 1024", "hop = 0"), ("iq = false", "iq = 'false'"))
    assert machine.run("systemctl", "reload", UNIT, check=False).returncode != 0
    service("is-active")
    while headers()["seq"] < before["seq"] + 100:
        pass
    errors = _wait_for_journal(
        machine,
        cursor,
        lambda found: [text for priority, text in found if priority == "3"][1:] and found,
    )
    first, second = (text for priority, text in errors if priority == "3")
    place = rf"reload refused: {CONFIG}:\d+:1: "
    assert re.match(place + r"source\.iq='false': must be true or false, not a string", first)
    assert re.match(place + "hop=0: must be at least 1 sample", second)
    assert headers()["epoch"] == before["epoch"]
    status = json.loads(machine.run("/opt/spectrod/bin/spectrod", "ctl", "status", "--json").stdout)
    assert not status["daemon"]["reload"]["is_ok"]
    assert "hop=0" in status["daemon"]["reload"]["error"]


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
    assert mistake[0] == "4"
    assert re.fullmatch(rf"spectrod: {CONFIG}:\d+:1: hop=0: must be at least 1 sample", mistake[1])


@pytest.fixture
def instances(machine):
    """Start two instances on test tones; return their names and their control sockets."""
    found = {}
    for name, freq_hz in (("roof", 500), ("pond", 2000)):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        machine.path(f"/etc/spectrod/{name}.toml").write_text(
            f'[source]\nuri = "signal:sine,{freq_hz},-20"\nname = "{name}"\n'
            f'[publish]\nendpoints = ["tcp://127.0.0.1:{port}"]\n[recordings.all]\n'
        )
        found[name] = f"ipc:///run/spectrod-{name}/control-{port}.ipc"
    machine.run("systemctl", "start", *(f"spectrod@{name}" for name in found))
    yield found
    machine.run("systemctl", "stop", *(f"spectrod@{name}" for name in found))
    for name in found:
        machine.path(f"/etc/spectrod/{name}.toml").unlink()


def _status(machine, control):
    out = machine.run(SPECTROD, "ctl", "status", "--json", "--endpoint", control).stdout
    return json.loads(out)


def test_instances_run_beside_the_main_service(machine, service, instances):
    """Two instances and the main service run at once, and a restart of one harms no other."""
    unit = "/etc/systemd/system/spectrod@.service"
    assert machine.run("systemd-analyze", "verify", "spectrod@roof.service").stderr == ""
    text = machine.path(unit).read_text()
    assert "RuntimeDirectory=spectrod-%i" in text
    assert "NoExecPaths=%S/spectrod-%i %L/spectrod-%i %t/spectrod-%i\n" in text
    before = {name: _status(machine, control) for name, control in instances.items()}
    assert [one["sources"][0]["name"] for one in before.values()] == ["roof", "pond"]
    service("restart")
    machine.run("systemctl", "restart", "spectrod@roof")
    after = {name: _status(machine, control) for name, control in instances.items()}
    assert after["pond"]["daemon"]["epoch"] == before["pond"]["daemon"]["epoch"]
    assert after["roof"]["daemon"]["epoch"] != before["roof"]["daemon"]["epoch"]
    machine.run("systemctl", "stop", UNIT)
    assert _status(machine, instances["pond"])["daemon"]["epoch"]
    for name in instances:
        folder = machine.path(f"/var/lib/spectrod-{name}/recordings/all/{name}")
        assert list(folder.iterdir())
        assert machine.path(f"/var/cache/spectrod-{name}").is_dir()
    # Without an endpoint, ctl finds both and asks for one; -i names it.
    asked = machine.run(SPECTROD, "ctl", "status", check=False)
    assert asked.returncode != 0
    for name in instances:
        assert f"-i {name} (sources {name})" in asked.stderr
        named = machine.run(SPECTROD, "ctl", "-i", name, "status", "--json")
        assert json.loads(named.stdout)["daemon"]["control"] == [instances[name]]


def test_a_reload_of_an_instance_checks_its_own_file(machine, instances):
    """A mistake in the file of one instance fails its reload, and not that of the other."""
    file = machine.path("/etc/spectrod/roof.toml")
    file.write_text(file.read_text() + "hopp = 1\n")
    failed = machine.run("systemctl", "reload", "spectrod@roof", check=False)
    assert failed.returncode != 0
    machine.run("systemctl", "reload", "spectrod@pond")
    assert _status(machine, instances["roof"])["sources"][0]["state"] == "running"


def test_the_users_unit_is_sound(machine):
    """Systemd finds no error in the unit of a user's manager."""
    path = "/etc/systemd/user/spectrod.service"
    machine.run("mkdir", "-p", "/run/user/0")
    environ = {"XDG_RUNTIME_DIR": "/run/user/0", "HOME": "/root"}
    done = machine.run("systemd-analyze", "--user", "verify", path, environ=environ)
    assert done.stderr == ""


def test_an_install_says_what_must_be_restarted(machine, service, instances):
    """Installing over running services restarts none, and names them; without any it is silent."""
    # The program alone takes most of the time, and is installed already.
    install = ("make", "--directory=/src", "--no-print-directory", "--silent")
    install += ("--old-file=install-program", "install")
    before = _show(service, "MainPID")
    said = machine.run(*install).stdout
    units = "spectrod.service spectrod@pond.service spectrod@roof.service"
    assert said == f"what ran before goes on until: systemctl restart {units}\n"
    assert _show(service, "MainPID") == before
    machine.run("systemctl", "stop", *units.split())
    assert machine.run(*install).stdout == ""


@pytest.fixture
def alice(machine):
    """Make a user whose manager runs without a session; return a function that runs as they do."""
    machine.run("useradd", "--create-home", "alice")
    machine.run("loginctl", "enable-linger", "alice")
    uid = machine.run("id", "-u", "alice").stdout.strip()
    machine.run("systemctl", "start", f"user@{uid}")  # it may just be starting
    environ = {"HOME": "/home/alice", "XDG_RUNTIME_DIR": f"/run/user/{uid}"}
    as_user = ("setpriv", "--reuid=alice", "--regid=alice", "--init-groups")
    yield lambda *command: machine.run(*as_user, *command, environ=environ).stdout
    machine.run("loginctl", "disable-linger", "alice")
    machine.run("systemctl", "stop", f"user@{uid}")
    machine.run("userdel", "--remove", "alice")


def test_a_user_runs_it_without_a_session(machine, alice):
    """Enabled by a user it is ready, recorded, asked, reloaded and stopped, in their folders."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    alice("mkdir", "-p", "/home/alice/.config/spectrod")
    machine.path("/home/alice/.config/spectrod/spectrod.toml").write_text(
        f'[source]\nuri = "{TONE_URI}"\n[publish]\nendpoints = ["tcp://127.0.0.1:{port}"]\n'
        "[recordings.all]\n"
    )

    def user_show(*names):
        shown = alice("systemctl", "--user", "show", f"--property={','.join(names)}", "spectrod")
        return dict(line.split("=", 1) for line in shown.splitlines())

    alice("systemctl", "--user", "enable", "--now", "spectrod")
    state = user_show("ActiveState", "UnitFileState", "StatusText")
    assert (state["ActiveState"], state["UnitFileState"]) == ("active", "enabled")
    assert state["StatusText"].startswith("running: test signal sine,1000,-20, 48000 Hz x 1")
    status = json.loads(alice(SPECTROD, "ctl", "status", "--json"))
    assert status["sources"][0]["state"] == "running"
    runtime = alice("sh", "-c", "echo $XDG_RUNTIME_DIR").strip()
    assert status["daemon"]["control"] == [f"ipc://{runtime}/spectrod/control-{port}.ipc"]
    alice("systemctl", "--user", "reload", "spectrod")
    # Root reaches it through the manager.
    machine.run("systemctl", "--user", "--machine=alice@", "is-active", "spectrod")
    alice("systemctl", "--user", "restart", "spectrod")
    alice("systemctl", "--user", "stop", "spectrod")
    assert user_show("ActiveState", "Result") == {"ActiveState": "inactive", "Result": "success"}
    recorded = machine.path("/home/alice/.local/state/spectrod/recordings/all/signal")
    assert len(list(recorded.glob("*.spd"))) == 2
    # With lingering it is there after a boot, which begins with the user's manager.
    machine.run("systemctl", "restart", "user@" + alice("id", "-u").strip())
    deadline_s = time.monotonic() + 30.0
    while user_show("ActiveState")["ActiveState"] != "active":
        assert time.monotonic() < deadline_s


def test_uninstall_leaves_the_configuration(machine, config):
    """Uninstall removes program and unit, keeps configuration and state, and allows a reinstall."""
    machine.run("make", "--directory=/src", "uninstall")
    assert not machine.path("/opt/spectrod").exists()
    assert not machine.path("/usr/local/bin/spectrod").is_symlink()
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
    machine.run("sh", "-c", f"systemctl start {unit} || true")
    journal = machine.run("journalctl", "-u", unit, "--no-pager").stdout
    assert "in the file /etc/spectrod/mqtt.env, a line SPECTROD_MQTT=--broker URL" in journal
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


def test_the_page_runs_confined(machine, service, free_port):
    """The page's unit is sound, needs no more access than it has, and keeps its token."""
    unit = "spectrod-web.service"
    assert service("is-active").strip() == "active"
    path = f"/etc/systemd/system/{unit}"
    assert machine.run("systemd-analyze", "verify", path).stderr == ""
    machine.run("systemd-analyze", "security", "--offline=true", "--threshold=15", path)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    machine.path("/etc/spectrod/web.env").write_text(
        f"SPECTROD_WEB=tcp://127.0.0.1:{free_port} --listen 127.0.0.1:{port}\n"
    )
    tokens = []
    for _ in range(2):
        machine.run("systemctl", "start", unit)
        file = machine.path("/var/lib/private/spectrod-web/token")
        assert file.stat().st_mode & 0o777 == 0o600
        tokens.append(file.read_text().strip())
        pid = machine.run("systemctl", "show", "--value", "--property=MainPID", unit).stdout.strip()
        # Its group may read recordings; what else the group may do is out of its sight.
        inside = ("nsenter", f"--target={pid}", "--mount")
        mode = machine.run(*inside, "stat", "--format=%a %G", "/run/spectrod").stdout.strip()
        assert mode == "0 root"
        group = machine.run("getent", "group", "spectrod").stdout.split(":")[2]
        groups = machine.run("grep", "^Groups:", f"/proc/{pid}/status").stdout.split()[1:]
        assert group in groups
        headers = {"Authorization": f"Bearer {tokens[0]}"}
        url = f"ws://127.0.0.1:{port}/api/stream"
        with connect(url, additional_headers=headers, compression=None) as stream:
            for text in map(json.loads, stream):
                if text["op"] == "topics" and text["topics"]:
                    break
            assert {topic["source"] for topic in text["topics"]} == {"signal"}
            machine.run("systemctl", "stop", unit)
            with pytest.raises(ConnectionClosed):
                deque(stream, maxlen=0)
        result = machine.run("systemctl", "show", "--property=Result", unit).stdout
        assert result == "Result=success\n"
    assert tokens[0] == tokens[1]


@pytest.fixture
def cloud(machine, wheels):
    """Install the extra that talks to buckets, as docs/upload.md has it, without a network."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["cloud"]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    subprocess.run([*download, f"--dest={wheels}", *extra], check=True)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    machine.run("/opt/spectrod/bin/python", "-m", "pip", "install", *extra, environ=offline)


def test_uploads_run_confined(machine, service, bucket, s3_server, tmp_path, cloud):
    """The unit is sound, sends what the daemon records, and removes it where it may."""
    unit, folder = "spectrod-upload.service", "/var/lib/spectrod/recordings"
    path = f"/etc/systemd/system/{unit}"
    assert machine.run("systemd-analyze", "verify", path).stderr == ""
    machine.run("systemd-analyze", "security", "--offline=true", "--threshold=15", path)
    machine.run("sh", "-c", f"systemctl start {unit} || true")

    def journal():
        return machine.run("journalctl", "-u", unit, "--no-pager").stdout

    assert "in the file /etc/spectrod/upload.env, a line SPECTROD_UPLOAD=FOLDER" in journal()
    machine.path("/etc/spectrod/conf.d").mkdir(exist_ok=True)
    machine.path("/etc/spectrod/conf.d/all.toml").write_text("[recordings.all]\nrotate_s = 1\n")
    service("restart")
    client, name = bucket
    variables = "".join(f"{key}={one}\n" for key, one in s3_server.variables(tmp_path).items())
    line = f"SPECTROD_UPLOAD={folder} s3://{name}/box --interval 1"
    environment = machine.path("/etc/spectrod/upload.env")
    environment.write_text(f"{line}\n{variables}")

    def await_true(is_true):
        deadline_s = time.monotonic() + 60.0
        while not is_true():
            assert time.monotonic() < deadline_s, journal()

    def keys():
        # Other tests have left recordings in the same folder.
        found = client.list_objects_v2(Bucket=name, Prefix="box/all/").get("Contents", ())
        return [one["Key"] for one in found]

    def status():
        return machine.run("systemctl", "show", "--property=StatusText", unit).stdout

    machine.run("systemctl", "start", unit)
    await_true(lambda: len(keys()) >= 2)
    assert all(re.fullmatch(r"box/all/signal/\d{8}T\d{6}Z\.spd", key) for key in keys())
    await_true(lambda: re.fullmatch(r"StatusText=sending; sent \d+ files, 0 wait\n", status()))
    machine.run("systemctl", "stop", unit)

    environment.write_text(f"{line} --remove\n{variables}")
    drop_in = machine.path(f"{path}.d")
    drop_in.mkdir()
    (drop_in / "remove.conf").write_text(
        f"[Service]\nDynamicUser=no\nUser=spectrod\nReadWritePaths={folder}\n"
    )
    first = machine.path(f"/var/lib/spectrod/recordings/{min(keys()).removeprefix('box/')}")
    assert first.exists()
    os.utime(first, (time.time() - 600.0,) * 2)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", unit)
    await_true(lambda: not first.exists())
    machine.run("systemctl", "stop", unit)
    result = machine.run("systemctl", "show", "--property=Result", unit).stdout
    assert result == "Result=success\n"
    assert s3_server.variables(tmp_path)["AWS_SECRET_ACCESS_KEY"] not in journal()
    machine.path("/etc/spectrod/conf.d/all.toml").unlink()
