"""Killed recordings: a few rounds of ``benchmarks/kill_recording.py``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_recording.py"


@pytest.mark.slow
def test_a_kill_costs_nothing_that_was_there(tmp_path):
    """After a kill at any time, files open with all data that a reader saw and no wrong data."""
    report = tmp_path / "report.json"
    rounds = ["--kills", "3", "--duration", "0.5", "--seed", "3", "--bound", "30"]
    formats = ["--format", "wav", "--format", "npz"]
    command = [sys.executable, SCRIPT, *rounds, *formats, "--json", report]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {one["format"]: one for one in json.loads(report.read_text())["results"]}
    assert results["spd"]["compared"] >= 122, "the first round is not killed"
    assert {one["false"] + one["vanished"] for one in results.values()} == {0}
    for one in results.values():
        assert sum(one["outcomes"].values()) == 4
        assert one["outcomes"]["finished"] >= 1
