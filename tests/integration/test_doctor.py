"""``spectrod doctor`` as a whole."""

import json

import pytest

from spectrod.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture
def config_file(machine):
    """Write a configuration that needs no driver to be tried."""
    config = machine / "spectrod.toml"
    config.write_text(
        'source = { uri = "signal:sine,1000,-20", name = "tone" }\n'
        'engine = { engine = "numpy" }\n'
        f'publish = {{ endpoints = ["ipc://{machine}/p.ipc"] }}\n'
        "recordings = { all = { min_free_mb = 0 } }\n"
    )
    return config


def test_a_machine_that_is_right_has_exit_code_zero(config_file, capsys):
    """With a right configuration and NumPy there is no failure, and each line has its mark."""
    assert main(["doctor", "--config", str(config_file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"ok    configuration: {config_file}: right"
    assert any(line.startswith("ok    recording all: ") for line in lines)
    marks = ("ok    ", "warn  ", "      ")
    assert all(line.startswith(marks) for line in lines[:-1])
    assert "failed" in lines[-1] or lines[-1] == "nothing is wrong"


def test_the_exit_code_is_that_of_the_first_failure(config_file, capsys):
    """A wrong file fails with its text and exit code 2; the machine is examined all the same."""
    config_file.write_text("[analysis]\nhop = 0\n[engine]\n")
    assert main(["doctor", "--json", "--config", str(config_file)]) == 2
    found = json.loads(capsys.readouterr().out)["findings"]
    failed = [one for one in found if one["state"] == "fail"]
    assert failed[0]["part"] == "configuration"
    assert failed[0]["text"] == f"{config_file}:2:1: hop=0: must be at least 1 sample"
    assert failed[0]["command"] == f"spectrod config check {config_file}"
    assert {"OpenCL", "clock", "limits", "real-time threads"} & {one["part"] for one in found}


def test_a_disk_without_room_has_the_code_of_storage(config_file, capsys):
    """A recording with less space than it keeps free gives exit code 74."""
    config_file.write_text(config_file.read_text().replace("min_free_mb = 0", "min_free_mb = 1e9"))
    assert main(["doctor", "--config", str(config_file)]) == 74
    assert "\n      -> df -h " in capsys.readouterr().out
