"""Transfer functions, coherence and delays against SciPy, and sweeps against known systems."""

import numpy as np
import pytest
from scipy import signal

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.transfer.cross_spectra import TransferMeter, measure_transfer
from spectrod.measure.transfer.cross_sums import CrossSums
from spectrod.measure.transfer.delay import measure_delay
from spectrod.measure.transfer.sweep import Sweep

FS = 8000.0


def channels(n=20001, noise=0.3, seed=8):
    """Return noise, and it through a filter with noise added."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    y = signal.lfilter([0.5, 0.2, -0.1], [1.0, -0.4], x)
    return x, y + noise * rng.standard_normal(n)


@pytest.mark.parametrize(
    ("window", "n", "hop", "nfft"),
    [("hann", 256, 128, 256), ("blackmanharris", 255, 64, 512), ("hamming", 500, 500, 500)],
)
def test_scipy(window, n, hop, nfft):
    """Cross spectrum, densities, coherence and H1 are SciPy's to 1e-12."""
    x, y = channels()
    found = measure_transfer(x, y, FS, window=window, win_length=n, hop=hop, nfft=nfft)
    settings = {"fs": FS, "window": window, "nperseg": n, "noverlap": n - hop, "nfft": nfft,
                "detrend": False}  # fmt: skip
    f, gxy = signal.csd(x, y, **settings)
    _, gxx = signal.welch(x, **settings)
    _, gyy = signal.welch(y, **settings)
    _, coherence = signal.coherence(x, y, **settings)
    np.testing.assert_allclose(found.frequencies, f)
    for one, expected in ((found.gxx, gxx), (found.gyy, gyy), (found.coherence, coherence)):
        np.testing.assert_allclose(one, expected, rtol=1e-12)
    np.testing.assert_allclose(found.gxy, gxy, rtol=1e-12, atol=1e-14 * np.abs(gxy).max())
    np.testing.assert_allclose(found.h1, gxy / gxx, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.abs(found.h1 / found.h2), coherence, rtol=1e-12)


@pytest.mark.parametrize("hop", [100, 256, 700])
@pytest.mark.parametrize("delay", [0, 300, -77])
def test_blocks_of_any_size(hop, delay):
    """A stream in blocks of odd sizes gives the averages of the whole, delays removed."""
    x, y = channels(9000)
    meter = TransferMeter(FS, win_length=256, hop=hop, delay_samples=delay)
    first, sizes = 0, [1, 7, 250, 13, 999, 2000, 3, 5727]
    for size in sizes:
        meter.push(x[first : first + size], y[first : first + size])
        first += size
    late, early = max(0, delay), max(0, -delay)
    end = 9000 - late - early
    whole = measure_transfer(x[early:][:end], y[late:][:end], FS, win_length=256, hop=hop)
    found = meter.result()
    assert found.n_frames == whole.n_frames
    np.testing.assert_allclose(found.gxy, whole.gxy, rtol=1e-9, atol=1e-15)


def test_frames_do_not_span_a_gap():
    """After a restart the frames begin with the next sample."""
    x, y = channels(4000)
    meter = TransferMeter(FS, win_length=256, hop=128)
    meter.push(x[:1000], y[:1000])
    meter.restart()
    meter.push(x[1000:], y[1000:])
    assert meter.n_frames == (1000 - 128) // 128 + (3000 - 128) // 128


def test_transfer_function_of_a_filter():
    """H1 is the filter's response within its stated deviation; the level is its power gain."""
    x, y = channels(200_000)
    found = measure_transfer(x, y, FS, win_length=256)
    _, response = signal.freqz([0.5, 0.2, -0.1], [1.0, -0.4], found.frequencies, fs=FS)
    errors = (found.h1 / response / found.relative_sd)[2:-2]
    typical = (1.0 / found.relative_sd)[2:-2]
    assert np.std(np.abs(errors) - typical) == pytest.approx(1.0, abs=0.2)
    assert np.std(np.angle(errors) * typical) == pytest.approx(1.0, abs=0.2)
    clean = signal.lfilter([0.5, 0.2, -0.1], [1.0, -0.4], x)
    expected = 10.0 * np.log10(np.mean(clean**2) + 0.09)
    assert found.level_difference_db() == pytest.approx(expected, abs=0.05)
    low = found.level_difference_db((100.0, 300.0))
    assert low == pytest.approx(10.0 * np.log10(np.abs(response[5]) ** 2 + 0.09), abs=0.3)


def test_noise_at_the_input_biases_h1_and_not_h2():
    """With noise in the reference H2 is the gain, and H1 too small by the coherence."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal(400_000)
    found = measure_transfer(x + rng.standard_normal(len(x)), 3.0 * x, FS, win_length=128)
    inner = slice(2, -2)
    assert np.mean(np.abs(found.h2[inner])) == pytest.approx(3.0, rel=0.02)
    assert np.mean(np.abs(found.h1[inner])) == pytest.approx(1.5, rel=0.02)


@pytest.mark.parametrize("hop", [64, 32])
def test_coherence_of_unrelated_channels(hop):
    """Its mean is the stated bias, and 5 % of the bins exceed the stated significance."""
    rng = np.random.default_rng(10)
    values, last = [], None
    for _ in range(60):
        x, y = rng.standard_normal((2, 64 * 16))
        last = measure_transfer(x, y, FS, win_length=64, hop=hop)
        values.append(last.coherence[2:-2])
    found = np.concatenate(values)
    assert np.mean(found) == pytest.approx(1.0 / last.n_averages, rel=0.1)
    assert np.mean(found > last.significant_coherence) == pytest.approx(0.05, abs=0.015)
    assert last.n_averages == pytest.approx(16.0 if hop == 64 else 29.5, abs=0.5)


def test_significance_levels():
    """The 95 % levels of 4, 16 and 128 averages are .632, .181 and .023."""
    for n, level in ((4, 0.632), (16, 0.181), (128, 0.023)):
        x, y = channels(64 * n)
        found = measure_transfer(x, y, FS, win_length=64, hop=64)
        assert found.significant_coherence == pytest.approx(level, abs=0.0005)


def test_bias_of_partly_related_channels():
    """The mean of many coherences errs by the stated bias."""
    rng = np.random.default_rng(11)
    true, found, bias = 0.5, [], []
    for _ in range(300):
        x = rng.standard_normal(64 * 8)
        y = x + rng.standard_normal(64 * 8)
        one = measure_transfer(x, y, FS, win_length=64, hop=64, window="rectangular")
        found.append(one.coherence[1:-1])
        bias.append((1 - true) ** 2 * (1 + 2 * true / 8) / 8)
    assert np.mean(found) - true == pytest.approx(np.mean(bias), abs=0.006)
    assert one.coherence_bias.shape == one.coherence.shape


def test_exponential_average_of_several_responses():
    """Each response has the weighted means of its frames, for any groups of frames."""
    rng = np.random.default_rng(12)
    spec = SpectrumSpec(FS, 3, win_length=64, hop=32)
    spectra = rng.standard_normal((7, 3, 33)) + 1j * rng.standard_normal((7, 3, 33))
    sums = CrossSums(spec, decay=0.8)
    for first, stop in ((0, 1), (1, 5), (5, 7)):
        sums.add(spectra[first:stop])
    weights = 0.8 ** np.arange(6, -1, -1.0)
    for k in (0, 1):
        found = sums.result(k)
        x, y = spectra[:, 0], spectra[:, 1 + k]
        gxy = np.average(x.conj() * y, axis=0, weights=weights)
        gxx, gyy = (np.average(np.abs(one) ** 2, axis=0, weights=weights) for one in (x, y))
        np.testing.assert_allclose(found.h1, gxy / gxx, rtol=1e-12)
        np.testing.assert_allclose(found.coherence, np.abs(gxy) ** 2 / gxx / gyy, rtol=1e-12)
        assert found.n_frames == 7


def test_mean_coherence_of_a_band():
    """Half of the response's power is the reference's above 1 kHz, and none below."""
    rng = np.random.default_rng(13)
    high = signal.butter(8, 1000.0, "highpass", fs=FS, output="sos")
    x, noise = rng.standard_normal((2, 200_000))
    y = signal.sosfilt(high, x) + noise
    found = measure_transfer(x, y, FS, win_length=256)
    assert found.mean_coherence((1200.0, 3900.0)) == pytest.approx(0.5, abs=0.01)
    assert found.mean_coherence((100.0, 800.0)) == pytest.approx(0.0, abs=0.01)
    assert found.mean_coherence() == pytest.approx(0.75 / 1.75, abs=0.02)
    with pytest.raises(ConfigError, match=r"band_hz=\(1.5, 2\): has no bin"):
        found.mean_coherence((1.5, 2.0))


def test_silence_has_no_coherence():
    """A silent channel has a coherence that is not a number, without warnings."""
    x, _ = channels(2000)
    found = measure_transfer(x, np.zeros(2000), FS, win_length=256)
    assert np.isnan(found.coherence).all()
    assert found.level_difference_db() == -np.inf


@pytest.mark.parametrize(
    ("arguments", "settings", "text"),
    [
        ((np.ones(300), np.ones(300)), {}, "1 frames of 256 samples: coherence needs 2 or more"),
        ((np.ones(100), np.ones(100)), {}, "0 frames of 256 samples"),
        ((np.ones(100), np.ones(101)), {}, "100 and 101 samples: must have one length"),
        ((np.ones((2, 9)), np.ones((2, 9))), {}, r"reference of shape \(2, 9\), float64: must be"),
        ((np.ones(99), np.ones(99, np.int16)), {}, r"response of shape \(99,\), int16: must be"),
        ((np.ones(99) * 1j, np.ones(99)), {}, r"\(99,\), complex128: must be \(n,\) real floating"),
        ((np.full(999, np.nan), np.ones(999)), {}, "reference: must be finite"),
        ((np.ones(999), np.ones(999)), {"delay_samples": 1 << 21}, "delay_samples=2097152: must"),
        ((np.ones(999), np.ones(999)), {"hop": 0}, "hop=0: must be at least 1 sample"),
    ],
)
def test_bad_transfers(arguments, settings, text):
    """Too few frames, wrong shapes and parameters are errors."""
    with pytest.raises((ConfigError, InputError), match=text):
        measure_transfer(*arguments, FS, win_length=256, **settings)


# ---- delay


@pytest.mark.parametrize("true", [0.0, 0.25, 17.5, -33.3, 411.9])
def test_delay_of_a_fraction_of_a_sample(true):
    """A delay has its sign, and its size to 0.01 samples, at a height near 1."""
    rng = np.random.default_rng(12)
    spectrum = np.fft.rfft(rng.standard_normal(8192))
    turns = np.exp(-2j * np.pi * np.fft.rfftfreq(8192) * true)
    x, y = np.fft.irfft(spectrum, 8192), np.fft.irfft(spectrum * turns, 8192)
    found = measure_delay(x[1000:-1000], y[1000:-1000], FS)
    assert found.samples == pytest.approx(true, abs=0.01)
    assert found.seconds == pytest.approx(true / FS, abs=0.01 / FS)
    assert found.peak > 0.7


def delayed_pair(n, band, delay, seed):
    """Return a record of n samples, cut out of noise of a band (re Nyquist) that is delayed."""
    rng = np.random.default_rng(seed)
    total = 4 * n + 2 * int(abs(delay))
    spectrum = np.fft.rfft(rng.standard_normal(total))
    place = np.linspace(0.0, 1.0, len(spectrum))
    spectrum[(place < band[0]) | (place > band[1])] = 0.0
    turns = np.exp(-2j * np.pi * np.fft.rfftfreq(total) * delay)
    pair = np.fft.irfft([spectrum, spectrum * turns], total)
    return 0.1 / np.std(pair[0]) * pair[:, n : 2 * n]


@pytest.mark.parametrize(
    ("band", "n"),
    [
        *(((0, top), n) for top in (1, 0.9, 0.5, 0.2) for n in (4096, 24001)),
        *[((0, 0.9), 999), ((0.1, 0.2), 4096), ((0.1, 0.2), 24001), ((0.3, 0.32), 24001)],
    ],
)
def test_delay_of_a_limited_band(band, n):
    """Without noise the delay of a limited band, cut out of a longer sound, errs by 0.01 samples.

    Empty bins hold what leaks at the ends of the record, with the phase of the band. The bound is
    for a bandwidth times duration of 200 or more.
    """
    assert (band[1] - band[0]) * n / 2 >= 200
    for seed, true in enumerate((0.5, 7.3, -33.37, n / 10 + 0.27, -n / 4 - 0.5)):
        found = measure_delay(*delayed_pair(n, band, true, seed), FS)
        assert found.samples == pytest.approx(true, abs=0.01)
        assert abs(found.peak) > 0.99


@pytest.mark.parametrize("band", [(0, 0.5), (0, 0.2), (0.1, 0.2)])
def test_delay_of_a_limited_band_in_noise(band):
    """Noise of other bands, as of 16 bits or of -40 dB, moves the delay by less than 0.02 samples.

    It has no weight because it has no coherence.
    """
    rng = np.random.default_rng(4)
    for seed, true in enumerate((7.3, -333.37)):
        pair = delayed_pair(24001, band, true, seed)
        noisy = pair + 0.001 * rng.standard_normal(pair.shape)
        for given in (np.round(pair * 2**15) / 2**15, noisy):
            assert measure_delay(*given, FS).samples == pytest.approx(true, abs=0.02)


def test_delay_of_single_events():
    """A click near the start of a record, a sweep, and tones in noise have their delay."""
    n = np.arange(20000)
    click = np.zeros(20000)
    click[40] = 1.0
    sweep = np.sin(2.0 * np.pi * 1e-5 * n**2 / 2.0)
    tones = np.sin(0.3 * n) + 1e-3 * np.random.default_rng(5).standard_normal(20000)
    for x in (click, sweep, tones):
        assert measure_delay(x, np.roll(x, 37), FS).samples == pytest.approx(37.0, abs=0.01)


def test_delay_is_that_of_scipy_correlation():
    """In noise of the same power the delay is the lag of SciPy's correlation."""
    rng = np.random.default_rng(13)
    x = rng.standard_normal(6000)
    y = -np.roll(x, 123) + rng.standard_normal(6000)
    lags = signal.correlation_lags(6000, 6000)
    expected = lags[np.argmax(np.abs(signal.correlate(y, x)))]
    found = measure_delay(x, y, FS)
    assert round(found.samples) == expected == 123
    assert found.peak < 0.0


def test_delay_within_a_band_and_a_limit():
    """Only the band counts, and only delays up to the limit."""
    rng = np.random.default_rng(14)
    x = rng.standard_normal(8000)
    low, high = (signal.butter(6, 1000.0, kind, fs=FS, output="sos") for kind in ("low", "high"))
    y = np.roll(signal.sosfilt(low, x), 50) + np.roll(signal.sosfilt(high, x), 200)
    assert measure_delay(x, y, FS, band_hz=(1500.0, 4000.0)).samples == pytest.approx(201, abs=2)
    below = measure_delay(x, y, FS, band_hz=(50.0, 700.0), max_delay_s=0.02)
    assert below.samples == pytest.approx(57, abs=8)


@pytest.mark.parametrize(
    ("x", "y", "settings", "text"),
    [
        (np.zeros(100), np.zeros(100), {}, "delay: no frequency has power in both channels"),
        (np.ones(10), np.ones(10), {}, "10 samples: must be 16 to 1048576"),
        (np.ones(99), np.ones(98), {}, "99 and 98 samples: must have one length"),
        (np.ones(99, np.int32), np.ones(99), {}, r"reference of shape \(99,\), int32: must be"),
        (np.full(99, np.inf), np.ones(99), {}, "reference: must be finite"),
        (np.ones(99), np.ones(99), {"max_delay_s": 0.0}, "max_delay_s=0: must be 1 sample"),
        (np.ones(99), np.ones(99), {"max_delay_s": np.nan}, "max_delay_s=nan: must be 1 sample"),
        (np.ones(99), np.ones(99), {"band_hz": (5.0, 3.0)}, r"band_hz=\(5, 3\): must be two asc"),
        (np.ones(99), np.ones(99), {"band_hz": (0.0, np.nan)}, r"band_hz=\(0, nan\): must be"),
    ],
)
def test_bad_delays(x, y, settings, text):
    """Silence, wrong shapes and limits are errors."""
    with pytest.raises((ConfigError, InputError), match=text):
        measure_delay(x, y, FS, **settings)


# ---- sweep

SWEEP = Sweep(48000.0, 40.0, 20000.0, 2.0)


def in_band(frequencies, low=80.0, high=15000.0):
    return (frequencies > low) & (frequencies < high)


def test_sweep_through_its_inverse_is_an_impulse():
    """The identity has a gain of 1 and no phase in the band, and its peak at time 0."""
    linear = SWEEP.impulse_responses(np.append(SWEEP.samples, np.zeros(4800)))[0]
    f, response = linear.response()
    chosen = in_band(f)
    assert np.abs(np.abs(response[chosen]) - 1.0).max() < 0.001
    assert np.abs(np.angle(response[chosen])).max() < 0.001
    assert np.argmax(linear.samples) == round(linear.lead_samples)


@pytest.mark.parametrize(
    ("arguments", "periods", "limit_db"),
    [
        ((48000.0, 20.0, 20000.0, 10.0), 20, 0.01),
        ((44100.0, 20.0, 22050.0, 10.0), 20, 0.01),
        ((96000.0, 20.0, 40000.0, 4.0), 7, 0.1),
        ((48000.0, 50.0, 5000.0, 1.0), 7, 0.1),
        ((48000.0, 20.0, 20000.0, 1.5), 3, 0.5),
    ],
)
def test_gain_of_a_wire(arguments, periods, limit_db):
    """The gain of a wire is 1, magnitude and phase, from low_hz to a sixth octave below high_hz.

    The limit is that of the periods of low_hz by which the second harmonic precedes: the error is
    the ringing of the band's end before these.
    """
    sweep = Sweep(*arguments)
    _, low, high, _ = arguments
    assert sweep.lead_s(2) * low == pytest.approx(periods, abs=0.6)
    linear = sweep.impulse_responses(sweep.samples, 1)[0]
    f, response = linear.response(4 << (len(linear.samples) - 1).bit_length())
    error = np.abs(response - 1.0)

    def largest_db(first, last):
        return 20.0 * np.log10(1.0 + error[(f >= first) & (f <= last)].max())

    assert largest_db(low, high / 2 ** (1 / 6)) <= limit_db
    assert largest_db(4.0 * low, high / 2.0) <= 0.01


def test_sweep_of_a_filter_and_a_delay():
    """A filter's response is measured, with the delay as phase, within 0.01 dB."""
    b, a = signal.butter(2, [300.0, 5000.0], "band", fs=48000.0)
    y = signal.lfilter(b, a, np.append(np.zeros(7), np.append(SWEEP.samples, np.zeros(9600))))
    f, response = SWEEP.impulse_responses(y)[0].response()
    _, expected = signal.freqz(b, a, f, fs=48000.0)
    expected = expected * np.exp(-2j * np.pi * f * 7 / 48000.0)
    chosen = in_band(f)
    assert np.abs(response - expected)[chosen].max() < 0.001


def test_harmonics_of_a_non_linear_system():
    """Responses of harmonics are a2 A^2/2 and a3 A^3/4 of x + a2 x^2 + a3 x^3, each apart."""
    x = SWEEP.samples
    y = np.append(x + 0.1 * x**2 + 0.05 * x**3, np.zeros(4800))
    linear, second, third, fourth = SWEEP.impulse_responses(y, harmonics=4)
    gains = []
    for one in (linear, second, third, fourth):
        f, response = one.response()
        gains.append(np.median(np.abs(response[in_band(f, 300.0, 12000.0)])))
    assert gains[0] == pytest.approx(1.0375, rel=0.005)
    assert gains[1] / gains[0] == pytest.approx(0.0482, abs=0.0003)
    assert gains[2] / gains[0] == pytest.approx(0.0120, abs=0.0003)
    assert gains[3] / gains[0] < 0.0005
    assert [one.order for one in (linear, second, third, fourth)] == [1, 2, 3, 4]


def test_times_of_harmonics():
    """10 s from 20 Hz to 20 kHz separate the second and third harmonic by 1.003 and 1.590 s."""
    sweep = Sweep(48000.0, 20.0, 20000.0, 10.0)
    assert sweep.lead_s(2) == pytest.approx(1.003, abs=0.001)
    assert sweep.lead_s(3) == pytest.approx(1.590, abs=0.001)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0.0, 20.0, 200.0, 1.0), "fs=0: must be a positive number of Hz"),
        ((48000.0, 20.0, 25.0, 1.0), "low_hz=20, high_hz=25: must be half an octave apart"),
        ((48000.0, 20.0, 24001.0, 1.0), "within 0 Hz and fs/2=24000 Hz"),
        ((48000.0, 20.0, 20000.0, 0.01), "duration_s=0.01: must be a period of low_hz=20"),
        ((48000.0, 20.0, 20000.0, 1000.0), "at most 8388608 samples"),
        ((48000.0, 20.0, 20000.0, np.nan), "duration_s=nan"),
    ],
)
def test_bad_sweeps(arguments, text):
    """Bad bands and lengths are errors before any memory is used."""
    with pytest.raises(ConfigError, match=text):
        Sweep(*arguments)


@pytest.mark.parametrize(
    ("recording", "harmonics", "text"),
    [
        (np.zeros(100), 3, "recording of 100 samples: must have 96000 to 8388608"),
        (
            np.zeros(96000, np.int16),
            3,
            r"recording of shape \(96000,\), int16: must be \(n,\) real",
        ),
        (np.full(96000, np.nan), 3, "recording: must be finite"),
        (np.zeros(96000), 0, "harmonics=0: must be 1 to 20"),
    ],
)
def test_bad_recordings(recording, harmonics, text):
    """Short and non-finite recordings, and bad orders, are errors."""
    with pytest.raises((ConfigError, InputError), match=text):
        SWEEP.impulse_responses(recording, harmonics)


def test_harmonics_before_the_sweep():
    """Harmonics that a short narrow sweep cannot hold are refused."""
    sweep = Sweep(48000.0, 1000.0, 2000.0, 0.1)
    with pytest.raises(ConfigError, match="harmonics=5: the last lies before the sweep"):
        sweep.impulse_responses(sweep.samples, harmonics=5)
