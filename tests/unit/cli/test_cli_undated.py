"""Recordings without a start time, whose times are not taken for UTC."""

import json
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.formats.description import ELAPSED
from spectrod.formats.export.attributes import elapsed_time
from spectrod.formats.export.csv import _elapsed_ns
from spectrod.formats.segment.segment_reader import SegmentReader
from spectrod.recording.inputs import open_recording
from spectrod.source.files.recorded_at import find_start

FS = 8000
FRAMES = ["--win-length", "800", "--hop", "800"]  # one row per 0.1 s
EXPORTS = ["a.csv", "a.nc", "a.h5", "a.npz", "a.zarr"]


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECTROD_ENGINE_ENGINE", "numpy")


def noise(path, seconds=2.0):
    x = np.random.default_rng(4).uniform(-0.5, 0.5, round(seconds * FS))
    soundfile.write(path, x, FS, subtype="PCM_16")


def record(*outputs, source="a.wav", options=()):
    outs = [text for output in outputs for text in ("-o", output)]
    return main(["record", source, *outs, *FRAMES, *options])


def test_data_files_are_marked_and_count_from_zero(capsys):
    """Data files have a warning, an attribute and times from 0, in all formats and after a read."""
    noise("a.wav")
    assert record("a.spd", *EXPORTS) == 0
    error = capsys.readouterr().err
    assert "a.wav has no start time: times count from its beginning (--start-time" in error
    assert error.count("\n") == 1
    for reader in (SegmentReader("a.spd"), *(open_recording(Path(name)) for name in EXPORTS)):
        assert reader.description.attributes["time_reference"] == ELAPSED
        assert not reader.description.has_utc
        times = np.concatenate([batch.t_utc_ns for batch in reader.batches()])
        np.testing.assert_array_equal(times, np.arange(len(times)) * 100_000_000)
        reader.close()


def test_nothing_looks_like_a_date():
    """CSV has elapsed seconds, NetCDF's time has no epoch, and no coverage is claimed."""
    noise("a.wav")
    assert record("a.csv", "a.nc", "a.npy") == 0
    lines = Path("a.csv").read_text().splitlines()
    (names,) = [line for line in lines if line.startswith("elapsed_s,sample_index,")]
    rows = [line for line in lines if not line.startswith("#")][1:]
    assert [row.split(",")[0] for row in rows[:3]] == ["0.000000000", "0.100000000", "0.200000000"]
    assert "time_coverage_start" not in lines[-1]
    assert "time_coverage_duration" in lines[-1]
    assert names
    with h5netcdf.File("a.nc", "r") as file:
        assert file["time"].attrs["units"] == "s"
        assert "standard_name" not in file["time"].attrs
        assert "time_coverage_start" not in file.attrs
        np.testing.assert_allclose(file["time"][:3], [0.0, 0.1, 0.2])
    notes = json.loads(Path("a.npy.json").read_text())
    assert notes["runs"][0]["elapsed_s"] == "0.000000000"
    assert "t_utc" not in notes["runs"][0]


def test_the_same_file_makes_the_same_data():
    """The same file gives the same data: no system clock appears in the rows."""
    noise("a.wav")
    values = []
    for name in ("a.npz", "b.npz"):
        assert record(name) == 0
        with np.load(name) as arrays:
            values.append({key: arrays[key] for key in ("t_utc_ns", "sample_index", "level")})
    for key, first in values[0].items():
        np.testing.assert_array_equal(first, values[1][key])


def test_a_part_has_the_times_of_the_whole():
    """A part made with --start keeps the elapsed times of the whole file."""
    noise("a.wav")
    assert record("a.spd", options=["--start", "0.5"]) == 0
    (batch,) = SegmentReader("a.spd").batches()
    assert batch.t_utc_ns[0] == 500_000_000
    assert main(["convert", "a.spd", "b.csv", "--start", "0.5"]) == 0
    rows = [line for line in Path("b.csv").read_text().splitlines() if line[0] not in "#e"]
    assert rows[0].startswith("1.000000000,")


def test_dated_files_are_as_before(capsys):
    """If the name or --start-time gives the date, times are UTC and nothing is warned of."""
    noise("20260501_043000.wav")
    assert record("a.csv", source="20260501_043000.wav") == 0
    noise("b.wav")
    assert record("b.csv", source="b.wav", options=["--start-time", "2026-05-01T04:30:00Z"]) == 0
    assert capsys.readouterr().err == ""
    for name in ("a.csv", "b.csv"):
        text = Path(name).read_text()
        assert "\n2026-05-01T04:30:00.000000000Z,0," in text
        assert "time_reference" not in text


def test_pictures_alone_need_no_warning(capsys):
    """A picture's axis of elapsed time needs no warning; a UTC axis is refused."""
    noise("a.wav")
    assert main(["record", "a.wav", "-o", "a.png"]) == 0
    assert capsys.readouterr().err == ""
    assert record("a.spd") == 0
    capsys.readouterr()
    for command in (["record", "a.spd", "-o"], ["convert", "a.spd"]):
        assert main([*command, "b.png", "--time-axis", "utc"]) == 2
        assert "--time-axis utc: a.spd has no start time" in capsys.readouterr().err
        assert main([*command, "b.nc", "--profile", "millidecade"]) == 2
        assert (
            "daily files need UTC, and the recording of a has no start" in capsys.readouterr().err
        )
        assert main([*command, "b.png", "--view", "ltsa"]) == 0


@pytest.mark.parametrize("name", ["b.wav", "b.flac"])
def test_sound_files_get_no_date(name):
    """A part of an undated sound file has no date, and a part of a dated one has one."""
    noise("a.wav")
    assert record(name, options=["--start", "0.5", "--subtype", "s16"]) == 0
    with soundfile.SoundFile(name) as file:
        assert find_start(name, FS, file.comment) is None
    options = ["--start-time", "2026-05-01T04:30:00Z", "--start", "0.5", "--subtype", "s16"]
    assert record(f"dated-{name}", options=options) == 0
    with soundfile.SoundFile(f"dated-{name}") as file:
        found = find_start(f"dated-{name}", FS, file.comment)
        assert found.utc_ns == 1_777_609_800_500_000_000


@pytest.mark.parametrize("t_ns", [0, 1, 999_999_999, 1_000_000_000, 12_500_000_000, -1, -(10**9)])
def test_elapsed_times_survive_the_way_there_and_back(t_ns):
    """Elapsed times survive formatting and parsing to the nanosecond."""
    assert _elapsed_ns(elapsed_time(t_ns)) == t_ns


@pytest.mark.parametrize("text", ["1", "1.5", "2026-05-01T04:30:00.000000000Z", "nan", ""])
def test_other_times_are_refused(text):
    """A line with any other form of time is not a row."""
    with pytest.raises(ValueError, match="must be as"):
        _elapsed_ns(text)
