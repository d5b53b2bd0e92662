"""A minute of the soak: faults of every group, and everything is accounted for."""

import json

import pytest

from spectrod.apps.bench.fault_soak.__main__ import main
from spectrod.apps.bench.fault_soak.run import FAULTS

SEED = "11"
HOURS = "0.017"
GROUPS = {fault.group for fault in FAULTS}


# Beside other programs the sound server of the test runs up to 0.1 % slow.
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_minute_of_faults_is_accounted_for(tmp_path, capsys):
    """After faults of many kinds nothing is uncounted, all is well again, and the stop is clean."""
    path = tmp_path / "report.json"
    code = main(["--hours", HOURS, "--seed", SEED, "--engine", "numpy", "--json", str(path)])
    report = json.loads(path.read_text())
    assert report["problems"] == []
    assert code == 0, capsys.readouterr().out
    assert sum(report["faults"].values()) >= 8
    assert len({name.partition(".")[0] for name in report["faults"]}) >= 4
    sound = report["recordings"]["wav"]["sound"]
    assert sound["samples"] > 4000 * 50


@pytest.mark.parametrize("hours", ["0", "-1", "25", "nan"])
def test_an_impossible_duration_is_refused(hours, capsys):
    """A duration that is no duration is a usage error with the rule."""
    assert main([f"--hours={hours}"]) == 2
    assert "must be above 0, at most 24" in capsys.readouterr().err


def test_every_group_has_faults_and_every_name_is_one():
    """All groups of the documentation have faults, and no two faults have one name."""
    assert {"capture", "subscribers", "control", "configuration", "disk", "device"} <= GROUPS
    assert {"memory", "clock"} <= GROUPS
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
