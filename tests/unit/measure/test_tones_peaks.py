"""Peaks of rows: frequency and level in every scaling, noise, leakage, bounds, bad input."""

import numpy as np
import pytest

from spectrod.analysis.spectrogram import spectrogram
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.dsp.units import FLOOR_DBFS, power_to_level
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.tones.mean import MeanRow
from spectrod.measure.tones.peaks import find_peaks

FS = 8000.0


def tone(f_hz, amplitude=1.0, n=4096, phase=0.4):
    return amplitude * np.cos(2.0 * np.pi * f_hz / FS * np.arange(n) + phase)


def row_of(x, *, scaling="spectrum", window="blackmanharris", nfft=0, iq=False):
    """Return the float64 row of one frame, and its spec."""
    spec = SpectrumSpec(
        FS, 2 if iq else 1, window=window, win_length=len(x), nfft=nfft, scaling=scaling, iq=iq
    )
    spectrum = np.fft.fft(spec.taper.samples * x, spec.nfft)
    power = np.abs(spectrum) ** 2 * spec.power_scale
    if iq:
        power = np.fft.fftshift(power)
    else:
        power = power[: spec.n_bins] * 2.0
        power[0] /= 2.0
        if spec.nfft % 2 == 0:
            power[-1] /= 2.0
    if scaling == "dbfs":
        power = power_to_level(power, spec.scale.reference_power, FLOOR_DBFS)
    return power, spec


@pytest.mark.parametrize("scaling", ["density", "spectrum", "dbfs"])
@pytest.mark.parametrize(("n", "nfft"), [(4096, 4096), (4001, 4001), (3001, 8192)])
def test_frequency_and_level_in_every_scaling(scaling, n, nfft):
    """One real tone has its frequency to 1e-6 bins and its level to 1e-4 dB in each scaling."""
    row, spec = row_of(tone(1234.567, 0.5, n), scaling=scaling, nfft=nfft)
    peaks = find_peaks(row, spec)
    assert len(peaks) == 1
    assert peaks.unit == "dBFS"
    assert peaks.frequency_hz[0] == pytest.approx(1234.567, abs=1e-6 * spec.delta_f)
    assert peaks.level_db[0] == pytest.approx(20.0 * np.log10(0.5), abs=1e-4)


@pytest.mark.parametrize("window", ["hann", "hamming", "blackman", "nuttall", "flattop"])
def test_tones_of_every_level_without_their_leakage(window):
    """Four tones give four peaks: side lobes and 0 Hz are none."""
    x = 0.3 + tone(400.3, 1.0) + tone(777.7, 0.05) + tone(1500.2, 0.03) + tone(3999.0 / 2, 0.02)
    noise = 1e-5 * np.random.default_rng(3).standard_normal(len(x))
    row, spec = row_of(x + noise, window=window)
    peaks = find_peaks(row, spec)
    np.testing.assert_allclose(peaks.frequency_hz, [400.3, 777.7, 1500.2, 1999.5], atol=0.05)
    np.testing.assert_allclose(peaks.level_db, 20.0 * np.log10([1.0, 0.05, 0.03, 0.02]), atol=0.3)


def test_two_sided_rows_have_frequencies_of_both_signs():
    """I/Q tones have signed frequencies plus the centre frequency, and 0 dBFS is amplitude 1."""
    n = np.arange(1000)
    x = np.exp(-2j * np.pi * 1000.3 / FS * n) + 0.1 * np.exp(2j * np.pi * 3999.9 / FS * n)
    row, spec = row_of(x, iq=True)
    peaks = find_peaks(row, spec)
    np.testing.assert_allclose(peaks.frequency_hz, [-1000.3, 3999.9], atol=1e-3)
    np.testing.assert_allclose(peaks.level_db, [0.0, -20.0], atol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"averaging": "mean", "averaging_frames": 2},
        {"averaging": "mean", "averaging_frames": 16},
        {"averaging": "exponential", "averaging_s": 0.5},
    ],
)
def test_floor_of_averaged_rows(settings):
    """The floor of averages over overlapping frames is the mean power of the noise in a bin."""
    x = np.random.default_rng(14).standard_normal(60_000) * 0.1
    found = spectrogram(x, FS, win_length=1024, hop=256, engine="numpy", **settings)
    peaks = find_peaks(found.values.T, found.spec, threshold_db=1.0)
    bin_power = 0.01 * found.spec.enbw_hz / (FS / 2.0) / 0.5
    assert np.median(peaks.floor_db) == pytest.approx(10.0 * np.log10(bin_power), abs=0.3)


def test_noise_alone_has_no_peaks():
    """A hundred rows of white noise have none, and their floor is the noise in a bin."""
    x = np.random.default_rng(4).standard_normal((1, 100 * 1024)) * 0.1
    found = spectrogram(x, FS, win_length=1024, hop=1024, scaling="dbfs", engine="numpy")
    rows = found.values.transpose(2, 0, 1)
    assert len(find_peaks(rows, found.spec)) == 0
    loud = find_peaks(rows, found.spec, threshold_db=3.0)
    bin_power = 0.01 * found.spec.enbw_hz / (FS / 2.0) / 0.5
    assert np.median(loud.floor_db) == pytest.approx(10.0 * np.log10(bin_power), abs=0.4)


def test_uncertainty_is_that_of_repeated_measurements():
    """The stated standard deviations are the scatter of frequency and level over 400 frames."""
    rng = np.random.default_rng(5)
    n = 512
    x = tone(1003.7, 0.5, 400 * n) + 0.01 * rng.standard_normal(400 * n)
    found = spectrogram(x, FS, win_length=n, hop=n, scaling="density", engine="numpy")
    peaks = find_peaks(found.values.T, found.spec, max_peaks=1)
    assert len(peaks) == 400
    assert np.std(peaks.frequency_hz) == pytest.approx(np.median(peaks.frequency_sd_hz), rel=0.15)
    assert np.std(peaks.level_db) == pytest.approx(np.median(peaks.level_sd_db), rel=0.15)


PLACES = (30.02, 30.5, 100.0, 100.25, 1000.02, 1000.5)
"""Bins of a tone: near 0 Hz, where its image is near, in the middle of a bin and between two."""


def rows_of_a_tone(window, bin_, noise, frames, seed=6):
    """Return frames of 4096 samples, of random phase, of a tone of -20 dBFS in noise [FS]."""
    rng = np.random.default_rng(seed)
    n = np.arange(4096)
    x = 0.1 * np.sin(2.0 * np.pi * bin_ / 4096 * n + rng.uniform(0.0, 6.28, (frames, 1)))
    x += noise * rng.standard_normal(x.shape)
    spec = SpectrumSpec(FS, window=window, win_length=4096, hop=4096, scaling="spectrum")
    rows = 2.0 * np.abs(np.fft.rfft(x * spec.taper.samples)) ** 2 * spec.power_scale
    return rows, spec


def rms(values):
    return np.sqrt(np.mean(np.square(values)))


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("window", ["rectangular", "hann", "hamming", "blackmanharris", "flattop"])
def test_uncertainty_is_never_understated(window, noise):
    """Errors of frequency and level are those stated or less, wherever the tone is in its bin.

    Its image, and the side of a tone in the middle of its bin under a rectangular window, are part
    of it. 32 frames confirm a deviation within 25 %; 60 % is the limit.
    """
    for bin_ in PLACES:
        rows, spec = rows_of_a_tone(window, bin_, noise, 32)
        peaks = find_peaks(rows, spec, max_peaks=1)
        assert len(peaks) == 32
        errors = peaks.frequency_hz - bin_ * spec.delta_f
        assert rms(errors) <= 1.6 * rms(peaks.frequency_sd_hz)
        assert rms(peaks.level_db + 20.0) <= 1.6 * rms(peaks.level_sd_db)


@pytest.mark.parametrize(
    ("window", "noise", "least"),
    [
        *[("rectangular", 1e-2, 0.2), ("hann", 1e-2, 0.6), ("hann", 1e-3, 0.4)],
        *[("hamming", 1e-2, 0.5), ("blackmanharris", 1e-5, 0.5), ("flattop", 1e-3, 0.5)],
    ],
)
def test_uncertainty_is_not_that_of_the_own_leakage(window, noise, least):
    """Where side lobes do not hide the noise, stated deviations are the errors', not far more."""
    for bin_ in PLACES[1:]:
        rows, spec = rows_of_a_tone(window, bin_, noise, 32)
        peaks = find_peaks(rows, spec, max_peaks=1)
        assert rms(peaks.frequency_hz - bin_ * spec.delta_f) >= least * rms(peaks.frequency_sd_hz)
        assert rms(peaks.level_db + 20.0) >= least * rms(peaks.level_sd_db)


@pytest.mark.parametrize(
    ("window", "noise", "limit_db"),
    [
        *[("blackmanharris", 1e-3, 0.7), ("flattop", 1e-3, 0.7), ("nuttall", 1e-3, 0.7)],
        *[("hann", 1e-2, 0.7), ("hann", 1e-3, 2.5), ("hamming", 1e-2, 1.0)],
        *[("rectangular", 1e-2, 6.0), ("blackmanharris", 1e-5, 1.0)],
    ],
)
def test_floor_beside_a_tone_is_the_noise(window, noise, limit_db):
    """It is the mean power of the noise in a bin, without the tone's main lobe and side lobes."""
    for bin_ in PLACES:
        rows, spec = rows_of_a_tone(window, bin_, noise, 32)
        floor_db = np.median(find_peaks(rows, spec, max_peaks=1).floor_db)
        expected_db = 10.0 * np.log10(noise**2 * spec.enbw_hz / (FS / 2.0) / 0.5)
        assert floor_db == pytest.approx(expected_db, abs=limit_db)


def test_rows_and_signals_are_told_apart():
    """Each peak names its row and signal, whatever the size of the blocks of rows."""
    rows = np.zeros((3, 2, 513))
    _, spec = row_of(np.zeros(1024))
    for row, signal, k in [(0, 0, 100), (0, 1, 200), (2, 0, 50), (2, 1, 300), (2, 1, 400)]:
        rows[row, signal, k - 1 : k + 2] = [0.2, 0.5, 0.2]
    peaks = find_peaks(rows, spec)
    assert peaks.row.tolist() == [0, 0, 2, 2, 2]
    assert peaks.signal.tolist() == [0, 1, 0, 1, 1]
    np.testing.assert_allclose(peaks.frequency_hz / spec.delta_f, [100, 200, 50, 300, 400])
    assert peaks.of(2, 1).frequency_hz.tolist() == peaks.frequency_hz[-2:].tolist()


def test_peaks_print_as_one_line():
    """How many, and the strongest of them."""
    row, spec = row_of(tone(1000.0, 0.1) + tone(2000.0, 0.01))
    assert repr(find_peaks(row, spec)) == "<Peaks: 2 in 1 row, strongest 1000 Hz at -20 dBFS>"
    assert repr(find_peaks([row, row], spec)).startswith("<Peaks: 4 in 2 rows, strongest 1000 Hz")


def test_limits_of_number_distance_and_threshold():
    """The strongest peaks remain; those within the distance of a stronger one do not."""
    row, spec = row_of(tone(1000, 0.5) + tone(1040, 0.4) + tone(2000, 0.3) + tone(3000, 0.001))
    row += 1e-8
    assert len(find_peaks(row, spec)) == 4
    frequencies = find_peaks(row, spec, max_peaks=2).frequency_hz
    np.testing.assert_allclose(frequencies, [1000, 1040], atol=0.01)
    frequencies = find_peaks(row, spec, distance_hz=50.0).frequency_hz
    np.testing.assert_allclose(frequencies, [1000, 2000, 3000], atol=0.1)
    assert len(find_peaks(row, spec, threshold_db=40.0)) == 3


def test_silence_and_values_that_are_not_finite_have_no_peaks():
    """Zeros, constant rows, NaN and infinite densities are no tones, and no warnings."""
    row, spec = row_of(tone(1000.0), scaling="density")
    assert len(find_peaks(np.zeros_like(row), spec)) == 0
    assert repr(find_peaks(np.zeros_like(row), spec)) == "<Peaks: none>"
    assert len(find_peaks(np.ones_like(row), spec)) == 0
    assert len(find_peaks(np.full_like(row, np.nan), spec)) == 0
    assert len(find_peaks(np.empty((0, len(row))), spec)) == 0


@pytest.mark.parametrize(
    ("settings", "parameters", "text"),
    [
        ({"output": "complex"}, {}, "output='complex': tones are measured in spectra of power"),
        ({"bands": "octave"}, {}, "bands='octave': tones are measured in bins"),
        ({}, {"max_peaks": 0}, "max_peaks=0: must be 1 to 1024"),
        ({}, {"max_peaks": 1025}, "max_peaks=1025: must be 1 to 1024"),
        ({}, {"threshold_db": -1.0}, "threshold_db=-1: must be a level of at least 0 dB"),
        ({}, {"threshold_db": np.nan}, "threshold_db=nan: must be"),
        ({}, {"distance_hz": np.inf}, "distance_hz=inf: must be a frequency of at least 0 Hz"),
    ],
)
def test_bad_parameters(settings, parameters, text):
    """Each rule that is violated is one error with the name, the value and the rule."""
    spec = SpectrumSpec(FS, **settings)
    with pytest.raises(ConfigError, match=text):
        find_peaks(np.zeros(spec.n_bins), spec, **parameters)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (np.zeros(100), r"rows of shape \(100,\): must be \(bins,\)"),
        (np.zeros((1, 1, 1, 2049)), r"rows of shape \(1, 1, 1, 2049\)"),
        (np.zeros(2049, complex), "rows of dtype complex128: must be real numbers"),
    ],
)
def test_bad_rows(rows, text):
    """Rows of another shape or type are refused."""
    with pytest.raises(InputError, match=text):
        find_peaks(rows, SpectrumSpec(FS))


# ---- the mean of rows


def batch_of(x, spec):
    """Return all rows of a signal as one batch."""
    found = spectrogram(x, FS, win_length=spec.win_length, hop=spec.hop, engine="numpy")
    rows = np.ascontiguousarray(found.values.T[:, np.newaxis])
    index = np.arange(len(rows), dtype=np.int64)
    return SpectrumBatch(rows, index, index, index, spec, "numpy")


def test_mean_of_batches():
    """The mean of the rows of several batches is that of all, and its spec counts them."""
    spec = SpectrumSpec(FS, win_length=512, hop=256)
    batch = batch_of(np.random.default_rng(15).standard_normal(9000), spec)
    mean = MeanRow(spec)
    for first, stop in ((0, 1), (1, 20), (20, batch.n_frames)):
        mean.push(batch.between(first, stop))
    rows, defined = mean.result()
    np.testing.assert_allclose(rows, batch.values.mean(axis=0, dtype=np.float64), rtol=1e-12)
    assert (defined.averaging, defined.averaging_frames) == ("mean", batch.n_frames)


def test_mean_of_nothing_and_of_too_much():
    """Without a frame there is no mean, and memory for too many bins is not taken."""
    with pytest.raises(InputError, match="too short: must be 4096 samples or more, a frame"):
        MeanRow(SpectrumSpec(FS)).result()
    many = SpectrumSpec(FS, 4096, win_length=1 << 15)
    with pytest.raises(ConfigError, match="4096 spectra of 16385 values: must be at most 16777216"):
        MeanRow(many)
