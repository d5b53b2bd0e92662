"""Distortion, intermodulation and bandwidths against closed forms, with each window."""

from dataclasses import replace

import numpy as np
import pytest

from spectrod.analysis.spectrogram import spectrogram
from spectrod.dsp.calibration.channel_calibration import ChannelCalibration, full_scale_level_db
from spectrod.dsp.calibration.response import make_response
from spectrod.dsp.level_reference import parse_reference
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.weighting import power_factors
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.tones.channel_power import (
    adjacent_channel_ratio,
    channel_power,
    occupied_bandwidth,
)
from spectrod.measure.tones.distortion import measure_distortion
from spectrod.measure.tones.intermodulation import measure_intermodulation
from spectrod.measure.tones.peaks import find_peaks

FS = 48000.0
LOW_LOBES = ["hann", "blackman", "nuttall", "blackmanharris", "flattop", "bartlett", "kaiser:14"]
WINDOWS = [*LOW_LOBES, "rectangular", "hamming"]


def row_of(x, window="blackmanharris", nfft=0, scaling="density"):
    """Return the float64 row of one frame, and its spec."""
    spec = SpectrumSpec(FS, 1, window, len(x), nfft=nfft, scaling=scaling)
    spectrum = np.fft.rfft(spec.taper.samples * x, spec.nfft)
    row = np.abs(spectrum) ** 2 * spec.power_scale * 2.0
    row[0] /= 2.0
    if spec.nfft % 2 == 0:
        row[-1] /= 2.0
    if scaling == "dbfs":
        row = 10.0 * np.log10(row / spec.scale.reference_power)
    return row, spec


def sines(n, *parts):
    """Return the sum of sines of (frequency [Hz], amplitude)."""
    t = np.arange(n) / FS
    phases = range(len(parts))
    return sum(a * np.sin(2.0 * np.pi * f * t + p) for (f, a), p in zip(parts, phases, strict=True))


def impure(f, n=32768):
    """Return a sine with 1 % and 0.3 % of harmonics and noise of 0.001 rms."""
    noise = np.random.default_rng(1).standard_normal(n)
    return sines(n, (f, 1.0), (2 * f, 0.01), (3 * f, 0.003)) + noise * 1e-3 / np.std(noise)


@pytest.mark.parametrize(
    ("window", "scaling", "offset"),
    [
        *((window, "density", 0.0) for window in WINDOWS),
        ("hann", "dbfs", 0.2),
        ("bartlett", "spectrum", 0.2),
        ("kaiser:14", "spectrum", -0.2),
    ],
)
def test_sine_with_harmonics_and_noise(window, scaling, offset):
    """THD -39.626, SNR 56.990, SINAD 39.547 dB, within 0.05 dB, and an offset changes nothing.

    Windows with high side lobes need a tone of a whole number of periods.
    """
    f = 997.3 if window in LOW_LOBES else 681 * FS / 32768
    found = measure_distortion(*row_of(impure(f) + offset, window, scaling=scaling))
    assert found.frequency_hz == pytest.approx(f, abs=1e-3)
    assert found.level_db == pytest.approx(0.0, abs=1e-3)
    assert found.thd_db == pytest.approx(-39.626, abs=0.05)
    assert found.snr_db == pytest.approx(56.990, abs=0.05)
    assert found.sinad_db == pytest.approx(39.547, abs=0.05)
    assert found.thd == pytest.approx(0.01044, rel=0.005)
    total = 10.0 ** (-39.547 / 10.0)
    assert found.thd_n_db == pytest.approx(10.0 * np.log10(total / (1.0 + total)), abs=0.05)
    assert found.sfdr_db == pytest.approx(40.0, abs=0.05)
    assert found.spur_hz == pytest.approx(2.0 * f, abs=0.1)
    assert found.harmonics[0].level_db == pytest.approx(-40.0, abs=0.05)
    assert found.harmonics[1].level_db == pytest.approx(-50.458, abs=0.15)


@pytest.mark.parametrize(("n", "nfft"), [(20001, 20001), (20000, 65536), (9999, 16384)])
def test_zero_padding_and_odd_lengths(n, nfft):
    """Padded and odd transforms give the same figures."""
    found = measure_distortion(*row_of(impure(997.3, n), nfft=nfft))
    assert found.thd_db == pytest.approx(-39.626, abs=0.05)
    assert found.snr_db == pytest.approx(56.990, abs=0.2)


@pytest.mark.parametrize(
    ("shape", "amplitude", "all_of_them"),
    [
        ("square", lambda h: h % 2 / h, 0.483426),
        ("sawtooth", lambda h: 1.0 / h, 0.803078),
        ("triangle", lambda h: h % 2 / h**2, 0.121153),
    ],
)
def test_wave_shapes(shape, amplitude, all_of_them):
    """Square, sawtooth and triangle have the THD of their harmonics below fs/2, to 1e-5."""
    f = 313.7
    orders = np.arange(1, 77)
    amplitudes = np.array([amplitude(h) for h in orders])
    x = 0.5 * sines(32768, *zip(f * orders, amplitudes, strict=True))
    found = measure_distortion(*row_of(x), harmonics=100)
    expected = np.sqrt(np.sum(amplitudes[1:] ** 2))
    assert found.thd == pytest.approx(expected, rel=1e-5)
    assert len(found.harmonics) == 75
    assert found.thd == pytest.approx(all_of_them, rel=0.02), shape


@pytest.mark.parametrize("bits", [8, 12, 16])
def test_ideal_quantiser(bits):
    """A full-scale sine in B bits has a SINAD of 6.0206 B + 1.7609 dB, and B effective bits."""
    x = sines(32768, (997.31, 1.0))
    step = 2.0 ** (1 - bits)
    quantised = (np.clip(np.floor(x / step), -1.0 / step, 1.0 / step - 1.0) + 0.5) * step
    found = measure_distortion(*row_of(quantised))
    assert found.sinad_db == pytest.approx(6.0206 * bits + 1.7609, abs=0.2)
    assert found.enob_bits == pytest.approx(bits, abs=0.04)


def test_effective_bits_do_not_depend_on_the_level():
    """A sine 20 dB below full scale has the same effective bits in the same noise."""
    noise = 1e-4 * np.random.default_rng(2).standard_normal(32768)
    loud = measure_distortion(*row_of(sines(32768, (997.3, 1.0)) + noise))
    soft = measure_distortion(*row_of(sines(32768, (997.3, 0.1)) + noise))
    assert soft.enob_bits == pytest.approx(loud.enob_bits, abs=0.01)
    assert soft.sinad_db == pytest.approx(loud.sinad_db - 20.0, abs=0.05)


def test_calibrated_rows():
    """With 50 mV/Pa, 20 dB and 2 V full scale the level is in dB SPL, and the bits are as without.

    Channels of different units are refused.
    """
    pressure = parse_reference("20 uPa")
    mic = ChannelCalibration(pressure, full_scale_level_db(0.05, 20.0, 2.0, pressure))
    x = impure(997.3) * 0.354393
    row, spec = row_of(x)
    calibrated = replace(spec, calibration=(mic,))
    found = measure_distortion(row * mic.full_scale**2, calibrated)
    plain = measure_distortion(row, spec)
    assert (found.unit, found.level_db) == ("dB SPL", pytest.approx(94.0, abs=0.01))
    assert found.enob_bits == pytest.approx(plain.enob_bits, abs=1e-9)
    assert found.harmonics[0].level_db == pytest.approx(54.0, abs=0.05)
    mixed = SpectrumSpec(FS, 2, calibration=(mic, None))
    with pytest.raises(ConfigError, match="need one unit of all channels, not Pa"):
        measure_distortion(np.zeros(mixed.n_bins), mixed)


def test_polynomial_non_linearity():
    """A sine through x + a2 x^2 + a3 x^3 has the harmonics of its closed form.

    H1 = A + 3/4 a3 A^3, H2 = a2 A^2/2, H3 = a3 A^3/4.
    """
    a, a2, a3 = 0.7, 0.1, 0.05
    x = sines(16384, (1003.3, a))
    found = measure_distortion(*row_of(x + a2 * x**2 + a3 * x**3))
    expected = [a + 0.75 * a3 * a**3, a2 * a**2 / 2.0, a3 * a**3 / 4.0]
    levels = [found.level_db, *(one.level_db for one in found.harmonics[:2])]
    np.testing.assert_allclose(10.0 ** (np.array(levels) / 20.0), expected, rtol=1e-5)
    assert found.harmonics[5].level_db < -150.0


def test_folded_harmonics_are_named():
    """Harmonics above fs/2 count where they are folded to, if that is wanted, else as noise."""
    f = 7001.3
    x = sines(32768, (f, 1.0), (2 * f, 0.01), (FS - 4 * f, 0.02))
    plain = measure_distortion(*row_of(x))
    assert [one.order for one in plain.harmonics] == [2, 3]
    assert plain.thd == pytest.approx(0.01, rel=1e-4)
    assert plain.snr_db == pytest.approx(20.0 * np.log10(50.0), abs=0.02)
    both = measure_distortion(*row_of(x), folded=True)
    fourth = both.harmonics[2]
    assert (fourth.order, fourth.is_folded) == (4, True)
    assert fourth.frequency_hz == pytest.approx(FS - 4 * f, abs=1e-2)
    assert both.thd == pytest.approx(np.hypot(0.01, 0.02), rel=1e-4)
    assert both.snr_db > 100.0


def test_a_hidden_harmonic_is_not_a_number():
    """A harmonic that folds onto the fundamental has no level, and is not in the THD."""
    x = sines(32768, (FS / 5, 1.0), (2 * FS / 5, 0.01))
    found = measure_distortion(*row_of(x), folded=True, harmonics=4)
    assert np.isnan([one.level_db for one in found.harmonics]).tolist() == [False, True, True]
    assert found.thd == pytest.approx(0.01, rel=1e-3)


def test_band_limits():
    """Noise, harmonics and spurs outside the band do not count."""
    x = impure(997.3) + sines(32768, (50.1, 0.1), (22000.3, 0.1))
    found = measure_distortion(*row_of(x), band_hz=(100.0, 20000.0))
    noise_db = 56.990 + 10.0 * np.log10(24000.0 / 19900.0)
    assert found.snr_db == pytest.approx(noise_db, abs=0.05)
    assert found.band_hz == pytest.approx((100.0, 20000.0), abs=1.5)
    assert len(measure_distortion(*row_of(x), band_hz=(100.0, 2500.0)).harmonics) == 1


def test_expected_fundamental():
    """The tone near the expected frequency is the fundamental, not the strongest one."""
    x = sines(16384, (1000.3, 1.0), (3333.3, 0.1))
    found = measure_distortion(*row_of(x), fundamental_hz=3330.0)
    assert found.frequency_hz == pytest.approx(3333.3, abs=1e-3)
    with pytest.raises(InputError, match="no tone found near 5000 Hz"):
        measure_distortion(*row_of(x), fundamental_hz=5000.0)


@pytest.mark.parametrize(
    ("settings", "parameters", "error", "text"),
    [
        ({"weighting": "A"}, {}, ConfigError, "weighting='A': distortions are measured unweighted"),
        ({"channels": 2, "iq": True}, {}, ConfigError, "iq=True: distortions are measured in real"),
        ({"averaging": "max", "averaging_frames": 2}, {}, ConfigError, "averaging='max': "),
        ({"bands": "octave"}, {}, ConfigError, "bands='octave'"),
        ({}, {"harmonics": 1}, ConfigError, "harmonics=1: must be 2 to 100"),
        ({}, {"band_hz": (100.0, 50.0)}, ConfigError, r"band_hz=\(100, 50\): must be two asc"),
        ({}, {"band_hz": (3e4, 4e4)}, ConfigError, r"band_hz=\(30000, 40000\): has no bin"),
        ({}, {}, InputError, "no tone found: none is 13 dB above the noise floor"),
    ],
)
def test_what_cannot_be_measured(settings, parameters, error, text):
    """Wrong kinds of rows, bad parameters and silence are one clear error each."""
    spec = SpectrumSpec(FS, **{"channels": 1, **settings})
    with pytest.raises(error, match=text):
        measure_distortion(np.zeros(spec.n_bins), spec, **parameters)


def test_tones_that_the_window_does_not_separate():
    """Too low a fundamental, and a window with high side lobes, are errors with the cure."""
    with pytest.raises(InputError, match=r"fundamental of .* Hz is 5\.12 bins: must be 9 or"):
        measure_distortion(*row_of(sines(4096, (60.0, 1.0))))
    with pytest.raises(InputError, match="take a window with lower side lobes"):
        measure_distortion(*row_of(impure(997.3), "hamming"))
    row, spec = row_of(sines(4096, (1000.0, 1.0)))
    row[7] = np.nan
    with pytest.raises(InputError, match="row: holds values that are not finite"):
        measure_distortion(row, spec)


# ---- intermodulation


def distorted(parts, a2=0.01, a3=0.005, n=65536):
    x = sines(n, *parts)
    return x + a2 * x**2 + a3 * x**3


@pytest.mark.parametrize("window", ["hann", "blackmanharris", "kaiser:14"])
def test_smpte(window):
    """60 Hz and 7 kHz at 4:1 give 1.175 % as root-sum-square, 1.662 % with pairs added."""
    x = distorted([(60.2, 0.8), (7000.7, 0.2)])
    found = measure_intermodulation(*row_of(x, window), "smpte")
    assert found.rss == pytest.approx(0.01175, abs=4e-5)
    assert found.pairs == pytest.approx(0.01662, abs=6e-5)
    amplitudes = 10.0 ** (np.array([one.level_db for one in found.products]) / 20.0)
    np.testing.assert_allclose(amplitudes, [0.0016, 0.0016, 0.00048, 0.00048], rtol=0.005)


@pytest.mark.parametrize("window", ["hann", "flattop", "bartlett"])
def test_ccif(window):
    """19 and 20 kHz give a2 A1 A2 at 1 kHz and 3/4 a3 A1^2 A2 at 18 and 21 kHz."""
    x = distorted([(19000.3, 0.4), (20000.1, 0.4)])
    found = measure_intermodulation(*row_of(x, window), "ccif")
    assert [one.name for one in found.products] == ["f2-f1", "2f1-f2", "2f2-f1"]
    amplitudes = 10.0 ** (np.array([one.level_db for one in found.products]) / 20.0)
    np.testing.assert_allclose(amplitudes, [0.0016, 0.00024, 0.00024], rtol=0.002)
    tone = 0.4 + (0.75 + 1.5) * 0.005 * 0.4**3
    assert found.rss == pytest.approx(np.sqrt(0.0016**2 + 2 * 0.00024**2) / (2 * tone), rel=1e-3)
    assert found.pairs == pytest.approx(np.hypot(0.0016, 0.00048) / (2 * tone), rel=1e-3)


@pytest.mark.parametrize(
    ("parts", "kind", "text"),
    [
        ([(1000.0, 0.5)], "ccif", "1 tones found: intermodulation needs two"),
        ([(19000.0, 0.4), (22000.0, 0.4)], "ccif", "2f2-f1 of 19000 and 22000 Hz: must lie below"),
        (
            [(19000.0, 0.4), (19010.0, 0.4)],
            "ccif",
            "spacing of the products of .* Hz is 6.83 bins: must be 9",
        ),
        (
            [(1000.0, 0.5), (2000.0, 0.3)],
            "smpte",
            r"and 2000 Hz with 4\.4 dB between them, are not those of smpte: f2 must be 5 times",
        ),
        ([(60.0, 0.9), (7000.0, 0.08)], "smpte", r"7000 Hz with 21\.0 dB between them, are not"),
        (
            [(997.0, 0.5), (1994.0, 0.4)],
            "ccif",
            r"not those of ccif: f2 must be less than 1\.5 times f1, within 6 dB",
        ),
        ([(19000.0, 0.4), (20000.0, 0.19)], "ccif", r"with 6\.5 dB between them, are not"),
        ([(60.0, 0.4), (7000.0, 0.4)], "din", "kind='din': must be one of smpte, ccif"),
    ],
)
def test_intermodulation_that_cannot_be_measured(parts, kind, text):
    """One tone, products beyond fs/2 or too close, and unknown kinds are errors."""
    noise = 1e-6 * np.random.default_rng(3).standard_normal(32768)
    with pytest.raises((InputError, ConfigError), match=text):
        measure_intermodulation(*row_of(sines(32768, *parts) + noise), kind)


# ---- channels


def test_occupied_bandwidth_of_noise():
    """White noise between 2 and 10 kHz occupies 99 % of 8 kHz."""
    rng = np.random.default_rng(4)
    spectrum = np.fft.rfft(rng.standard_normal(1 << 17))
    f = np.fft.rfftfreq(1 << 17, 1.0 / FS)
    x = np.fft.irfft(spectrum * ((f > 2000.0) & (f < 10000.0)))
    found = spectrogram(0.1 * x, FS, win_length=4096, hop=2048, engine="numpy",
                        averaging="mean", averaging_frames=63)  # fmt: skip
    row = found.values[:, 0]
    bandwidth = occupied_bandwidth(row, found.spec)
    assert bandwidth.width_hz[0, 0] == pytest.approx(0.99 * 8000.0, abs=50.0)
    assert bandwidth.low_hz[0, 0] == pytest.approx(2040.0, abs=30.0)
    half = channel_power(row, found.spec, 2000.0, 6000.0) / bandwidth.power
    assert half[0, 0] == pytest.approx(0.5, abs=0.02)
    assert channel_power(row, found.spec, 0.0, FS / 2.0)[0, 0] == pytest.approx(
        float(bandwidth.power[0, 0]), rel=1e-12
    )


def test_channels_of_iq():
    """Adjacent channels of I/Q, around the centre frequency, have their powers' ratios."""
    n = np.arange(8192)
    x = sum(
        a * np.exp(2j * np.pi * f / FS * n)
        for f, a in [(0.0, 1.0), (3000.0, 0.1), (-12000.0, 0.03), (12000.0, 0.01)]
    )
    found = spectrogram(x, FS, window="blackmanharris", win_length=8192, engine="numpy",
                        center_frequency_hz=1e8)  # fmt: skip
    row = found.values[:, 0]
    lower, upper = adjacent_channel_ratio(row, found.spec, 1e8, 10000.0, 12000.0)
    assert lower[0, 0] == pytest.approx(10.0 * np.log10(0.03**2 / 1.01), abs=0.01)
    assert upper[0, 0] == pytest.approx(10.0 * np.log10(0.01**2 / 1.01), abs=0.01)
    power = channel_power(row, found.spec, 1e8 + 2000.0, 1e8 + 4000.0)
    assert power[0, 0] == pytest.approx(0.01, rel=1e-4)
    tone = occupied_bandwidth(row, found.spec, share=0.9)
    assert tone.low_hz[0, 0] == pytest.approx(1e8, abs=20.0)


def test_a_weak_channel_beside_a_strong_one():
    """The ratio to a channel 200 dB below its neighbour is not lost to rounding."""
    spec = SpectrumSpec(FS, win_length=4096)
    row = np.full(spec.n_bins, 1e-20)
    row[np.abs(spec.bin_frequencies - 5000.0) < 500.0] = 1.0
    lower, upper = adjacent_channel_ratio(row, spec, 5000.0, 800.0, 3000.0)
    assert [lower[0, 0], upper[0, 0]] == pytest.approx([-200.0, -200.0], abs=1e-9)


def test_silence_occupies_nothing():
    """Without any power there is no bandwidth, and a ratio is not a number."""
    row, spec = np.zeros(2049), SpectrumSpec(FS)
    assert np.isnan(occupied_bandwidth(row, spec).width_hz).all()
    assert np.isnan(adjacent_channel_ratio(row, spec, 5000.0, 1000.0, 1000.0)).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda r, s: occupied_bandwidth(r, s, 1.0), "share=1: must be above 0 and below 1"),
        (lambda r, s: channel_power(r, s, 5.0, 5.0), "channel of 5 to 5 Hz: must be ascending"),
        (lambda r, s: channel_power(r, s, 0.0, 3e4), "within 0 to 24000 Hz"),
        (lambda r, s: channel_power(r, s, np.nan, 3e3), "channel of nan to 3000 Hz"),
        (lambda r, s: adjacent_channel_ratio(r, s, 5e3, 2e3, 1e3), "at most spacing_hz=1000"),
        (lambda r, s: adjacent_channel_ratio(r, s, 5e2, 1e3, 1e3), "channel of -1000 to 0 Hz"),
    ],
)
def test_bad_channels(call, text):
    """Edges that are reversed or beyond the row, and bad shares, are errors."""
    with pytest.raises(ConfigError, match=text):
        call(np.ones(2049), SpectrumSpec(FS))


# ---- frequency responses

AIR = parse_reference("20 uPa")
RESPONSES = {
    "microphone": [(20, -3), (100, -2), (1000, 0), (10000, 1.5), (20000, 4)],
    "slope": [(20, 0), (50, 0), (200, 12), (20000, 12)],
    "step": [(50, 0), (999, 0), (1001, 6), (20000, 6)],
    "part": [(900, 10), (2000, 20)],
}


def microphone(name):
    response = make_response(RESPONSES[name], at_hz=0.0, sign=1.0)
    return ChannelCalibration(AIR, 100.0 + 10.0 * np.log10(2.0), response)


def heard(x, name, window="blackmanharris", scaling="density"):
    """Return the mean of frames whose bins are divided by a response, as all rows are."""
    found = spectrogram(
        x, FS, window=window, win_length=4096, engine="numpy", averaging="mean",
        averaging_frames=(len(x) - 4096) // 1024 + 1, scaling=scaling,
    )  # fmt: skip
    mic = microphone(name)
    factors = mic.response.power_factors(found.f)
    row = found.values[:, 0].astype(np.float64)
    if scaling == "dbfs":
        row += 100.0 + 10.0 * np.log10(factors)
    else:
        row *= factors * mic.full_scale**2
    return row, replace(found.spec, calibration=(mic,))


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("window", ["hann", "blackmanharris", "flattop"])
@pytest.mark.parametrize("scaling", ["density", "dbfs"])
def test_tones_under_a_response(name, window, scaling):
    """Frequencies are those of the samples, levels have the response at the tone's frequency.

    Wherever the table is steep, begins or ends: the bins around a tone have different factors.
    """
    frequencies = [203.3, 998.7, 3005.1, 11007.9]
    x = sines(40960, *((f, 0.1) for f in frequencies))
    peaks = find_peaks(*heard(x, name, window, scaling=scaling))
    np.testing.assert_allclose(peaks.frequency_hz, frequencies, atol=0.01)
    response = microphone(name).response.power_factors(np.array(frequencies))
    expected = 80.0 + 10.0 * np.log10(response)
    np.testing.assert_allclose(peaks.level_db, expected, atol=0.003)
    assert peaks.unit == "dB SPL"


def test_tones_of_weighted_rows():
    """A weighting is that of the tone's frequency, and shifts no frequency."""
    x = sines(40960, (103.3, 0.1), (11007.9, 0.1))
    found = spectrogram(x, FS, window="hann", win_length=4096, weighting="A", engine="numpy")
    peaks = find_peaks(found.values[:, :1].T, found.spec)
    np.testing.assert_allclose(peaks.frequency_hz, [103.3, 11007.9], atol=0.01)
    expected = -20.0 + 10.0 * np.log10(power_factors("A", np.array([103.3, 11007.9])))
    np.testing.assert_allclose(peaks.level_db, expected, atol=0.003)


def test_a_limited_number_of_peaks_is_that_of_the_strongest_levels():
    """With a response the strongest tones are those of the highest calibrated levels."""
    x = sines(40960, (103.3, 0.1), (5007.9, 0.15))
    peaks = find_peaks(*heard(x, "slope"), max_peaks=1)
    assert peaks.frequency_hz == pytest.approx([103.3], abs=0.01)


@pytest.mark.parametrize("name", ["microphone", "slope", "step"])
def test_distortion_under_a_response(name):
    """THD, SINAD, spur and intermodulation are those of the sound, not of the microphone."""
    response = microphone(name).response
    tones = [(997.3, 0.2), (2 * 997.3, 0.002), (3 * 997.3, 0.0006), (5505.5, 0.0004)]
    gains = response.power_factors(np.array([f for f, _ in tones])) ** -0.5
    x = sines(81920, *((f, a * g) for (f, a), g in zip(tones, gains, strict=True)))
    found = measure_distortion(*heard(x, name))
    assert found.frequency_hz == pytest.approx(997.3, abs=0.002)
    assert found.level_db == pytest.approx(100.0 + 20.0 * np.log10(0.2), abs=0.01)
    assert found.thd_db == pytest.approx(20.0 * np.log10(np.hypot(0.01, 0.003)), abs=0.02)
    assert found.sfdr_db == pytest.approx(40.0, abs=0.02)
    noise_db = 10.0 * np.log10(1e-4 + 9e-6 + 4e-6)
    assert -found.sinad_db == pytest.approx(noise_db, abs=0.05)
    products = [(19000.3, 0.1), (20000.1, 0.1), (999.8, 0.001)]
    gains = response.power_factors(np.array([f for f, _ in products])) ** -0.5
    x = sines(81920, *((f, a * g) for (f, a), g in zip(products, gains, strict=True)))
    both = measure_intermodulation(*heard(x, name), "ccif")
    assert both.rss == pytest.approx(0.001 / 0.2, rel=0.01)
