"""Folders of results of ``spectrod batch``: nothing is written or locked through a link in them."""

import sys
from pathlib import Path

import pytest

from spectrod.apps.batch.folders import make_folder
from spectrod.apps.batch.plan import PLAN_FILE, write_plan
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.staging import merging
from spectrod.apps.batch.unit import compute_unit, is_claimed
from spectrod.lib.errors import StorageError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write


@pytest.fixture
def planned(tmp_path):
    """Return a job of one unit, its plan, and a folder of somebody else."""
    write(tmp_path / "card", sound(70 * FS))
    job = job_of(tmp_path, tmp_path / "card", products=("flags",))
    (tmp_path / "elsewhere").mkdir()
    return job, plan_job(job), tmp_path / "elsewhere"


def everything(folder):
    return sorted(path for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "link",
    ["north", "state", "state/parts", "state/parts/north", "state/records", "state/records/north"],
)
def test_a_unit_is_not_computed_into_the_target_of_a_link(planned, link):
    """A link in place of a folder of results is named, and nothing is made behind it."""
    job, plan, elsewhere = planned
    path = Path(job.output) / link
    path.parent.mkdir(parents=True)
    path.symlink_to(elsewhere)
    text = f"{path}: is a link: links in folders of results are not followed"
    record = compute_unit(job, plan.units[0])
    assert (record.state, record.reason) == ("failed", text)
    assert everything(elsewhere) == []


def test_locks_are_not_made_through_links(planned):
    """The file of a unit's lock, and that of a merge, is not made where a link leads."""
    job, plan, elsewhere = planned
    results = Path(job.output)
    unit = plan.units[0]
    parts, merge = (
        make_folder(results, "state", *names) for names in (("parts", "north"), ["merge"])
    )
    (parts / f"{unit.name}.lock").symlink_to(elsewhere / "lock")
    (merge / "lock").symlink_to(elsewhere / "lock")
    record = compute_unit(job, unit)
    assert record.state == "failed"
    assert record.reason.endswith(f"{unit.name}.lock: Too many levels of symbolic links")
    (parts / unit.name).mkdir()
    assert not is_claimed(results, unit)
    with pytest.raises(StorageError, match=r"merge/lock: Too many levels of symbolic links"):
        merging(results).__enter__()
    assert everything(elsewhere) == []


def test_a_plan_replaces_a_link_and_not_its_target(planned):
    """``plan.jsonl`` takes the place of a link of this name."""
    job, plan, elsewhere = planned
    (elsewhere / "precious").write_bytes(b"precious")
    path = make_folder(Path(job.output)) / PLAN_FILE
    path.symlink_to(elsewhere / "precious")
    write_plan(path, plan)
    assert path.is_file()
    assert not path.is_symlink()
    assert (elsewhere / "precious").read_bytes() == b"precious"


def test_the_folder_of_the_results_may_be_a_link(planned):
    """The operator may lay the whole of the results elsewhere by a link of his own."""
    job, plan, elsewhere = planned
    Path(job.output).symlink_to(elsewhere)
    assert compute_unit(job, plan.units[0]).state == "done"
    assert (elsewhere / "north").is_dir()


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    """A file where a folder must be is an error with its path."""
    (tmp_path / "state").touch()
    with pytest.raises(StorageError, match=r"state: Not a directory"):
        make_folder(tmp_path, "state", "merge")
