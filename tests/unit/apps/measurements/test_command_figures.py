"""Figures of the commands that measure: the values of their tables."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod.cli import main
from spectrod.formats.figure import measurement_figure

FS = 8000
FRAMES = ["--win-length", "256", "--hop", "128"]
START = ["--start-time", "2026-03-01T12:00:00Z"]
COMMANDS = {
    "levels": ["--quantity", "LAeq,LUFS_M,true_peak", "--interval", "300ms"],
    "features": [*FRAMES, *START, "--quantity", "centroid,flux", "--spectra", "kurtosis"],
    "tones": [*START, "--interval", "500ms", "--win-length", "2048", "--hop", "1024"],
    "transfer": ["--interval", "1s", *FRAMES],
}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(5).uniform(-0.3, 0.3, (20_001, 2)).astype(np.float32)
    soundfile.write("a.wav", x, FS, subtype="FLOAT")


@pytest.fixture
def figures(monkeypatch):
    """Return the figures that are written, as they are drawn."""
    found, save = [], measurement_figure.save

    def keep(figure, file, suffix):
        found.append(figure)
        save(figure, file, suffix)

    monkeypatch.setattr(measurement_figure, "save", keep)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_draws_what_its_table_says(figures, command):
    """Every column of a table without spectra is a line of the figure, and the other way round."""
    asked = [one for one in COMMANDS[command] if one not in ("--spectra", "kurtosis")]
    assert main([command, "a.wav", *asked, "-o", "a.csv"]) == 0
    assert main([command, "a.wav", *COMMANDS[command], "-o", "a.png"]) == 0
    lines = [line for line in Path("a.csv").read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    numbers = [name for name in list(rows[0])[2:] if not name.startswith("flags")]
    expected = {tuple(np.repeat([float(row[name]) for row in rows], 2)) for name in numbers}
    drawn = [line.get_ydata() for panel in figures[0].axes for line in panel.get_lines()]
    assert len(drawn) == len(numbers)
    finite = {tuple(np.where(np.isfinite(one), one, -1.0)) for one in map(np.array, expected)}
    assert {tuple(np.where(np.isfinite(one), one, -1.0)) for one in drawn} == finite
    with Image.open("a.png") as image:
        assert image.size[0] == 1200


def test_the_levels_of_all_intervals_are_those_of_the_table(figures, capsys):
    """The legend and the bars have the values of the last line and of the bands."""
    asked = ["--quantity", "LAeq", "--bands", "octave", "--interval", "500ms"]
    assert main(["levels", "a.wav", *asked, "-o", "a.svg"]) == 0
    out = capsys.readouterr().out
    assert "# a.svg: 6 intervals of 2 channels" in out
    words = [line.split() for line in out.splitlines()]
    totals = [one[3] for one in words if one[:1] == ["all"]]
    history, bars = figures[0].axes[:2], figures[0].axes[2:]
    for panel, total in zip(history, totals, strict=True):
        (text,) = panel.get_legend().get_texts()
        assert text.get_text() == f"LAeq ({float(total):.1f})"
    bands = [float(one[-1]) for one in words if one[1:2] == ["Hz"] or one[1:2] == ["kHz"]]
    for channel, panel in enumerate(bars):
        tops = [bar.get_y() + bar.get_height() for bar in panel.patches]
        np.testing.assert_allclose(tops, bands[channel::2], atol=0.005)


def test_a_missing_library_is_one_error(monkeypatch, capsys):
    """Without matplotlib nothing is measured and no file is made."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["levels", "a.wav", "-o", "a.csv", "-o", "a.png"]) == 69
    assert "pip install 'spectrod[plot]'" in capsys.readouterr().err
    assert [one.name for one in Path().iterdir()] == ["a.wav"]


def test_too_much_for_a_figure_is_one_error(capsys):
    """The rule and the number stand in one line, and nothing is written."""
    x = np.zeros((4000, 26), np.float32)
    soundfile.write("many.wav", x, FS)
    assert main(["levels", "many.wav", "-o", "a.pdf"]) == 2
    assert "26 panels: a figure has at most 24; choose fewer" in capsys.readouterr().err
    assert sorted(one.name for one in Path().iterdir()) == ["a.wav", "many.wav"]
