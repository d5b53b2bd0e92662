"""``spectrod record --like``, and picture flags."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest
import soundfile
from PIL import Image

from spectrod.cli import main
from spectrod.formats.picture.axes import FREQUENCY_SCALES, FrequencyAxis
from spectrod.formats.picture.pixelmap import read_levels, read_pixel_map

FS = 8000


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    n = np.arange(4 * FS + 123)
    left = 0.1 * np.sin(2 * np.pi * 1000 * n / FS)
    samples = np.stack([left, rng.normal(0.0, 0.01, n.size)], axis=1)
    soundfile.write("x.wav", samples, FS, subtype="FLOAT")


def record(*arguments):
    return main(["record", "x.wav", "--engine", "numpy", *arguments])


START = ("--start-time", "2026-05-01T04:30:00Z")
LOOKS = (
    *("--width", "300", "--height", "70", "--f-scale", "mel", "--f-max", "3500"),
    *("--percentiles", "2,99.5", "--dynamic-range", "55.5", "--colormap", "magma_r"),
    *("--theme", "dark", "--strips", "waveform,level", "--channel-names", "left,right"),
    *START,
    *("--win-length", "300", "--hop", "130", "--window", "blackman", "--scaling", "density"),
)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "pgm", "svg"])
def test_like_repeats_a_picture_of_any_format(tmp_path, suffix):
    """The settings stored in a picture of any format reproduce it byte for byte."""
    assert record("-o", f"a.{suffix}", *LOOKS) == 0
    assert record("-o", f"b.{suffix}", "--like", f"a.{suffix}", *START) == 0
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_flags_override_the_settings_of_an_old_picture():
    """A flag overrides the old picture's setting and replaces its alternatives."""
    assert record("-o", "a.png", *LOOKS) == 0
    changes = ("--levels=-90,-10", "--win-length", "512", "--theme", "light", "--raw")
    assert record("-o", "b.png", "--like", "a.png", *changes) == 0
    old, new = read_pixel_map("a.png"), read_pixel_map("b.png")
    assert (new.level_min, new.level_max) == (-90.0, -10.0)
    assert (new.win_length, new.hop, new.window) == (512, 130, "blackman")
    assert new.options == {
        **{name: old.options[name] for name in ("width", "height", "f_scale", "f_max", "colormap")},
        "signals": ["left", "right"],
        "levels": [-90.0, -10.0],
        "raw": True,
    }
    with Image.open("b.png") as image:
        assert image.size == (300, 140)


def test_a_new_recording_has_its_own_title_and_times(tmp_path):
    """A new recording repeats neither the title nor the times of the old picture."""
    assert record("-o", "a.svg", "--title", "Old", "--duration", "1") == 0
    assert record("-o", "b.svg", "--like", "a.svg") == 0
    assert "<title>x.wav</title>" in (tmp_path / "b.svg").read_text()
    assert read_pixel_map("b.svg").duration_s > 3.9


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--like", "x.wav"], "x.wav: not a readable picture"),
        (["--like", "y.png"], "y.png: No such file or directory"),
        (["--percentiles", "5"], "--percentiles=5: must be two numbers of percent, as in 5,99.9"),
        (["--strips", "sonogram"], "strips=sonogram: must be waveform and level, or one of them"),
        (["--channel-names", "a"], "signals=a: must be as many names as channels, 2"),
        (["--channel-names", "a,a", "--channels-as", "files"], "signals=a,a: must be different"),
        (["--dynamic-range", "0"], "dynamic_range_db=0: must be 1 to 300 dB"),
        (["--raw", "--strips", "level"], "strips=level: a raw picture has none"),
    ],
)
def test_an_impossible_picture_is_one_line(tmp_path, capsys, arguments, text):
    """Each broken rule is one line before anything is recorded, and leaves no file."""
    assert record("-o", "a.png", *arguments) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.wav"]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_channels_have_files_of_their_own(tmp_path, suffix):
    """Each file shows one channel, named in the file name, in the same colours."""
    arguments = ("--channels-as", "files", "--channel-names", "left,a/b", "--strips", "level")
    assert record("-o", f"a.{suffix}", *arguments) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["x.wav", f"a-left.{suffix}", f"a-a-b.{suffix}"])
    left, right = read_pixel_map(f"a-left.{suffix}"), read_pixel_map(f"a-a-b.{suffix}")
    assert len(left.plots) == len(right.plots) == 1
    assert (left.level_min, left.level_max) == (right.level_min, right.level_max)
    if suffix == "png":
        tone = read_levels("a-left.png")
        assert tone.f[int(np.argmax(tone.level[:, 500]))] == pytest.approx(1000, abs=FS / 256)


@pytest.mark.parametrize("f_scale", FREQUENCY_SCALES)
def test_a_tone_is_at_its_frequency_on_every_axis(f_scale):
    """The loudest row is that of the tone on every axis."""
    assert record("-o", "a.png", "--f-scale", f_scale, "--win-length", "1024") == 0
    tone = read_levels("a.png")
    pixels = tone.pixels
    assert pixels.f_scale == f_scale
    axis = FrequencyAxis(f_scale, pixels.f_min_hz, pixels.f_max_hz)
    row = int(axis.fraction(1000.0) * len(tone.f))
    column = tone.level[:, 500]
    assert column[row] == column.max()
    assert column[np.abs(tone.f - 1000.0) > 40.0].max() < column[row] - 20.0


def texts_of(path):
    root = ET.fromstring(path.read_bytes())  # noqa: S314 - our own
    return {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_strips_are_of_samples_or_else_of_rows(tmp_path, capsys):
    """A recording of spectra has a level strip but no waveform or peaks; samples have all."""
    assert record("-o", "a.svg", "-o", "x.spd", "--strips", "waveform,level") == 0
    assert {"waveform", "peak, RMS"} < texts_of(tmp_path / "a.svg")
    of_rows = ["record", "x.spd", "--like", "a.svg", "-o"]
    assert main([*of_rows, "b.svg", "--strips", "level"]) == 0
    texts = texts_of(tmp_path / "b.svg")
    assert "RMS" in texts
    assert not texts & {"waveform", "peak, RMS"}
    assert main([*of_rows, "c.svg"]) == 2
    assert "strips=waveform: x.spd has no samples, only spectra" in capsys.readouterr().err
    assert main(["convert", "x.spd", "c.svg", "--like", "b.svg", "--raw"]) == 0
    assert not texts_of(tmp_path / "c.svg")


def test_bands_and_weighting_are_repeated(tmp_path):
    """A picture of weighted bands is repeated as such unless a flag overrides it."""
    assert record("-o", "a.pgm", "--bands", "octave", "--weighting", "A") == 0
    assert record("-o", "b.pgm", "--like", "a.pgm") == 0
    assert record("-o", "c.pgm", "--like", "a.pgm", "--weighting", "C") == 0
    old, new, other = (read_pixel_map(tmp_path / name) for name in ("a.pgm", "b.pgm", "c.pgm"))
    assert (old.bands, old.weighting) == (new.bands, new.weighting) == ("octave", "A")
    assert (other.bands, other.weighting) == ("octave", "C")


def test_pictures_of_a_recording_repeat_the_look_of_any_picture(tmp_path):
    """A stored recording takes the look of any picture and keeps its own analysis."""
    assert record("-o", "a.pgm", "-o", "a.spd", *LOOKS) == 0
    old = (tmp_path / "a.pgm").read_bytes()
    (tmp_path / "a.pgm").write_bytes(old.replace(b'"weighting": "Z"', b'"weighting": "A"'))
    again = ["record", "a.spd", "-o", "b.pgm", "--like", "a.pgm", "--strips", "level"]
    assert main(again) == 0
    new = read_pixel_map("b.pgm")
    assert (new.win_length, new.hop, new.weighting) == (300, 130, "Z")
    assert (new.options["colormap"], new.options["theme"]) == ("magma_r", "dark")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--win-length", "512"], "--win-length 512"),
        (["--scaling", "density"], "--scaling density"),
        (["--iq"], "--iq"),
        (["--select", "0"], "--select 0"),
        ([*START], "--start-time 2026-05-01T04:30:00Z"),
        (["--latency-ms", "5"], "--latency-ms 5"),
    ],
)
def test_flags_for_samples_are_refused_for_spectra(tmp_path, capsys, arguments, reported):
    """A flag for samples is refused for stored spectra, where it has no effect."""
    assert record("-o", "a.spd") == 0
    for source in ("a.spd", "tcp://127.0.0.1:9"):
        assert main(["record", source, "-o", "b.png", *arguments]) == 2
        text = f"{reported}: is for samples, and {source} has spectra"
        assert capsys.readouterr().err.strip().endswith(text)
    assert not (tmp_path / "b.png").exists()
