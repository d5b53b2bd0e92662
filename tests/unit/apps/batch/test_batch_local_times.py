"""Local times in names, where a change of the clock repeats or leaves out an hour."""

import datetime as dt
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.apps.batch.job import Deployment
from spectrod.apps.batch.planner import plan_job
from spectrod.apps.batch.scan import scan
from spectrod.source.files.local_times import from_zone

sys.path.insert(0, str(Path(__file__).parents[3] / "archives"))
from small_archives import job_of

FS = 100
NS = 10**9
AUTUMN = dt.datetime(2026, 10, 25, tzinfo=dt.UTC)  # 02:00 to 03:00 comes twice, from 00:00Z on
SPRING = dt.datetime(2026, 3, 29, tzinfo=dt.UTC)


@pytest.fixture
def put(tmp_path):
    """Make a function that writes noise of some minutes, named by a local time of a date."""
    rng = np.random.default_rng(9)
    (tmp_path / "card").mkdir()

    def write(clock, minutes=10.0, suffix="", date="20261025", mtime_s=None, folder="card"):
        path = tmp_path / folder / f"{date}_{clock}{suffix}.wav"
        path.parent.mkdir(exist_ok=True)
        n = round(minutes * 60 * FS)
        soundfile.write(path, rng.integers(-9000, 9000, n, np.int16), FS, subtype="PCM_16")
        if mtime_s is not None:
            os.utime(path, (mtime_s, mtime_s))

    write.folder = tmp_path
    return write


def starts(put, base=AUTUMN, time_zone="Europe/Berlin"):
    """Return the minutes from the base at which each file begins, in UTC, and the findings."""
    one = Deployment(name="a", inputs=(str(put.folder),), time_zone=time_zone)
    files, findings = scan(one)
    base_ns = int(base.timestamp()) * NS
    found = {
        os.path.relpath(file.path, put.folder): (file.recorded.utc_ns - base_ns) / 60 / NS
        for file in files
    }
    assert list(found.values()) == sorted(found.values())
    return {name.removeprefix("card/"): minutes for name, minutes in found.items()}, findings


def night(put, *, second_suffix, duty=1.0):
    """Write files of ten minutes from 01:00 to 04:00 local time, the repeated hour twice."""
    for hour in (1, 2, 2.5, 3):
        suffix = second_suffix if hour == 2.5 else ""
        for minute in range(0, 60, 10):
            put(f"{int(hour):02d}{minute:02d}00", 10 * duty, suffix)


@pytest.mark.parametrize("duty", [1.0, 0.9])
def test_both_passes_of_the_repeated_hour_are_kept(put, duty):
    """All files of the night are on the time line, without overlap or refusal, and reported."""
    night(put, second_suffix="_1", duty=duty)
    found, (finding,) = starts(put)
    assert len(found) == 24
    assert list(found.values()) == [10.0 * k - 60 for k in range(24)]
    assert found["20261025_023000.wav"] == 30
    assert found["20261025_023000_1.wav"] == 90
    assert finding.kind == "clock"
    assert "come twice, on 2026-10-25, as do 11 other files: 6 taken for the first time, 6" in (
        finding.text
    )
    plan = plan_job(job_of(put.folder, put.folder / "card", time_zone="Europe/Berlin"))
    assert [unit.refused for unit in plan.units] == ["", ""]
    assert sum(unit.n_samples for unit in plan.units) == 24 * round(600 * duty) * FS
    assert {one.kind for one in plan.findings} <= {"clock", "gap"}
    assert sum(one.kind == "clock" for one in plan.findings) == 1


def test_files_continue_the_ones_before(put):
    """Of two files seconds apart, the first is the one that follows the file before it."""
    put("015003")
    for minute in range(0, 60, 10):
        put(f"02{minute:02d}00")
        put(f"02{minute:02d}03")
    put("030000")
    found, _ = starts(put)
    assert found["20261025_020003.wav"] == pytest.approx(0.05)
    assert found["20261025_020000.wav"] == 60
    assert found["20261025_025000.wav"] == 110


def test_times_of_change_tell_the_order(put):
    """Where names overlap, the file that was written an hour earlier is of the first pass."""
    base_s = AUTUMN.timestamp()
    put("020000", 60, "_a", mtime_s=base_s + 7200)
    put("020000", 60, "_b", mtime_s=base_s + 3600)
    found, _ = starts(put)
    assert found == {"20261025_020000_b.wav": 0, "20261025_020000_a.wav": 60}


def test_times_of_change_of_a_copy_tell_nothing(put):
    """Times of change that are not an hour apart leave the order of names."""
    put("020000", 60, "_a", mtime_s=AUTUMN.timestamp() + 90_000)
    put("020000", 60, "_b", mtime_s=AUTUMN.timestamp())
    found, _ = starts(put)
    assert found == {"20261025_020000_a.wav": 0, "20261025_020000_b.wav": 60}


def test_folders_of_each_pass(put):
    """Files of one name in two folders are the two passes."""
    put("020000", 60, folder="card1")
    put("020000", 60, folder="card2")
    found, _ = starts(put)
    assert found == {"card1/20261025_020000.wav": 0, "card2/20261025_020000.wav": 60}


def test_a_copy_is_no_second_pass(put):
    """A copy of a file of the repeated hour counts as a copy, once."""
    put("020000", 60)
    copy = put.folder / "copies"
    copy.mkdir()
    (copy / "20261025_020000.wav").write_bytes(
        (put.folder / "card" / "20261025_020000.wav").read_bytes()
    )
    found, _ = starts(put)
    assert set(found.values()) == {0}
    plan = plan_job(job_of(put.folder, put.folder, time_zone="Europe/Berlin"))
    assert [unit.n_samples for unit in plan.units] == [3600 * FS]
    assert {one.kind for one in plan.findings} == {"clock", "duplicate"}


def test_a_file_over_the_change_has_the_second_pass_behind_it(put):
    """What would overlap a long file before it is of the second pass."""
    put("010000", 120)  # from 23:00Z to 01:00Z
    put("020000", 60)
    put("030000", 60)
    found, _ = starts(put)
    assert list(found.values()) == [-60, 60, 120]


@pytest.mark.parametrize(
    ("clocks", "expected"),
    [
        (("0150", "0200", "0210", "0300"), [-10, 0, 10, 120]),  # stopped in the hour
        (("0150", "0240", "0250", "0300"), [-10, 100, 110, 120]),  # began again in the hour
        (("0240", "0250", "0300"), [100, 110, 120]),  # the first files of all
        (("0150", "0200"), [-10, 0]),  # the last
        (("0200", "0210"), [0, 10]),  # alone
        (("0150", "0200", "0210", "0240", "0250", "0300"), [-10, 0, 10, 100, 110, 120]),
        (
            ("0150", "0200", "0210", "0220", "0230", "0240", "0250", "0300"),
            [-10, 0, 10, 20, 30, 40, 50, 120],
        ),
    ],
)
def test_an_hour_recorded_once_joins_its_neighbours(put, clocks, expected):
    """Without overlap files belong to the pass that makes the fewest breaks, else to the first."""
    for clock in clocks:
        put(f"{clock}00")
    found, findings = starts(put)
    assert list(found.values()) == expected
    assert [one.kind for one in findings] == ["clock"]


def test_two_changes_are_told_apart_each(put):
    """The repeated hours of two years have a finding each."""
    for date in ("20251026", "20261025"):
        for suffix in ("", "_1"):
            put("020000", 60, suffix, date=date)
    found, findings = starts(put)
    assert list(found.values())[2:] == [0, 60]
    assert [one.kind for one in findings] == ["clock", "clock"]


def test_half_an_hour_that_comes_twice(put):
    """On Lord Howe Island half an hour comes twice, and both passes are kept."""
    for clock, suffix in (("0130", ""), ("0130", "_1"), ("0200", "")):
        put(f"{clock}00", 30, suffix, date="20260405")
    found, _ = starts(put, dt.datetime(2026, 4, 4, 14, 30, tzinfo=dt.UTC), "Australia/Lord_Howe")
    assert list(found.values()) == [0, 30, 60]


def test_an_hour_that_is_left_out_is_reported(put):
    """A local time that does not exist is taken by the offset before the change, and reported."""
    put("013000", 30, date="20260329")
    put("020000", 30, date="20260329")
    found, (finding,) = starts(put, SPRING)
    assert list(found.values()) == [30, 60]
    assert finding.kind == "clock"
    assert "begins at a local time that Europe/Berlin leaves out" in finding.text


def test_times_with_a_zone_come_once(put):
    """A file that names its zone is not moved."""
    put("020000", 60, "Z")
    put("030000", 60, "Z")
    found, findings = starts(put)
    assert list(found.values()) == [120, 180]
    assert findings == []


@pytest.mark.parametrize(
    ("zone", "clock", "minutes"),
    [
        ("Europe/Berlin", "2026-10-25T02:30:00", 60),
        ("Europe/Berlin", "2026-10-25T03:00:00", 0),
        ("Europe/Berlin", "2026-03-29T02:30:00", -60),
        ("Australia/Lord_Howe", "2026-04-05T01:45:00", 30),
        ("Asia/Kathmandu", "2026-10-25T02:30:00", 0),
    ],
)
def test_local_times_that_come_twice(zone, clock, minutes):
    """A local time says after what time it comes again, or that it does not exist."""
    local_ns = int(dt.datetime.fromisoformat(clock + "Z").timestamp()) * NS
    assert from_zone(local_ns, zone).repeat_ns == minutes * 60 * NS
