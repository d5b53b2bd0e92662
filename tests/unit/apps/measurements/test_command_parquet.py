"""Parquet files of measurements: the values, times and metadata of the CSV and NetCDF files."""

import csv
import errno
import json
import os
import sys
from pathlib import Path

import arro3.core
import arro3.io
import h5netcdf
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.formats.export import disk
from spectrod.formats.values import value_parquet
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.value_parquet import ValueParquetWriter
from spectrod.lib.errors import ConfigError

FS = 8000
START = ["--start-time", "2026-03-01T12:00:00.25Z"]
FRAMES = ["--win-length", "256", "--hop", "128"]
COMMANDS = {
    "levels": [*START, "--quantity", "LAeq,LUFS_M", "--bands", "octave", "--interval", "300ms"],
    "features": [*FRAMES, *START, "--quantity", "centroid,NDSI_500-1000Hz_1000-3000Hz"],
    "tones": ["--interval", "500ms", "--win-length", "2048", "--hop", "1024"],
    "transfer": ["--interval", "1s", *FRAMES],
}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (20_001, 2)).astype(np.float32)
    x[9000, 1] = 1.0
    soundfile.write("a.wav", x, FS, subtype="FLOAT")


def read(path="a.parquet"):
    """Return the columns by name, times as int64, and the metadata."""
    table = arro3.io.read_parquet(path).read_all()
    found = {}
    for name in table.column_names:
        cells = table[name].combine_chunks()
        if cells.type == arro3.core.DataType.timestamp("ns", tz="UTC"):
            cells = cells.cast(arro3.core.DataType.int64())
        is_text = cells.type == arro3.core.DataType.string()
        found[name] = [one.as_py() for one in cells] if is_text else cells
    return found, table.schema.metadata_str


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("group_rows", [3, 1000])
def test_all_formats_have_the_same_rows(monkeypatch, command, group_rows):
    """Parquet has columns, values, flags and metadata of the CSV, and the bits of the NetCDF."""
    monkeypatch.setattr(value_parquet, "_GROUP_ROWS", group_rows)
    outputs = [one for suffix in ("csv", "nc", "parquet") for one in ("-o", f"a.{suffix}")]
    assert main([command, "a.wav", *COMMANDS[command], *outputs]) == 0
    found, about = read()
    lines = Path("a.csv").read_text("utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert list(found) == list(rows[0])
    with h5netcdf.File("a.nc") as file:
        t_ns = file["t_utc_ns"][...]
        np.testing.assert_array_equal(found["duration_s"].to_numpy(), file["effort"][...])
        for name, cells in found.items():
            quantity, _, channel = name.partition("@")
            if quantity in file.variables and quantity not in ("time", "duration_s", "flags"):
                stored = file[quantity][...]
                column = stored[:, int(channel)] if channel else stored.reshape(len(stored))
                assert cells.to_numpy().tobytes() == np.ascontiguousarray(column).tobytes()
    for name, cells in found.items():
        texts = [row[name] for row in rows]
        if name == "time":
            assert cells.to_numpy().tolist() == t_ns.tolist()
            assert texts == [f"{np.datetime64(t, 'ns')}Z" for t in t_ns.tolist()]
        elif name.startswith("flags"):
            assert cells == texts
        else:
            np.testing.assert_array_equal(cells.to_numpy(), [float(one) for one in texts])
    notes = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    assert about.keys() == notes.keys()
    for name, text in notes.items():
        value = json.loads(text)
        if name not in ("history", "date_created"):  # the second may change between two files
            assert about[name] == (value if isinstance(value, str) else text)


def test_values_of_bins_are_lists():
    """Values of each bin are a list in each row, whose frequencies are in the metadata."""
    asked = [*FRAMES, "--quantity", "centroid", "--spectra", "kurtosis"]
    assert main(["features", "a.wav", *asked, "-o", "a.nc", "-o", "a.parquet"]) == 0
    found, about = read()
    assert list(found)[-2:] == ["kurtosis@0", "kurtosis@1"]
    assert json.loads(about["units"]) == {"centroid": "Hz", "kurtosis": "1"}
    with h5netcdf.File("a.nc") as file:
        assert json.loads(about["frequency_hz"]) == file["frequency"][...].tolist()
        for channel in (0, 1):
            cells = found[f"kurtosis@{channel}"]
            bins = arro3.core.list_flatten(cells).to_numpy().reshape(len(cells), -1)
            np.testing.assert_array_equal(bins, file["kurtosis"][:, channel])


def test_two_columns_of_one_name_are_refused(tmp_path):
    """Channels of one name are one error, and leave no file."""
    names, unknown = ("mic", "mic"), (None, None)
    about = MeasurementDescription(
        "x", names, (), unknown, 8e3, 1.0, "start", "", has_utc=True, software="spectrod 1.2.3"
    )
    with pytest.raises(ConfigError, match=r"b\.parquet: flags@mic: two columns of a table must"):
        ValueParquetWriter(tmp_path / "b.parquet", about)
    assert [one.name for one in tmp_path.iterdir()] == ["a.wav"]


@pytest.mark.parametrize("failing", ["file", "spool"])
def test_a_full_disk_leaves_no_file(monkeypatch, capsys, failing):
    """A write that fails is one error, leaves nothing, and keeps what had the name before."""
    Path("a.parquet").write_bytes(b"before")

    def fail(*_arguments, **_more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def swallow(file, data):
        file._failure = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return memoryview(data).nbytes

    if failing == "spool":
        monkeypatch.setattr(value_parquet.np, "save", fail)
    else:
        monkeypatch.setattr(disk.Disk, "write", swallow)
    assert main(["levels", "a.wav", "-o", "a.parquet"]) != 0
    assert "a.parquet: No space left on device" in capsys.readouterr().err
    assert sorted(one.name for one in Path().iterdir()) == ["a.parquet", "a.wav"]
    assert Path("a.parquet").read_bytes() == b"before"


def test_a_missing_library_is_named(monkeypatch, capsys):
    """Without the library, one error says what to install, and no file is made."""
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    assert main(["levels", "a.wav", "-o", "a.parquet"]) == 69
    assert "pip install 'spectrod[parquet]'" in capsys.readouterr().err
    assert [one.name for one in Path().iterdir()] == ["a.wav"]
