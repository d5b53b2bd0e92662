"""Parquet files of measurements: the values, times and metadata of the CSV and NetCDF files."""

import csv
import errno
import json
import os
import re
import sys
from dataclasses import replace
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
from spectrod.formats.values.by_date_writer import ByDateWriter
from spectrod.formats.values.measurement_description import MeasurementDescription
from spectrod.formats.values.value_parquet import ValueParquetWriter
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.levels import LevelMeter

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


# ---- a file for each date

MIDNIGHT = ["--start-time", "2026-03-01T23:59:58.9Z"]
DATES = ["2026-03-01", "2026-03-02"]
HUT = Path("levels/deployment=hut")
DAYS = ["--interval", "1h", "--quantity", "LAeq,Lden", "--time-zone", "Europe/Berlin"]
OUTPUT = ["-o", f"{HUT}/a.parquet", "--by-date"]


def of_dates(name="a.parquet"):
    """Return the files of dates, and nothing else that lies in their folders."""
    found = sorted(str(one.relative_to(HUT)) for one in HUT.rglob("*") if one.is_file())
    assert all(one.endswith(f"/{name}") for one in found)
    return [one.removeprefix("date=").removesuffix(f"/{name}") for one in found]


@pytest.mark.parametrize("command", COMMANDS)
def test_files_of_dates_have_the_rows_of_one_file(command, capsys):
    """With the same columns and metadata, cut at midnight of UTC, whatever the time zone."""
    options = [one for one in COMMANDS[command] if one not in START]
    options += [*MIDNIGHT, "--time-zone", "Asia/Tokyo"]
    assert main([command, "a.wav", *options, *OUTPUT, "-o", "whole.csv"]) == 0
    assert f"# {HUT}/date=*/a.parquet: " in capsys.readouterr().out
    assert main([command, "a.wav", *options, "-o", "whole.parquet"]) == 0
    assert of_dates() == DATES
    due = arro3.io.read_parquet("whole.parquet").read_all()
    tables = [arro3.io.read_parquet(HUT / f"date={one}/a.parquet").read_all() for one in DATES]
    assert [[(one.name, one.type) for one in table.schema] for table in tables] == [
        [(one.name, one.type) for one in due.schema]
    ] * 2
    for table in tables:
        about = {name for name, text in table.schema.metadata_str.items()
                 if text != due.schema.metadata_str[name]}  # fmt: skip
        assert about <= {"history", "date_created"}  # a second may lie between two files
    for name in due.column_names:
        cells = [one.as_py() for table in tables for one in table[name]]
        np.testing.assert_equal(cells, [one.as_py() for one in due[name]])
    for date, table in zip(DATES, tables, strict=True):
        times = table["time"].cast(arro3.core.DataType.timestamp("ns", tz="UTC"))
        assert {f"{one.as_py():%Y-%m-%d}" for one in times} == {date}


def test_duckdb_reads_files_of_dates_as_one_table():
    """With the deployment and the date as columns."""
    duckdb = pytest.importorskip("duckdb")
    assert main(["levels", "a.wav", *MIDNIGHT, *OUTPUT, "--interval", "500ms"]) == 0
    found = duckdb.sql(
        "SELECT deployment, date::VARCHAR, count(*) FROM 'levels/**/*.parquet' GROUP BY ALL "
        "ORDER BY ALL"
    ).fetchall()
    assert found == [("hut", DATES[0], 3), ("hut", DATES[1], 3)]


def test_a_file_of_a_date_replaces_that_of_its_name(monkeypatch, capsys):
    """A run again has the same files; what fails leaves those of earlier dates, and no part."""
    for date in DATES:
        (HUT / f"date={date}").mkdir(parents=True)
        (HUT / f"date={date}/a.parquet").write_bytes(b"before")
    finish = ValueParquetWriter._close

    def fail(writer):
        if DATES[1] in str(writer.path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finish(writer)

    with monkeypatch.context() as patched:
        patched.setattr(ValueParquetWriter, "_close", fail)
        assert main(["levels", "a.wav", *MIDNIGHT, *OUTPUT]) != 0
    assert "date=2026-03-02/a.parquet: No space left on device" in capsys.readouterr().err
    assert of_dates() == DATES
    assert (HUT / f"date={DATES[1]}/a.parquet").read_bytes() == b"before"
    found, _ = read(HUT / f"date={DATES[0]}/a.parquet")
    assert main(["levels", "a.wav", *MIDNIGHT, *OUTPUT]) == 0
    assert of_dates() == DATES
    again, _ = read(HUT / f"date={DATES[0]}/a.parquet")
    assert again["LAeq@0"].to_pylist() == found["LAeq@0"].to_pylist()
    assert read(HUT / f"date={DATES[1]}/a.parquet")[0]["LAeq@0"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["levels", "a.wav", "--by-date"], r"--by-date: must be with -o NAME\.parquet"),
        (["levels", "a.wav", "--by-date", "-o", "a.csv"], "--by-date: must be with -o NAME"),
        (["tones", "a.wav", "--by-date", "-o", "a.csv"], "--by-date: must be with --interval"),
        (["transfer", "a.wav", "--by-date", "-o", "a.csv"], "--by-date: must be with --interval"),
        (["levels", "a.wav", *OUTPUT], "--by-date: .*a.parquet: the date of the samples is unkn"),
        (
            ["levels", "a.wav", *START, *OUTPUT, *DAYS],
            "--by-date: .*a.parquet: times ascend, so it has no days beside their intervals",
        ),
    ],
)
def test_dates_need_files_of_rows_with_dates(arguments, error, capsys):
    """One error, and no file."""
    assert main(arguments) != 0
    assert re.search(error, capsys.readouterr().err)
    assert [one for one in Path().rglob("*") if one.is_file()] == [Path("a.wav")]


def test_times_of_dates_ascend():
    """A clock that goes back over midnight ends the file of the later date."""
    rows, meter = [], LevelMeter(FS, channels=2, interval_s=1.0, utc_ns=1_772_323_200 * 10**9)
    rows = [*meter.push(np.full((2, 2 * FS), 0.1)), *meter.finish()]
    about = MeasurementDescription(
        "x", ("0", "1"), tuple(meter.quantities), (None, None), float(FS), 1.0, "start", "",
        has_utc=True, software="spectrod 1.2.3",
    )  # fmt: skip
    HUT.mkdir(parents=True)
    writer = ByDateWriter(HUT / "a.parquet", about)
    with pytest.raises(InputError, match=r"date=\*/a\.parquet: nothing to write: no samples"):
        writer.finish()
    writer.write(rows[0])
    early = replace(rows[1], begin_utc_ns=rows[0].begin_utc_ns - 1)
    with pytest.raises(InputError, match="2026-02-28 after 2026-03-01: times must ascend"):
        writer.write(early)
    writer.abort()
    assert of_dates() == []
    with pytest.raises(ConfigError, match=r"--by-date: a\.csv: must end in \.parquet"):
        ByDateWriter(Path("a.csv"), about)
