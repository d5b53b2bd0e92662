"""The constant-Q transform against librosa's."""

import numpy as np
import pytest

from spectrod import spectrogram

FS, HOP, WIN_LENGTH = 22050, 512, 32767
N = (1 << 17) + 1
FIRST = (WIN_LENGTH + 1) // 2 // HOP
"""librosa's frame with the middle of our first one."""
OCTAVES, PER_OCTAVE = 8, 12

pytestmark = pytest.mark.extended


def signals():
    t = np.arange(N) / FS
    octaves_s = np.log(10500.0 / 30.0) / t[-1]
    tones = 30.0 * 1.31 ** np.arange(21)
    return {
        "noise": np.random.default_rng(3).uniform(-0.5, 0.5, N),
        "chirp": 0.5 * np.sin(2.0 * np.pi * 30.0 * np.expm1(octaves_s * t) / octaves_s),
        "tones": sum(0.02 * np.sin(2.0 * np.pi * f * t + f) for f in tones),
    }


@pytest.fixture(scope="module")
def librosa():
    """Import librosa, which takes seconds."""
    librosa = pytest.importorskip("librosa", reason="is of the group reference")
    assert callable(librosa.cqt)  # it loads its modules when they are used
    return librosa


def of_spectrod(x, n_filters=OCTAVES * PER_OCTAVE):
    """Return frequencies and magnitudes, (filters, frames), of filters from 32.7 Hz on."""
    found = spectrogram(
        x.astype(np.float32), FS, bands=f"cqt:{PER_OCTAVE}", win_length=WIN_LENGTH, hop=HOP,
        scaling="spectrum", engine="numpy",
    )  # fmt: skip
    first = int(np.argmin(np.abs(found.f - 32.703)))
    kept = slice(first, first + n_filters)
    return found.f[kept], np.sqrt(found.values[kept] / 2.0)


def of_librosa(librosa, x, f, n_frames, **settings):
    """Return magnitudes of filters of norm L1, (filters, frames)."""
    found = librosa.cqt(
        x.astype(np.float32), sr=FS, hop_length=HOP, fmin=float(f[0]), n_bins=len(f),
        bins_per_octave=PER_OCTAVE, scale=False, tuning=0.0, **settings,
    )  # fmt: skip
    lengths = librosa.filters.wavelet_lengths(freqs=f, sr=FS)[0]
    return np.abs(found[:, FIRST : FIRST + n_frames]) / lengths[:, np.newaxis]


def correlation(one, other):
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def test_filters_are_librosas(librosa):
    """Sums of products with librosa's filters have the same magnitudes."""
    x = signals()["noise"]
    f, magnitudes = of_spectrod(x)
    filters, _ = librosa.filters.wavelet(freqs=f, sr=FS, norm=1, pad_fft=False)
    before = filters.shape[1] // 2
    for row in (0, 50):
        middle = (FIRST + row) * HOP
        part = x[middle - before : middle - before + filters.shape[1]]
        expected = np.abs(filters.conj() @ part)
        np.testing.assert_allclose(magnitudes[:, row], expected, rtol=0, atol=3e-8)


@pytest.mark.parametrize("name", signals())
def test_octaves_of_librosa(librosa, name):
    """Each octave correlates with librosa's to 0.999; without its decimation it is the same.

    librosa applies its filters reversed in time, so the reversed signal is analysed here. It
    decimates the signal for all octaves but the highest two of these.
    """
    x = signals()[name]
    f, magnitudes = of_spectrod(x[::-1])
    magnitudes = magnitudes[:, ::-1]
    for octave in range(OCTAVES):
        here = slice(octave * PER_OCTAVE, (octave + 1) * PER_OCTAVE)
        own = magnitudes[here]
        theirs = of_librosa(librosa, x, f[here], own.shape[1])
        assert correlation(own, theirs) > 0.9997, octave
        exact = of_librosa(librosa, x, f[here], own.shape[1], sparsity=0.0)
        assert correlation(own, exact) > (0.99999 if octave >= OCTAVES - 2 else 0.9997), octave


@pytest.mark.parametrize("name", signals())
def test_all_octaves_of_librosa(librosa, name):
    """The eight octaves at once correlate to 0.9995."""
    x = signals()[name]
    f, magnitudes = of_spectrod(x[::-1])
    theirs = of_librosa(librosa, x, f, magnitudes.shape[1])
    assert correlation(magnitudes[:, ::-1], theirs) > 0.9995


def test_filters_near_half_the_rate(librosa):
    """With filters up to fs/2 the correlation is 0.98: librosa attenuates those of other octaves.

    Its octaves count from the highest filter. The two highest of each lower octave then lie beyond
    the low-pass of its decimation.
    """
    x = signals()["noise"]
    f, magnitudes = of_spectrod(x[::-1], OCTAVES * PER_OCTAVE + 5)
    theirs = of_librosa(librosa, x, f, magnitudes.shape[1])
    assert 0.97 < correlation(magnitudes[:, ::-1], theirs) < 0.99
    gains = np.median(theirs / magnitudes[:, ::-1], axis=1)[5:].reshape(-1, PER_OCTAVE)
    np.testing.assert_allclose(gains[:-1, :-2], 1.0, atol=0.01)
    assert (gains[:-1, -2] < 0.99).all()
    assert (gains[:-1, -1] < 0.68).all()
