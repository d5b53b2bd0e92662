"""``spectrod calibrate``: from a source to a file that reads back its own level."""

import numpy as np
import pytest
import soundfile

from spectrod import spectrogram
from spectrod.cli import main
from spectrod.dsp.calibration import load_calibration

FS = 48_000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def tone(level_dbfs=-9.0103, seconds=4.0):
    n = np.arange(round(seconds * FS))
    return 10 ** (level_dbfs / 20) * np.sin(2 * np.pi * 1000 * n / FS)


def test_a_calibrated_source_reads_the_level_of_its_calibrator(capsys):
    """The file that a calibration writes makes the calibrator's tone read its level."""
    command = ["calibrate", "signal:sine,1000,-9.0103", "--level", "94", "-o", "mic.toml"]
    assert main([*command, "--seconds", "3"]) == 0
    said = capsys.readouterr().out
    assert "tone: 1000.00 Hz, -9.010 dBFS, fluctuation 0.000 dB (F), THD+N 0.00%\n" in said
    assert "full scale (rms 1.0): 106.021 dB SPL +- 0.40 dB (k = 2; scatter 0.000 dB)\n" in said
    assert load_calibration("mic.toml").base.cal_id in said
    found = spectrogram(
        tone(), FS, window="flattop", scaling="dbfs", engine="numpy", calibration="mic.toml"
    )
    assert found.values.max() == pytest.approx(94.0, abs=0.01)


def test_one_channel_of_a_file(capsys):
    """A channel of a file is selected, and its table is written; several channels are refused."""
    soundfile.write("x.wav", np.stack([tone(-30), tone(-20)], 1), FS, "PCM_24")
    command = ["calibrate", "x.wav", "--level", "114", "-o", "array.toml"]
    assert main(command) == 2
    assert "2 channels: must be one; select it by --select N" in capsys.readouterr().err
    assert main([*command, "--select", "1", "--channel", "1", "--serial", "A1"]) == 0
    assert main([*command, "--select", "0", "--channel", "0"]) == 0
    both = load_calibration("array.toml").channels(2)
    assert [one.full_scale_db for one in both] == pytest.approx([147.0103, 137.0103], abs=1e-3)


def test_hydrophones_and_other_references():
    """The reference is that of the calibrator's level."""
    command = ["calibrate", "signal:sine,250,-8.01", "--level", "160", "--frequency", "250"]
    assert main([*command, "--reference", "1 uPa", "--seconds", "3", "-o", "h.toml"]) == 0
    found = load_calibration("h.toml").base
    assert (found.unit, found.uncertainty_db) == ("dB re 1 uPa", 0.4)
    assert found.full_scale_db == pytest.approx(171.02, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["signal:white,-20"], "test signal white,-20: off frequency"),
        (["signal:sine,1000,-120"], "silent"),
        (["signal:sine,1000,3"], "clipped"),
        (["signal:sine,1000,-9", "--seconds", "1"], "--seconds 1: must be 3 to 60 s"),
        (["signal:sine,1000,-9", "--frequency", "40k"], "must be 10 to 21600 Hz"),
        (
            ["signal:sine,1000,-9", "--reference", "20"],
            "reference='20': must be a value with a unit",
        ),
        (["signal:sine,1000,-9", "--level-uncertainty", "nan"], "must be 0 to 20 dB"),
        (["signal:sine,1000,-9", "--serial", "a b"], "serial"),
        (["signal:sine,1000,-9", "--level", "inf"], "--level inf: must be -200 to 300 dB"),
        (["signal:sine,1000,-9", "-o", "none/mic.toml"], "-o: 2 calibration files: must be one"),
    ],
)
def test_refused_calibrations_write_nothing(tmp_path, capsys, arguments, message):
    """A refusal is one line with the reason, and leaves no file."""
    assert main(["calibrate", "--level", "94", "-o", "mic.toml", *arguments]) != 0
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_change_needs_force(tmp_path, capsys):
    """A changed sensitivity leaves the file as it was, unless forced; the change is reported."""
    command = ["calibrate", "--level", "94", "-o", "mic.toml", "--seconds", "3"]
    assert main([*command, "signal:sine,1000,-9"]) == 0
    before = (tmp_path / "mic.toml").read_text()
    assert main([*command, "signal:sine,1000,-10"]) == 2
    assert "the sensitivity has changed by -1.00 dB since 20" in capsys.readouterr().err
    assert (tmp_path / "mic.toml").read_text() == before
    assert main([*command, "signal:sine,1000,-10", "--force"]) == 0
    assert "sensitivity changed by -1.00 dB since 20" in capsys.readouterr().out
    assert main([*command, "signal:sine,1000,-10.2"]) == 0
    assert "sensitivity changed by -0.20 dB since 20" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["mic.toml"]


def test_handling_noise_before_the_tone_does_no_harm(capsys):
    """The steadiest stretch of a recording is measured; --start measures where it says."""
    tone = 0.1 * np.sin(2 * np.pi * 1000.0 / FS * np.arange(8 * FS))
    knocks = np.where(np.arange(3 * FS) % 5000 < 50, 1.0, 0.0)
    soundfile.write("mic.wav", np.concatenate((knocks, tone)), FS)
    assert main(["calibrate", "mic.wav", "--level", "94", "-o", "mic.toml"]) == 0
    assert capsys.readouterr().out.startswith("measured: 5 s from 3.000 s on\n")
    for start, text in (("0", "clipped: the peak is 1 FS"), ("9", "2 s: must be at least 3 s")):
        assert (
            main(["calibrate", "mic.wav", "--level", "94", "--start", start, "-o", "x.toml"]) == 2
        )
        assert text in capsys.readouterr().err
    source = "signal:sine,1000,-20"
    assert main(["calibrate", source, "--level", "94", "--start", "1", "-o", "x.toml"]) == 2
    assert f"--start 1: {source} is no recording: it starts now" in capsys.readouterr().err
