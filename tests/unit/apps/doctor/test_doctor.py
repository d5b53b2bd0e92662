"""Probes of the machine: each state that they can find, of files and programs made here."""

import json
import os
import resource
import socket
import stat
import sys
import threading
from pathlib import Path

import pytest

import spectrod
from spectrod.apps.doctor import sound, system
from spectrod.apps.doctor.finding import examine, fail, ok, warn
from spectrod.apps.doctor.opencl_finding import probe_engine
from spectrod.apps.doctor.service import (
    RunningDaemon,
    probe_daemons,
    probe_firewall,
    probe_unit,
    unit_properties,
)
from spectrod.apps.doctor.sound import probe_gpu_nodes, probe_realtime, probe_sound
from spectrod.apps.doctor.system import (
    probe_clock,
    probe_config,
    probe_disks,
    probe_limits,
    probe_packages,
    probe_ports,
)
from spectrod.config.config import Config, EngineConfig, RecordingConfig, SourceConfig
from spectrod.config.settings import ControlConfig, HttpConfig, PublishConfig
from spectrod.lib import optional_packages
from spectrod.lib.errors import ConfigError, SettingsError, UnavailableError

AUTO = EngineConfig()
SOUND_CARD = Config(source=SourceConfig(uri="soundcard"))
TONE = Config(source=SourceConfig(uri="signal:sine,1000,-20"))


@pytest.fixture(autouse=True)
def driver_cache(tmp_path, monkeypatch):
    """Give PoCL a cache that can be used."""
    folder = tmp_path / "pocl"
    monkeypatch.setenv("POCL_CACHE_DIR", str(folder))
    return folder


def states(findings):
    return [(one.part, one.state, one.exit_code) for one in findings]


# ---- the frame


def test_findings_are_in_the_order_of_the_probes():
    """Findings come in the order of the probes, though a later probe ends earlier."""
    second_has_ended = threading.Event()

    def first():
        assert second_has_ended.wait(30.0)
        yield ok("a", "1")

    def second():
        yield warn("b", "2", "why")
        second_has_ended.set()

    assert [one.part for one in examine({"a": first, "b": second})] == ["a", "b"]


def test_a_probe_that_hangs_is_a_failure_and_holds_nothing_up():
    """A probe that does not end fails after the limit, with what it has found before."""
    end = threading.Event()

    def hangs():
        yield ok("disk", "first part")
        end.wait(60.0)

    found = examine({"disk": hangs, "clock": lambda: [ok("clock", "synchronised")]}, limit_s=0.1)
    end.set()
    assert states(found) == [("disk", "ok", 0), ("disk", "fail", 69), ("clock", "ok", 0)]
    assert found[1].text == "no result within 0.1 s"


def test_a_defect_of_a_probe_is_a_finding(caplog):
    """A probe with an unexpected exception fails with exit code 70; the others are reported."""

    def broken():
        raise ZeroDivisionError("boom")

    found = examine({"x": broken, "clock": lambda: [ok("clock", "synchronised")]})
    assert states(found) == [("x", "fail", 70), ("clock", "ok", 0)]
    assert "boom" in found[0].text
    assert caplog.messages == ["x failed"]


# ---- OpenCL


def child(tmp_path, text):
    """Return the command of a Python program."""
    path = tmp_path / "child.py"
    path.write_text(text)
    return [sys.executable, str(path)]


DEVICE = '{"devices": [{"name": "GPU", "driver": "1.2"}]}'


def test_an_engine_that_computes_is_right(tmp_path):
    """Devices, engine and error come from the other process, between lines of a driver."""
    program = f"""print("driver says hello"); print('{DEVICE}')
print('[1]'); print('{{"engine": "opencl:GPU", "error": 1.5e-7}}')"""
    found = list(probe_engine(AUTO, child(tmp_path, program)))
    assert states(found) == [("OpenCL device", "ok", 0), ("OpenCL", "ok", 0)]
    assert found[1].text == "opencl:GPU computes, within 1.5e-07 of float64"


def test_a_driver_that_is_loaded_twice_is_a_warning(tmp_path):
    """Two copies of PoCL, such as Debian's and the wheel's, cost memory; other drivers differ."""
    names = ("Portable Computing Language/a", "GPU", "Portable Computing Language/b")
    devices = [{"name": name, "driver": f"3.{n}"} for n, name in enumerate(names)]
    lines = [{"devices": devices}, {"engine": "opencl:GPU", "error": 1.5e-7}]
    program = "".join(f"print({json.dumps(line)!r});" for line in lines)
    found = list(probe_engine(AUTO, child(tmp_path, program)))
    assert [one.state for one in found] == ["ok", "ok", "ok", "warn", "ok"]
    assert found[3].text == "2 copies of PoCL are loaded, of which one computes: 3.0, 3.2"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("import os; os.abort()", "the driver crashed (SIGABRT)"),
        ("import os; os.kill(os.getpid(), 11)", "the driver crashed (SIGSEGV)"),
        ("raise SystemExit('no such symbol')", "no such symbol"),
        ('print(\'{"reason": "no OpenCL platform has a device"}\')', "no OpenCL platform has a"),
        ("", "no device"),
    ],
)
def test_a_driver_that_fails_is_a_warning_or_with_opencl_a_failure(program, text, tmp_path):
    """A crash, an error and no device are warnings where NumPy computes, else failures."""
    command = child(tmp_path, program)
    (found,) = probe_engine(AUTO, command)
    assert (found.state, found.command) == ("warn", "sudo apt-get install pocl-opencl-icd")
    assert found.text.startswith(text)
    for required in (EngineConfig(engine="opencl"), EngineConfig(device="GPU")):
        (found,) = probe_engine(required, command)
        assert (found.state, found.exit_code) == ("fail", 69)


def test_a_crash_after_the_list_names_the_device_and_another_command(tmp_path):
    """A driver that lists its device and then aborts is not to be installed again."""
    program = f"import os\nprint('{DEVICE}', flush=True)\nos.abort()"
    listed, found = probe_engine(AUTO, child(tmp_path, program))
    assert listed.text == "GPU, driver 1.2"
    assert found.command.startswith("spectrod devices; ")


def test_a_driver_that_hangs_is_killed(tmp_path):
    """A driver that does not answer is killed after the limit; what it has said is kept."""
    program = f"import time\nprint('{DEVICE}', flush=True)\ntime.sleep(600)"
    found = list(probe_engine(AUTO, child(tmp_path, program), limit_s=1.0))
    assert found[-1].text == "the driver did not answer within 1 s"


def test_a_cache_that_pocl_cannot_use_is_named(driver_cache, tmp_path):
    """A file in the place of PoCL's cache is a warning with the folder."""
    driver_cache.write_text("")
    found = list(probe_engine(AUTO, child(tmp_path, "")))
    assert found[0].part == "OpenCL cache"
    assert str(driver_cache) in found[0].text


def test_numpy_needs_no_driver():
    """With engine = "numpy" no driver is tried."""
    assert states(probe_engine(EngineConfig(engine="numpy"), ["/nope"])) == [("OpenCL", "ok", 0)]


@pytest.mark.slow
@pytest.mark.opencl
def test_the_driver_of_this_machine_computes():
    """The real process finds the devices of the tests, and its error is that of float32."""
    found = list(probe_engine(AUTO))
    assert found[-1].state == "ok"
    assert "computes, within " in found[-1].text


# ---- sound cards


class Input:
    """An input as PortAudio lists it."""

    device = type("Device", (), {"name": "USB Audio"})


def test_an_input_is_right(monkeypatch, tmp_path):
    """With an input, whether a sound card is needed or not, nothing is wrong."""
    monkeypatch.setattr(sound, "list_inputs", lambda: [Input])
    for config in (SOUND_CARD, TONE):
        assert states(probe_sound(config, tmp_path)) == [("audio inputs", "ok", 0)]


def test_no_input_is_a_failure_only_where_it_is_needed(monkeypatch, tmp_path):
    """No input, and no library, fail a configuration with a sound card; others are warned."""
    monkeypatch.setattr(sound, "list_inputs", list)
    assert states(probe_sound(SOUND_CARD, tmp_path)) == [("audio inputs", "fail", 69)]
    assert states(probe_sound(TONE, tmp_path)) == [("audio inputs", "warn", 0)]

    def missing():
        raise UnavailableError("soundcard: PortAudio's library is missing")

    monkeypatch.setattr(sound, "list_inputs", missing)
    (found,) = probe_sound(SOUND_CARD, tmp_path)
    assert found.command == "sudo apt-get install libportaudio2"


def test_a_card_that_this_user_may_not_open_names_its_group(monkeypatch, tmp_path):
    """The nodes of cards and GPUs that are denied are named, with the group to join."""
    monkeypatch.setattr(sound, "list_inputs", lambda: [Input])
    for name in ("pcmC0D0c", "pcmC0D0p", "pcmC1D0c", "renderD128"):
        (tmp_path / name).write_text("")
    denied = {"pcmC0D0c", "renderD128"}
    monkeypatch.setattr(os, "access", lambda node, _: node.name not in denied)
    found = list(probe_sound(SOUND_CARD, tmp_path))
    group = sound._group_of(tmp_path)
    assert found[0].text == f"this user may not open {tmp_path}/pcmC0D0c"
    assert found[0].command == f"sudo usermod -aG {group} $USER"
    assert states(probe_gpu_nodes(tmp_path)) == [("GPU", "warn", 0)]
    assert list(probe_gpu_nodes(tmp_path / "none")) == []


def test_real_time_threads_are_tried(monkeypatch):
    """The priority is set and given back in this thread; a refusal is a warning."""
    calls = []

    def take(_thread, policy, param):
        calls.append((policy, param.sched_priority))

    monkeypatch.setattr(sound.os, "sched_setscheduler", take)
    assert states(probe_realtime()) == [("real-time threads", "ok", 0)]
    assert calls == [(os.SCHED_RR, 5), (os.SCHED_OTHER, 0)]

    def refuse(*_arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(sound.os, "sched_setscheduler", refuse)
    (found,) = probe_realtime()
    assert (found.state, "not allowed" in found.text) == ("warn", True)


# ---- the system


@pytest.mark.parametrize(("status", "state"), [(0x2001, "ok"), (0x2041, "warn")])
def test_the_clock_is_synchronised_or_not(status, state):
    """The bit STA_UNSYNC of the kernel's clock decides."""
    (found,) = probe_clock(status)
    assert found.state == state


def test_the_clock_of_this_machine_is_read():
    """The kernel's status is read, or denied, without an error."""
    status = system.clock_status()
    assert status is None or 0 <= status < 1 << 16


def test_few_descriptors_are_a_warning(monkeypatch):
    """A hard limit of 1024 descriptors is a warning, one without bound is none."""
    limits = iter([(1024, 1024), (1024, resource.RLIM_INFINITY), (1024, 65536)])
    monkeypatch.setattr(system.resource, "getrlimit", lambda _: next(limits))
    assert states(probe_limits()) == [("descriptors", "warn", 0)]
    assert states([*probe_limits(), *probe_limits()]) == []


def test_a_port_is_free_ours_or_of_another_program():
    """A port in use by another program fails with exit code 75; ours and free ones are right."""
    here = ("127.0.0.1", 0)
    with socket.create_server(here) as used, socket.create_server(here) as other:
        port, http_port = used.getsockname()[1], other.getsockname()[1]
        endpoint = f"tcp://127.0.0.1:{port}"
        config = Config(
            publish=PublishConfig(endpoints=(endpoint, "ipc:///tmp/x.ipc", "tcp://127.0.0.1:0")),
            http=HttpConfig(listen=f"127.0.0.1:{http_port}"),
        )
        found = list(probe_ports(config, [endpoint]))
        assert states(found) == [(f"port {port}", "ok", 0), (f"port {http_port}", "fail", 75)]
        assert states(probe_ports(config, []))[0] == (f"port {port}", "fail", 75)
    assert [one.text for one in probe_ports(config, [])] == ["free", "free"]


def test_an_address_of_another_machine_fails():
    """An address that no interface has fails with the system's reason."""
    config = Config(publish=PublishConfig(endpoints=("tcp://192.0.2.1:5556",), insecure=True))
    (found,) = probe_ports(config, [])
    assert found.text == "tcp://192.0.2.1:5556: Cannot assign requested address"


def test_a_disk_without_space_fails(tmp_path, monkeypatch):
    """Less space than min_free_mb fails with exit code 74; a folder not made yet is no matter."""

    def config(min_free_mb):
        one = RecordingConfig("all", folder=str(tmp_path / "a" / "b"), min_free_mb=min_free_mb)
        return Config(recordings=(one,), control=ControlConfig(state_folder=str(tmp_path)))

    assert states(probe_disks(config(0.0), None)) == [("recording all", "ok", 0)]
    (found,) = probe_disks(config(1e12), None)
    assert (found.state, found.exit_code) == ("fail", 74)
    assert "less than min_free_mb" in found.text
    monkeypatch.setattr(system.os, "access", lambda *_: False)
    assert states(probe_disks(config(0.0), None)) == [("recording all", "warn", 0)]


def test_missing_extras_are_those_that_a_recording_needs(monkeypatch):
    """A form of files whose packages are not here fails with exit code 69, and says the command."""
    find, missing = optional_packages.find_spec, {"h5py", "zarr"}
    monkeypatch.setattr(
        optional_packages, "find_spec", lambda name: None if name in missing else find(name)
    )
    assert states(probe_packages(Config(recordings=(RecordingConfig("a"),)))) == [("env", "ok", 0)]
    several = RecordingConfig("a"), RecordingConfig("b", values="nc")
    env, found = probe_packages(Config(recordings=several))
    assert env.text.startswith(f"Python {sys.version_info.major}.")
    extras = env.text.partition("extras: ")[2].split(", ")
    assert "web" in extras
    assert not {"netcdf", "zarr"} & set(extras)
    assert (found.part, found.state, found.exit_code) == ("env", "fail", 69)
    assert found.text == "h5py is not installed"
    assert found.why == "recording b has values = 'nc', of extra netcdf"
    assert found.command == "pip install 'spectrod[netcdf]'"


def test_the_state_folder_of_the_service_is_its_own(monkeypatch):
    """With the system's file, recordings without a folder go to that of the service."""
    monkeypatch.setenv("STATE_DIRECTORY", "/mine")
    assert system._state_folder(Config(), system.SYSTEM_FILE) == Path("/var/lib/spectrod")
    assert system._state_folder(Config(), Path("x.toml")) == Path("/mine")


def test_the_configuration_is_right_wrong_or_built_in():
    """Each mistake of a wrong file is a failure with exit code 2; a warning is none."""
    file = Path("x.toml")
    assert states(probe_config(None, None)) == [("configuration", "ok", 0)]
    assert states(probe_config(file, None)) == [("configuration", "ok", 0)]
    found = list(probe_config(file, SettingsError(["x.toml:2:1: hop=0", "x.toml:3:1: nope"])))
    assert states(found) == [("configuration", "fail", 2)] * 2
    assert [one.text for one in found] == ["x.toml:2:1: hop=0", "x.toml:3:1: nope"]
    assert found[0].command == "spectrod config check x.toml"
    (found,) = probe_config(file, ConfigError("x.toml: No such file or directory"))
    assert found.text == "x.toml: No such file or directory"
    assert states(probe_config(file, None, ["x.toml:1:1: rare"])) == [
        ("configuration", "warn", 0),
        ("configuration", "ok", 0),
    ]


# ---- the service


def systemctl(tmp_path, text):
    path = tmp_path / "systemctl"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return (str(path),)


def test_systemd_is_asked_for_the_unit(tmp_path):
    """The properties are those of systemctl show; without systemd there are none."""
    command = systemctl(tmp_path, 'echo "LoadState=loaded"; echo "Arguments=$*"')
    found = unit_properties(command)
    assert found["LoadState"] == "loaded"
    assert found["Arguments"].startswith("show spectrod.service --property=LoadState,ActiveState")
    assert unit_properties(systemctl(tmp_path, "exit 1")) is None
    assert unit_properties((str(tmp_path / "nope"),)) is None


@pytest.mark.parametrize(
    ("properties", "state", "text"),
    [
        (None, "ok", "no systemd manages this machine"),
        ({"LoadState": "not-found"}, "ok", "not installed"),
        (
            {"LoadState": "loaded", "ActiveState": "active", "SubState": "running"},
            "ok",
            "active",
        ),
        (
            {
                "LoadState": "loaded",
                "ActiveState": "failed",
                "SubState": "failed",
                "Result": "exit-code",
                "ExecMainStatus": "2",
            },
            "fail",
            "failed (failed): exit-code, exit code 2",
        ),
        (
            {
                "LoadState": "loaded",
                "ActiveState": "activating",
                "SubState": "auto-restart",
                "NRestarts": "7",
            },
            "fail",
            "activating (auto-restart): 7 restarts",
        ),
    ],
)
def test_the_state_of_the_service_is_reported(properties, state, text):
    """A unit that failed or restarts again and again fails, with the journal as the command."""
    (found,) = probe_unit(properties)
    assert found.state == state
    assert found.text.startswith(text)
    assert bool(found.command) == (state == "fail")


def test_a_unit_that_changed_on_disk_is_a_warning():
    """A unit whose file is newer than what systemd has read needs a daemon-reload."""
    properties = {"LoadState": "loaded", "ActiveState": "active", "NeedDaemonReload": "yes"}
    assert [one.command for one in probe_unit(properties)][1] == "sudo systemctl daemon-reload"


def test_a_firewall_that_is_not_enforced_is_a_warning(tmp_path):
    """In a container, or without the kernel's option, the addresses are open.

    Without the unified hierarchy, as on many machines, that is information.
    """
    denies = {"IPAddressDeny": "0.0.0.0/0 ::/0"}
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.write_text("")
    assert list(probe_firewall({}, missing, missing, tmp_path)) == []
    assert list(probe_firewall(denies, there, missing, tmp_path)) == []
    (found,) = probe_firewall(denies, missing, missing, tmp_path)
    assert found.text.startswith("the unified cgroup hierarchy is not mounted: ")
    assert found.state == "ok"
    (found,) = probe_firewall(denies, there, there, tmp_path)
    assert found.text.endswith("most containers may not load BPF programs")
    assert found.state == "warn"
    kernel = tmp_path / f"config-{os.uname().release}"
    kernel.write_text("CONFIG_CGROUP_BPF=y\n")
    assert list(probe_firewall(denies, there, missing, tmp_path)) == []
    kernel.write_text("# CONFIG_CGROUP_BPF is not set\n")
    (found,) = probe_firewall(denies, there, missing, tmp_path)
    assert found.text.endswith("lacks CONFIG_CGROUP_BPF")


def status(**more):
    source = {
        "name": "roof",
        "state": "running",
        "engine": "numpy",
        "engine_failures": 0,
        "capture": {"waiting_for": ""},
    }
    daemon = {"version": spectrod.__version__, "pid": 1, "publish": ["tcp://127.0.0.1:5556"]}
    return {
        "daemon": daemon | more.get("daemon", {}),
        "sources": [source | more.get("source", {})],
        "recorders": more.get("recorders", []),
    }


@pytest.mark.parametrize(
    ("more", "state", "code", "text"),
    [
        ({"daemon": {"version": "0.0.9"}}, "warn", 0, "version 0.0.9, and this program is"),
        ({"daemon": {"reload": {"is_ok": False, "error": "hop=0"}}}, "fail", 2, "hop=0"),
        (
            {"source": {"state": "waiting", "capture": {"waiting_for": "no card"}}},
            "fail",
            69,
            "roof: waiting: no card",
        ),
        ({"source": {"state": "failed"}}, "fail", 69, "roof: failed"),
        ({"source": {"engine_failures": 1}}, "warn", 0, "roof: computes with numpy after a fail"),
        (
            {"recorders": [{"name": "all", "source": "roof", "state": "full", "error": ""}]},
            "fail",
            74,
            "all of roof: full",
        ),
        ({"daemon": {"unsendable": 3}}, "fail", 70, "3 messages could not be encoded"),
    ],
)
def test_a_daemon_reports_its_troubles(more, state, code, text):
    """Each trouble in a status is a finding with its exit code."""
    well, found = probe_daemons([RunningDaemon("ipc:///c", status(**more))])
    assert well.state == "ok"
    assert (found.state, found.exit_code) == (state, code)
    assert found.text.startswith(text)


def test_a_daemon_that_denies_or_does_not_reply():
    """A daemon of another user is a warning, one without a reply fails; neither has endpoints."""
    denied = RunningDaemon("ipc:///c", None, "denied", is_denied=True)
    silent = RunningDaemon("ipc:///d", None, "ipc:///d: no reply to status within 5 s")
    assert states(probe_daemons([denied, silent])) == [
        ("daemon", "warn", 0),
        ("daemon", "fail", 69),
    ]
    assert (*denied.published, *silent.published) == ()
    well = RunningDaemon("ipc:///e", status())
    assert states(probe_daemons([well])) == [("daemon", "ok", 0)]
    assert well.published == ["tcp://127.0.0.1:5556"]


def test_a_finding_is_a_dictionary():
    """A finding has all of its fields in JSON."""
    found = fail("clock", "text", "why", "command", ConfigError)
    assert found.as_dict() == {
        "part": "clock",
        "state": "fail",
        "text": "text",
        "why": "why",
        "command": "command",
        "exit_code": 2,
    }
