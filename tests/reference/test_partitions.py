"""Partitions of ``spectrod batch``, queried by DuckDB and polars as docs/archives.md says."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "archives"))

from small_archives import FS, sound, write

from spectrod.cli import main

duckdb = pytest.importorskip("duckdb", reason="is of the group reference")
polars = pytest.importorskip("polars", reason="is of the group reference")

ARCHIVES = Path(__file__).parents[2] / "docs" / "archives.md"
JOB = """
[job]
name = "test"
output = "results"
products = ["levels", "flags"]
layout = "partitioned"
engine = "numpy"
[levels]
quantities = ["LAeq", "LAFmax"]
format = "parquet"
[flags]
format = "parquet"
[deployments.pier]
inputs = ["pier"]
[deployments.reef]
inputs = ["reef"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Compute two days of one place, of which one is silent, and one of another."""
    made = tmp_path_factory.mktemp("archive")
    for day in (0, 1):
        write(made / "pier", sound(130 * FS, day) * np.int16(1 - day), 86400 * day)
    write(made / "reef", sound(70 * FS, 3), 86400)
    job = made / "JOB.toml"
    job.write_text(JOB)
    assert main(["batch", "run", str(job), "--jobs", "1"]) == 0
    return made


@pytest.fixture(autouse=True)
def _beside_results(folder, monkeypatch):
    monkeypatch.chdir(folder)


def query(begin):
    """Return the answer to a query of the page."""
    (line,) = re.findall(rf"^{re.escape(begin)}.*;", ARCHIVES.read_text("utf-8"), re.MULTILINE)
    return duckdb.sql(line)


def test_the_query_of_levels():
    """A line of the page reads the partitions, with deployment and date as columns."""
    found = query("SELECT deployment, date, ")
    assert [str(one) for one in found.types[:2]] == ["VARCHAR", "DATE"]
    rows = {(place, str(date)): level for place, date, level in found.fetchall()}
    assert sorted(rows) == [
        *(("pier", "2026-05-01"), ("pier", "2026-05-02"), ("reef", "2026-05-02")),
    ]
    for (place, date), level in rows.items():
        (path,) = Path(f"results/levels/deployment={place}/date={date}").iterdir()
        assert level == polars.read_parquet(path, hive_partitioning=False)["LAFmax"].max()


def test_the_query_of_flags():
    """Minutes that are not good have their reason."""
    assert query("SELECT reason, ").fetchall() == [("silent", 3)]


def test_polars_scans_the_folder():
    """A folder is one table, of which a query reads the partitions that it asks for."""
    frame = polars.scan_parquet("results/levels", hive_partitioning=True)
    found = frame.filter(polars.col("deployment") == "pier").collect()
    assert found["deployment"].unique().to_list() == ["pier"]
    assert (found.height, {"time", "LAeq", "LAFmax", "date"} <= {*found.columns}) == (6, True)
