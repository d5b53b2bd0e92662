"""``transfer``: sweeps, and the delay that is removed unasked."""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy import signal

from spectrod.cli import main
from spectrod.measure.transfer.sweep import Sweep
from spectrod.measure.transfer.sweep_response import measure_sweep

FS = 8000
SWEEP = ["--sweep", "50,3.6k,1"]
X = np.concatenate((np.zeros(700), 0.25 * Sweep(FS, 50.0, 3600.0, 1.0).samples, np.zeros(4001)))
Y = np.roll(signal.lfilter(*signal.butter(1, 500.0, fs=FS), X + 0.2 * X**2), 55)
MICROPHONE = """
reference = "20 uPa"
sensitivity = "50 mV/Pa"
gain_db = 20.0
full_scale_v = 2.0
"""
FULL_SCALE_PA = 2.0 / (0.05 * 10.0)


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, *channels):
    soundfile.write(name, np.array(channels).T, FS, subtype="FLOAT")


def transfer(capsys, *arguments):
    """Run the command; return comments, columns and what it says."""
    assert main(["transfer", *arguments]) == 0
    found = capsys.readouterr()
    lines = found.out.splitlines()
    comments = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    columns = {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}
    return dict(comments), columns, found.err


def test_sweep_is_that_of_the_library(capsys):
    """Rows, distortion and impulse response are those of measure_sweep; the delay is stated."""
    write("b.wav", X, Y)
    arguments = ["b.wav", *SWEEP, "--harmonics", "3", "--impulse-response", "new/ir.wav"]
    about, columns, said = transfer(capsys, *arguments)
    x, y = (one.astype(np.float32).astype(np.float64) for one in (X, Y))
    found = measure_sweep(Sweep(FS, 50.0, 3600.0, 1.0), y, x, harmonics=3)
    low, high = found.band_hz
    band = (found.frequencies >= low) & (found.frequencies <= high)
    for name, expected in {
        "frequency_hz": found.frequencies,
        "h1_db": 20.0 * np.log10(np.abs(found.h)),
        "h1_phase_deg": np.degrees(np.angle(found.h)),
        "thd_db": 20.0 * np.log10(found.thd),
        "harmonic_2_db": 20.0 * np.log10(found.harmonics[0]),
        "harmonic_3_db": 20.0 * np.log10(found.harmonics[1]),
    }.items():
        np.testing.assert_allclose(columns[name], expected[band], rtol=1e-8, atol=1e-8)
    assert said == "delay: 7.0000 ms (56 samples), removed; --delay 0 keeps it\n"
    assert (about["unit"], about["delay_samples"], about["reference"]) == ("1", "56", "0")
    lead = int(about["impulse_response_time_0_samples"])
    impulse, fs = soundfile.read("new/ir.wav", dtype="float32")
    assert fs == FS
    np.testing.assert_array_equal(impulse, found.impulse_response(lead).astype(np.float32))


def test_sweep_of_one_channel(capsys, tmp_path):
    """A single channel is re the sweep at its level, in the unit of its calibration."""
    write("y.wav", Y)
    about, columns, said = transfer(capsys, "y.wav", "--sweep", "50,3600,1s,-12.0412")
    assert said.startswith("time 0: the sweep begins at 0.0945 s, by the peak of the impulse")
    assert columns["h1_db"][30] == pytest.approx(0.0, abs=0.1)
    assert (about["reference"], about["unit"]) == ("sweep", "1")
    assert about["sweep"] == "50 to 3600 Hz in 1 s, -12.0412 dBFS"
    (tmp_path / "mic.toml").write_text(MICROPHONE)
    about, calibrated, _ = transfer(
        capsys, "y.wav", "--sweep", "50,3600,1,-12.0412", "--calibration", "mic.toml"
    )
    assert about["unit"] == "Pa/FS"
    difference_db = calibrated["h1_db"] - columns["h1_db"]
    np.testing.assert_allclose(difference_db, 20.0 * np.log10(FULL_SCALE_PA), atol=1e-6)
    np.testing.assert_allclose(calibrated["thd_db"], columns["thd_db"], atol=1e-6)


def test_place_and_length_of_a_sweep(capsys):
    """--delay keeps the phase of a delay, --win-length is that of the impulse response."""
    write("b.wav", X, np.roll(X, 4))
    arguments = ["b.wav", *SWEEP, "--harmonics", "1", "--win-length", "2^10"]
    _, removed, _ = transfer(capsys, *arguments)
    about, kept, said = transfer(capsys, *arguments, "--delay", "0")
    assert said == ""
    assert about["delay_samples"] == "4"
    turned = (removed["h1_phase_deg"] - kept["h1_phase_deg"]) % 360.0
    np.testing.assert_allclose(turned, 360.0 * 4 / FS * kept["frequency_hz"] % 360.0, atol=0.2)
    _, longer, _ = transfer(capsys, *arguments[:-1], "4096")
    assert len(longer["h1_db"]) > len(removed["h1_db"])


def test_the_sweep_of_test_signals_is_the_same(capsys):
    """What `record signal:sweep` writes is the sweep that --sweep names."""
    options = ["--samplerate", str(FS), "--duration", "1"]
    assert main(["record", "signal:sweep,50,3600,1,-6", *options, "-o", "s.wav"]) == 0
    _, columns, _ = transfer(capsys, "s.wav", "--sweep", "50,3600,1,-6")
    np.testing.assert_allclose(columns["h1_db"], 0.0, atol=0.1)
    assert np.nanmax(columns["thd_db"]) < -60.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--sweep", "50,3600"], "--sweep 50,3600: must be FROM_HZ,TO_HZ,SECONDS or"),
        (["--sweep", "x,3600,1"], "--sweep x,3600,1: must be a frequency"),
        (["--sweep", "50,3600,x"], "--sweep 50,3600,x: must be a time"),
        (["--sweep", "50,3600,1,loud"], "level loud: must be -200 to 20 dBFS"),
        (["--sweep", "50,3600,1,21"], "level 21: must be -200 to 20 dBFS"),
        (["--sweep", "50,9000,1"], "low_hz=50, high_hz=9000: must be half an octave apart"),
        (["--sweep", "50,3600,2"], "b.wav (WAV, FLOAT): recording: no sweep from 50 to 3600 Hz"),
        ([*SWEEP, "--duration", "1"], "must have the whole sweep, 8000 samples from 700 on"),
        ([*SWEEP, "--interval", "1s"], "--sweep 50,3.6k,1: must be without --interval"),
        ([*SWEEP, "--window", "hann"], "--window: must be without --sweep"),
        ([*SWEEP, "--band", "20", "200"], "--band: must be without --sweep"),
        ([*SWEEP, "--win-length", "8"], "length=8: must be 16 or more"),
        ([*SWEEP, "--harmonics", "0"], "'0': must be at least 1"),
        ([*SWEEP, "--harmonics", "21"], "harmonics=21: must be 1 to 20"),
        ([*SWEEP, "--impulse-response", "i.txt"], "--impulse-response i.txt: must end in .wav"),
        ([*SWEEP, "--impulse-response", "b.wav"], "b.wav: must be another file than the one that"),
        ([*SWEEP, "--delay", "soon"], "--delay soon: must be a time"),
        ([*SWEEP, "--response", "2"], "responses=2: must be a channel from 0 to 1 of the source"),
        (["--harmonics", "2"], "--harmonics 2: must be with --sweep"),
        (["--impulse-response", "i.wav"], "--impulse-response i.wav: must be with --sweep"),
        (["--delay", "9s"], "--delay 9s: must be within +-8.192 s"),
        (["--delay", "soon"], "--delay soon: must be a time"),
        (["--delay", "5ms", "--interval", "1s"], "--delay 5ms: must be without --interval"),
    ],
)
def test_wrong_arguments(arguments, text, capsys, tmp_path):
    """Each wrong argument is one line that names it, and no file is left."""
    write("b.wav", X, Y)
    assert main(["transfer", "b.wav", *arguments, "-o", "t.csv"]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert [path.name for path in tmp_path.iterdir()] == ["b.wav"]


def test_sweep_with_a_gap(capsys):
    """A folder with a gap between its files is refused."""
    Path("night").mkdir()
    soundfile.write("night/a_20260501_040000.wav", X[:8000], FS)
    soundfile.write("night/a_20260501_040010.wav", X[8000:], FS)
    assert main(["transfer", "night", *SWEEP]) == 2
    assert "gap after 1 s: a sweep must have none" in capsys.readouterr().err


def noise(n, seed=1):
    return 0.1 * np.random.default_rng(seed).standard_normal(n)


def test_delay_is_removed_and_said_unasked(capsys):
    """A clear delay is removed with a line about it; --delay 0 keeps it."""
    x = noise(30_000)
    write("b.wav", x, 0.5 * np.roll(x, 400))
    about, removed, said = transfer(capsys, "b.wav")
    assert said == "delay: 50.0000 ms (400.00 samples), removed; --delay 0 keeps it\n"
    assert about["removed_delay_samples"] == "400"
    np.testing.assert_allclose(removed["h1_db"][1:-1], -6.02, atol=0.1)
    about, kept, said = transfer(capsys, "b.wav", "--delay", "0")
    assert (said, about["removed_delay_samples"], "delay_s" in about) == ("", "0", False)
    assert np.median(kept["coherence"]) < 0.95 < np.median(removed["coherence"])
    _, given, said = transfer(capsys, "b.wav", "--delay", "50ms")
    assert said == ""
    np.testing.assert_array_equal(given["h1_db"], removed["h1_db"])


def test_no_delay_is_removed_that_is_not_clear(capsys):
    """Unrelated or silent channels, and a delay that leaves no two frames, stay as they are."""
    x = noise(30_000)
    for y, arguments, expected in (
        (noise(30_000, 2), [], "is unclear (peak "),
        (np.zeros(30_000), [], "delay: not measured, a channel is silent or too short\n"),
        (
            np.roll(x, 9000),
            ["--win-length", "16384"],
            "1125.0000 ms is unclear (peak 1.00) or too long",
        ),
    ):
        write("b.wav", x, y)
        about, columns, said = transfer(capsys, "b.wav", *arguments)
        assert about["removed_delay_samples"] == "0"
        assert expected in said
        _, kept, _ = transfer(capsys, "b.wav", *arguments, "--delay", "0")
        np.testing.assert_array_equal(columns["h1_db"], kept["h1_db"])


def test_rooms_have_a_table_of_reverberation_times(capsys):
    """Beside files, EDT, T20 and T30 of each octave are printed, of a room and not of a wire."""
    room = 0.1 * np.random.default_rng(1).standard_normal(FS // 2)
    room *= np.exp(-np.log(1e3) * np.arange(len(room)) / FS / 0.4)
    played = np.concatenate([Y, np.zeros(FS)])
    for impulse, is_room in ((room, True), (np.ones(1), False)):
        write("y.wav", np.convolve(played, impulse))
        assert main(["transfer", "y.wav", "--sweep", "50,3600,1s", "-o", "h.csv"]) == 0
        said = capsys.readouterr().out
        assert ("reverberation times [s] by ISO 3382" in said) == is_room
        assert said.count("\n") == (8 if is_room else 0)
        text = Path("h.csv").read_text("utf-8")
        assert ("# reverberation all: EDT " in text) == is_room
