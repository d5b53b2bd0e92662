"""Events and quality flags of units as Parquet: the rows of their CSV and daily files."""

import csv
import io
import sys
from pathlib import Path

import arro3.core
import arro3.io
import h5netcdf
import msgspec
import numpy as np
import pytest

from spectrod.apps.batch.folder_output import FolderOutput
from spectrod.apps.batch.job_file import read_job
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.report import make_report
from spectrod.apps.batch.results import UnitFindings, read_record, write_record
from spectrod.apps.batch.run import status_of
from spectrod.apps.batch.unit import compute_unit
from spectrod.apps.batch.verify import recomputed_problems
from spectrod.lib.errors import ConfigError

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))

from small_archives import BEGIN, FS, job_of, sound, write

MINUTE_NS = 60 * 10**9
BEGIN_NS = int(BEGIN.timestamp()) * 10**9
DETECT = """
[job]
name = "test"
output = "results"
products = ["detect"]
engine = "numpy"
[analysis]
win_length = 256
hop = 128
[detect]
f_min_hz = 100
f_max_hz = 200
floor_s = 5
time_zone = "Asia/Tokyo"
[deployments.north]
inputs = ["card"]
"""


def read(path):
    """Return the cells of each column, times as ns, and the metadata."""
    table = arro3.io.read_parquet(path).read_all()
    found = {}
    for name in table.column_names:
        is_time = arro3.core.DataType.is_timestamp(table.field(name).type)
        column = table[name].cast(arro3.core.DataType.int64()) if is_time else table[name]
        found[name] = column.to_pylist()
    return found, table.schema.metadata_str


def computed(job):
    """Compute the only unit; return it and its record."""
    (unit,) = plan_job(job).units
    record = compute_unit(job, unit)
    assert record.state == "done", record.reason
    return unit, record


def reported(job):
    plan = plan_job(job)
    (found,) = make_report(job, plan, [status_of(job, unit) for unit in plan.units])[0].deployments
    return found


# ---- events


def calls(begins):
    """Return 12 s of noise with tones of half a second."""
    x = sound(12 * FS, 5).astype(np.float64) / 30
    for begin in begins:
        x[begin : begin + FS // 2, 0] += 8000 * np.sin(2 * np.pi * 0.15 * np.arange(FS // 2))
    return x.astype(np.int16)


def detecting(tmp_path, table_format="parquet", layout="folders"):
    path = tmp_path / "JOB.toml"
    path.write_text(DETECT.replace("[detect]", f'[detect]\nformat = "{table_format}"'))
    return msgspec.structs.replace(read_job(path), layout=layout)


def test_events_are_those_of_the_csv(tmp_path):
    """Each row has the cells of the CSV file, with times in UTC whatever zone that has."""
    write(tmp_path / "card", calls([2 * FS, 4 * FS, 8 * FS]))
    computed(detecting(tmp_path, "csv"))
    text = (tmp_path / "results/north/north_20260501_events.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    job = detecting(tmp_path)
    unit, record = computed(job)
    (output,) = record.outputs
    assert output.path == "north/north_20260501_events.parquet"
    assert [one.name for one in (tmp_path / "results/north").iterdir()] == [
        "north_20260501_events.parquet"
    ]
    found, _ = read(tmp_path / "results" / output.path)
    assert len(rows) == len(found["file"]) == record.findings.events == 3
    for name in ("begin", "end"):
        times = [np.datetime64(one[name].removesuffix("+09:00"), "ns") for one in rows]
        ahead_ns = 9 * 3600 * 10**9
        assert found[f"{name}_utc"] == [int(one.astype(int)) - ahead_ns for one in times]
    for name in found.keys() - {"begin_utc", "end_utc"}:
        texts = ["" if one is None else str(one) for one in found[name]]
        assert texts == [one[name] for one in rows], name
    assert status_of(job, unit).state == "done"
    assert list(recomputed_problems(job, unit, record)) == []
    assert [day.events for day in reported(job).days] == [3]


def test_a_unit_without_events_has_columns_alone(tmp_path):
    """So a query over all days finds the same table in each; partitions have them, too."""
    write(tmp_path / "card", calls([]))
    _, record = computed(detecting(tmp_path, layout="partitioned"))
    (output,) = record.outputs
    assert output.path == ("events/deployment=north/date=2026-05-01/north_20260501_events.parquet")
    found, _ = read(tmp_path / "results" / output.path)
    assert found["level"] == []
    assert list(found)[:3] == ["begin_utc", "end_utc", "file"]


# ---- flags


def flagging(tmp_path, **settings):
    settings = {"products": ("flags",), "flags_format": "parquet"} | settings
    return job_of(tmp_path, tmp_path / "card", **settings)


def test_flags_are_those_of_daily_files(tmp_path):
    """Of each minute with sound and each channel the worst of its bands, with the reason."""
    x = sound(300 * FS, channels=2) // 4
    x[70 * FS : 70 * FS + 5, 1] = -32768
    x[130 * FS : 175 * FS, 0] += 8000
    x[185 * FS : 200 * FS] = 0
    write(tmp_path / "card", x)
    write(tmp_path / "card", sound(60 * FS, channels=2), 330)
    job = flagging(tmp_path, products=("millidecade", "flags"), channel_names=("left", "right"))
    unit, record = computed(job)
    found, about = read(tmp_path / "results/north/north_20260501_flags.parquet")
    begins = [BEGIN_NS + k * MINUTE_NS for k in range(7)]
    assert found["begin_utc"] == [one for one in begins for _ in range(2)]
    assert found["end_utc"] == [one + MINUTE_NS for one in found["begin_utc"]]
    assert found["channel"] == ["left", "right"] * 7
    for k, name in enumerate(("left", "right")):
        with h5netcdf.File(tmp_path / f"results/north/north_{name}_20260501.nc") as file:
            has_sound = file["effort"][...] > 0
            worst = file["quality_flag"][...][has_sound].max(axis=1)
        assert found["quality_flag"][k::2] == worst.tolist()
    assert found["reason"][1::2] == ["", "clipping", "", "silent", "", "gap", ""]
    assert found["reason"][4] == "dc"
    assert found["clipped_samples"] == [5 if k == 3 else 0 for k in range(14)]
    assert found["effort_s"][-4:] == [30.0, 30.0, 30.0, 30.0]
    assert found["gaps"] == [0] * 10 + [1, 1, 0, 0]
    assert (about["title"], about["flag_values"]) == ("Quality flags of north", "1, 2, 3, 4")
    assert status_of(job, unit).state == "done"
    assert list(recomputed_problems(job, unit, record)) == []


def test_a_calibration_that_is_not_valid_is_a_reason(tmp_path):
    """Minutes beyond its dates are questionable, as in daily files."""
    write(tmp_path / "card", sound(60 * FS))
    calibration = tmp_path / "mic.toml"
    calibration.write_text(
        'reference = "1 uPa"\nfull_scale_db = 170\nfull_scale = "rms"\nvalid_until = 2026-04-30\n'
    )
    computed(flagging(tmp_path, calibration=str(calibration)))
    found, _ = read(tmp_path / "results/north/north_20260501_flags.parquet")
    assert (found["quality_flag"], found["reason"]) == ([3], ["calibration"])


def test_the_report_has_the_flags_of_either_format(tmp_path):
    """Minutes with each flag, and clipped samples, are those of the CSV file."""
    x = sound(300 * FS, channels=2)
    x[70 * FS : 70 * FS + 5, 1] = -32768
    x[185 * FS : 200 * FS] = 0
    write(tmp_path / "card", x)
    reports = []
    for table_format in ("csv", "parquet"):
        job = flagging(tmp_path, flags_format=table_format)
        computed(job)
        reports.append(reported(job))
    by_csv, by_parquet = reports
    assert by_csv.flagged_minutes
    assert by_parquet.flagged_minutes == by_csv.flagged_minutes
    assert by_parquet.clipped_samples == by_csv.clipped_samples == 5


@pytest.mark.parametrize(
    "findings",
    [
        {"events": -1},
        {"clipped_samples": 1 << 60},
        {"flagged_minutes": {"x" * 201: 1}},
        {"flagged_minutes": {str(k): 1 for k in range(257)}},
    ],
)
def test_findings_of_others_are_bounded(tmp_path, findings):
    """A record with more than a unit can have counts as none."""
    write(tmp_path / "card", sound(60 * FS))
    unit, record = computed(flagging(tmp_path))
    output = FolderOutput(tmp_path / "results")
    assert read_record(output, unit) == record
    changed = msgspec.structs.replace(record, findings=UnitFindings(**findings))
    write_record(output, unit, changed)
    assert read_record(output, unit) is None


def test_jobs_without_the_setting_stand(tmp_path):
    """Another format is another result; the default one is that of jobs before there was any."""
    write(tmp_path / "card", sound(60 * FS))
    jobs = [flagging(tmp_path, flags_format=one) for one in ("csv", "parquet")]
    (unit,) = plan_job(jobs[0]).units
    assert len({unit.digest(job) for job in jobs}) == 2
    assert "flags_format" not in jobs[0].parameters("north")
    without = [msgspec.structs.replace(job, products=("levels",)) for job in jobs]
    assert len({unit.digest(job) for job in without}) == 1


@pytest.mark.parametrize("section", ["detect", "flags"])
def test_other_formats_are_refused(tmp_path, section):
    """Neither has a NetCDF file."""
    path = tmp_path / "JOB.toml"
    text = DETECT.replace("[detect]", "[detect]\n") + "[flags]\n"
    path.write_text(text.replace(f"[{section}]\n", f'[{section}]\nformat = "nc"\n'))
    with pytest.raises(ConfigError, match=rf"{section}\.format='nc': must be one of .*parquet"):
        read_job(path)
