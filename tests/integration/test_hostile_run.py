"""A few seconds of ``benchmarks/hostile_run.py``, and proof that each check can fail."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.description import Description
from spectrod.formats.segment.segment_writer import SegmentWriter

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPEC = SpectrumSpec(48000.0, win_length=512, hop=480, nfft=512)
FIRST = {
    "seq": 0,
    "epoch": 1,
    "sample_index": 0,
    "hop": 480,
    "win_length": 512,
    "fs": 48000.0,
    "t_mono_ns": 0,
    "gap_samples": 0,
    "dropped": 0,
}


@pytest.fixture(scope="module")
def checks():
    """Load the script's checks of rows as a module."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("_hostile_checks")
    finally:
        sys.path.remove(str(BENCHMARKS))


def frame(missed=0, **header):
    return SimpleNamespace(
        topic="spec/tone/0/dbfs/",
        missed=missed,
        replayed=False,
        header=SimpleNamespace(**(FIRST | header)),
    )


@pytest.mark.parametrize(
    ("second", "n_uncounted"),
    [
        (frame(seq=1, sample_index=480), 0),
        (frame(seq=3, sample_index=1440, missed=2), 0),
        (frame(seq=1, sample_index=580, gap_samples=100), 0),
        (frame(seq=1, sample_index=600, gap_samples=100), 0),  # with 20 that fill no frame
        (frame(seq=3, sample_index=1440), 1),
        (frame(seq=3, sample_index=1440, missed=1), 1),
        (frame(seq=1, sample_index=960), 1),
        (frame(seq=1, sample_index=481), 1),
        (frame(seq=0, sample_index=0), 1),
        (frame(seq=3, sample_index=480, missed=2), 1),
        (frame(seq=1, sample_index=480, epoch=2), 1),
    ],
)
def test_a_row_that_was_lost_uncounted_is_found(checks, second, n_uncounted):
    """An uncounted lost row is found by its number or its sample index."""
    audit = checks.Audit()
    audit.take(frame())
    audit.take(second)
    assert audit.phase.uncounted == n_uncounted
    assert audit.phase.rows == 2
    assert audit.phase.missed == second.missed


def write_segment(path, indices):
    description = Description(SPEC, "tone", ("0",), "x")
    writer = SegmentWriter(path, description)
    for first in indices:
        index = first + 480 * np.arange(4)
        values = np.zeros((4, 1, SPEC.n_values), np.float32)
        writer.write(SpectrumBatch(values, index, index, index, SPEC, "numpy"))
    writer.finish()


def test_rows_that_a_recording_lacks_are_found(checks, tmp_path):
    """Rows missing from a recording are found by sample index, except in deleted files."""
    write_segment(tmp_path / "1.spd", [0, 4 * 480])
    dropped = tmp_path / "0.spd"
    dropped.write_bytes(b"no segment")
    whole = checks.check_recording(tmp_path, [dropped])
    assert (whole["rows"], whole["first_index"], whole["end_index"]) == (8, 0, 8 * 480)
    assert whole["uncounted_samples"] == whole["gap_samples"] == 0
    write_segment(tmp_path / "1.spd", [0, 5 * 480])
    assert checks.check_recording(tmp_path, [])["uncounted_samples"] == 480


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_few_seconds_of_all_attacks(tmp_path):
    """A few seconds of all attacks lose nothing uncounted; an impossible bound gives code 1.

    Limits of time are tested by the whole run on an idle machine.
    """
    report = tmp_path / "report.json"
    command = [sys.executable, BENCHMARKS / "hostile_run.py", "--seconds", "4", "--json", report]
    options = ["--connections", "300", "--bound", "threads_peak=0"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=360, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (result,) = json.loads(report.read_text())["results"]
    verdict = {row["criterion"]: row for row in result["verdict"]}
    assert not verdict["threads_peak"]["ok"]
    timed = {"latency_p99_ms", "operator_longest_s", "normal_after_s", "cpu_cores"}
    failed = {name for name, row in verdict.items() if not row["ok"]}
    assert failed <= {"threads_peak"} | timed, done.stdout
    assert verdict["exit_code"]["measured"] == 0
    assert result["recording"]["rows"] > 300
    assert all(one["rows"] > 0 for one in result["subscriber"].values())
    attacks = result["attacks"]
    assert attacks["silent"]["opened"] >= 300
    for name, what in (
        ("upstream", "messages"),
        ("subscriptions", "subscriptions"),
        ("unread", "requests"),
        ("malformed", "garbage"),
        ("strangers", "keys"),
        ("files", "files"),
        ("revocations", "revocations"),
    ):
        assert attacks[name][what] > 0
