"""The products of a unit that are tables: those of the commands, in each format."""

import sys
from pathlib import Path

import msgspec
import pytest

from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import compute_unit
from spectrod.cli import main
from spectrod.lib.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import FS, sound, write

JOB = """
[job]
name = "test"
output = "results"
products = ["features", "levels"]
engine = "numpy"
[levels]
format = "{0}"
[features]
quantities = ["centroid", "ACI"]
win_length = 256
format = "{0}"
{1}
[deployments.north]
inputs = ["card"]
"""


def job_of(tmp_path, text="", table_format="csv"):
    path = tmp_path / "JOB.toml"
    path.write_text(JOB.format(table_format, text))
    return read_job(path)


def rows(path):
    """Return the header and the rows of a CSV file."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_features_are_those_of_the_command(tmp_path):
    """Of two files with a gap, row by row, odd lengths and parts of minutes included."""
    card = tmp_path / "card"
    write(card, sound(100 * FS + 7), 600)
    write(card, sound(61 * FS), 760)
    job = job_of(tmp_path)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert record.state == "done", record.reason
    found = rows(tmp_path / "results/north/north_20260502_features.csv")
    assert found[0] == "time,duration_s,flags,centroid,ACI_5s"
    options = ["--interval", "60", "--quantity", "centroid,ACI", "--win-length", "256"]
    out = tmp_path / "command.csv"
    assert main(["features", str(card), *options, "-o", str(out)]) == 0
    assert found == rows(out)
    assert [line[:16] for line in found[1:]] == [f"2026-05-02T00:0{k}" for k in range(4)]


@pytest.mark.parametrize("table_format", ["csv", "nc", "parquet"])
def test_results_in_each_format_stand(tmp_path, table_format):
    """A record that names them is believed, and another table makes them due again."""
    write(tmp_path / "card", sound(70 * FS), 600)
    job = job_of(tmp_path, table_format=table_format)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert [(one.product, one.path) for one in record.outputs] == [
        (product, f"north/north_20260502_{product}.{table_format}")
        for product in ("levels", "features")
    ]
    assert status_of(job, unit).state == "done"
    other = msgspec.structs.replace(job.features, window="hamming")
    assert status_of(msgspec.structs.replace(job, features=other), unit).state == "waiting"
    without = msgspec.structs.replace(job, products=("levels",))
    digests = [
        unit.digest(msgspec.structs.replace(without, features=one)) for one in (job.features, other)
    ]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("interval_s = 0", "features: interval_s=0"),
        ('align = "local"\ntime_zone = "Mars"', "features: .*Mars"),
        ("hop = -1", "features.hop=-1: must be"),
        ("sources = []", "features.sources: unknown key"),
    ],
)
def test_mistakes_of_features_have_their_place(tmp_path, text, rule):
    """They are found before any file is read."""
    with pytest.raises(ConfigError, match=rule) as caught:
        job_of(tmp_path, text)
    assert "JOB.toml:" in str(caught.value)


def test_a_rate_that_has_no_such_index_fails_its_unit(tmp_path):
    """The reason names the index and the rule; nothing is left behind."""
    write(tmp_path / "card", sound(70 * FS), 600)
    job = job_of(tmp_path)
    features = msgspec.structs.replace(job.features, quantities=("NDSI",))
    job = msgspec.structs.replace(job, features=features)
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert (record.state, record.exit_code) == ("failed", 2)
    assert "NDSI" in record.reason
    assert not list((tmp_path / "results/north").iterdir())
