"""``batch run`` by itself: it plans where it must, computes what is new, and merges."""

import re
import sys
from pathlib import Path

import msgspec
import pytest

from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.plan import read_plan, write_plan
from spectrod.apps.batch.planner import is_current
from spectrod.apps.batch.staging import merging
from spectrod.apps.batch.unit import compute_unit, failed
from spectrod.cli import main
from spectrod.lib.errors import UnavailableError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, sound, write


class _InProcess:
    """A local executor without processes."""

    def __init__(self, *_, **__):
        pass

    def run(self, job, units):
        return (compute_unit(job, unit) for unit in units)


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Return the file of a job of three hours of two deployments."""
    monkeypatch.setattr("spectrod.apps.batch.command_run.LocalExecutor", _InProcess)
    for k, card in enumerate(("north", "north", "south")):
        write(tmp_path / card, sound(70 * FS, k), 600 * k)
    path = tmp_path / "JOB.toml"
    path.write_text(
        '[job]\nname = "test"\noutput = "results"\nunit = "hour"\nproducts = ["flags"]\n'
        'engine = "numpy"\n[deployments.north]\ninputs = ["north"]\n'
        '[deployments.south]\ninputs = ["south"]\n'
    )
    return path


def run(path, *options):
    return main(["batch", "run", str(path), *options])


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def test_one_command_plans_computes_and_reports(job, tmp_path, capsys):
    """Without a plan, run makes it and the report; with one that holds, it lists files alone."""
    results = tmp_path / "results"
    assert run(job) == 0
    first = lines(capsys)
    assert f"{results}/plan.jsonl: 3 units of an hour, 3 pieces, 210 s of sound" in first[-4]
    assert "units: 3 done of 3; 210 s of sound" in first[-3]
    assert first[-3].endswith("; computed now: 3")
    assert first[-2:] == [f"{results}/summary.json", f"{results}/report.html"]
    plan = (results / "plan.jsonl").stat().st_ino
    assert run(job) == 0
    assert [one.partition(";")[0] for one in lines(capsys)[:1]] == ["units: 3 done of 3"]
    assert (results / "plan.jsonl").stat().st_ino == plan
    assert run(job, "--no-merge") == 0
    assert len(lines(capsys)) == 1


def test_new_gone_and_changed_files_are_planned_again(job, tmp_path, capsys):
    """One line counts them, and units whose samples are the same are not computed again."""
    assert run(job) == 0
    capsys.readouterr()
    write(tmp_path / "south", sound(70 * FS, 7), 8000)
    (gone,) = (tmp_path / "north").glob("*_235000.wav")
    gone.unlink()
    (changed,) = (tmp_path / "north").glob("*_000000.wav")
    write(tmp_path / "north", sound(71 * FS, 8), 600)
    assert changed.stat().st_size > 140 * FS
    assert run(job) == 0
    found = lines(capsys)
    assert found[0] == "planned again: files: 1 new, 1 gone, 1 changed"
    assert "units: 3 done of 3; 211 s of sound" in found[2]
    assert found[2].endswith("; computed now: 2")


def test_a_job_that_has_changed_is_planned_again(job, capsys):
    """Another length of the unit makes another plan; other products make none."""
    assert run(job) == 0
    capsys.readouterr()
    job.write_text(job.read_text().replace('["flags"]', '["flags", "levels"]'))
    assert run(job) == 0
    assert lines(capsys)[0].endswith("computed now: 3")
    job.write_text(job.read_text().replace('"hour"', '"day"'))
    assert run(job) == 0
    found = lines(capsys)
    assert found[0] == "planned again: inputs, times or the unit of the job have changed"
    assert found[2].endswith("computed now: 3")
    assert "units: 3 done of 3" in found[2]


def test_files_that_are_left_out_do_not_make_a_plan_each_time(job, tmp_path, capsys):
    """A torn file is named by the first run, and known by the next; its repair is a change."""
    torn = tmp_path / "north" / "20260502_030000.wav"
    torn.write_bytes(b"")
    assert run(job) == 65
    assert f"north: unreadable: {torn}: " in lines(capsys)[0]
    assert run(job) == 65
    assert "units: 3 done of 3" in lines(capsys)[0]
    torn.unlink()
    write(tmp_path / "north", sound(70 * FS, 7), 11400)
    assert torn.exists()
    assert run(job) == 0
    assert lines(capsys)[0] == "planned again: files: 1 changed"


def test_inputs_that_are_away_leave_the_plan(job, tmp_path, capsys):
    """Without the card, results stay and the plan counts; without a plan it is an error."""
    assert run(job) == 0
    capsys.readouterr()
    (tmp_path / "south").rename(tmp_path / "away")
    assert run(job) == 0
    first, second, *_ = lines(capsys)
    missing = f"deployments.south: {tmp_path}/south: No such file or directory"
    assert first == f"{missing}: the plan that there is counts"
    assert "units: 3 done of 3" in second
    (tmp_path / "results/plan.jsonl").unlink()
    assert run(job) == 2
    assert capsys.readouterr().err == f"spectrod: {missing}\n"


def test_shards_make_no_plan(job, tmp_path, capsys):
    """Shards are parts of one plan: without it, or with another job, they end at once."""
    assert run(job, "--shard", "1/2") == 2
    text = "there is no plan; run spectrod batch plan"
    assert capsys.readouterr().err == f"spectrod: {tmp_path}/results/plan.jsonl: {text}\n"
    assert main(["batch", "plan", str(job)]) == 0
    write(tmp_path / "south", sound(70 * FS, 7), 8000)
    plan = (tmp_path / "results/plan.jsonl").read_bytes()
    capsys.readouterr()
    assert run(job, "--shard", "1/2") == 0
    assert "units: 2 done of 2" in capsys.readouterr().out
    assert (tmp_path / "results/plan.jsonl").read_bytes() == plan


def test_a_plan_of_a_version_without_the_list_is_made_again(job, tmp_path, capsys):
    """It counts as another one, and nothing is computed again."""
    assert run(job) == 0
    path = tmp_path / "results/plan.jsonl"
    plan = read_plan(path, read_job(job))
    assert is_current(plan, read_job(job))
    head = msgspec.structs.replace(plan.head, inputs_digest="")
    write_plan(path, type(plan)(head, plan.units, plan.findings))
    assert not is_current(read_plan(path, read_job(job)), read_job(job))
    capsys.readouterr()
    assert run(job) == 0
    found = lines(capsys)
    assert re.match(".*plan.jsonl: 3 units", found[0])
    assert found[1].endswith("computed now: 0")
    assert read_plan(path, read_job(job)) == plan


def test_a_package_of_the_merge_is_missing_before_anything_is_computed(
    job, tmp_path, capsys, monkeypatch
):
    """It is named at once; ``--no-merge`` computes without it, and the next run merges."""
    text = job.read_text().replace('["flags"]', '["flags", "millidecade"]\nmerged = ["zarr"]')
    job.write_text(text)
    packages = "spectrod.lib.optional_packages.find_spec"
    monkeypatch.setattr(packages, lambda name: None if name == "zarr" else name)
    assert run(job) == 69
    rule = "zarr is not installed: needs: pip install 'spectrod[zarr]'"
    assert capsys.readouterr().err == f"spectrod: {rule}\n"
    assert not (tmp_path / "results").exists()
    assert run(job, "--no-merge") == 0
    assert main(["batch", "merge", str(job)]) == 69
    monkeypatch.setattr(packages, lambda name: name)
    capsys.readouterr()
    assert run(job) == 0
    found = lines(capsys)
    assert found[0].endswith("computed now: 0")
    assert found[-1] == (
        f"{tmp_path}/results/archive.zarr: units: 3 written, 0 unchanged, 0 not computed"
    )


def test_another_run_that_merges_is_said(job, tmp_path, capsys):
    """The units of this run are computed all the same."""
    job.write_text(job.read_text().replace('["flags"]', '["millidecade"]\nmerged = ["pyramid"]'))
    (tmp_path / "results").mkdir()
    with merging(tmp_path / "results"):
        assert run(job) == 0
    assert lines(capsys)[-1] == f"{tmp_path}/results: another process merges"


def test_what_failed_for_a_package_is_computed_when_it_is_there(job, capsys):
    """A plain run tries units again that were set aside for it, and repeats no stale reason."""
    assert main(["batch", "plan", str(job)]) == 0
    found = read_job(job)
    reason = "h5py is not installed: needs: pip install 'spectrod[netcdf]'"
    for unit in read_plan(Path(found.output) / "plan.jsonl", found).units:
        for _ in range(found.attempts):
            assert failed(found, unit, UnavailableError(reason)).exit_code == 69
    assert main(["batch", "status", str(job)]) == 69
    assert f"failed: {reason}; the next run tries it again" in capsys.readouterr().out
    assert run(job) == 0
    captured = capsys.readouterr()
    assert reason not in captured.out + captured.err
    assert "units: 3 done of 3" in captured.out
    assert "; computed now: 3" in captured.out
