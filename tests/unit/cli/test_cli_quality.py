"""Quality flags of daily files that record and convert write: those of batch."""

import sys
from pathlib import Path

import h5netcdf
import numpy as np
import pytest

from spectrod.cli import main

sys.path.insert(0, str(Path(__file__).parents[2] / "archives"))

from small_archives import FS, sound, write


def flags_of(path):
    """Return (minutes, bands) flags of the minutes with data."""
    with h5netcdf.File(path, "r") as file:
        return file["quality_flag"][...][file["effort"][...] > 0]


def ran(*arguments):
    assert main([*map(str, arguments), "--log-level", "warning"]) == 0


@pytest.fixture
def faulty(tmp_path):
    """Return five minutes, of which one clips and one has silence for 15 s."""
    x = sound(300 * FS)
    x[70 * FS : 70 * FS + 5] = -32768
    x[185 * FS : 200 * FS] = 0
    return write(tmp_path / "card", x)


def test_record_flags_the_faults_that_batch_finds(tmp_path, faulty):
    """Flags are those of ``test_batch_quality``; a segment beside the day carries them on."""
    day, rows = tmp_path / "day.nc", tmp_path / "rows.spd"
    ran("record", faulty, "--profile", "millidecade", "-o", day, "-o", rows)
    flags = flags_of(tmp_path / "day_20260501.nc")
    assert flags.min(axis=1).tolist() == flags.max(axis=1).tolist() == [1, 3, 1, 4, 1]
    ran("convert", rows, tmp_path / "again.nc", "--profile", "millidecade")
    np.testing.assert_array_equal(flags_of(tmp_path / "again_20260501.nc"), flags)


def test_samples_without_checks_are_not_evaluated_but_their_gaps_are(tmp_path):
    """A segment without a profile has no conditions; a loss between its rows is questionable."""
    write(tmp_path / "card", sound(90 * FS), 0)
    write(tmp_path / "card", sound(130 * FS), 140)
    rows = tmp_path / "rows.spd"
    analysis = ("--win-length", FS, "--hop", FS // 2, "--scaling", "density", "--engine", "numpy")
    ran("record", tmp_path / "card", *analysis, "-o", rows)
    ran("convert", rows, tmp_path / "day.nc", "--profile", "millidecade")
    assert flags_of(tmp_path / "day_20260501.nc")[:, 0].tolist() == [2, 3, 3, 2, 2]


def test_pauses_of_a_schedule_are_no_bad_data_of_record_either(tmp_path):
    """Of recordings of 40 s each minute one is missing, and one lacks 5 s within it."""
    for minute in (0, 1, 2, 4, 5, 6, 7):
        write(tmp_path / "card", sound((20 if minute == 6 else 40) * FS, minute), 60 * minute)
    write(tmp_path / "card", sound(15 * FS), 60 * 6 + 25)
    ran("record", tmp_path / "card", "--profile", "millidecade", "-o", tmp_path / "day.nc")
    assert flags_of(tmp_path / "day_20260501.nc")[:, 0].tolist() == [1, 1, 1, 1, 1, 3, 1]


def test_files_of_record_have_the_site_of_the_source(tmp_path, monkeypatch):
    """A daily file of a configured place is a time series of CF; --attribute has the last word."""
    path = write(tmp_path / "card", sound(60 * FS))
    settings = tmp_path / "spectrod.toml"
    settings.write_text("[source]\nlatitude = 54.5\nlongitude = 8.25\nplatform = 'mooring'\n")
    monkeypatch.setenv("SPECTROD_CONFIG", str(settings))
    ran("record", path, "--profile", "millidecade", "-o", tmp_path / "day.nc",
        "--attribute", "platform=ship")  # fmt: skip
    with h5netcdf.File(tmp_path / "day_20260501.nc", "r") as file:
        assert float(file["latitude"][()]) == file.attrs["geospatial_lat_max"] == 54.5
        assert (file.attrs["featureType"], file.attrs["platform"]) == ("timeSeries", "ship")


DATED = """reference = "1 uPa"
full_scale_db = 170
full_scale = "rms"
valid_from = 2026-05-01T23:52:00Z
valid_until = 2026-05-31
"""


def warned(capsys, text):
    """Return the lines of the log with a text."""
    return [line for line in capsys.readouterr().err.splitlines() if text in line]


def test_samples_beyond_a_calibration_are_a_warning_and_questionable(tmp_path, capsys):
    """One line says dates and samples; the flags of these minutes are 3, in segments too."""
    path = write(tmp_path / "card", sound(240 * FS))
    calibration = tmp_path / "mic.toml"
    calibration.write_text(DATED)
    rows = tmp_path / "rows.spd"
    ran("record", path, "--calibration", calibration, "--profile", "millidecade",
        "-o", tmp_path / "day.nc", "-o", rows)  # fmt: skip
    (line,) = warned(capsys, "is valid")
    assert "valid from 2026-05-01T23:52:00Z until 2026-06-01T00:00:00Z, and samples are" in line
    assert flags_of(tmp_path / "day_20260501.nc")[:, 9].tolist() == [3, 3, 1, 1]
    ran("convert", rows, tmp_path / "again.nc", "--profile", "millidecade")
    assert flags_of(tmp_path / "again_20260501.nc")[:, 9].tolist() == [3, 3, 1, 1]


@pytest.mark.parametrize("command", ["levels", "record"])
def test_samples_without_a_time_are_said_to_be_so(tmp_path, capsys, command):
    """Without a start time nobody knows whether a calibration holds."""
    path = write(tmp_path / "card", sound(4 * FS)).rename(tmp_path / "x.wav")
    calibration = tmp_path / "mic.toml"
    calibration.write_text(DATED)
    more = ("-o", tmp_path / "x.spd") if command == "record" else ("-o", tmp_path / "x.csv")
    assert main([command, str(path), "--calibration", str(calibration), *map(str, more)]) == 0
    (line,) = warned(capsys, "its calibration")
    assert line.endswith("until 2026-06-01T00:00:00Z, holds")


def test_levels_beyond_a_calibration_have_its_dates(tmp_path, capsys, monkeypatch):
    """A table of levels has both dates and the site of the source, and the log the line."""
    settings = tmp_path / "spectrod.toml"
    settings.write_text("[source]\nlatitude = 54.5\nlongitude = 8.25\n")
    monkeypatch.setenv("SPECTROD_CONFIG", str(settings))
    path = write(tmp_path / "card", sound(4 * FS))
    calibration = tmp_path / "mic.toml"
    calibration.write_text(DATED)
    table = tmp_path / "x.nc"
    ran("levels", path, "--interval", "1", "--calibration", calibration, "-o", table)
    assert len(warned(capsys, "is valid")) == 1
    with h5netcdf.File(table, "r") as file:
        assert file.attrs["calibration_valid_from"] == "2026-05-01T23:52:00Z"
        assert file.attrs["calibration_valid_until"] == "2026-06-01T00:00:00Z"
        assert file.attrs["geospatial_lat_min"] == 54.5
