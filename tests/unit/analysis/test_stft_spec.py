"""The meaning of a spectrum in the numbers for stages, and the reference that uses them.

Levels are checked against signals of known power, spectra against SciPy.
"""

import numpy as np
import pytest
from scipy import signal

from spectrod.analysis.stft.stft_reference import HostAverage, ReferenceStft, as_float64
from spectrod.analysis.stft.stft_stage import BandRows, StftSpec, StftTables
from spectrod.analysis.stft.stft_tables import kernel_spec
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError

FS = 48000.0


@pytest.fixture
def rng():
    return np.random.default_rng(12)


def rows_of(spec, samples):
    """Return all rows of (channels, n) float32 samples."""
    reference = ReferenceStft(*kernel_spec(spec))
    n_frames = spec.n_frames(samples.shape[1])
    average = reference.average(spec.averaging_frames)
    return reference.rows(np.float32(samples), 0, spec.hop, n_frames, average)


def tone(frequency, n, amplitude=1.0):
    return amplitude * np.sin(2.0 * np.pi * frequency / FS * np.arange(n))[None]


@pytest.mark.parametrize(("scaling", "scipys"), [("density", "psd"), ("spectrum", "magnitude")])
@pytest.mark.parametrize(("win_length", "nfft"), [(256, 256), (201, 255), (100, 512)])
def test_complex_spectra_are_scipys(rng, scaling, scipys, win_length, nfft):
    """Each side has the scale of ShortTimeFFT, with the phase of the frame's first sample."""
    spec = SpectrumSpec(FS, 2, "hann", win_length, 77, nfft, scaling, "complex")
    x = rng.standard_normal((2, 3000)).astype(np.float32)
    stft = signal.ShortTimeFFT(
        spec.taper.samples, spec.hop, FS, mfft=nfft, scale_to=scipys, fft_mode="onesided",
        phase_shift=None,
    )  # fmt: skip
    # Its slices start half a window early; the first two lack samples.
    expected = stft.stft(x[:, stft.m_num_mid :].astype(np.float64), 2, 30).transpose(2, 0, 1)
    found = rows_of(spec, x)
    np.testing.assert_allclose(found[2:30], expected, atol=3e-7 * abs(expected).max())
    assert found.dtype == np.complex64


@pytest.mark.parametrize("nfft", [512, 511])
def test_density_is_welchs(rng, nfft):
    """The mean over frames is SciPy's one-sided Welch density, for even and odd lengths."""
    spec = SpectrumSpec(FS, 1, "hann", 400, 200, nfft, averaging="mean", averaging_frames=20)
    x = rng.standard_normal((1, 400 + 19 * 200)).astype(np.float32)
    frequencies, expected = signal.welch(
        x[0].astype(np.float64), FS, spec.taper.samples, noverlap=200, nfft=nfft, detrend=False
    )
    found = rows_of(spec, x)
    assert found.shape == (1, 1, spec.n_values)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(spec.frequencies, frequencies)


def test_density_of_iq_is_scipys(rng):
    """The density of I/Q is two-sided, ascending and not doubled, as in SciPy."""
    spec = SpectrumSpec(FS, 2, "hann", 255, 255, 255, iq=True)
    x = rng.standard_normal((2, 255)).astype(np.float32)
    frequencies, expected = signal.periodogram(
        np.complex128(x[0] + 1j * x[1]), FS, spec.taper.samples, detrend=False
    )
    np.testing.assert_allclose(rows_of(spec, x)[0, 0], np.fft.fftshift(expected), rtol=1e-6)
    np.testing.assert_allclose(spec.frequencies, np.fft.fftshift(frequencies))
    assert (spec.n_signals, spec.n_values, spec.scale.unit) == (1, 255, "FS^2/Hz")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_complex_tone_of_amplitude_one_is_full_scale(sign):
    """A complex tone of amplitude 1 reads 0 dBFS, on its own side."""
    spec = SpectrumSpec(FS, 2, "flattop", 1000, 1000, 1000, "dbfs", iq=True)
    z = np.exp(sign * 2j * np.pi * 4800.0 / FS * np.arange(1000))
    row = rows_of(spec, np.array([z.real, z.imag]))[0, 0]
    assert row.max() == pytest.approx(0.0, abs=1e-4)
    assert spec.frequencies[row.argmax()] == sign * 4800.0
    assert spec.scale.reference == "0 dBFS = complex tone of amplitude 1"


@pytest.mark.parametrize("bands", ["octave", "third-octave", "octave/12"])
def test_a_tone_in_a_band_has_its_level(bands):
    """A sine has the same level in a band as at its bin."""
    spec = SpectrumSpec(FS, 1, "hann", 8192, 4096, 0, "dbfs", bands=bands)
    rows = rows_of(spec, tone(1030.0, 20000, 0.1))
    assert rows.max() == pytest.approx(-20.0, abs=0.02)
    own = np.abs(np.log(spec.frequencies / 1030.0)).argmin()
    assert (rows.argmax(axis=-1) == own).all()


@pytest.mark.parametrize("bands", ["third-octave", "mel:30", "millidecade"])
def test_bands_of_white_noise(rng, bands):
    """For white noise in bands, mean square is density times width, and levels follow."""
    n, sigma = 48000 * 16, 0.1
    x = sigma * rng.standard_normal((1, n))
    given = {"window": "hann", "win_length": 48000, "hop": 24000, "nfft": 48000, "bands": bands}
    average = {"averaging": "mean", "averaging_frames": 31}
    rows = {
        scaling: rows_of(SpectrumSpec(FS, scaling=scaling, **given, **average), x)[0, 0]
        for scaling in ("density", "spectrum", "dbfs")
    }
    spec = SpectrumSpec(FS, **given)
    density = sigma**2 / (FS / 2.0)
    # For a band of that many bins, each the mean of some 20 independent frames.
    deviation = np.sqrt(1.0 / (20.0 * np.maximum(spec.band_table.width, 1.0)))
    assert (abs(rows["density"] / density - 1.0) < 6.0 * deviation).all()
    np.testing.assert_allclose(rows["spectrum"], rows["density"] * spec.band_table.width, rtol=1e-6)
    np.testing.assert_allclose(rows["dbfs"], 10.0 * np.log10(2.0 * rows["spectrum"]), atol=1e-4)


def test_weighted_levels_are_the_curves():
    """A tone at 100 Hz reads 19.1 dB less with A and 0.3 dB less with C."""
    for weighting, loss in (("Z", 0.0), ("A", -19.1), ("C", -0.3)):
        spec = SpectrumSpec(FS, 1, "flattop", 4800, 4800, 4800, "dbfs", weighting=weighting)
        assert rows_of(spec, tone(100.0, 4800))[0, 0, 10] == pytest.approx(loss, abs=0.06)


def test_bands_and_weightings_join():
    """Every bin is weighted before bands are summed."""
    spec = SpectrumSpec(FS, 1, "hann", 4800, 4800, 4800, "dbfs", weighting="A", bands="octave")
    x = tone(4000.0, 4800, 0.1) + tone(1000.0, 4800, 0.01)
    levels = dict(zip(spec.frequencies.round(), rows_of(spec, x)[0, 0], strict=True))
    assert levels[3981.0] == pytest.approx(-19.0, abs=0.06)
    assert levels[1000.0] == pytest.approx(-40.0, abs=0.02)


def test_units_and_references():
    """Units and references state the computed quantity."""
    found = {
        (spec.scale.unit, spec.scale.reference)
        for spec in (
            SpectrumSpec(FS),
            SpectrumSpec(FS, scaling="dbfs", bands="octave"),
            SpectrumSpec(FS, bands="octave"),
            SpectrumSpec(FS, scaling="spectrum", bands="octave"),
            SpectrumSpec(FS, output="complex"),
            SpectrumSpec(FS, 2, output="complex", scaling="spectrum", iq=True),
            SpectrumSpec(FS, 2, scaling="spectrum", iq=True),
        )
    }
    full_scale = "FS = digital full scale (1.0), "
    assert found == {
        ("FS^2/Hz", full_scale + "one-sided"),
        ("dBFS", "0 dBFS = full-scale sine"),
        ("FS^2/Hz", full_scale + "a band's mean density"),
        ("FS^2", full_scale + "a band's mean square"),
        ("FS/Hz^0.5", full_scale + "of each side"),
        ("FS", full_scale + "of each side"),
        ("FS^2", full_scale + "a complex tone's mean square"),
    }


def test_an_exponential_average_has_its_time_constant():
    """After averaging_s an exponential average of a step has reached 1 - 1/e."""
    spec = SpectrumSpec(
        FS, 1, "rectangular", 480, 480, 480, "spectrum",
        averaging="exponential", averaging_frames=5, averaging_s=0.25,
    )  # fmt: skip
    shape, tables = kernel_spec(spec)
    average = HostAverage("exponential", 5, tables.smoothing)
    average.push(np.zeros((1, 1, 1)))
    rows = average.push(np.ones((29, 1, 1)))  # 25 frames come in the 0.25 s after the first
    assert rows[4, 0, 0] == pytest.approx(1.0 - np.exp(-24.0 / 25.0), rel=1e-12)
    assert rows.shape == (6, 1, 1)
    assert shape.averaging == "exponential"


@pytest.mark.parametrize("averaging", ["mean", "max", "min", "exponential"])
def test_averages_continue_from_call_to_call(rng, averaging):
    """Rows do not depend on the division of frames into calls, and clearing restarts them."""
    values = rng.uniform(0.0, 1.0, (23, 2, 5))
    whole = HostAverage(averaging, 4, 0.3).push(values)
    parts = HostAverage(averaging, 4, 0.3)
    cut = [parts.push(part) for part in np.split(values, [1, 2, 9, 9, 17])]
    np.testing.assert_array_equal(np.concatenate(cut), whole)
    assert parts.done == 3
    if averaging != "exponential":
        by_hand = getattr(np, averaging)(values[4:8], axis=0)
        np.testing.assert_allclose(whole[1], by_hand, rtol=1e-14)
    parts.clear()
    np.testing.assert_array_equal(parts.push(values), whole)
    with pytest.raises(ConfigError, match="frames=0: must be at least 1"):
        HostAverage(averaging, 0)


def test_a_nan_ends_with_its_row():
    """A NaN in a maximum affects its row and no later one."""
    values = np.ones((6, 1, 1))
    values[1] = np.nan
    rows = HostAverage("max", 3).push(values)
    np.testing.assert_array_equal(rows.ravel(), [np.nan, 1.0])


def test_integers_are_fractions_of_full_scale():
    """Integers of every width and sign are fractions of full scale."""
    packed = np.array([[[0, 0, 128], [255, 255, 127], [255, 255, 255], [1, 2, 3]]], np.uint8)
    expected = np.array([[-(2**23), 2**23 - 1, -1, 0x030201]]) / 2.0**23
    np.testing.assert_array_equal(as_float64(packed, "int24"), expected)
    shorts = np.array([[-32768, 16384]], np.int16)
    np.testing.assert_array_equal(as_float64(shorts, "int16"), [[-1.0, 0.5]])
    longs = np.array([[-(2**31), 2**30]], np.int32)
    np.testing.assert_array_equal(as_float64(longs, "int32"), [[-1.0, 0.5]])


def test_the_reference_works_in_steps_and_takes_any_strides(rng):
    """Chunks, interleaved views, hops past the window and zero frames do not change results."""
    spec = StftSpec(64, 50, averaging="mean")
    first, count = np.array([0, 5]), np.array([3, 20])
    bands = BandRows(first, count, rng.uniform(size=23))
    for shape in (spec, StftSpec(64, 50, n_bands=2, decibels=True)):
        tables = StftTables(np.hanning(50), bands=bands)
        reference = ReferenceStft(shape, tables)
        interleaved = rng.standard_normal((5000, 3)).astype(np.float32)
        for hop in (7, 101):
            whole = reference.rows(interleaved.T, 2, hop, 40, reference.average(3))
            planar = np.ascontiguousarray(interleaved.T)
            stepwise = ReferenceStft(shape, tables, chunk_values=1000)
            steps = stepwise.rows(planar, 2, hop, 40, stepwise.average(3))
            np.testing.assert_array_equal(steps, whole)
        assert reference.rows(interleaved.T, 0, 7, 0).shape == (0, 3, shape.n_values)


def test_specs_keep_numbers_plain_and_compare():
    """NumPy's numbers become Python's, and specs with equal fields are equal."""
    spec = SpectrumSpec(
        FS, averaging="mean", averaging_frames=np.int64(4), averaging_s=np.float32(2)
    )
    assert type(spec.averaging_frames) is int
    assert type(spec.averaging_s) is float
    assert spec == SpectrumSpec(FS, averaging="mean", averaging_frames=4, averaging_s=2.0)
    assert spec != SpectrumSpec(FS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": "phase"}, "output='phase': must be one of power, complex"),
        ({"weighting": "B"}, "weighting='B': must be one of Z, A, C"),
        ({"averaging": "median"}, "averaging='median': must be one of none, mean, max, min, exp"),
        ({"averaging_frames": 0}, "averaging_frames=0: must be at least 1"),
        (
            {"averaging": "mean", "averaging_frames": 1 << 31},
            "averaging_frames=2147483648: must be at ",
        ),
        ({"averaging_frames": 2}, "averaging_frames=2: must be 1 without averaging"),
        ({"averaging_frames": 1.5}, "averaging_frames=1.5: must be a whole number"),
        ({"averaging_s": 0.0}, "averaging_s=0.0: must be a positive number of s"),
        ({"bands": "barks"}, "bands='barks': must be octave, third-octave, octave/B, mel:N, bark"),
        ({"bands": "mel:800"}, r"bands='mel:800': band 0, 0 to \S+ Hz, has no bin"),
        ({"output": "complex", "scaling": "dbfs"}, "'dbfs': complex spectra have no level"),
        ({"output": "complex", "bands": "octave"}, "bands='octave': complex spectra have none"),
        ({"output": "complex", "weighting": "A"}, "weighting='A': complex spectra have none"),
        ({"output": "complex", "averaging": "max"}, "averaging='max': complex spectra have none"),
        ({"iq": True, "channels": 3}, "channels=3: must be even, I and Q in turn"),
        ({"iq": True, "channels": 2, "bands": "octave"}, "bands='octave': I/Q signals have none"),
        ({"iq": True, "channels": 2, "weighting": "C"}, "weighting='C': I/Q signals have none"),
    ],
)
def test_rules(changes, message):
    """An error about a spec names the value and the rule."""
    with pytest.raises(ConfigError, match=message):
        SpectrumSpec(**({"fs": FS} | changes))
