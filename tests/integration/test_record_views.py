"""Long-term views from the command line, with the same levels from any input."""

import csv

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod.cli import main
from spectrod.dsp.blocks import Block
from spectrod.formats.longterm.data import read_npz
from spectrod.formats.longterm.longterm_picture import read_statistics_picture
from spectrod.formats.picture.pixelmap import read_levels, read_pixel_map
from spectrod.formats.sound import SoundWriter

FS = 8000
BEGIN_UTC_NS = 1_777_609_800 * 10**9
TONE_HZ, LEVEL_DBFS = 1000.0, -20.0


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Make 210 s of noise with a tone present half of the time."""
    path = tmp_path_factory.mktemp("sound") / "pier.wav"
    rng = np.random.default_rng(5)
    writer = SoundWriter(path, FS, 1, "s16")
    for second in range(210):
        t = np.arange(second * FS, (second + 1) * FS) / FS
        tone = 10.0 ** (LEVEL_DBFS / 20.0) * np.sin(2.0 * np.pi * TONE_HZ * t)
        samples = rng.normal(0.0, 1e-3, FS) + (tone if second // 15 % 2 else 0.0)
        writer.write(Block(samples[None].astype(np.float32), second * FS, 0, BEGIN_UTC_NS))
    writer.finish()
    return path


def run(*arguments):
    return main([*map(str, arguments), "--log-level", "error"])


@pytest.mark.slow
def test_levels_are_those_of_the_sound(sound, tmp_path):
    """Half of the rows have the tone's density, the other half the noise's, in every format."""
    outputs = [tmp_path / f"spd{suffix}" for suffix in (".npz", ".csv", ".png")]
    flags = [flag for path in outputs for flag in ("-o", path)]
    assert run("record", sound, *flags, "--view", "spd", "--engine", "numpy") == 0
    found = read_npz(outputs[0])
    assert (found.n_rows, found.spec.scaling, found.spec.win_length) == (210, "density", 800)
    value = round(TONE_HZ / found.spec.delta_f)
    # Power of the tone over the window's noise bandwidth; noise of 1e-6 FS^2 over 4000 Hz.
    tone_db = LEVEL_DBFS - 10.0 * np.log10(2.0 * found.spec.enbw_hz)
    noise_db = 10.0 * np.log10(1e-6 / 4000.0)
    assert found.exceeded(10.0)[0, value] == pytest.approx(tone_db, abs=0.2)
    # Between the 5 % and 95 % levels of means of about 19 windows.
    assert found.exceeded(90.0)[0, value] == pytest.approx(noise_db, abs=2.5)
    # The median, as the tone's starts and ends are wide.
    assert found.exceeded(50.0)[0, 20] == pytest.approx(noise_db, abs=0.5)
    with outputs[1].open() as file:
        table = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert float(table[value]["L5"]) == pytest.approx(found.exceeded(5.0)[0, value], abs=0.01)
    with Image.open(outputs[2]) as image:
        assert "spectrod-levels" in image.info


@pytest.mark.slow
def test_levels_of_a_stored_recording_are_the_same(sound, tmp_path):
    """Stored and converted rows of an LTSA give the same levels as a direct count."""
    rows, at_once, later = (tmp_path / name for name in ("x.spd", "a.npz", "b.npz"))
    both = ("--engine", "numpy")
    assert run("record", sound, "-o", rows, "--view", "ltsa", *both) == 0
    assert run("record", sound, "-o", at_once, "--view", "spd", *both) == 0
    assert run("convert", rows, later, "--view", "spd") == 0
    one, other = read_npz(at_once), read_npz(later)
    assert np.array_equal(one.counts, other.counts)
    assert one.mean == pytest.approx(other.mean, abs=1e-9)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["-o", "x.pgm", "--view", "spd"], "x.pgm: level statistics: suffix must be one of .png"),
        (["-o", "x.png", "--view", "spd", "--time-per-pixel", "1"], "--view spd has no time axis"),
    ],
)
def test_an_impossible_view_is_refused(sound, tmp_path, monkeypatch, capsys, flags, text):
    """An impossible view is refused with the value and the rule, and no file is made."""
    monkeypatch.chdir(tmp_path)
    assert run("record", sound, *flags, "--engine", "numpy") == 2
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_recorder_that_sleeps_has_a_picture_without_stripes(tmp_path):
    """Of 2 s each 100 s for four hours no column is missing, but those of the lost file."""
    folder = tmp_path / "card"
    folder.mkdir()
    rng = np.random.default_rng(9)
    for k in np.delete(np.arange(144), 60):
        name = np.datetime64(1_777_593_600 + 100 * int(k), "s").item().strftime("%Y%m%d_%H%M%S.WAV")
        soundfile.write(folder / name, rng.normal(0.0, 0.1, 2 * 4000), 4000, "PCM_16")
    arguments = ["--view", "ltsa", "--width", "700", "--height", "64", "--engine", "numpy"]
    rows, drawn, converted = (tmp_path / name for name in ("x.spd", "x.png", "y.png"))
    assert run("record", folder, "-o", drawn, "-o", rows, *arguments) == 0
    assert run("convert", rows, converted, "--width", "700", "--height", "64") == 0
    for path in (drawn, converted):
        levels = read_levels(path)
        is_missing = np.isnan(levels.level).all(axis=0)
        np.testing.assert_array_equal(is_missing, levels.t // 100.0 == 60)
        assert levels.pixels.period_s == 100.0
        assert levels.pixels.gaps == 142


@pytest.fixture
def card(tmp_path):
    """Make 60 recordings of 1 s, one each 40 s, of noise with a tone."""
    folder = tmp_path / "card"
    folder.mkdir()
    tone = 0.1 * np.sqrt(2.0) * np.sin(2.0 * np.pi * 1000.0 * np.arange(4000) / 4000)
    rng = np.random.default_rng(11)
    for k in range(60):
        name = np.datetime64(1_777_593_600 + 40 * k, "s").item().strftime("%Y%m%d_%H%M%S.WAV")
        soundfile.write(folder / name, tone + rng.normal(0.0, 1e-3, 4000), 4000, "PCM_16")
    return folder


def test_levels_of_a_recorder_that_sleeps(card, tmp_path, capsys):
    """Rows fit the recordings; a rate that does not is refused with one that does."""
    found = tmp_path / "x.npz"
    arguments = ["record", card, "-o", found, "--view", "spd", "--engine", "numpy"]
    assert run(*arguments, "--rate-hz", "0.1") == 2
    error = capsys.readouterr().err
    assert "--rate-hz 0.1: a row needs 5.5 s of sound in a row, and there are 1 s" in error
    assert error.endswith("give --rate-hz 2\n")
    assert not found.exists()
    for rate, n_rows in (("2", 120), ("", 60)):
        assert run(*arguments, *(["--rate-hz", rate] if rate else [])) == 0
        levels = read_npz(found)
        assert levels.n_rows == n_rows
        value = round(1000.0 / levels.spec.delta_f)
        tone_db = -20.0 - 10.0 * np.log10(levels.spec.enbw_hz)
        assert levels.exceeded(50.0)[0, value] == pytest.approx(tone_db, abs=0.2)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_pictures_of_statistics_are_repeated(tmp_path, suffix):
    """--like gives the next picture the axes and looks of the old one; flags override them."""
    loud, quiet = (str(tmp_path / f"{name}.wav") for name in ("loud", "quiet"))
    x = np.random.default_rng(1).standard_normal(8 * 8000)
    soundfile.write(loud, 0.1 * x, 8000)
    soundfile.write(quiet, 0.001 * x, 8000)
    old, new = (tmp_path / f"{name}{suffix}" for name in ("old", "new"))
    view = ["--view", "spd", "--engine", "numpy"]
    looks = ["--theme", "dark", "--width", "300", "--height", "90", "--f-min", "100"]
    assert run("record", loud, "-o", old, *view, *looks, "--f-scale", "linear") == 0
    assert run("record", quiet, "-o", new, *view, "--like", old, "--width", "250") == 0
    before, after = map(read_statistics_picture, (old, new))
    for name in ("f_scale", "f_min_hz", "f_max_hz", "level_min", "level_max"):
        assert getattr(after, name) == getattr(before, name)
    assert (after.f_scale, after.f_min_hz) == ("linear", 100.0)
    assert (after.options["theme"], after.options["height"]) == ("dark", 90)
    assert (before.options["width"], after.options["width"]) == (300, 250)
    spectrogram = tmp_path / "s.png"
    assert run("record", quiet, "-o", spectrogram, "--like", old, "--engine", "numpy") == 0
    assert read_statistics_picture(spectrogram) is None
    assert read_pixel_map(spectrogram).level_max == before.level_max
