"""The broadband power beside bands, against bins in float64 and the samples themselves."""

import numpy as np
import pytest
from scipy import signal

import spectrod
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import ConfigError, InternalError

FS = 48000.0
FRAMES = [
    ("third-octave", 4096, 0),
    ("octave", 1001, 1001),
    ("octave/12", 1000, 1000),
    ("mel:40", 1023, 1024),
    ("millidecade", 48000, 48000),
]


def sound(n=1 << 16, channels=1):
    """Make noise, a tone near 1 kHz, and an offset."""
    noise = np.random.default_rng(13).standard_normal((channels, n))
    tone = np.sin(2.0 * np.pi * 997.0 / FS * np.arange(n))
    return (0.1 * noise + 0.3 * tone + 0.05).astype(np.float32)


def level(power):
    return 10.0 * np.log10(power / 0.5)


def sum_of_bins(x, n, nfft, weighting, **settings):
    """Return the total power of all bins, 0 Hz and Nyquist included, in float64."""
    bins = spectrod.spectrogram(
        x, FS, win_length=n, nfft=nfft, weighting=weighting, engine="numpy", **settings
    )
    return bins.values.astype(np.float64).sum(axis=-2) * bins.spec.delta_f


@pytest.mark.opencl
@pytest.mark.parametrize("weighting", ["Z", "A"])
@pytest.mark.parametrize(
    ("frames", "engine"),
    [(frames, "numpy") for frames in FRAMES] + [(FRAMES[0], "auto"), (FRAMES[1], "auto")],
)
def test_broadband_is_the_sum_of_all_bins(frames, engine, weighting):
    """Broadband is the weighted sum of all bins for any bands and lengths of every family."""
    bands, n, nfft = frames
    x = sound()[0]
    found = spectrod.spectrogram(
        x,
        FS,
        win_length=n,
        nfft=nfft,
        bands=bands,
        weighting=weighting,
        scaling="dbfs",
        engine=engine,
    )
    expected = level(sum_of_bins(x, n, nfft, weighting))
    assert found.values.shape == (len(found.f), len(found.t))
    np.testing.assert_allclose(found.broadband, expected, atol=1e-4)


@pytest.mark.parametrize(("bands", "n", "nfft"), FRAMES[:2])
def test_broadband_is_the_mean_square_of_the_sound(bands, n, nfft):
    """Broadband is within 0.01 dB of stationary sound, its offset included, with any bands."""
    x = sound(20 * 48000)[0]
    found = spectrod.spectrogram(
        x, FS, win_length=n, hop=n // 4, nfft=nfft, bands=bands, scaling="dbfs", engine="numpy"
    )
    mean = np.mean(10.0 ** (found.broadband.astype(np.float64) / 10.0)) * 0.5
    expected = np.mean(x.astype(np.float64) ** 2)
    assert level(mean) == pytest.approx(level(expected), abs=0.01)
    # Bands that leave out the offset, and the lowest and highest frequencies, have less.
    assert np.all(10.0 * np.log10(np.sum(10.0 ** (found.values / 10.0), axis=0)) < found.broadband)


def test_a_row_of_a_second_agrees_with_welch():
    """A row of a second agrees with SciPy's Welch estimate integrated over all frequencies."""
    x = sound(3 * 48000)[0]
    found = spectrod.spectrogram(
        x, FS, win_length=4800, hop=2400, nfft=4800, bands="third-octave", scaling="spectrum",
        averaging="mean", rate_hz=1.0, engine="numpy",
    )  # fmt: skip
    for row, second in zip(found.broadband, x.reshape(3, -1).astype(np.float64), strict=True):
        f, density = signal.welch(second, FS, nperseg=4800, noverlap=2400, detrend=False)
        assert level(row) == pytest.approx(level(density.sum() * f[1]), abs=1e-4)


@pytest.mark.parametrize(
    ("scaling", "unit"), [("density", "FS^2"), ("spectrum", "FS^2"), ("dbfs", "dBFS")]
)
def test_its_unit_is_a_mean_square_or_a_level(scaling, unit):
    """Beside densities the broadband value is a mean square, as its density has no meaning."""
    x = sound(8192, 2)
    found = spectrod.spectrogram(
        x, FS, win_length=1024, bands="octave", scaling=scaling, engine="numpy"
    )
    assert found.spec.scale.broadband_unit == unit
    assert found.broadband.shape == (2, len(found.t))
    power = 0.5 * 10.0 ** (found.broadband / 10.0) if scaling == "dbfs" else found.broadband
    expected = sum_of_bins(x, 1024, 1024, "Z")
    np.testing.assert_allclose(power, expected, rtol=1e-5)


@pytest.mark.parametrize("averaging", ["max", "min", "mean", "exponential"])
def test_averages_are_of_the_broadband_power_itself(averaging):
    """A maximum is that of the sum, which is below the sum of the bands' maxima."""
    x = sound(9 * 1024)[0]
    settings = {"win_length": 1024, "hop": 1024, "averaging": averaging, "averaging_frames": 4}
    frames = sum_of_bins(x, 1024, 1024, "Z", hop=1024)
    found = spectrod.spectrogram(
        x, FS, bands="octave", scaling="spectrum", engine="numpy", **settings
    )
    assert len(found.broadband) == 3  # the last is of one frame
    if averaging == "exponential":
        weight = -np.expm1(-1024 / (FS * 0.125))
        state, expected = frames[0], []
        for k, power in enumerate(frames):
            state += (power - state) * weight if k else 0.0
            expected += [state] if k % 4 == 3 or k == 8 else []
    else:
        expected = [getattr(np, averaging)(part) for part in np.split(frames, [4, 8])]
    np.testing.assert_allclose(found.broadband, expected, rtol=1e-5)


def test_a_stream_has_it_in_every_batch():
    """Every batch of a stream with bands has it per channel, in any division; others have none."""
    x = sound(5000, 3)
    expected = spectrod.spectrogram(x, FS, win_length=512, hop=200, bands="octave", engine="numpy")
    with spectrod.Stft(
        FS, channels=3, win_length=512, hop=200, bands="octave", engine="numpy"
    ) as stft:
        batches = [batch for part in np.split(x, [700, 3001], axis=1) for batch in stft.push(part)]
    found = np.concatenate([batch.broadband for batch in batches])
    np.testing.assert_array_equal(found.T, expected.broadband)
    values = np.concatenate([batch.values for batch in batches])
    np.testing.assert_array_equal(values.transpose(1, 2, 0), expected.values)
    assert spectrod.spectrogram(x, FS, win_length=512, engine="numpy").broadband is None


def test_broadband_needs_bands_and_rows_need_it():
    """Broadband power requires bands, and a batch has the fields of its spec."""
    with pytest.raises(ConfigError, match=r"^broadband=True: needs bands$"):
        SpectrumSpec(FS, broadband=True)
    one = np.zeros(1, np.int64)
    for broadband in (True, False):
        spec = SpectrumSpec(FS, bands="octave", broadband=broadband)
        values = np.zeros((1, 1, spec.n_values), np.float32)
        more = None if broadband else np.zeros((1, 1), np.float32)
        with pytest.raises(InternalError, match=r"^broadband values of density: must be "):
            SpectrumBatch(values, one, one, one, spec, "numpy", broadband=more)
