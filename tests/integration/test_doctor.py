"""``spectrod doctor`` as a whole."""

import json

import pytest

from spectrod.cli import main
from spectrod.wire import endpoint_discovery

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Simulate a machine without a running daemon, a service and a driver to try."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", "run")
    monkeypatch.setenv("STATE_DIRECTORY", "state")
    monkeypatch.setattr(endpoint_discovery, "SYSTEM_FOLDER", tmp_path / "system")
    monkeypatch.setattr(endpoint_discovery.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "spectrod.toml"
    config.write_text(
        'source = { uri = "signal:sine,1000,-20", name = "tone" }\n'
        'engine = { engine = "numpy" }\n'
        f'publish = {{ endpoints = ["ipc://{tmp_path}/p.ipc"] }}\n'
        "recordings = { all = { min_free_mb = 0 } }\n"
    )
    return config


def test_a_machine_that_is_right_has_exit_code_zero(machine, capsys):
    """With a right configuration and NumPy there is no failure, and each line has its mark."""
    assert main(["doctor", "--config", str(machine)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"ok    configuration: {machine}: right"
    assert any(line.startswith("ok    recording all: ") for line in lines)
    marks = ("ok    ", "warn  ", "      ")
    assert all(line.startswith(marks) for line in lines[:-1])
    assert "failed" in lines[-1] or lines[-1] == "nothing is wrong"


def test_the_exit_code_is_that_of_the_first_failure(machine, capsys):
    """A wrong file fails with its text and exit code 2; the machine is examined all the same."""
    machine.write_text("[analysis]\nhop = 0\n[engine]\n")
    assert main(["doctor", "--json", "--config", str(machine)]) == 2
    found = json.loads(capsys.readouterr().out)["findings"]
    failed = [one for one in found if one["state"] == "fail"]
    assert failed[0]["part"] == "configuration"
    assert failed[0]["text"] == f"{machine}:2:1: hop=0: must be at least 1 sample"
    assert failed[0]["command"] == f"spectrod config check {machine}"
    assert {"OpenCL", "clock", "limits", "real-time threads"} & {one["part"] for one in found}


def test_a_disk_without_room_has_the_code_of_storage(machine, capsys):
    """A recording with less space than it keeps free gives exit code 74."""
    machine.write_text(machine.read_text().replace("min_free_mb = 0", "min_free_mb = 1e9"))
    assert main(["doctor", "--config", str(machine)]) == 74
    assert "\n      -> df -h " in capsys.readouterr().out
