"""The command ``levels``: table, CSV, NetCDF, calibration, and wrong arguments."""

import contextlib
import csv
import json
import math
import os
import signal
import threading
import time
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import soundfile

from spectrod.cli import main
from spectrod.measure.levels import LevelMeter

FS = 8000
START = ["--start-time", "2026-03-01T12:00:00.25Z"]
MICROPHONE = """
reference = "20 uPa"
sensitivity = "50 mV/Pa"
gain_db = 20.0
full_scale_v = 2.0
serial = "M1"
"""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (20_001, 2)).astype(np.float32)
    x[9000, 1] = 1.0
    soundfile.write("a.wav", x, FS, subtype="FLOAT")
    soundfile.write("mono.wav", x[:, 0], FS, subtype="FLOAT")


def samples(name="a.wav"):
    return soundfile.read(name, dtype="float32", always_2d=True)[0].T


def read_csv(path):
    """Return the metadata and the rows of a CSV file."""
    lines = Path(path).read_text("utf-8").splitlines()
    about = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {name: json.loads(text) for name, text in about.items()}, rows


def test_csv_has_the_values_of_the_library(capsys):
    """A CSV file has a row an interval with exactly the values, times and flags of LevelMeter."""
    names = ["LAeq", "LAFmax", "true_peak", "LUFS_M"]
    arguments = ["levels", "a.wav", "-o", "a.csv", "--quantity", ",".join(names), *START]
    assert main(arguments) == 0
    about, rows = read_csv("a.csv")
    meter = LevelMeter(FS, 2, quantities=names, align="utc", utc_ns=1_772_366_400_250_000_000)
    expected = meter.push(samples()) + meter.finish()
    assert [row["time"] for row in rows] == [
        "2026-03-01T12:00:00.250000000Z",
        "2026-03-01T12:00:01.000000000Z",
        "2026-03-01T12:00:02.000000000Z",
    ]
    for row, one in zip(rows, expected, strict=True):
        assert float(row["duration_s"]) == one.duration_s
        for k, name in enumerate(names[:3]):
            assert [float(row[f"{name}@{c}"]) for c in (0, 1)] == one.values[k].tolist()
        assert float(row["LUFS_M"]) == one.values[3, 0] or math.isnan(one.values[3, 0])
    flags = [(row["flags@0"], row["flags@1"]) for row in rows]
    assert flags == [
        ("settling|partial", "settling|partial"),
        ("", "overload"),
        ("partial", "partial"),
    ]
    assert about["units"] == {
        "LAeq": "dBFS",
        "LAFmax": "dBFS",
        "true_peak": "dBTP",
        "LUFS_M": "LUFS",
    }
    assert about["calibration"] == "none: of digital full scale"
    assert about["align"] == "utc"
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "# a.csv: 3 intervals of 2 channels"
    assert "levels in dBFS" in said
    assert main(["levels", "mono.wav", "-o", "b.csv", "-o", "b.nc", "--interval", "10s"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["# b.csv: 1 interval", "# b.nc: 1 interval"]


def test_netcdf_has_the_values_of_csv():
    """NetCDF and CSV have the same rows; loudness has one value for all channels."""
    quantities = "LAeq,LCpeak,LUFS_M,dc"
    both = ["-o", "a.csv", "-o", "a.nc"]
    assert main(["levels", "a.wav", *both, "--quantity", quantities, "--interval", "200ms"]) == 0
    about, rows = read_csv("a.csv")
    with h5netcdf.File("a.nc") as file:
        for name in ("LAeq", "LCpeak", "dc"):
            written = [[float(row[f"{name}@{c}"]) for c in (0, 1)] for row in rows]
            np.testing.assert_array_equal(file[name][...], written)
            assert file[name].dimensions == ("time", "channel")
        np.testing.assert_array_equal(file["LUFS_M"][...], [float(row["LUFS_M"]) for row in rows])
        assert file["time"].attrs["units"] == "s"  # the file has no date
        np.testing.assert_allclose(file["time"][...], [float(row["elapsed_s"]) for row in rows])
        assert file["flags"].attrs["flag_meanings"] == "overload under_range settling gap partial"
        assert file["flags"][5, 1] & 1
        assert file.attrs["interval_s"] == about["interval_s"] == 0.2
        assert file["LUFS_M"].attrs["spectrod_unit"] == "LUFS"


def test_bands_in_files(capsys):
    """CSV has a column and NetCDF an axis for the bands, with exactly the values of LevelMeter."""
    bands = ["--bands", "octave", "--band-quantity", "LZeq,LZFmax", "--band-range", "250", "2k"]
    assert main(["levels", "a.wav", "-o", "a.csv", "-o", "a.nc", *bands]) == 0
    meter = LevelMeter(
        FS, 2, bands="octave", band_quantities=["LZeq", "LZFmax"], band_range_hz=(250, 2000)
    )
    expected = meter.push(samples()) + meter.finish()
    about, rows = read_csv("a.csv")
    names = ["250 Hz", "500 Hz", "1 kHz", "2 kHz"]
    assert list(about["bands_lower_centre_upper_hz"]) == names
    np.testing.assert_allclose(
        about["bands_lower_centre_upper_hz"]["1 kHz"], [708, 1000, 1413], 1e-3
    )
    assert about["units"]["LZFmax"] == "dBFS"
    with h5netcdf.File("a.nc") as file:
        assert [name.decode() for name in file["band_name"][...]] == names
        assert file["LZFmax_bands"].dimensions == ("time", "band", "channel")
        np.testing.assert_allclose(file["band_centre_hz"][2], 1000.0)
        for k, name in enumerate(("LZeq", "LZFmax")):
            values = np.array([row.band_values[k] for row in expected])
            np.testing.assert_array_equal(file[f"{name}_bands"][...], values)
            for band, label in enumerate(names):
                for c in (0, 1):
                    column = f"{name}_{label.replace(' ', '')}@{c}"
                    np.testing.assert_array_equal(
                        [float(row[column]) for row in rows], values[:, band, c]
                    )
    assert "1 kHz" in capsys.readouterr().out


def test_table_of_bands(capsys):
    """Below the table, each band has a line with its levels of all intervals together."""
    assert main(["levels", "mono.wav", "--bands", "third-octave", "--band-range", "1k", "2k"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = lines.index("# all intervals, in bands; levels in dBFS")
    assert lines[begin + 1].split() == ["band", "LZeq"]
    found = [line.split() for line in lines[begin + 2 :]]
    assert [" ".join(one[:2]) for one in found] == ["1 kHz", "1.25 kHz", "1.6 kHz", "2 kHz"]
    meter = LevelMeter(FS, bands="third-octave", band_range_hz=(1000, 2000))
    meter.push(samples("mono.wav"))
    meter.finish()
    expected = meter.summary().band_values[0, :, 0]
    np.testing.assert_allclose([float(one[2]) for one in found], expected, atol=0.0051)


def test_table(capsys):
    """The table has a line for each interval and channel, and one for all of them."""
    assert main(["levels", "a.wav", "--quantity", "LZeq,crest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("levels in dBFS")
    assert lines[1].split() == ["time", "[s]", "length", "[s]", "channel", "LZeq", "crest", "flags"]
    assert len(lines) == 2 + 2 * 3 + 2
    assert lines[2].split()[:3] == ["0.000", "1", "0"]
    assert lines[5].split()[:3] == ["1.000", "1", "1"]
    assert lines[5].endswith("overload")
    assert lines[-1].split()[:3] == ["all", "2.50013", "1"]


def test_calibrated_levels(capsys):
    """A calibrator's 94 dB on a chain of 50 mV/Pa, 20 dB and 2 V reads 94.00 dB SPL everywhere."""
    Path("mic.toml").write_text(MICROPHONE, "utf-8")
    peak = 10.0 ** ((94.0 - 106.0206 + 3.0103) / 20.0)
    x = peak * np.sin(2.0 * np.pi * 1000.0 / FS * np.arange(2 * FS))
    soundfile.write("cal.wav", x, FS, subtype="FLOAT")
    asked = ["--calibration", "mic.toml", "--quantity", "LAeq,LCeq,LZFmax,LZeq,peak,LUFS_M"]
    assert main(["levels", "cal.wav", "-o", "cal.csv", "-o", "cal.nc", *asked]) == 0
    about, rows = read_csv("cal.csv")
    for name in ("LAeq", "LCeq", "LZFmax", "LZeq"):
        assert float(rows[-1][name]) == pytest.approx(94.0, abs=0.01)
    assert float(rows[-1]["peak"]) == pytest.approx(-9.01, abs=0.01)
    assert about["units"]["LAeq"] == "dB SPL"
    assert about["units"]["peak"] == "dBFS"
    assert about["calibration"].startswith("M1")
    with h5netcdf.File("cal.nc") as file:
        assert file["LAeq"].attrs["spectrod_unit"] == "dB SPL"
        assert file["LZeq"][-1, 0] == pytest.approx(94.0, abs=0.01)
        assert file["LZeq"].attrs["standard_name"] == "sound_pressure_level_in_air"
        assert file["LZeq"].attrs["units"] == "0.1 lg(re 4e-10 Pa2)"
        assert file["LZFmax"].attrs["cell_methods"] == "time: maximum"
        assert "standard_name" not in file["LAeq"].attrs
    assert "levels in dB SPL" in capsys.readouterr().out


def test_channels_with_and_without_calibration(capsys):
    """A channel without calibration beside one with keeps dBFS, and each says its unit."""
    Path("mic.toml").write_text(f"[channels.0]\n{MICROPHONE}", "utf-8")
    assert main(["levels", "a.wav", "-o", "a.csv", "--calibration", "mic.toml"]) == 0
    about, _ = read_csv("a.csv")
    assert about["level_unit"] == "dB SPL, dBFS"
    assert about["units"]["LAeq"] == "dB SPL, dBFS"
    assert "dB SPL (0), dBFS (1)" in capsys.readouterr().out


def test_a_response_is_applied(capsys):
    """Levels are corrected by the calibration's frequency response; the file has its range."""
    response = "[response]\nat_hz = 0\ntable = [[20, 6], [500, 6], [2000, -3], [4000, -3]]\n"
    Path("mic.toml").write_text(MICROPHONE + response, "utf-8")
    peak = 10.0 ** ((94.0 - 106.0206 + 3.0103 - 3.0) / 20.0)
    x = peak * np.sin(2.0 * np.pi * 3000.0 / FS * np.arange(3 * FS))
    soundfile.write("cal.wav", x, FS, subtype="FLOAT")
    asked = ["--calibration", "mic.toml", "--quantity", "LZeq,peak"]
    assert main(["levels", "cal.wav", "-o", "a.csv", *asked]) == 0
    about, rows = read_csv("a.csv")
    assert float(rows[1]["LZeq"]) == pytest.approx(94.0, abs=0.06)
    assert float(rows[1]["peak"]) == pytest.approx(-12.01, abs=0.01)
    assert about["calibration_response_min_hz"] == 20.0
    assert about["calibration_response_max_hz"] == 4000.0
    assert "comment" not in about
    assert capsys.readouterr().err == ""


def test_a_response_that_is_too_steep_is_reported(capsys):
    """A table that no filter follows within 0.05 dB is a warning and a comment in the file."""
    response = "[response]\nat_hz = 0\ntable = [[20, 0], [1000, 0], [1000.1, 6], [4000, 6]]\n"
    Path("mic.toml").write_text(MICROPHONE + response, "utf-8")
    assert main(["levels", "mono.wav", "-o", "a.csv", "--calibration", "mic.toml"]) == 0
    text = "the frequency response of channel 0 changes too fast for its correction"
    assert text in capsys.readouterr().err
    assert text in read_csv("a.csv")[0]["comment"]


def test_range_of_samples():
    """--start, --duration and --select measure that part and those channels alone."""
    part = ["--start", "0.5", "--duration", "1", "--select", "1"]
    assert main(["levels", "a.wav", "-o", "a.csv", "--quantity", "LZeq", *part]) == 0
    _, rows = read_csv("a.csv")
    x = samples()[1, FS // 2 : FS // 2 + FS].astype(np.float64)
    expected = 10.0 * math.log10(2.0 * np.square(x).mean())
    assert [float(row["duration_s"]) for row in rows] == [1.0]
    assert float(rows[0]["LZeq"]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_real_time_gives_the_same_bits():
    """A file at the pace of its samples gives the same rows, to the bit, as at full speed."""
    asked = ["--quantity", "LAeq,LAFmax,LAF10,LUFS_M,true_peak", *START]
    assert main(["levels", "a.wav", "-o", "full.csv", *asked]) == 0
    assert main(["levels", "a.wav", "-o", "paced.csv", "--pace", "realtime", *asked]) == 0
    full, paced = (
        [line for line in Path(name).read_text("utf-8").splitlines() if line[0] != "#"]
        for name in ("full.csv", "paced.csv")
    )
    assert full == paced
    assert len(full) == 4


def test_an_interrupt_finishes_the_file(capsys):
    """Ctrl-C ends the measurement; the rows so far are in a whole file."""

    def interrupt():
        deadline_s = time.monotonic() + 60.0
        while time.monotonic() < deadline_s:
            parts = list(Path().glob("*.part"))
            # The first file of this name only tries whether one can be made, and may be gone.
            with contextlib.suppress(FileNotFoundError):
                if parts and parts[0].read_text("utf-8").count("\n20") > 2:
                    break
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    asked = ["--interval", "100ms", "--duration", "1h", "--pace", "realtime", "-o", "a.csv"]
    assert main(["levels", "signal:sine,1000,-20", *asked]) == 130
    thread.join()
    _, rows = read_csv("a.csv")
    assert float(rows[-2]["LAeq"]) == pytest.approx(-20.0, abs=0.1)
    assert not list(Path().glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.wav", "--quantity", "LAQ"], "quantity='LAQ': must be a level such as"),
        (["a.wav", "--quantity", "Leq"], "; did you mean LAeq (A-weighted) or LZeq (unweighted)?"),
        (["a.wav", "--quantity", "LAmax"], "; did you mean LAFmax (F) or LASmax (S)?"),
        (["a.wav", "--quantity", "SEL"], "; did you mean LAE?"),
        (["a.wav", "--quantity", "dB(A)"], "; did you mean LAeq (the average) or LAF (the momenta"),
        (["a.wav", "--quantity", ""], "quantities: 0 names; must be 1 to 64"),
        (["a.wav", "--interval", "0"], "interval_s=0: must be 0.01 s to 366 days"),
        (["a.wav", "--interval", "1ms"], "interval_s=0.001: must be 0.01 s to 366 days"),
        (["a.wav", "-o", "a.jpg"], "a.jpg: levels: suffix must be one of .csv, .nc, .h5, .parquet"),
        (["a.wav", "-o", "a.wav/a.csv"], "a.wav: must be a folder, it is a file"),
        (["a.wav", "-o", "a.csv", "-o", "a.csv"], "a.csv: must be named once"),
        (["a.wav", "--align", "utc"], "--align utc: a.wav has no start time; give --start-time"),
        (["a.wav", "--align", "noon"], "argument --align: invalid choice: 'noon'"),
        (["a.wav", "--interval", "1x"], "--interval='1x': must be a time: 90, 1.5h"),
        (["a.wav", "--lower-limit", "x"], "--lower-limit='x': must be a number"),
        (["a.wav", "--channel-weights", "1,b"], "--channel-weights[1]='b': must be a number"),
        (
            ["a.wav", "--channel-weights", "1", "--quantity", "LUFS_M"],
            "channel_weights: 1 values for 2 channels",
        ),
        (["a.wav", "--bands", "bark"], "bands='bark': must be octave, third-octave, octave/6"),
        (["a.wav", "--band-quantity", "LZeq"], "band_quantities=LZeq: need bands: octave"),
        (["a.wav", "--calibration", "none.toml"], "none.toml: there is no such file"),
        (["none.wav"], "none.wav: No such file or directory"),
        (["signal:pink,-20"], "signal:pink,-20: has no end; give --duration"),
        (["a.wav", "--start", "9"], "--start 9: is not within a.wav, 2.500125 s long"),
        (["a.wav", "--iq"], "--iq: no such option"),
        (["pcm:x.cu8", "--format", "cu8", "--rate", "8000"], "x.cu8"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    """Each wrong argument is one line, and leaves no file."""
    before = sorted(Path().iterdir())
    Path("x.cu8").write_bytes(bytes(64))
    assert main(["levels", *arguments]) in (2, 74)
    Path("x.cu8").unlink()
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(Path().iterdir()) == before


def test_samples_that_are_not_finite(capsys):
    """A sample that is not finite is one error with the file's name, and no file is left."""
    x = samples("mono.wav")
    x[0, 5000] = np.nan
    soundfile.write("nan.wav", x.T, FS, subtype="FLOAT")
    assert main(["levels", "nan.wav", "-o", "a.csv"]) == 2
    error = capsys.readouterr().err
    assert "nan.wav (WAV, FLOAT): samples" in error
    assert "not finite" in error
    assert not Path("a.csv").exists()
    assert not list(Path().glob("*.part"))
