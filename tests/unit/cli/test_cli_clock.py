"""Times on the command line: the clock below pictures, and local times beside --time-zone."""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.formats.picture.pixelmap import read_pixel_map

FS = 8000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    x = 0.1 * np.random.default_rng(1).standard_normal(4 * FS)
    for name in ("20260501_043000.wav", "undated.wav"):
        soundfile.write(name, x, FS)


def drawn(*arguments):
    """Draw a picture; return its options."""
    assert main(["record", *arguments, "-o", "a.png"]) == 0
    return read_pixel_map(Path("a.png")).options


def test_pictures_have_the_time_that_the_recording_has():
    """UTC is the default where it is known; elapsed times are a choice that --like repeats."""
    assert drawn("20260501_043000.wav")["time_axis"] == "utc"
    assert "time_axis" not in drawn("undated.wav")
    Path("a.png").rename("old.png")
    assert "time_axis" not in drawn("20260501_043000.wav", "--like", "old.png")
    assert "time_axis" not in drawn("20260501_043000.wav", "--time-axis", "elapsed")
    assert drawn("20260501_043000.wav", "--time-zone", "Asia/Tokyo")["time_zone"] == "Asia/Tokyo"
    Path("a.png").rename("utc.png")
    assert drawn("20260501_043000.wav", "--like", "utc.png")["time_zone"] == "Asia/Tokyo"


def test_a_picture_of_utc_is_repeated_for_a_recording_without_a_time():
    """The axis of the old picture is no demand for a time."""
    drawn("20260501_043000.wav")
    Path("a.png").rename("old.png")
    assert "time_axis" not in drawn("undated.wav", "--like", "old.png")


@pytest.mark.parametrize(
    "start",
    ["2026-05-01T06:30:02", "T06:30:02", "2026-05-01T04:30:02Z", "2026-05-01T05:30:02+01:00", "2"],
)
def test_levels_begin_at_a_local_time(start):
    """Beside --time-zone, a time without a zone is one of that zone."""
    zone = ["--time-zone", "Europe/Berlin", "--interval", "1s", "-o", "l.csv"]
    assert main(["levels", "20260501_043000.wav", *zone, "--start", start]) == 0
    lines = Path("l.csv").read_text("utf-8").splitlines()
    first = next(csv.DictReader(line for line in lines if line[0] != "#"))
    assert first["time"].startswith("2026-05-01T06:30:02")


def test_a_start_time_is_local():
    """--start-time without a zone is a local time beside --time-zone as well."""
    zone = ["--time-zone", "Europe/Berlin", "--start-time", "2026-05-01T06:30", "-o", "l.csv"]
    assert main(["levels", "undated.wav", *zone]) == 0
    assert "2026-05-01T06:30:00.000000000+02:00" in Path("l.csv").read_text("utf-8")
