"""``spectrod batch``: the same bytes by one process, by shards, and after kills at any moment."""

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.plan import read_plan
from spectrod.apps.batch.results import read_record
from spectrod.apps.batch.verify import file_problems
from spectrod.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from small_archives import FS, sound, write

JOB = """
[job]
name = "test"
output = "{output}"
unit = "hour"
products = ["millidecade", "levels", "flags"]
merged = ["zarr", "pyramid"]
engine = "numpy"
attempts = 30
layout = "partitioned"
[levels]
format = "parquet"
[flags]
format = "parquet"
[deployments.north]
inputs = ["card"]
[deployments.south]
inputs = ["card/*_23*.wav"]
"""
UNITS = 5


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Return a folder with a job and its recordings, and its results by one process."""
    folder = tmp_path_factory.mktemp("archive")
    x = sound(3 * 3600 * FS // 8)
    for k in range(9):
        write(folder / "card", x[k * 150 * FS : (k + 1) * 150 * FS], 1200 * k)
    job_file(folder, "whole")
    assert main(["batch", "run", str(folder / "whole.toml"), "--jobs", "1"]) == 0
    return folder, contents(folder / "whole")


def job_file(folder, output):
    """Write the job with a folder of results of its own, and return it."""
    path = folder / f"{output}.toml"
    path.write_text(JOB.format(output=output))
    return path


def contents(results):
    """Return the content of each file of the results but the state and the summary."""
    folders = (results / name for name in ("north", "south", "levels", "flags"))
    files = (path for one in folders for path in one.rglob("*") if path.is_file())
    return {str(path.relative_to(results)): path.read_bytes() for path in files}


def test_one_process_computes_all(archive, capsys):
    """The plan has a unit for each hour with sound; results are verified, also computed again."""
    folder, files = archive
    assert len(files) == 3 * UNITS
    assert main(["batch", "status", str(folder / "whole.toml")]) == 0
    assert "units: 5 done of 5; 1500 s of sound" in capsys.readouterr().out
    assert main(["batch", "verify", str(folder / "whole.toml"), "--recompute", "2"]) == 0
    assert "2 computed again; problems: 0" in capsys.readouterr().out


@pytest.mark.slow
def test_shards_make_the_same_files(archive, capsys, monkeypatch):
    """Eight shards, more than there are units, make the bytes of one process."""
    folder, files = archive
    job = str(job_file(folder, "shards"))
    assert main(["batch", "plan", job]) == 0
    monkeypatch.setattr("spectrod.apps.batch.command_run.LocalExecutor", _InProcess)
    for number in range(1, 9):
        assert main(["batch", "run", job, "--shard", f"{number}/8"]) == 0
    assert contents(folder / "shards") == files
    assert main(["batch", "merge", job]) == 0
    assert "units: 5 done of 5" in capsys.readouterr().out
    assert main(["batch", "merge", str(folder / "whole.toml")]) == 0
    assert merged(folder / "shards") == merged(folder / "whole")
    assert len(merged(folder / "whole")) > 2 * UNITS


def merged(results):
    """Return the content of each file of the store and of the pyramids."""
    files = (path for name in ("archive.zarr", "history") for path in (results / name).rglob("*"))
    return {str(path.relative_to(results)): path.read_bytes() for path in files if path.is_file()}


class _InProcess:
    """A local executor without processes."""

    def __init__(self, *_, **__):
        pass

    def run(self, job, units):
        from spectrod.apps.batch.unit import compute_unit  # noqa: PLC0415

        return (compute_unit(job, unit) for unit in units)


@pytest.mark.slow
@pytest.mark.parametrize(
    "n_kills", [3, pytest.param(20, marks=pytest.mark.extended)], ids=["3", "20"]
)
def test_kills_cost_nothing(archive, n_kills):
    """Killed at random and run again, a job makes the bytes of one process, and no false record."""
    folder, files = archive
    path = job_file(folder, f"killed{n_kills}")
    assert main(["batch", "plan", str(path)]) == 0
    rng = random.Random(n_kills)  # noqa: S311
    command = [sys.executable, "-m", "spectrod", "batch", "run", str(path), "--jobs", "2"]
    for _ in range(n_kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(timeout=rng.uniform(0.5, 3.0))
        except subprocess.TimeoutExpired:
            # The processes that it has started end with it.
            kill(rng.choice([process.pid, *children(process.pid)]))
            process.wait(timeout=60)
        check_records(path)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(folder / f"killed{n_kills}") == files


def children(pid):
    """Return the processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in found.read_text().split()] if found.exists() else []


def kill(pid):
    """Kill a process, which may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def check_records(path):
    """Check that every record is of complete files."""
    job = read_job(path)
    for unit in read_plan(Path(job.output) / "plan.jsonl", job).units:
        record = read_record(FolderOutput(Path(job.output)), unit)
        if record is not None and record.is_computed:
            assert list(file_problems(job, record)) == []


def test_the_exit_code_says_what_is_missing(archive, tmp_path, capsys):
    """No plan is 2, units that wait 75, a part of the inputs left out 65; one line says it."""
    write(tmp_path / "card", sound(70 * FS))
    (tmp_path / "card" / "20260501_235900.wav").write_bytes(b"")
    job = str(job_file(tmp_path, "results"))
    assert main(["batch", "status", job]) == 2
    assert "plan.jsonl: there is no plan; run spectrod batch plan" in capsys.readouterr().err
    assert main(["batch", "plan", job]) == 65
    assert "north: unreadable: " in capsys.readouterr().out
    assert main(["batch", "status", job]) == 75
    assert "units: 2 waiting of 2" in capsys.readouterr().out
    assert main(["batch", "run", job, "--jobs", "0"]) == 2
    assert "--jobs 0: must be 1 to 256" in capsys.readouterr().err
    assert main(["batch", "verify", job, "--recompute", "-1"]) == 2
    assert "--recompute -1: must be 0 to 10000" in capsys.readouterr().err
