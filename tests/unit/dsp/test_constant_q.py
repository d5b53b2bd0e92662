"""Filters of constant-Q transforms: centres, lengths, and what does not fit."""

import numpy as np
import pytest

from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.cli import main
from spectrod.dsp.constant_q import (
    COEFFICIENTS_MAX,
    constant_q_bands,
    filter_groups,
    win_length_from,
)
from spectrod.dsp.notes import bands_left_out
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.formats.picture.framing import window_of_filters
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.lib.errors import ConfigError

FS = 48000.0


def test_centres_are_notes():
    """Twelve filters an octave have the frequencies of equal temperament, A4 at 440 Hz."""
    bands = constant_q_bands("cqt:12", FS, 1 << 16, "hann")
    steps = 12.0 * np.log2(bands.centre / 440.0)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert "440 Hz" in bands.names
    np.testing.assert_allclose(bands.lower[1:], bands.upper[:-1])
    # Q of 12 an octave is 17.3316, and a Hann window's noise bandwidth 1.5 bins.
    lengths = np.ceil(17.3316 * FS / bands.centre)
    np.testing.assert_allclose(bands.width, 1.5 * FS / lengths, rtol=0.03)
    assert bands.centre[-1] * (1.0 + 0.75 / 17.3316) < FS / 2.0


@pytest.mark.parametrize("name", ["cqt:12", "cqt:5", "vqt:24", "vqt:1"])
@pytest.mark.parametrize("win_length", [4096, 5001])
def test_filters_fit_the_frame(name, win_length):
    """All filters lie within the frame, and have the sum 1 at their own frequency."""
    bands = constant_q_bands(name, FS, win_length, "hann")
    done = 0
    for group in filter_groups(name, FS, win_length, "hann"):
        n, columns = group.matrix.shape
        assert 0 <= group.start <= group.start + n <= win_length
        for column in range(columns // 2):
            parts = group.matrix[:, column] + 1j * group.matrix[:, columns // 2 + column]
            places = group.start + np.arange(n) - (win_length + 1) // 2
            tone = np.exp(-2j * np.pi * bands.centre[done] / FS * places)
            assert np.abs(parts @ tone) == pytest.approx(1.0, abs=1e-9)
            done += 1
    assert done == len(bands)


def test_filters_that_are_too_long_are_named():
    """Filters longer than the window are left out and named; a longer window has them all."""
    spec = SpectrumSpec(FS, win_length=8192, bands="cqt:12")
    bands = spec.band_table
    assert bands.unresolved[0] == "20.6017 Hz"
    assert "left out, as filters longer than win_length=8192: 20.6017 Hz" in bands_left_out(spec)
    longer = SpectrumSpec(FS, win_length=spec.resolving_win_length, bands="cqt:12")
    assert (*bands.unresolved, *bands.names) == longer.band_table.names
    assert bands_left_out(longer) == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bands": "cqt:0"}, "bands='cqt:0': '0' must be a whole number, 1 to 96"),
        ({"bands": "vqt:x"}, "bands='vqt:x': 'x' must be a whole number, 1 to 96"),
        ({"bands": "cqt:96", "win_length": 256}, "bands='cqt:96': no filter below fs/2=24000 Hz"),
        (
            {"bands": "cqt:96", "win_length": 1 << 20},
            rf"bands='cqt:96': \d+ coefficients, must be at most {COEFFICIENTS_MAX}",
        ),
        ({"bands": "cqt:12", "output": "complex"}, "bands='cqt:12': complex spectra have none"),
        ({"bands": "cqt:12", "iq": True, "channels": 2}, "bands='cqt:12': I/Q signals have none"),
    ],
)
def test_rules(settings, message):
    """An error about a transform names the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        SpectrumSpec(FS, **settings)


def test_filters_of_a_custom_window_are_refused():
    """A window without a name has no samples for filters of other lengths."""
    with pytest.raises(ConfigError, match="bands='cqt:12': needs a window with a name"):
        constant_q_bands("cqt:12", FS, 4096, "custom")


def test_no_kernel_computes_a_transform():
    """A stage of kernels refuses a constant-Q transform instead of summing bins."""
    with pytest.raises(ConfigError, match="bands='cqt:3': no stage computes them"):
        kernel_spec(SpectrumSpec(FS, bands="cqt:3"))


@pytest.mark.parametrize("name", ["cqt:12", "vqt:12"])
def test_a_picture_shows_a_tone_at_its_frequency(tmp_path, monkeypatch, name):
    """A picture has a logarithmic axis, a tone at its place, and no level at both ends."""
    monkeypatch.chdir(tmp_path)
    command = ["record", "signal:sine,880,-20", "--duration", "2s", "--bands", name]
    size = ["--width", "200", "--height", "200", "--f-min", "100"]
    assert main([*command, "-o", "a.png", *size, "--engine", "numpy"]) == 0
    read = read_levels(tmp_path / "a.png")
    assert read.pixels.f_scale == "log"
    assert read.pixels.engine == "numpy"
    middle = read.level[:, 100]
    shows_tone = read.f[middle > np.nanmax(middle) - 0.2]
    assert shows_tone.mean() == pytest.approx(880.0, rel=0.02)
    assert np.nanmax(middle) == pytest.approx(-20.0, abs=0.15)
    assert np.isnan(read.level[:, [0, -1]]).all()
    assert not np.isnan(middle).any()


@pytest.mark.parametrize(("bands", "seconds"), [("cqt:12", 60), ("vqt:24", 60.1)])
def test_the_default_filters_of_a_picture_reach_down_to_c1_or_20_hz(bands, seconds):
    """With a long recording the window holds the lowest filter."""
    lowest_hz = 32.7 if bands.startswith("cqt") else 20.0
    assert window_of_filters(bands, FS, None, int(seconds * FS)) == win_length_from(
        bands, FS, lowest_hz
    )
    assert window_of_filters(bands, FS, None, None) == win_length_from(bands, FS, lowest_hz)


def test_the_default_filters_of_a_picture_leave_most_of_a_short_recording():
    """Half of the window is missing at each end, so that it is at most a quarter, unless asked."""
    assert window_of_filters("cqt:24", FS, None, 68545) == 68545 // 4
    assert window_of_filters("cqt:24", FS, None, 100) == 2048
    assert window_of_filters("cqt:24", FS, 32.7, 68545) == win_length_from("cqt:24", FS, 32.7)
