"""Partitions of ``spectrod batch``, queried by DuckDB and polars as docs/archives.md says."""

import re
import sys
from pathlib import Path

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
products = ["levels"]
layout = "partitioned"
engine = "numpy"
[levels]
quantities = ["LAeq", "LAFmax"]
format = "parquet"
[deployments.pier]
inputs = ["pier"]
[deployments.reef]
inputs = ["reef"]
"""


@pytest.fixture(autouse=True)
def _results(tmp_path, monkeypatch):
    """Compute two days of one place, and one of another."""
    monkeypatch.chdir(tmp_path)
    for day in (0, 1):
        write(tmp_path / "pier", sound(130 * FS, day), 86400 * day)
    write(tmp_path / "reef", sound(70 * FS, 3), 86400)
    Path("JOB.toml").write_text(JOB)
    assert main(["batch", "run", "JOB.toml", "--jobs", "1"]) == 0


def test_the_line_of_the_page():
    """The page's query reads the partitions, with deployment and date as columns."""
    (line,) = re.findall(
        r"^SELECT deployment, date, .*;", ARCHIVES.read_text("utf-8"), re.MULTILINE
    )
    found = duckdb.sql(line)
    assert [str(one) for one in found.types[:2]] == ["VARCHAR", "DATE"]
    rows = {(place, str(date)): level for place, date, level in found.fetchall()}
    assert sorted(rows) == [
        *(("pier", "2026-05-01"), ("pier", "2026-05-02"), ("reef", "2026-05-02")),
    ]
    for (place, date), level in rows.items():
        (path,) = Path(f"results/levels/deployment={place}/date={date}").iterdir()
        assert level == polars.read_parquet(path, hive_partitioning=False)["LAFmax"].max()


def test_polars_scans_the_folder():
    """A folder is one table, of which a query reads the partitions that it asks for."""
    frame = polars.scan_parquet("results/levels", hive_partitioning=True)
    found = frame.filter(polars.col("deployment") == "pier").collect()
    assert found["deployment"].unique().to_list() == ["pier"]
    assert (found.height, {"time", "LAeq", "LAFmax", "date"} <= {*found.columns}) == (6, True)
