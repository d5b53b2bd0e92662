"""Constant-Q transforms against direct sums of products in float64."""

import numpy as np
import pytest

from spectrod import Stft, spectrogram
from spectrod.dsp.units import FULL_SCALE_SINE_FS2

FS, WIN_LENGTH, HOP = 22050.0, 4001, 1500


def noise(n, channels=1, seed=1):
    x = np.random.default_rng(seed).uniform(-0.5, 0.5, (channels, n))
    return x.astype(np.float32)


def direct(x, f, per_octave, gamma, first, win_length=WIN_LENGTH):
    """Return the mean square in a filter, of the frame that begins at a sample."""
    r = 2.0 ** (1.0 / per_octave)
    alpha = (r**2 - 1.0) / (r**2 + 1.0)
    length = FS / (alpha * (f + (24.7 / 0.108 if gamma else 0.0)))
    before, after = int(np.ceil(length / 2.0)), int(np.floor(length / 2.0))
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(before + after) / (before + after))
    n = np.arange(-before, after)
    middle = first + (win_length + 1) // 2
    tone = np.exp(-2j * np.pi * f * n / FS)
    sums = np.sum(x[middle - before : middle + after].astype(np.float64) * hann * tone)
    return 2.0 * np.abs(sums / hann.sum()) ** 2


@pytest.mark.parametrize("name", ["cqt:12", "vqt:5"])
def test_filters_are_direct_sums(name):
    """Every value is the sum of products of a Hann-windowed tone with the middle of the frame."""
    kind, per_octave = name.split(":")
    x = noise(3 * HOP + WIN_LENGTH)
    s = spectrogram(x, FS, bands=name, win_length=WIN_LENGTH, hop=HOP, scaling="spectrum")
    assert s.values.shape == (1, len(s.f), 4)
    assert s.engine == "numpy"
    expected = [
        [direct(x[0], f, int(per_octave), kind == "vqt", row * HOP) for row in range(4)]
        for f in s.f
    ]
    np.testing.assert_allclose(s.values[0], expected, rtol=2e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["cqt:12", "cqt:24", "vqt:12"])
def test_a_tone_has_its_level_in_the_filter_at_its_frequency(name):
    """A sine of amplitude 0.5 at 440 Hz has -6.02 dBFS there, and most in no other filter."""
    x = 0.5 * np.sin(2.0 * np.pi * 440.0 * np.arange(8192) / FS)
    s = spectrogram(x, FS, bands=name, win_length=8192, hop=512, scaling="dbfs")
    assert s.f[np.argmax(s.values[:, 0])] == pytest.approx(440.0)
    assert s.values[:, 0].max() == pytest.approx(-6.0206, abs=2e-3)
    assert s.broadband[0] == pytest.approx(-6.0206, abs=2e-3)


def test_white_noise_has_its_density_in_every_filter():
    """The density of white noise is the same in every filter, whatever its bandwidth."""
    x = np.random.default_rng(4).standard_normal(1 << 18)
    s = spectrogram(x, FS, bands="vqt:6", win_length=2048, hop=128, scaling="density")
    density = s.values.mean(axis=1)
    np.testing.assert_allclose(10.0 * np.log10(density * FS / 2.0), 0.0, atol=0.5)
    assert s.broadband.mean() == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("sample_format", [np.int16, np.float32])
@pytest.mark.parametrize("block", [97, 5000])
def test_results_do_not_depend_on_the_blocks(sample_format, block):
    """A stream of blocks of any size has the values of the whole signal, to the bit."""
    x = (noise(9000, 2) * 32767).astype(np.int16)
    x = x if sample_format == np.int16 else (x / 32768.0).astype(np.float32)
    settings = {
        "bands": "cqt:7",
        "win_length": 1999,
        "hop": 301,
        "scaling": "dbfs",
        "weighting": "A",
    }
    whole = spectrogram(x, FS, **settings)
    stft = Stft(FS, channels=2, engine="numpy", **settings)
    batches = []
    for first in range(0, x.shape[1], block):
        batches += stft.push(x[:, first : first + block])
    batches += stft.finish()
    values = np.concatenate([batch.values for batch in batches])
    np.testing.assert_array_equal(values.transpose(1, 2, 0), whole.values)


def test_filters_are_weighted_by_the_curve_at_their_centre():
    """A weighting multiplies each filter's power by the curve at its centre frequency."""
    from spectrod.dsp.weighting import power_factors  # noqa: PLC0415 - only here

    x = noise(6000)
    plain = spectrogram(x, FS, bands="cqt:6", win_length=4096, hop=900, scaling="spectrum")
    weighted = spectrogram(
        x, FS, bands="cqt:6", win_length=4096, hop=900, scaling="spectrum", weighting="A"
    )
    factors = power_factors("A", plain.f)[:, None]
    np.testing.assert_allclose(weighted.values[0], plain.values[0] * factors, rtol=1e-6)
    level = spectrogram(x, FS, bands="cqt:6", win_length=4096, hop=900, scaling="dbfs")
    np.testing.assert_allclose(
        10.0 ** (level.values / 10.0) * FULL_SCALE_SINE_FS2, plain.values, rtol=1e-5
    )
