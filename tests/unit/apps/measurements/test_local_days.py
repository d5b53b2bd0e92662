"""Lden of the command line: interval, bounds and time zone that are not given."""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.cli import main

FS = 1000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, seconds, seed=1):
    x = 0.1 * np.random.default_rng(seed).standard_normal(seconds * FS)
    x[: seconds * FS // 3] *= 0.1
    soundfile.write(name, x, FS, subtype="FLOAT")


def levels(capsys, *arguments):
    """Run the command; return its rows and what it says."""
    assert main(["levels", *arguments, "-o", "l.csv"]) == 0
    lines = Path("l.csv").read_text("utf-8").splitlines()
    return list(csv.DictReader(one for one in lines if one[0] != "#")), capsys.readouterr().err


DAYS = ["--quantity", "Lden,Lnight,LAeq"]


def test_one_option_gives_the_days_of_the_files(capsys):
    """A name with +0200 gives local days: those of three options, from midnight on, and a line."""
    write("20260501_234500+0200.wav", 1800)
    rows, said = levels(capsys, "20260501_234500+0200.wav", *DAYS)
    assert said.count("\n") == 2
    assert "are those of UTC+2, which the files name; --time-zone, as Europe/Berlin" in said
    zone = ["--interval", "1d", "--align", "local", "--time-zone", "Europe/Berlin"]
    expected, said = levels(capsys, "20260501_234500+0200.wav", *DAYS, *zone)
    assert rows == expected
    assert said.count("\n") == 1
    assert "Lden: nan in 2 of 2 intervals: nothing was recorded in a part of the day" in said
    assert [float(row["duration_s"]) for row in rows] == [900, 900]


def test_a_zone_and_an_interval_that_are_given_count(capsys):
    """--time-zone goes before the files' offset, and --interval before a day."""
    write("20260501_234500+0200.wav", 1800)
    rows, said = levels(capsys, "20260501_234500+0200.wav", *DAYS, "--time-zone", "UTC")
    assert [float(row["duration_s"]) for row in rows] == [1800]
    assert "Lden, Lnight: nan in 1, 1 of 1 intervals" in said
    write("20260501_224500+0200.wav", 1800)
    given = ["--quantity", "Lnight", "--interval", "15min"]
    rows, _ = levels(capsys, "20260501_224500+0200.wav", *given)
    assert [float(row["duration_s"]) for row in rows] == [900] * 2
    assert rows[0]["Lnight"] == "nan"  # before 23 h it is evening
    assert rows[1]["Lnight"] != "nan"


def test_the_zone_of_the_files_counts(capsys):
    """Local times of names are in the zone of --files-zone, and so are the days."""
    write("20260501_234500.wav", 1800)
    zone = ["--files-zone", "Europe/Berlin"]
    rows, said = levels(capsys, "20260501_234500.wav", *DAYS, *zone)
    assert [float(row["duration_s"]) for row in rows] == [900, 900]
    assert "UTC" not in said


def test_files_of_a_folder_with_one_offset(capsys):
    """All files of a folder must have one offset: after a change of the clock a name is needed."""
    Path("night").mkdir()
    write("night/20261024_230000+0200.wav", 60)
    write("night/20261024_230100+0200.wav", 60)
    rows, said = levels(capsys, "night", *DAYS)
    assert len(rows) == 1
    assert "UTC+2" in said
    write("night/20261025_040000+0100.wav", 60)
    assert main(["levels", "night", *DAYS]) == 2
    assert "--quantity Lden: needs the time zone of day" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["20260501_220000.wav", "20260501_220000Z.wav", "20260501_220000+0530.wav"]
)
def test_a_zone_that_is_missing_is_asked_for(name, capsys):
    """Without a zone, of UTC, and of an offset with minutes, one error names the option."""
    write(name, 60)
    assert main(["levels", name, *DAYS, "-o", "l.csv"]) == 2
    error = capsys.readouterr().err
    rule = "needs the time zone of day, evening and night; give --time-zone, as Europe/Berlin"
    assert error == f"spectrod: --quantity Lden: {rule}\n"
    assert not Path("l.csv").exists()


def test_days_of_a_file_without_a_time(capsys):
    """A file whose time is not known has no local days."""
    write("a.wav", 60)
    assert main(["levels", "a.wav", *DAYS]) == 2
    error = capsys.readouterr().err
    assert error == "spectrod: --quantity Lden: a.wav has no start time; give --start-time\n"


def write_hours(folder, n_hours):
    """Write 5 s at each whole hour of UTC, from 2026-10-24T22:00Z on: midnight in Berlin."""
    Path(folder).mkdir()
    for hour in range(22, 22 + n_hours):
        write(f"{folder}/202610{24 + hour // 24}_{hour % 24:02}0000Z.wav", 5, seed=hour)


HOURS = ["--interval", "1h", "--quantity", "LAeq,Lden,Lday", "--time-zone", "Europe/Berlin"]


def test_hours_and_days_come_from_one_run(capsys):
    """Lden beside hours gives each local day a row, of 25 hours here, as a run of days does."""
    write_hours("site", 30)
    rows, said = levels(capsys, "site", *HOURS, "-o", "l.svg")
    assert "Lden, Lday: nan in 1, 1 of 2 days: nothing was recorded" in said
    assert [k for k, row in enumerate(rows) if row["Lden"] != "nan"] == [25]
    days, hours = [rows[25], rows[31]], [*rows[:25], *rows[26:31]]
    assert [row["time"][:19] for row in days] == ["2026-10-25T00:00:00", "2026-10-26T00:00:00"]
    assert [float(row["duration_s"]) for row in days] == [125.0, 25.0]
    assert {(row["Lden"], row["Lday"]) for row in hours} == {("nan", "nan")}
    assert Path("l.svg").stat().st_size > 10_000
    expected, _ = levels(capsys, "site", *HOURS[2:])
    for name in ("LAeq", "Lden", "Lday"):
        found = [[float(row[name]) for row in one] for one in (days, expected)]
        np.testing.assert_allclose(*found, rtol=0, atol=1e-9)
    alone, _ = levels(capsys, "site", *HOURS[:3], "LAeq", *HOURS[4:], "--align", "local")
    assert [row["LAeq"] for row in hours] == [row["LAeq"] for row in alone]


def test_what_is_said_of_hours_and_days(capsys):
    """The line of a file counts both; processes write the same rows."""
    write_hours("site", 30)
    assert main(["levels", "site", *HOURS, "-o", "l.csv"]) == 0
    assert capsys.readouterr().out.startswith("# l.csv: 30 intervals and 2 days\n")
    assert main(["levels", "site", *HOURS, "-o", "m.csv", "--jobs", "2"]) == 0
    rows = [
        [line for line in Path(name).read_text("utf-8").splitlines() if line[0] != "#"]
        for name in ("l.csv", "m.csv")
    ]
    assert rows[0] == rows[1]


def test_hours_and_days_that_cannot_be_written(capsys):
    """Files whose times ascend, and intervals that do not divide a day, are errors."""
    write_hours("site", 2)
    assert main(["levels", "site", *HOURS, "-o", "l.nc"]) == 2
    rule = "l.nc: times ascend in it, so it has no days beside their intervals; write .csv"
    assert rule in capsys.readouterr().err
    assert not Path("l.nc").exists()
    assert main(["levels", "site", "--interval", "7s", *HOURS[2:]]) == 2
    assert "interval_s=7: align='local' needs an interval of whole sec" in capsys.readouterr().err
    assert main(["levels", "site", *HOURS, "--align", "utc"]) == 2
    assert "align='utc': days beside intervals need align='local'" in capsys.readouterr().err
