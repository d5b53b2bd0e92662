"""Local time in tables and files: days of 23 and 25 hours against the standard library."""

import csv
import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import arro3.core
import arro3.io
import netCDF4
import numpy as np
import pytest
import soundfile

from spectrod.cli import main

FS = 64
HOURS = 6
BERLIN = ["--time-zone", "Europe/Berlin"]
LOCAL = [*BERLIN, "--align", "local"]
FRAMES = ["--win-length", "64", "--hop", "64"]
COMMANDS = {
    "levels": ["--quantity", "LZeq"],
    "features": [*FRAMES, "--quantity", "centroid"],
    "tones": [*FRAMES, "--quantity", "level"],
    "transfer": [*FRAMES, "--quantity", "delay"],
}
CHANGES = {  # local times at which the recordings begin, as in names of files
    "20260328T224500+0100.wav": dt.datetime(2026, 3, 28, 21, 45, tzinfo=dt.UTC),
    "20261024T234500+0200.wav": dt.datetime(2026, 10, 24, 21, 45, tzinfo=dt.UTC),
}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(3).uniform(-0.3, 0.3, (HOURS * 3600 * FS, 2)).astype(np.float32)
    for name in CHANGES:
        soundfile.write(name, x, FS, subtype="PCM_16")


def rows_of(path):
    lines = Path(path).read_text("utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def expected(begin, step_min):
    """Return when intervals begin: each minute of the recording whose local time is a multiple."""
    minutes = [begin + dt.timedelta(minutes=k) for k in range(HOURS * 60)]
    local = [one.astimezone(ZoneInfo("Europe/Berlin")) for one in minutes]
    return [
        one for k, one in enumerate(local) if k == 0 or (one.hour * 60 + one.minute) % step_min == 0
    ]


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_intervals_of_local_time(command, name):
    """Quarter hours of all kinds begin at those of the zone; times have its offset."""
    flags = [*LOCAL, "--interval", "15min", "-o", "a.csv"]
    assert main([command, name, *COMMANDS[command], *flags]) == 0
    found = [row["time"] for row in rows_of("a.csv")]
    texts = [f"{one:%Y-%m-%dT%H:%M:%S}" for one in expected(CHANGES[name], 15)]
    assert [one[:19] for one in found] == texts
    assert [one[29:] for one in found] == [
        one.isoformat()[-6:] for one in expected(CHANGES[name], 15)
    ]
    assert {one[19:29] for one in found} == {".000000000"}
    assert len(set(found)) == 24 == len(found)  # 6 h, whatever the clocks say


@pytest.mark.parametrize("name", CHANGES)
def test_all_formats_have_the_same_local_times(name):
    """NetCDF keeps UTC and gives the offset; Parquet has the zone in its type."""
    outputs = [one for suffix in ("csv", "nc", "parquet") for one in ("-o", f"a.{suffix}")]
    command = ["features", name, *COMMANDS["features"], "--interval", "1h", *LOCAL, *outputs]
    assert main(command) == 0
    times = [dt.datetime.fromisoformat(row["time"]) for row in rows_of("a.csv")]
    texts = [one.isoformat() for one in expected(CHANGES[name], 60)]
    assert [one.isoformat() for one in times] == texts
    seconds = [round(one.timestamp()) for one in times]
    with netCDF4.Dataset("a.nc") as data:
        assert data.time_zone == "Europe/Berlin"
        np.testing.assert_array_equal(data["time"][:], seconds)
        offsets = [one.utcoffset().total_seconds() for one in times]
        np.testing.assert_array_equal(data["utc_offset"][:], offsets)
        assert data["utc_offset"].units == "s"
    column = arro3.io.read_parquet("a.parquet").read_all()["time"].combine_chunks()
    assert column.type == arro3.core.DataType.timestamp("ns", tz="Europe/Berlin")
    found = column.cast(arro3.core.DataType.int64()).to_numpy()
    assert found.tolist() == [one * 10**9 for one in seconds]


def test_the_table_names_the_zone(capsys):
    """The head of the column of times is the zone, and each time has its offset."""
    command = ["levels", "20261024T234500+0200.wav", "--quantity", "LZeq", "--interval", "1h"]
    assert main([*command, *LOCAL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["Europe/Berlin", "length"]
    assert [line.split()[0] for line in lines[6:12:2]] == [  # a line for each of two channels
        "2026-10-25T01:00:00.00+02:00",
        "2026-10-25T02:00:00.00+02:00",
        "2026-10-25T02:00:00.00+01:00",
    ]
    assert lines[1].index(" length") == len(lines[2].split()[0])


def test_the_zone_of_the_machine_is_written_by_its_name(monkeypatch):
    """``local`` is resolved, so that files mean the same elsewhere."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    flags = ["--time-zone", "local", "--interval", "2h", "-o", "a.csv"]
    assert main(["features", "20261024T234500+0200.wav", *COMMANDS["features"], *flags]) == 0
    assert '# time_zone: "Asia/Kathmandu"' in Path("a.csv").read_text("utf-8").splitlines()
    assert [row["time"] for row in rows_of("a.csv")] == [
        "2026-10-25T03:30:00.000000000+05:45",
        "2026-10-25T03:45:00.000000000+05:45",
        "2026-10-25T05:45:00.000000000+05:45",
        "2026-10-25T07:45:00.000000000+05:45",
    ]


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (["--align", "local"], "time_zone: align='local' needs the time zone of its local times"),
        ([*LOCAL, "--interval", "7min"], "interval_s=420: align='local' needs an interval of"),
        ([*LOCAL, "--interval", "2d"], "interval_s=172800: align='local' needs an interval of"),
        (["--time-zone", "Mars"], "time_zone='Mars': there is no such time zone on this machine"),
        (["--align", "noon"], "invalid choice: 'noon' (choose from "),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_zones_and_intervals(command, flags, rule, capsys):
    """Each wrong setting is one error, the same of all kinds, and leaves no file."""
    flags = ["--interval", "1h", *flags, "-o", "b.csv"]
    assert main([command, next(iter(CHANGES)), *COMMANDS[command], *flags]) == 2
    error = capsys.readouterr().err
    assert rule in error
    assert error.count("\n") == 1
    assert not Path("b.csv").exists()


def test_a_zone_needs_a_date(capsys):
    """Times that count from the beginning have no zone."""
    Path(next(iter(CHANGES))).rename("a.wav")
    assert main(["levels", "a.wav", *BERLIN]) == 2
    rule = "--time-zone Europe/Berlin: a.wav has no start time; give --start-time"
    assert rule in capsys.readouterr().err
