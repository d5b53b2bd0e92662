"""Title, size and resolution of figures; figures of calibrations; tables of tones."""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod.apps.measurements.calibrator import tone_spectrum
from spectrod.apps.measurements.calibrator_figure import LevelHistory
from spectrod.cli import main
from spectrod.formats.figure.figure_look import parse_size
from spectrod.lib.errors import ConfigError

FS = 8000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, seconds=2.0, begin_s=0.0):
    """Write noise, from some time on with a sine of 1 kHz at -6.02 dBFS."""
    t = np.arange(round(seconds * FS)) / FS
    x = 1e-4 * np.random.default_rng(1).standard_normal(len(t))
    x += np.where(t >= begin_s, 0.5 * np.sin(2 * np.pi * 1000 * t), 0.0)
    soundfile.write(name, x, FS, subtype="PCM_24")


@pytest.mark.parametrize(
    ("text", "inches"),
    [
        ("180", (180 / 25.4, None)),
        ("85x60", (85 / 25.4, 60 / 25.4)),
        ("18x12.5cm", (180 / 25.4, 125 / 25.4)),
        ("7X5in", (7.0, 5.0)),
    ],
)
def test_sizes_are_in_millimetres_unless_they_say_so(text, inches):
    """A width alone leaves the height to the panels."""
    assert parse_size(text) == pytest.approx(inches)


@pytest.mark.parametrize("text", ["", "x5", "5x", "-5x5", "5x5x5", "1e3", "nan", "9" * 60])
def test_other_texts_are_no_sizes(text):
    """One error names the text and the forms."""
    with pytest.raises(ConfigError, match="must be a width, or WIDTHxHEIGHT, in mm, cm or in"):
        parse_size(text)


@pytest.mark.parametrize("command", ["levels", "tones"])
def test_a_figure_has_the_size_and_the_title_that_are_asked_for(command):
    """Pixels are size times dpi; the title replaces that of the measurement, also by none."""
    write("a.wav")
    look = ["--size", "4x3in", "--dpi", "60", "--title", "Pump & fan"]
    assert main([command, "a.wav", "-o", "a.png", "-o", "a.svg", *look]) == 0
    with Image.open("a.png") as image:
        assert image.size == (240, 180)
    text = Path("a.svg").read_text("utf-8")
    assert 'width="288pt" height="216pt"' in text
    assert "Pump &amp; fan" in text
    assert "of a.wav" not in text
    assert main([command, "a.wav", "-o", "b.svg", "--title", ""]) == 0
    assert "of a.wav" not in Path("b.svg").read_text("utf-8")


def test_a_calibration_draws_the_stretch_that_it_measured(capsys):
    """The figure has the time of the stretch and the words of the result, beside the file."""
    write("cal.wav", seconds=8.0, begin_s=3.0)
    outputs = ["-o", "new/mic.toml", "-o", "new/cal.svg", "-o", "new/cal.png"]
    assert main(["calibrate", "cal.wav", "--level", "94", "--seconds", "3", *outputs]) == 0
    said = capsys.readouterr().out.splitlines()
    text = Path("new/cal.svg").read_text("utf-8")
    assert said[0].startswith("measured: 3 s from ")
    for words in said[:-1]:
        assert words in text
    assert said[-1].startswith("new/mic.toml: calibration ")
    with Image.open("new/cal.png") as image:
        assert image.width == 8 * 150


def test_a_level_history_has_every_level_in_its_place():
    """Blocks of any length pass unchanged, and each 125 ms have the level of their samples."""
    x = np.concatenate([np.zeros(4000), 0.5 * np.sin(2 * np.pi * np.arange(4001) / 8)])
    history = LevelHistory(FS, first=FS)
    passed = list(history.passed(np.split(x, [1, 333, 2500, 7000])))
    np.testing.assert_array_equal(np.concatenate(passed), x)
    times_ns, levels = history.cells.line(0)
    assert (times_ns[0], times_ns[-1]) == (1e9, 2e9)
    np.testing.assert_allclose(levels, np.repeat([-196.99, -6.0206], 8), atol=1e-4, rtol=2e-5)


@pytest.mark.parametrize("n", [4000, 4001])
def test_a_sine_has_its_level_in_the_spectrum_of_a_calibrator(n):
    """The peak is at the tone, at its level; the rest is far below."""
    x = 0.25 + 0.5 * np.sin(2 * np.pi * 1000 * np.arange(n) / FS)
    frequencies, levels = tone_spectrum(x, FS, 1000.0)
    assert frequencies[np.argmax(levels)] == 1000.0
    assert levels.max() == pytest.approx(-6.0206, abs=1e-3)
    assert levels[np.abs(frequencies - 1000.0) > 40.0].max() < -90.0


def test_a_table_of_tones_has_each_tone_and_harmonic():
    """Rows are what the report says; what is not known is an empty cell."""
    t = np.arange(2 * FS) / FS
    x = 0.5 * np.sin(2 * np.pi * 500 * t) + 0.005 * np.sin(2 * np.pi * 1500 * t)
    x += 1e-5 * np.random.default_rng(1).standard_normal(len(t))
    soundfile.write("a.wav", np.stack([x, np.zeros(len(x))], axis=1), FS, subtype="FLOAT")
    assert main(["tones", "a.wav", "-o", "t.csv"]) == 0
    lines = Path("t.csv").read_text("utf-8").splitlines()
    comments = [line for line in lines if line[0] == "#"]
    thd = next(line for line in comments if "channel 0 thd_db" in line)
    assert float(thd.rpartition(" ")[2]) == pytest.approx(-40.0, abs=0.01)
    assert any("channel 1 distortion: not measured: no tone" in line for line in comments)
    rows = list(csv.DictReader(line for line in lines if line[0] != "#"))
    assert {row["channel"] for row in rows} == {"0"}
    harmonics = {row["order"]: row for row in rows if row["kind"] == "harmonic"}
    assert float(harmonics["3"]["level_db"]) == pytest.approx(-46.02, abs=0.01)
    assert harmonics["3"]["floor_db"] == ""
    assert float(rows[0]["frequency_hz"]) == pytest.approx(500.0, abs=1e-3)
    assert rows[0]["unit"] == "dBFS"
