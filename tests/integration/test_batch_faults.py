"""What goes wrong with archives in the field: set aside with a reason, and the rest is whole."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spectrod.apps.batch import unit_samples
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli import main
from spectrod.lib import optional_packages

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from small_archives import FS, job_of, sound, write

MTIME_S = 1_780_000_000
JOB = """
[job]
name = "test"
output = "{output}"
unit = "hour"
products = ["millidecade", "flags"]
engine = "numpy"
attempts = 1
[deployments.north]
inputs = ["north"]
[deployments.south]
inputs = ["south"]
"""


def job_file(folder, output="results"):
    path = folder / f"{output}.toml"
    path.write_text(JOB.format(output=output))
    return str(path)


def names(folder):
    """Return the files of results, but for the state."""
    return sorted(path.name for path in folder.glob("*th/*"))


def two_cards(tmp_path):
    for k, card in enumerate(("north", "south")):
        write(tmp_path / card, sound(70 * FS, k))


@pytest.mark.slow
def test_a_card_that_is_gone(tmp_path, capsys):
    """Its units are set aside with the reason, the other deployment is whole; later all is."""
    two_cards(tmp_path)
    job = job_file(tmp_path)
    assert main(["batch", "plan", job]) == 0
    (tmp_path / "south").rename(tmp_path / "elsewhere")
    assert main(["batch", "run", job, "--jobs", "1"]) == 2
    reason = f"failed: {tmp_path}/south/20260501_235000.wav: No such file or directory"
    assert f"south/20260501T23: {reason}" in capsys.readouterr().out
    assert names(tmp_path / "results") == ["north_20260501T23.nc", "north_20260501T23_flags.csv"]
    assert main(["batch", "status", job]) == 2
    assert main(["batch", "run", job, "--jobs", "1"]) == 2
    assert "set aside: 1; run --retry tries them again" in capsys.readouterr().out
    (tmp_path / "elsewhere").rename(tmp_path / "south")
    assert main(["batch", "run", job, "--jobs", "1", "--retry"]) == 0
    assert len(names(tmp_path / "results")) == 4


@pytest.mark.slow
def test_a_disk_that_takes_no_more(tmp_path, capsys):
    """The system's own refusal ends units with 74 and its reason, and leaves no part of a file."""
    two_cards(tmp_path)
    job = job_file(tmp_path)
    assert main(["batch", "plan", job]) == 0
    command = f"ulimit -f 8; exec '{sys.executable}' -m spectrod batch run '{job}' --jobs 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 74, done.stderr
    assert "south/20260501T23: failed: " in done.stdout
    assert os.strerror(errno.EFBIG) in done.stdout
    results = tmp_path / "results"
    assert names(results) == []
    assert not [path for path in results.rglob("*") if path.suffix == ".part"]
    assert not [path for path in (results / "state/parts").glob("*/*") if path.is_dir()]
    capsys.readouterr()
    assert main(["batch", "status", job]) == 74
    assert "; the next run tries it again" in capsys.readouterr().out
    assert main(["batch", "run", job, "--jobs", "1"]) == 0
    assert len(names(results)) == 4


@pytest.mark.slow
def test_a_package_that_is_missing_needs_no_attempts(tmp_path, capsys, monkeypatch):
    """The plan names a missing package, a run says so at once, and the next one computes all."""
    two_cards(tmp_path)
    job = job_file(tmp_path)
    text = "h5py is not installed: needs: pip install 'spectrod[netcdf]'"
    find = optional_packages.find_spec
    monkeypatch.setattr(
        optional_packages, "find_spec", lambda name: None if name == "h5py" else find(name)
    )
    assert main(["batch", "plan", job]) == 0
    assert capsys.readouterr().out.splitlines()[0] == text
    assert main(["batch", "run", job, "--jobs", "1"]) == 69
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [f"spectrod: {text}"]
    assert not list((tmp_path / "results").rglob("*.json"))
    monkeypatch.undo()
    assert main(["batch", "run", job, "--jobs", "1"]) == 0
    assert "not installed" not in "".join(capsys.readouterr())
    monkeypatch.setattr(
        optional_packages, "missing_packages", lambda extras: text if extras else ""
    )
    assert main(["batch", "run", job, "--jobs", "1"]) == 0  # nothing is left to compute


def test_files_that_may_not_be_read(tmp_path, monkeypatch):
    """The system's refusal is the reason of the unit."""
    write(tmp_path / "card", sound(70 * FS))
    job = job_of(tmp_path, tmp_path / "card", products=("flags",))
    (unit,) = plan_job(job).units

    def denied(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(unit_samples, "fingerprint", denied)
    record = compute_unit(job, unit)
    assert (record.state, record.exit_code) == ("failed", 2)
    assert record.reason == f"{unit.pieces[0].path}: Permission denied"


@pytest.mark.extended
def test_bad_files_change_no_other_unit(tmp_path, capsys):
    """Files of other rates and channels, torn, undated and doubled ones leave the rest as it is."""
    clean, mixed = tmp_path / "clean", tmp_path / "mixed"
    for folder in (clean, mixed):
        for card in ("north", "south"):
            for k in range(3):
                write(folder / card, sound(130 * FS, k), 3600 * k)
    north = mixed / "north"
    write(north, sound(60 * FS), 300, fs=2 * FS)
    write(north, sound(60 * FS, channels=2), 400)
    write(north, sound(200 * FS, 8), 3600, prefix="other_")
    (north / "20260502_005500.wav").write_bytes(b"RIFF and no more")
    (north / "18880101_000000.wav").write_bytes((clean / "north/20260501_235000.wav").read_bytes())
    (north / "20991231_000000.wav").write_bytes((clean / "north/20260501_235000.wav").read_bytes())
    torn = write(north, sound(60 * FS, 9), 7200 + 600)
    torn.write_bytes(torn.read_bytes()[:50_000])
    for path in tmp_path.rglob("*.wav"):
        os.utime(path, (MTIME_S, MTIME_S))
    for folder, code in ((clean, 0), (mixed, 65)):
        job = job_file(folder)
        assert main(["batch", "plan", job]) == code
        planned = capsys.readouterr().out
        assert main(["batch", "run", job, "--jobs", "1"]) == code
    for kind in ("format", "overlap", "unreadable", "undated", "truncated", "clock"):
        assert f"north: {kind}: " in planned, kind
    assert "north/20260502T00: refused: " in planned
    of_clean, of_mixed = (
        {path.name: path.read_bytes() for path in folder.glob("results/*th/*")}
        for folder in (clean, mixed)
    )
    same = [name for name in of_clean if of_clean[name] == of_mixed.get(name)]
    refused = "north_20260502T00"
    assert {name for name in of_clean if not name.startswith(refused)} == set(same)
    assert "north_20260502T00.nc" not in of_mixed
