"""``spectrod features``: table, CSV, NetCDF, and wrong arguments."""

import csv
import json
import re

import netCDF4
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.measure.features.feature_meter import feature_meter

FS = 8000
NAMES = ("centroid", "flux_sd", "NDSI_500-1000Hz_1000-4000Hz")


@pytest.fixture
def sound(tmp_path):
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (2, 2 * FS + FS // 2)).astype(np.float32)
    path = tmp_path / "a.wav"
    soundfile.write(path, x.T, FS, subtype="FLOAT")
    return path, x


def expected(x):
    spec = SpectrumSpec(FS, 2, win_length=512, hop=128)
    meter = feature_meter(spec, NAMES, interval_s=1.0, band_hz=(100.0, 3000.0))
    return meter.push(x) + meter.finish()


def arguments(path, *more):
    frames = ["--win-length", "512", "--hop", "128", "--band", "100", "3k"]
    return ["features", str(path), *frames, "--quantity", ",".join(NAMES), *map(str, more)]


def test_files_have_the_values_of_the_library(sound, tmp_path):
    """CSV and NetCDF have the same bits as the meter, with units, frames and flags."""
    path, x = sound
    table, cube = tmp_path / "a.csv", tmp_path / "a.nc"
    assert main(arguments(path, "-o", table, "-o", cube)) == 0
    rows = expected(x)
    lines = table.read_text("utf-8").splitlines()
    notes = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    assert json.loads(notes["title"]).startswith("Spectral features of ")
    assert json.loads(notes["units"]) == dict(zip(NAMES, ("Hz", "1", "1"), strict=True))
    assert (notes["win_length"], notes["high_hz"]) == ("512", "3000.0")
    assert "level_unit" not in notes
    found = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [line["flags@0"] for line in found] == ["", "", "partial"]
    with netCDF4.Dataset(cube) as data:
        for k, name in enumerate(NAMES):
            variable = data[name.replace("-", "_")]
            assert variable.long_name.startswith(name)
            values = [row.values[k] for row in rows]
            np.testing.assert_array_equal(variable[:], values)
            columns = [[float(line[f"{name}@{channel}"]) for channel in "01"] for line in found]
            np.testing.assert_array_equal(columns, values)


def test_netcdf_has_the_kurtosis_of_each_bin(sound, tmp_path, capsys):
    """With --spectra a NetCDF file has a value for each bin; CSV refuses, and leaves no file."""
    path, x = sound
    cube, table = tmp_path / "a.nc", tmp_path / "a.csv"
    assert main(arguments(path, "--spectra", "kurtosis", "-o", cube)) == 0
    spec = SpectrumSpec(FS, 2, win_length=512, hop=128)
    meter = feature_meter(
        spec, NAMES, interval_s=1.0, band_hz=(100.0, 3000.0), spectra=("kurtosis",)
    )
    rows = meter.push(x) + meter.finish()
    with netCDF4.Dataset(cube) as data:
        assert data["kurtosis"].dimensions == ("time", "channel", "frequency")
        f = spec.bin_frequencies
        np.testing.assert_array_equal(data["frequency"][:], f[(f >= 100.0) & (f <= 3000.0)])
        for k, row in enumerate(rows):
            np.testing.assert_array_equal(data["kurtosis"][k], np.stack(row.tables)[:, 0])
    assert main(arguments(path, "--spectra", "kurtosis", "-o", table)) == 2
    rule = "kurtosis has a value for each bin: must be .nc, .h5 or .parquet"
    assert rule in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir() if one.suffix != ".wav"] == ["a.nc"]


def test_the_table_has_a_line_for_each_interval_and_channel(sound, capsys):
    """Without an output the values go to standard output, with their full names."""
    path, x = sound
    assert main(arguments(path, "--duration", "1")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("; spectral features")
    assert lines[1].split() == ["time", "[s]", "length", "[s]", "channel", *NAMES, "flags"]
    centroid = expected(x)[0].values[0, 0]
    assert lines[2].split()[:4] == ["0.000", "1", "0", f"{centroid:.2f}"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        (["--interval", "0.05"], "interval_s=0.05: must be at least a frame, win_length=512"),
        (["--quantity", "centre"], "feature='centre': must be a feature such as"),
        (["--quantity", "NDSI"], "band of 2000 to 8000 Hz: must be ascending and within"),
        (["--band", "100", "5k"], "high_hz=5000: must be at most 4000 Hz"),
        (["--align", "utc"], "--align utc: .* has no start time; give --start-time"),
        (["-o", "a.jpg"], "suffix must be one of .csv, .nc, .h5, .parquet, .png"),
        (["--spectra", "SPD"], "spectra='SPD': must be one of kurtosis"),
        (["--window", "hat"], "window='hat': must be one of"),
    ],
)
def test_wrong_arguments(sound, capsys, more, rule):
    """Each wrong argument is one line of error and exit code 2."""
    assert main(arguments(sound[0], *more)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(rule, error)
