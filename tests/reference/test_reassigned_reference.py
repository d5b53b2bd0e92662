"""The reassigned spectrogram against signals whose time and frequency are known."""

import numpy as np
import pytest

from spectrod import Stft, spectrogram
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.cli import main
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.windows import get_window, window_derivative
from spectrod.formats.picture.pixelmap import read_levels
from spectrod.lib.errors import ConfigError

FS = 8000.0
SETTINGS = {"bands": "reassigned", "win_length": 1024, "scaling": "spectrum"}


def chirp(seconds):
    """Return a sine of amplitude 0.5 that rises from 500 Hz by 500 Hz/s."""
    t = np.arange(int(seconds * FS)) / FS
    return 0.5 * np.sin(2.0 * np.pi * (500.0 * t + 250.0 * t**2))


def width_of(power, f_hz, true_hz):
    """Return the RMS distance of power from the true frequency, per row [Hz]."""
    return np.sqrt((power * (f_hz[:, None] - true_hz) ** 2).sum(axis=0) / power.sum(axis=0))


def test_a_chirp_lies_on_its_ridge():
    """A chirp lies within 0.1 Hz of its frequency, and no wider than it changes in a hop."""
    x = chirp(0.6)
    s = spectrogram(x, FS, hop=128, nfft=8192, **SETTINGS)
    total, true_hz = s.values.sum(axis=0), 500.0 + 500.0 * s.t
    ridge_hz = (s.values * s.f[:, None]).sum(axis=0) / total
    np.testing.assert_allclose(ridge_hz[2:-2], true_hz[2:-2], atol=0.1)
    change_hz = 500.0 * 128 / FS / np.sqrt(12.0)
    assert width_of(s.values, s.f, true_hz)[2:-2].max() < change_hz + 0.2
    plain = spectrogram(x, FS, win_length=512, hop=128, nfft=8192)
    assert width_of(plain.values, plain.f, 500.0 + 500.0 * plain.t).min() > 9.0
    np.testing.assert_allclose(10.0 * np.log10(total / 0.125), 0.0, atol=0.1)


@pytest.mark.parametrize("f_hz", [1000.0, 1003.0, 2777.7])
def test_a_sine_is_in_one_bin(f_hz):
    """A sine has its whole mean square in the bin nearest to it, in every row."""
    x = 0.5 * np.sin(2.0 * np.pi * f_hz / FS * np.arange(4096))
    s = spectrogram(x, FS, hop=200, **SETTINGS)
    nearest = round(f_hz * 1024 / FS)
    np.testing.assert_allclose(s.values[nearest], 0.125, rtol=1e-3)
    np.testing.assert_allclose(s.broadband, 0.125, rtol=1e-3)


@pytest.mark.parametrize("place", [3000, 3037])
def test_a_click_is_in_one_row(place):
    """A click is in the row of its time, with its whole energy."""
    x = np.zeros(8192)
    x[place] = 0.5
    s = spectrogram(x, FS, hop=64, **SETTINGS)
    energy = s.values.sum(axis=0) * 64
    assert abs(s.t[np.argmax(energy)] - place / FS) <= 32 / FS
    assert energy.max() == pytest.approx(0.25, rel=1e-3)
    assert energy.sum() == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize(("hop", "nfft", "window"), [(100, 1024, "hann"), (256, 2000, "nuttall")])
def test_power_is_conserved(hop, nfft, window):
    """Noise has the same energy in all rows together as in the signal, whatever is moved where."""
    x = np.zeros(16384)
    x[4096:12288] = np.random.default_rng(2).standard_normal(8192) * 0.1
    s = spectrogram(x, FS, hop=hop, nfft=nfft, window=window, **SETTINGS)
    assert s.values.sum() * hop == pytest.approx(np.sum(x**2), rel=0.01)
    density = spectrogram(
        x, FS, hop=hop, nfft=nfft, window=window, **(SETTINGS | {"scaling": "density"})
    )
    widths = s.spec.band_table.width[:, None]
    np.testing.assert_allclose(density.values * widths, s.values, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("block", [77, 3000])
def test_results_do_not_depend_on_the_blocks(block):
    """A stream of blocks of any size has the values of the whole signal, to the bit."""
    x = chirp(0.5).astype(np.float32)
    whole = spectrogram(x, FS, hop=100, **SETTINGS)
    stft = Stft(FS, engine="numpy", hop=100, **SETTINGS)
    batches = []
    for first in range(0, len(x), block):
        batches += stft.push(x[first : first + block])
    batches += stft.finish()
    values = np.concatenate([batch.values[:, 0] for batch in batches])
    np.testing.assert_array_equal(values.T, whole.values)


def test_silence_has_no_power():
    """Silence has power 0 everywhere, not a quotient of zeros."""
    s = spectrogram(np.zeros(4096), FS, hop=100, **SETTINGS)
    assert not s.values.any()


@pytest.mark.parametrize("window", ["hann", "blackman", "nuttall", "blackmanharris", "flattop"])
def test_derivatives_are_those_of_the_windows(window):
    """The derivative of a window is that of its samples."""
    n = 4096
    samples = get_window(window, n).samples
    numeric = (np.roll(samples, -1) - np.roll(samples, 1)) / 2.0
    np.testing.assert_allclose(window_derivative(window, n), numeric, atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": "hamming"}, "window='hamming': reassignment needs a window that ends near 0"),
        ({"window": "kaiser:8"}, "window='kaiser:8': reassignment needs a window that ends"),
        ({"hop": 63}, "hop=63: bands='reassigned' needs at least win_length/64, 64"),
        ({"output": "complex"}, "bands='reassigned': complex spectra have none"),
    ],
)
def test_rules(settings, message):
    """An error about reassignment names the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        SpectrumSpec(FS, bands="reassigned", **settings)


def test_no_kernel_reassigns():
    """A stage of kernels refuses reassignment instead of sending plain bins."""
    with pytest.raises(ConfigError, match="bands='reassigned': no stage computes them"):
        kernel_spec(SpectrumSpec(FS, bands="reassigned"))


def test_a_picture_shows_a_tone_at_its_frequency(tmp_path, monkeypatch):
    """A reassigned picture has a tone in the rows of one bin, at its level."""
    monkeypatch.chdir(tmp_path)
    command = ["record", "signal:sine,880,-20", "--duration", "1s", "--bands", "reassigned"]
    size = ["--width", "200", "--height", "200", "--f-max", "2000", "--levels=-60,0"]
    assert main([*command, "-o", "a.png", *size, "--engine", "numpy"]) == 0
    read = read_levels(tmp_path / "a.png")
    middle = read.level[:, 100]
    assert middle.max() == pytest.approx(-20.0, abs=0.3)
    assert read.f[middle > -30.0].mean() == pytest.approx(880.0, abs=12.0)
    assert np.ptp(read.f[middle > -30.0]) < 25.0
