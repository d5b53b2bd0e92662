"""Figures of the commands that measure: the values of their tables."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from matplotlib.text import Text
from PIL import Image

from spectrod.cli import main
from spectrod.formats.figure import drawing, measurement_figure
from spectrod.formats.figure.frequency_axis import smoothed_db

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
    found, save = [], drawing.save

    def keep(figure, file, suffix):
        found.append(figure)
        save(figure, file, suffix)

    for module in (drawing, measurement_figure):
        monkeypatch.setattr(module, "save", keep)
    return found


def columns(path):
    """Return the columns of a CSV file by name, NaN where a cell is empty."""
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}


def amplifier(n=16_000, channels=1):
    """Return a tone of 1 kHz with two harmonics in noise, (n, channels)."""
    t = np.arange(n) / FS
    x = 0.5 * np.sin(2 * np.pi * 1000.0 * t) + 5e-4 * np.sin(2 * np.pi * 2000.0 * t)
    x += 5e-5 * np.sin(2 * np.pi * 3000.0 * t)
    noise = np.random.default_rng(6).normal(0.0, 1e-5, (n, channels))
    return (x[:, np.newaxis] + noise).astype(np.float32)


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


def test_tones_are_marked_in_the_mean_spectrum(figures, capsys):
    """The line has the levels of tones, the marks are harmonics, the figures stand above."""
    soundfile.write("amp.wav", amplifier(channels=2), FS, subtype="FLOAT")
    assert main(["tones", "amp.wav", "--json", "-o", "amp.png"]) == 0
    found = json.loads(capsys.readouterr().out)
    (figure,) = figures
    assert len(figure.axes) == 2
    assert figure.get_suptitle().startswith("Tones of amp.wav (WAV, FLOAT): blackmanharris, ")
    for panel, one in zip(figure.axes, found["channels"], strict=True):
        spectrum, *marks = panel.get_lines()
        distortion = one["distortion"]
        # Orders 2 and 3; what lies in the noise has no mark.
        harmonics = [(h["frequency_hz"], h["level_db"]) for h in distortion["harmonics"][:2]]
        expected = [(distortion["frequency_hz"], distortion["level_db"]), *harmonics]
        assert [(m.get_xdata()[0], m.get_ydata()[0]) for m in marks] == expected
        assert [text.get_text() for text in panel.texts] == ["1", "2", "3"]
        x, y = spectrum.get_data()
        # The bin beside a tone has at most the scalloping loss less, 0.83 dB of this window.
        assert np.isclose(y.max(), distortion["level_db"], rtol=0.0, atol=0.83)
        assert abs(x[np.argmax(y)] - 1000.0) < FS / found["win_length"]
        title = panel.get_title("left")
        assert title.startswith(f"channel {one['channel']}\nfundamental 1000.0000 Hz, -6.02")
        assert f"THD {distortion['thd_db']:.2f} dB" in title
        assert f"SNR {distortion['snr_db']:.2f} dB" in title
        assert (panel.get_ylabel(), panel.get_xscale()) == ("level [dBFS]", "log")
    assert Path("amp.png").stat().st_size > 0


def test_noise_and_pairs_of_samples_have_a_spectrum_without_distortion(figures):
    """Without a tone the title says so; of I/Q the axis is that of the receiver, and linear."""
    assert main(["tones", "a.wav", "--select", "0", "-o", "a.svg"]) == 0
    t = np.arange(40_000) / 1e6
    z = 0.3 * np.exp(2j * np.pi * 1.2e5 * t) + 0.01 * np.exp(-2j * np.pi * 2.4e5 * t)
    z += np.random.default_rng(2).normal(0.0, 1e-4, len(t))
    np.stack([z.real, z.imag], axis=1).astype("<f4").tofile("z.cf32")
    asked = ["--samplerate", "1M", "--center-frequency", "433.92M"]
    assert main(["tones", "pcm:z.cf32", *asked, "-o", "z.pdf"]) == 0
    noise, receiver = (one.axes[0] for one in figures)
    assert noise.get_title("left").startswith("distortion: not measured: no tone found")
    assert not noise.texts
    assert receiver.get_xscale() == "linear"
    assert [one.get_text() for one in receiver.texts] == ["434.04M", "433.68M"]


def test_a_bode_plot_has_the_columns_of_the_table(figures):
    """Magnitude, phase and coherence are those of the CSV; what means nothing is grey."""
    rng = np.random.default_rng(3)
    x = rng.normal(0.0, 0.1, 40_000)
    y = np.convolve(x, [0.5, 0.3, -0.2])[: len(x)] + rng.normal(0.0, 0.3, len(x))
    y[:20_000] = rng.normal(0.0, 0.3, 20_000)
    soundfile.write("two.wav", np.stack([x, y], axis=1), FS, subtype="FLOAT")
    asked = ["--win-length", "512", "--delay", "0"]
    assert main(["transfer", "two.wav", *asked, "-o", "h.csv", "-o", "h.png"]) == 0
    table, (figure,) = columns("h.csv"), figures
    magnitude, phase, coherence = figure.axes
    above = table["frequency_hz"] > 0.0
    about = dict(
        line[2:].split(": ", 1) for line in Path("h.csv").read_text().splitlines() if line[0] == "#"
    )
    limit = float(about["significant_coherence"])
    is_clear = (table["coherence"] > limit)[above]
    assert 0 < is_clear.sum() < len(is_clear)
    for panel, name in ((magnitude, "h1_db"), (phase, "h1_phase_deg")):
        grey, coloured = (line.get_ydata() for line in panel.get_lines())
        kept = ~np.isnan(grey)  # a phase that wraps is interrupted
        assert kept.mean() > 0.5
        # The table has nine digits.
        np.testing.assert_allclose(grey[kept], table[name][above][kept], rtol=1e-8)
        np.testing.assert_array_equal(np.isnan(coloured), ~kept | ~is_clear)
    line, threshold = coherence.get_lines()
    np.testing.assert_allclose(line.get_ydata(), table["coherence"][above], rtol=1e-8)
    assert threshold.get_ydata()[0] == limit
    assert [one.get_ylabel() for one in figure.axes] == [
        "magnitude [dB]", "phase [deg]", "coherence [1]",
    ]  # fmt: skip
    assert coherence.get_xlabel() == "frequency [Hz]"
    assert figure.get_suptitle().startswith("Transfer function of two.wav (WAV, FLOAT): channel 1")


def _titles(figure):
    return " ".join(text.get_text() for text in figure.findobj(Text))


def test_a_sweep_has_distortion_and_the_impulse_response(figures):
    """Columns of a sweep are lines, and the impulse response is that of the sound file."""
    sweep = "50,3000,1,-6"
    assert main(["record", f"signal:sweep,{sweep}", "--rate", str(FS), "--duration", "1.5",
                 "-o", "sweep.wav"]) == 0  # fmt: skip
    x, _ = soundfile.read("sweep.wav")
    soundfile.write("out.wav", 0.5 * x + 0.05 * x**2, FS, subtype="FLOAT")
    outputs = ["-o", "h.csv", "-o", "h.png", "--impulse-response", "ir.wav"]
    assert main(["transfer", "out.wav", "--sweep", sweep, *outputs]) == 0
    table, (figure,) = columns("h.csv"), figures
    magnitude, _phase, distortion, impulse, decay = figure.axes
    np.testing.assert_allclose(magnitude.get_lines()[0].get_ydata(), table["h1_db"], rtol=1e-8)
    names = [text.get_text() for text in distortion.get_legend().get_texts()]
    assert names[:2] == ["THD", "harmonic 2"]
    assert distortion.get_ylabel() == "distortion, 1/12 octave [dB]"
    expected = smoothed_db(table["frequency_hz"], table["harmonic_2_db"])
    np.testing.assert_allclose(distortion.get_lines()[1].get_data(), expected, rtol=1e-8)
    times_ms, values = impulse.get_lines()[0].get_data()
    assert times_ms[np.argmax(np.abs(values))] == 0.0
    samples, _ = soundfile.read("ir.wav")
    # The file has float32.
    np.testing.assert_allclose(np.abs(values).max(), np.abs(samples).max(), rtol=1e-6)
    assert impulse.get_xlabel() == "time [ms]"
    assert decay.get_lines()[0].get_label() == "all"
    assert decay.get_ylabel() == "decay [dB]"
    assert "channel 0 re the sweep" in _titles(figure)
    soundfile.write("both.wav", np.stack([0.25 * x, 0.5 * x], axis=1), FS, subtype="FLOAT")
    assert main(["transfer", "both.wav", "--sweep", sweep, "-o", "both.png"]) == 0
    assert "channel 1 re channel 0" in _titles(figures[1])


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["tones", "a.wav", "-o", "a.nc"], "a.nc: must end in .csv, .png, .svg or .pdf, or --int"),
        (
            ["tones", "a.wav", "-o", "b.png", "--size", "1x"],
            "--size 1x: must be a width, or WIDTHx",
        ),
        (["levels", "a.wav", "-o", "b.png", "--size", "9"], "size: width 9 mm: must be 50 to 1000"),
        (["levels", "a.wav", "-o", "b.png", "--dpi", "20"], "dpi=20: must be 50 to 1200"),
        (
            ["levels", "a.wav", "-o", "b.csv", "--title", "x"],
            "--title x: must be with -o NAME of a",
        ),
        (
            ["levels", "a.wav", "-o", "b.png", "--size", "999x999", "--dpi", "999"],
            "dpi=999: 999 x 999 mm must not exceed 100000000 pixels",
        ),
        (
            ["calibrate", "a.wav", "--level", "94", "-o", "b.png"],
            "-o: 0 calibration files: must be one, as mic.toml",
        ),
        (
            ["transfer", "a.wav", "-o", "a.nc"],
            "a.nc: must end in .csv, .png, .svg or .pdf, or --int",
        ),
        (
            ["transfer", "a.wav", "--select", "0"],
            "a.wav: has one channel; a transfer function is that between two, or of a recording",
        ),
        (["tones", "a.wav", "-o", "b.png", "-o", "b.png"], "b.png: must be named once"),
        (["tones", "many.wav", "-o", "b.png"], "26 channels: a figure has at most 24; choose some"),
    ],
)
def test_wrong_outputs_are_one_error(capsys, arguments, rule):
    """What a figure cannot be or show is refused, and no file is left."""
    soundfile.write("many.wav", np.zeros((4000, 26), np.float32), FS)
    assert main(arguments) == 2
    assert rule in capsys.readouterr().err
    assert sorted(one.name for one in Path().iterdir()) == ["a.wav", "many.wav"]


@pytest.mark.parametrize("command", ["tones", "transfer"])
def test_the_library_is_missed_before_anything_is_measured(monkeypatch, capsys, command):
    """Without matplotlib one error says what to install, and no table is written either."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([command, "a.wav", "-o", "new/a.png"]) == 69
    captured = capsys.readouterr()
    assert "pip install 'spectrod[plot]'" in captured.err
    assert captured.out == ""
    assert [one.name for one in Path().iterdir()] == ["a.wav"]
