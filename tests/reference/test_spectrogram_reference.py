"""The library's numbers against SciPy's in float64, and a tone of known level."""

import numpy as np
import pytest
from scipy import signal

import spectrod
from spectrod.dsp.windows import WINDOW_NAMES

pytestmark = pytest.mark.opencl

FS = 48000.0
NAMES = [name for name in WINDOW_NAMES if name != "kaiser:BETA"] + ["kaiser:8.6"]
TOLERANCE = 3e-7  # of float32: relative L2 error against float64


def short_time_fft(x, window, win_length, hop, nfft):
    """One-sided PSD by scipy.signal.ShortTimeFFT in float64, whole frames only."""
    scipy_name = {"rectangular": "boxcar", "kaiser:8.6": ("kaiser", 8.6)}.get(window, window)
    taper = signal.get_window(scipy_name, win_length, fftbins=True)
    transform = signal.ShortTimeFFT(
        taper, hop, FS, fft_mode="onesided2X", mfft=nfft, scale_to="psd", phase_shift=None
    )
    n_frames = (len(x) - win_length) // hop + 1
    # Its slices are centred: slice p of the shifted signal is our frame p.
    first = -(-transform.m_num_mid // hop)
    shifted = np.concatenate([np.zeros(first * hop - transform.m_num_mid), x])
    spectra = transform.stft(shifted, p0=first, p1=first + n_frames)
    return np.square(np.abs(spectra))


def relative_l2(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


@pytest.mark.forms(4)
@pytest.mark.slow
@pytest.mark.parametrize("window", NAMES)
@pytest.mark.parametrize("nfft", [64, 128, 256, 512, 1024, 2048, 4096, 8192])
def test_against_short_time_fft(window, nfft):
    """Any window, size, odd hop and zero-padding agree with float64 to float32's accuracy."""
    x = np.random.default_rng(nfft).uniform(-1, 1, 8 * nfft)
    for win_length, hop in ((nfft, nfft // 2), (nfft, nfft // 3 | 1), (nfft - 7, nfft // 4 + 1)):
        own = spectrod.spectrogram(x, FS, window=window, win_length=win_length, hop=hop, nfft=nfft)
        expected = short_time_fft(x.astype(np.float32), window, win_length, hop, nfft)
        assert own.values.shape == expected.shape
        assert relative_l2(own.values, expected) <= TOLERANCE


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("frequency_hz", [1000.0, 85 * FS / 4096, 85.5 * FS / 4096])
def test_tone_reads_its_level(engine, frequency_hz):
    """A -20 dBFS tone reads -20.00 +- 0.05 dBFS with the flat-top window, on and between bins."""
    n = np.arange(48000)
    x = 0.1 * np.sin(2 * np.pi * frequency_hz * n / FS)
    s = spectrod.spectrogram(x, FS, window="flattop", scaling="dbfs", engine=engine)
    peak = s.values.max(axis=0)
    np.testing.assert_allclose(peak, -20.0, atol=0.05)
    assert np.all(np.abs(s.f[s.values.argmax(axis=0)] - frequency_hz) <= s.spec.delta_f)


def test_density_of_white_noise():
    """White noise of known variance reads variance / (fs/2) in every part of the spectrum."""
    rms = 0.1
    x = np.random.default_rng(5).standard_normal(1 << 19) * rms
    s = spectrod.spectrogram(x, FS, window="blackmanharris", win_length=1024)
    parts = s.values[1:-1].reshape(-1, 7, s.values.shape[1]).mean(axis=(1, 2))
    np.testing.assert_allclose(10 * np.log10(parts / (rms**2 / (FS / 2))), 0.0, atol=0.5)
    total = s.values.mean(axis=1).sum() * s.spec.delta_f
    assert 10 * np.log10(total / rms**2) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize(
    ("scaling", "amplitude", "limit"),
    [("density", 1e-19, 1e-4), ("density", 1e-21, 0.02), ("density", 1e-22, 1.0),
     ("spectrum", 1e-21, 0.01), ("spectrum", 1e-22, 0.2), ("spectrum", 1e-23, 1.0)],
)  # fmt: skip
def test_powers_at_the_end_of_float32(scaling, amplitude, limit):
    """Powers below 1e-38 lose digits, and those below 1e-45 are 0, as the docs say."""
    n = np.arange(4096)
    x = np.sin(2.0 * np.pi * 100.0 / 4096 * n)
    found = [
        spectrod.spectrogram(a * x, FS, win_length=4096, scaling=scaling, engine="numpy").values
        for a in (1.0, amplitude)
    ]
    ratio = float(found[1][100, 0]) / (float(found[0][100, 0]) * amplitude**2)
    assert abs(ratio - 1.0) <= limit
    assert (ratio == 0.0) == (limit == 1.0)
