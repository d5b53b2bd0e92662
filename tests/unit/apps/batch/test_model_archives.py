"""The model of many workers: its stages follow from its costs, and it names the longest."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spectrod.cli import main as spectrod

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from model_archives import Costs, Place, costs_of, model
from small_archives import FS, sound, write

SCRIPT = Path(__file__).parents[4] / "benchmarks/model_archives.py"
COSTS = Costs(
    processor_s=1.0, read_bytes=345.6e6, pieces=1.0, units=1 / 24, result_bytes=4e5,
    result_files=1 / 24,
)  # fmt: skip
HOURS = 24_000.0


@pytest.mark.parametrize(
    ("change", "workers", "bottleneck"),
    [
        ({}, 1, "network of a worker"),
        ({"worker_bytes_s": 1e9, "connection_bytes_s": 1e9}, 1, "processors"),
        ({"store_bytes_s": 1e9}, 1000, "bandwidth of the store"),
        ({"store_requests_s": 10.0}, 1000, "requests of the store"),
        ({"dispatch_s": 1.0}, 1000, "scheduler"),
        ({"results_files_s": 1.0}, 1000, "files of results"),
        ({"results_bytes_s": 1e6}, 1000, "bytes of results"),
    ],
)
def test_the_longest_stage_is_named(change, workers, bottleneck):
    """A thousand units, with one thing that is slow."""
    costs = replace(COSTS, processor_s=2.0)
    found = model(costs, replace(Place(), **change), HOURS, workers)
    assert found["bottleneck"] == bottleneck
    assert found["run_s"] == found[f"{bottleneck}_s"]


def test_workers_share_whole_units():
    """With 600 workers, some have two of a thousand units: a thousand workers are twice as fast."""
    quick = Place(start_s=0.0, worker_bytes_s=1e12, connection_bytes_s=1e12, latency_s=0.0)
    times = [model(COSTS, quick, HOURS, workers)["processors_s"] for workers in (1, 600, 1000)]
    assert times == [HOURS, 48.0, 24.0]


def test_costs_are_those_of_a_computed_job(tmp_path):
    """Bytes, pieces, units and results of an hour of sound; without a result there are none."""
    for k in range(2):
        write(tmp_path / "card", sound(300 * FS, k), 3600 * k)
    job = tmp_path / "job.toml"
    job.write_text(
        '[job]\nname = "a"\noutput = "results"\nunit = "hour"\nproducts = ["flags"]\n'
        'engine = "numpy"\n[deployments.north]\ninputs = ["card"]\n'
    )
    assert spectrod(["batch", "plan", str(job)]) == 0
    assert spectrod(["batch", "merge", str(job)]) == 75
    with pytest.raises(SystemExit, match="no unit was computed; run and merge the job first"):
        costs_of(tmp_path / "results")
    assert spectrod(["batch", "run", str(job), "--jobs", "1"]) == 0
    assert spectrod(["batch", "merge", str(job)]) == 0
    costs = costs_of(tmp_path / "results")
    size = 2 * 300 * FS + 44
    assert (costs.units, costs.pieces) == (12.0, 12.0)
    assert costs.read_bytes == 12 * size
    assert costs.result_files == 12.0
    assert costs.processor_s > 0.0
    script = [sys.executable, str(SCRIPT), str(tmp_path / "results")]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    assert "workers: 1000, hours: 876000.0, bottleneck: " in done.stdout
