"""Features of rows and acoustic indices: closed cases, straightforward formulas, bad input."""

import numpy as np
import pytest

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.features.indices import (
    acoustic_complexity,
    acoustic_diversity,
    soundscape_index,
)
from spectrod.measure.features.kurtosis import spectral_kurtosis
from spectrod.measure.features.shape import spectral_shape

FS = 48000.0
SPEC = SpectrumSpec(FS, win_length=1024, hop=480)
BINS = SPEC.n_bins


def random_rows(n=40, signals=2, spec=SPEC, seed=6):
    """Return rows of chi-squared densities."""
    return np.random.default_rng(seed).exponential(size=(n, signals, spec.n_bins))


def test_white_rows():
    """Equal bins have the mean frequency, flatness 1, crest 1, entropy 1 and no flux."""
    found = spectral_shape(np.ones((3, BINS)), SPEC)
    f = SPEC.bin_frequencies[1:]
    np.testing.assert_allclose(found.centroid_hz, f.mean())
    np.testing.assert_allclose(found.spread_hz, f.std())
    np.testing.assert_allclose(found.rolloff_hz, f[int(np.ceil(0.85 * len(f))) - 1])
    np.testing.assert_allclose(found.flatness, 1.0)
    np.testing.assert_allclose(found.crest, 1.0)
    np.testing.assert_allclose(found.entropy, 1.0)
    np.testing.assert_allclose(found.flux[1:], 0.0)
    assert np.isnan(found.flux[0, 0])


def test_one_bin():
    """A single bin has its frequency, no spread, no flatness, crest n, and no entropy."""
    rows = np.zeros((2, BINS))
    rows[0, 100], rows[1, 200] = 3.0, 5.0
    found = spectral_shape(rows, SPEC)
    np.testing.assert_allclose(found.centroid_hz[:, 0], [100 * SPEC.delta_f, 200 * SPEC.delta_f])
    np.testing.assert_allclose(found.rolloff_hz, found.centroid_hz)
    np.testing.assert_allclose(found.spread_hz, 0.0, atol=1e-9)
    np.testing.assert_allclose(found.flatness, 0.0)
    np.testing.assert_allclose(found.crest, BINS - 1)
    np.testing.assert_allclose(found.entropy, 0.0)
    assert found.flux[1, 0] == pytest.approx(np.sqrt(2.0))


@pytest.mark.parametrize("scaling", ["spectrum", "dbfs"])
def test_scaling_does_not_matter(scaling):
    """Levels and mean squares give the features of densities, whatever the level."""
    rows = random_rows()
    spec = SpectrumSpec(FS, win_length=1024, hop=480, scaling=scaling)
    scaled = 7.0 * rows * SPEC.enbw_hz
    if scaling == "dbfs":
        scaled = 10.0 * np.log10(scaled / 0.5)
    found, expected = spectral_shape(scaled, spec), spectral_shape(rows, SPEC)
    for name in ("centroid_hz", "spread_hz", "flatness", "crest", "entropy", "flux"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)


def test_band_silence_and_offset():
    """Only the band counts; 0 Hz does not; silence is not a number; a whole share is the top."""
    rows = np.zeros((3, BINS))
    rows[0, 0], rows[0, 50], rows[0, 400] = 1e6, 1.0, 1.0
    rows[1, 0] = 1.0
    found = spectral_shape(rows, SPEC)
    assert found.centroid_hz[0, 0] == pytest.approx(225 * SPEC.delta_f)
    for name in ("centroid_hz", "spread_hz", "rolloff_hz", "flatness", "crest", "entropy", "flux"):
        assert np.isnan(getattr(found, name)[1:]).all(), name
    low = spectral_shape(rows[:1], SPEC, band_hz=(1000.0, 5000.0), rolloff_share=1.0)
    assert low.centroid_hz[0, 0] == pytest.approx(50 * SPEC.delta_f)
    assert low.rolloff_hz[0, 0] == pytest.approx(50 * SPEC.delta_f)


def test_complexity_is_that_of_the_formula():
    """ACI of each block is Pieretti's sum, and its name has the block and the band."""
    rows = random_rows(25)
    found = acoustic_complexity(rows, SPEC, block_s=0.1, band_hz=(2000.0, 8000.0))
    f = SPEC.bin_frequencies
    chosen = (f >= 2000.0) & (f <= 8000.0)
    for block in range(2):
        i = np.sqrt(rows[10 * block : 10 * block + 10][..., chosen])
        expected = (np.abs(i[1:] - i[:-1]).sum(axis=0) / i.sum(axis=0)).sum(axis=-1)
        np.testing.assert_allclose(found.values[block], expected)
    assert found.values.shape == (2, 2)
    assert found.name == "ACI_0.1s_2015.62-7968.75Hz"


def test_complexity_of_constant_and_silent_rows_is_zero():
    """Constant amplitudes, and bins without any, add nothing."""
    rows = np.ones((20, BINS))
    rows[:, 200:] = 0.0
    assert acoustic_complexity(rows, SPEC, block_s=0.1).values.tolist() == [[0.0], [0.0]]


def test_soundscape_index():
    """NDSI is 1 of animals alone, -1 of machines alone, and (b - a)/(b + a) of both."""
    rows = np.zeros((4, 3, BINS))
    f = SPEC.bin_frequencies
    machines, animals = (f > 1100) & (f < 1900), (f > 2100) & (f < 7900)
    rows[:, 0, animals] = rows[:, 1, machines] = 1.0
    rows[:, 2, animals] = rows[:, 2, machines] = 1.0
    found = soundscape_index(rows, SPEC)
    a, b = np.count_nonzero(machines), np.count_nonzero(animals)
    np.testing.assert_allclose(found.values, [1.0, -1.0, (b - a) / (b + a)])
    assert found.name == "NDSI_1000-2000Hz_2000-8000Hz"
    assert np.isnan(soundscape_index(np.zeros((1, BINS)), SPEC).values).all()


def test_diversity():
    """ADI is ln 10 of equal bands, 0 of one, and that of the shares of cells of others."""
    rows = np.full((8, 3, BINS), 1.0)
    f = SPEC.bin_frequencies
    rows[:, 1][:, (f < 3000.0) | (f >= 4000.0)] = 1e-6
    rows[:4, 2][:, f < 5000.0] = 1e-6
    found = acoustic_diversity(rows, SPEC)
    shares = np.repeat([0.5, 1.0], 5) / 7.5
    expected = [np.log(10.0), 0.0, -np.sum(shares * np.log(shares))]
    np.testing.assert_allclose(found.values, expected, atol=1e-12)
    assert found.name == "ADI_0-10000Hz_1000Hz_-50dB"
    assert np.isnan(acoustic_diversity(np.zeros((2, BINS)), SPEC).values).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda r: spectral_shape(r, SPEC, rolloff_share=0.0), "rolloff_share=0: must be above 0"),
        (lambda r: spectral_shape(r, SPEC, band_hz=(5.0, 1.0)), r"band_hz=\(5, 1\): must be two"),
        (lambda r: spectral_shape(r, SPEC, band_hz=(1.0, 2.0)), r"band_hz=\(1, 2\): has no bin"),
        (lambda r: acoustic_complexity(r, SPEC, block_s=0.01), "block_s=0.01: must be at least tw"),
        (lambda r: acoustic_complexity(r, SPEC, block_s=np.nan), "block_s=nan: must be at least"),
        (lambda r: acoustic_complexity(r, SPEC), "40 rows: must be at least 500, block_s=5"),
        (lambda r: soundscape_index(r, SPEC, biophony_hz=(2e3, 3e4)), "channel of 2000 to 30000"),
        (lambda r: acoustic_diversity(r, SPEC, top_hz=3e4), "fs/2=24000 Hz"),
        (lambda r: acoustic_diversity(r, SPEC, width_hz=3e3), "must be a whole number of bands"),
        (lambda r: acoustic_diversity(r, SPEC, width_hz=20.0), "width_hz=20: bands without a bin"),
        (lambda r: acoustic_diversity(r, SPEC, threshold_db=0.0), "threshold_db=0: must be a lev"),
        (lambda r: spectral_shape(r[..., 1:], SPEC), r"rows of shape \(40, 2, 512\): must be"),
    ],
)
def test_bad_input(call, text):
    """Each rule that is violated is one error with the name, the value and the rule."""
    with pytest.raises((ConfigError, InputError), match=text):
        call(random_rows())


@pytest.mark.parametrize("scaling", ["density", "spectrum", "dbfs"])
def test_spectral_kurtosis_is_the_ratio_of_moments(scaling):
    """Of any scaling it is the estimator by NumPy's means of all powers, bin for bin."""
    power = random_rows(41)
    spec = SpectrumSpec(FS, win_length=1024, hop=480, scaling=scaling)
    rows = power if scaling == "density" else power * SPEC.enbw_hz
    rows = 10.0 * np.log10(rows / 0.5) if scaling == "dbfs" else rows
    frequencies, found = spectral_kurtosis(rows, spec)
    np.testing.assert_array_equal(frequencies, SPEC.bin_frequencies[1:])
    moments = (power**2).mean(axis=0) / power.mean(axis=0) ** 2
    expected = 41 / 40 * (42 * moments / 41 - 2.0)
    np.testing.assert_allclose(found, expected[:, 1:], rtol=1e-9, atol=1e-12)


def test_spectral_kurtosis_of_noise_tones_and_pulses():
    """Noise has 0 on average, with its deviation; a steady tone has -1, one pulse in M frames M."""
    m = 200
    rows = random_rows(m, signals=1, seed=8)[:, 0]
    rows[:, 100] = 5.0
    rows[:, 200] = 0.0
    rows[17, 200] = 1.0
    rows[:, 300] = 0.0
    _, found = spectral_kurtosis(rows, SPEC)
    found = found[0]
    assert found[99] == pytest.approx(-1.0, abs=1e-12)
    assert found[199] == pytest.approx(m, rel=1e-12)
    assert np.isnan(found[299])
    noise = np.delete(found, [99, 199, 299])
    # The mean over some 500 bins, six deviations; 2 / sqrt(M) is of first order.
    assert abs(noise.mean()) < 6.0 * 2.0 / np.sqrt(m * len(noise))
    assert noise.std() == pytest.approx(2.0 / np.sqrt(m), rel=0.2)


def test_spectral_kurtosis_of_one_row_is_refused():
    """One frame has no variation."""
    with pytest.raises(InputError, match="1 rows: spectral kurtosis needs two or more"):
        spectral_kurtosis(random_rows(1), SPEC)
