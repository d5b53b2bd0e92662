"""Tables of a job in partitions: their folders, and what stands in them."""

import re
import sys
from pathlib import Path

import msgspec
import pytest

from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.merge import collect
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.results import OutputFile, read_record, write_record
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import compute_unit
from spectrod.apps.batch.verify import recomputed_problems
from spectrod.lib.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, job_of, sound, write

LEVELS = "levels/deployment=north/date=2026-05-01/north_20260501_levels.parquet"
TABLES = {"products": ("levels", "flags"), "levels_format": "parquet", "layout": "partitioned"}


def files(folder):
    """Return the content of the files of results, but for their state."""
    found = {str(one.relative_to(folder)): one for one in folder.rglob("*") if one.is_file()}
    names = sorted(name for name in found if not name.startswith("state"))
    return {name: found[name].read_bytes() for name in names}


def computed(job):
    """Compute all units; return their records."""
    found = [compute_unit(job, unit) for unit in plan_job(job).units]
    assert {one.state for one in found} == {"done"}, found
    return found


def test_parquet_is_in_folders_of_deployment_and_date(tmp_path):
    """Other files stay with the deployment; each table has the bytes that it has there."""
    for day in (0, 1):
        write(tmp_path / "card", sound(70 * FS, day), 86400 * day)
    job = job_of(tmp_path, tmp_path / "card", **TABLES)
    computed(job)
    found = files(tmp_path / "results")
    assert list(found) == [
        *(LEVELS, LEVELS.replace("05-01", "05-02").replace("0501", "0502")),
        *("north/north_20260501_flags.csv", "north/north_20260502_flags.csv"),
    ]
    beside = msgspec.structs.replace(job, layout="folders", output=str(tmp_path / "beside"))
    computed(beside)
    assert files(tmp_path / "beside") == {
        f"north/{name.rpartition('/')[2]}": content for name, content in found.items()
    }


def test_hours_of_a_day_are_parts_of_one_partition(tmp_path):
    """Each has a name of its own."""
    write(tmp_path / "card", sound(700 * FS))
    computed(job_of(tmp_path, tmp_path / "card", unit="hour", **TABLES))
    names = [name for name in files(tmp_path / "results") if name.startswith("levels/")]
    assert names == [
        "levels/deployment=north/date=2026-05-01/north_20260501T23_levels.parquet",
        "levels/deployment=north/date=2026-05-02/north_20260502T00_levels.parquet",
    ]


def test_results_stand_until_the_layout_changes(tmp_path):
    """A table is in one layout at a time; one that is lost is computed again, to the bit."""
    write(tmp_path / "card", sound(70 * FS))
    job = job_of(tmp_path, tmp_path / "card", **TABLES)
    (unit,) = plan_job(job).units
    (record,) = computed(job)
    found = files(tmp_path / "results")
    assert compute_unit(job, unit) == record
    assert list(recomputed_problems(job, unit, record)) == []
    (tmp_path / "results" / LEVELS).unlink()
    assert status_of(job, unit).reason == "a file of it is missing or has changed"
    computed(job)
    assert files(tmp_path / "results") == found
    beside = msgspec.structs.replace(job, layout="folders")
    assert status_of(beside, unit).state == "waiting"
    computed(beside)
    assert [*files(tmp_path / "results")] == [
        f"north/north_20260501_{name}" for name in ("flags.csv", "levels.parquet")
    ]
    computed(job)
    assert files(tmp_path / "results") == found


def test_shards_are_collected_into_partitions(tmp_path):
    """Their files have the same places."""
    write(tmp_path / "card", sound(70 * FS))
    job = job_of(tmp_path, tmp_path / "card", **TABLES)
    computed(msgspec.structs.replace(job, output=str(tmp_path / "shard")))
    assert collect(job, plan_job(job), [str(tmp_path / "shard")]) == 1
    assert files(tmp_path / "results").items() >= files(tmp_path / "shard").items()


@pytest.mark.parametrize(
    ("product", "path"),
    [
        ("levels", LEVELS.replace("=north", "=south")),
        ("levels", LEVELS.replace("date=2026-05-01", "date=2026-05-02")),
        ("levels", LEVELS.replace("levels/", "features/")),
        ("levels", LEVELS.replace(".parquet", ".csv")),
        ("levels", LEVELS.replace("date=2026-05-01/", "date=2026-05-01/x/")),
        ("levels", f"{LEVELS}\n"),
        ("features", LEVELS),
        ("millidecade", LEVELS.replace("_levels.parquet", ".nc")),
    ],
)
def test_a_record_names_files_of_its_own_partition_alone(tmp_path, product, path):
    """Another one counts as none, so no file of another unit is removed because of it."""
    write(tmp_path / "card", sound(70 * FS))
    job = job_of(tmp_path, tmp_path / "card", **TABLES)
    (unit,) = plan_job(job).units
    (record,) = computed(job)
    output = FolderOutput(tmp_path / "results")
    assert read_record(output, unit) == record
    other = (OutputFile(product=product, path=path, size=1, sha256=""),)
    write_record(output, unit, msgspec.structs.replace(record, outputs=other))
    assert read_record(output, unit) is None


NEEDS_TABLE = "JOB.toml:6:1: job.layout='partitioned': needs a table of its products with format ="
TAKEN = "deployments.events: job.layout='partitioned' has a folder of this name: take another one"


@pytest.mark.parametrize(
    ("product", "layout", "table_format", "name", "rule"),
    [
        ("levels", "partitioned", "csv", "north", NEEDS_TABLE),
        ("flags", "partitioned", "parquet", "north", NEEDS_TABLE),
        ("levels", "partitioned", "parquet", "events", TAKEN),
        ("levels", "hive", "parquet", "north", "job.layout='hive': must be one of"),
    ],
)
def test_mistakes_of_the_layout_have_their_place(
    tmp_path, product, layout, table_format, name, rule
):
    """They are found before any file is read."""
    path = tmp_path / "JOB.toml"
    path.write_text(
        f"""[job]
name = "test"
output = "results"

products = ["{product}"]
layout = "{layout}"
[levels]
format = "{table_format}"
[deployments.{name}]
inputs = ["card"]
"""
    )
    with pytest.raises(ConfigError, match=re.escape(rule)):
        read_job(path)
