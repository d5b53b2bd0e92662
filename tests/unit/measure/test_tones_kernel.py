"""The window's kernel: exact frequency and level of one tone, and their uncertainty in noise."""

import numpy as np
import pytest
from scipy import signal

from spectrod.dsp.windows import get_window, make_window, unknown_window
from spectrod.lib.errors import ConfigError
from spectrod.measure.tones.kernel import leakage_envelope, tone_leakage, window_kernel

WINDOWS = [
    "rectangular",
    "hann",
    "hamming",
    "blackman",
    "nuttall",
    "blackmanharris",
    "flattop",
    "bartlett",
    "kaiser:8.6",
    "kaiser:14",
]
LENGTHS = [(1024, 1024), (1001, 1500), (1000, 4096), (17, 64)]


def power_of_tones(window, nfft, bins, noise=0.0, seed=1):
    """Return the power spectra, (tones, nfft), of complex tones of amplitude 1 and of noise."""
    n = len(window.samples)
    x = np.exp(2j * np.pi * np.asarray(bins)[:, np.newaxis] * np.arange(n) / nfft)
    parts = np.random.default_rng(seed).standard_normal((2, *x.shape))
    x += noise * (parts[0] + 1j * parts[1]) / np.sqrt(2.0)
    return np.abs(np.fft.fft(window.samples * x, nfft) / window.s1) ** 2


def interpolated(window, nfft, power):
    """Return the frequencies [bins], powers and offsets of the highest bins of spectra."""
    kernel = window_kernel(window, nfft)
    k = np.argmax(power, axis=-1)
    rows = np.arange(len(power))
    near = (power[rows, (k + by) % nfft] for by in (-kernel.step, 0, kernel.step))
    offset, found = kernel.interpolate(*near)
    return k + offset, found, offset


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(("n", "nfft"), LENGTHS)
def test_one_tone_is_exact(name, n, nfft):
    """One tone at any fraction of a bin has its frequency to 1e-7 bins, its level to 1e-6 dB."""
    window = get_window(name, n)
    offsets = np.append(np.random.default_rng(2).uniform(-0.5, 0.5, 60), [0.0, 0.5, -0.5, 1e-7])
    bins = nfft // 4 + offsets
    found, power, _ = interpolated(window, nfft, power_of_tones(window, nfft, bins))
    assert np.abs(found - bins).max() < 1e-7
    assert np.abs(10.0 * np.log10(power)).max() < 1e-6


def test_array_of_any_shape_is_exact():
    """An asymmetric window, given as an array, is inverted like the named ones."""
    samples = signal.windows.exponential(500, center=0, tau=200, sym=False)
    window = make_window(samples * signal.windows.hann(500, sym=False), 500)
    bins = 200 + np.linspace(-0.5, 0.5, 21)
    found, power, _ = interpolated(window, 512, power_of_tones(window, 512, bins))
    assert np.abs(found - bins).max() < 1e-7
    assert np.abs(10.0 * np.log10(power)).max() < 1e-6


def test_hann_agrees_with_its_closed_form():
    """For Hann the ratio r of two bins gives the offset (2 r - 1) / (1 + r)."""
    kernel = window_kernel(get_window("hann", 4096), 4096)
    r = np.linspace(0.5, 1.0, 101)
    offset, power = kernel.interpolate(np.zeros(101), np.ones(101), r**2)
    closed = (2.0 * r - 1.0) / (1.0 + r)
    np.testing.assert_allclose(offset, closed, atol=1e-8)
    level = (1.0 - closed**2) / np.sinc(closed)
    np.testing.assert_allclose(np.sqrt(power), level, rtol=1e-6)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(("n", "nfft"), [(256, 256), (200, 512)])
def test_deviation_is_that_of_simulated_noise(name, n, nfft):
    """Stated standard deviations are those of tones in noise anywhere in a bin, within 12 %.

    They are never below the Cramer-Rao bounds.
    """
    window, sigma = get_window(name, n), 1e-3
    for fraction in (0.05, 0.3, 0.5):
        bins = np.full(800, nfft // 4 + fraction)
        power = power_of_tones(window, nfft, bins, sigma)
        found, level, offset = interpolated(window, nfft, power)
        noise = sigma**2 * window.s2 / window.s1**2
        none, sides = np.zeros(800), np.ones(800)
        stated, stated_db = window_kernel(window, nfft).deviation(
            offset, np.full(800, noise), none, sides
        )
        assert np.sqrt(np.mean((found - bins) ** 2)) == pytest.approx(np.median(stated), rel=0.12)
        errors_db = 10.0 * np.log10(level)
        assert np.sqrt(np.mean(errors_db**2)) == pytest.approx(np.median(stated_db), rel=0.12)
        rho = n / sigma**2
        assert np.median(stated) > 0.999 * np.sqrt(6.0 / (4.0 * np.pi**2 * rho)) * nfft / n
        assert np.median(stated_db) > 0.999 * 20.0 / np.log(10.0) / np.sqrt(2.0 * rho)


def test_leakage_is_that_of_a_tone():
    """The shares of a tone's energy are those of its spectrum, and sum to 1."""
    window = get_window("hann", 100)
    power = power_of_tones(window, 128, [30.3])[0]
    share = tone_leakage(window, 128, 0.3)
    np.testing.assert_allclose(np.roll(share, 30), power / power.sum(), atol=1e-15)
    assert share.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", WINDOWS)
def test_envelope_bounds_the_leakage(name):
    """No bin shows more of a tone than the envelope at half a bin less than its distance."""
    window = get_window(name, 200)
    envelope = leakage_envelope(window, 256)
    assert (np.diff(envelope) <= 0.0).all()
    for fraction in np.linspace(-0.5, 0.5, 9):
        power = power_of_tones(window, 256, [64 + fraction])[0]
        distance = np.abs(np.arange(193) - 64)
        bound = envelope[np.maximum(0, 2 * distance - 1)]
        assert (power[:193] <= bound * 1.2 + 1e-25).all()


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (unknown_window(64, 1.5), r"window='custom': its samples are unknown, no tone is measured"),
        (make_window(np.r_[np.ones(8), np.zeros(48), np.ones(8)], 64), r"does not fall from the"),
    ],
)
def test_windows_without_a_kernel_are_refused(window, text):
    """A window of unknown samples, and one with two lobes, give no frequency."""
    with pytest.raises(ConfigError, match=text):
        window_kernel(window, 64)


def test_extreme_zero_padding_is_quick():
    """Two samples in a transform of 2^16 points have a kernel, found in few steps."""
    kernel = window_kernel(get_window("rectangular", 2), 1 << 16)
    assert 10_000 < kernel.step < 1 << 14
