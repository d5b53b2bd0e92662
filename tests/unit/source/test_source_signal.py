"""Test signals: exact in level, frequency and time at any position and in any blocks."""

import re
from fractions import Fraction

import numpy as np
import pytest

from spectrod.config.config import SourceConfig
from spectrod.lib.errors import ConfigError
from spectrod.source.open_source import open_source
from spectrod.source.signal import SignalSource

FAR = 10**10
PERIOD = 1 << 20


def generate(text, index, n, fs=48000.0):
    """Generate samples from an index on, in float64."""
    return SignalSource(text, fs, 1, "full")._generate(index, n)


def level_dbfs(x):
    return 10 * np.log10(2 * np.mean(np.square(np.float64(np.float32(x)))))


@pytest.mark.parametrize("index", [0, 1, FAR + 7])
@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("sine,1000,-20", 48, -20.0),
        ("sine,997.3,-6", 480_000, -6.0),
        ("sine,0.1,-60", 480_000, -60.0),
        ("white,-30", PERIOD, -30.0),
        ("pink,-25", PERIOD, -25.0),
    ],
)
def test_levels_are_exact(text, n, expected, index):
    """RMS over whole periods, from any index, is the requested level to 0.001 dB."""
    assert level_dbfs(generate(text, index, n)) == pytest.approx(expected, abs=0.001)


def test_multitone_has_each_tone_at_its_level():
    """Each tone of a multitone has its level as if alone."""
    x = np.float64(generate("multitone,-40,100,1000,20000", FAR, 48000))
    amplitudes = np.abs(np.fft.rfft(x)) / 24000
    np.testing.assert_allclose(20 * np.log10(amplitudes[[100, 1000, 20000]]), -40.0, atol=1e-6)
    assert np.sort(amplitudes)[-4] < 1e-9


@pytest.mark.parametrize(("from_hz", "to_hz"), [(20, 20000), (20000, 20)])
@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_sweep_keeps_its_amplitude(from_hz, to_hz, seconds):
    """A sweep's amplitude and RMS are those of its level, up to a part of its lowest cycle.

    The mean of cos(2 phase) is at most 1 / (2 pi f_low T), by the second mean value theorem.
    """
    n = round(seconds * 48000)
    x = generate(f"sweep,{from_hz},{to_hz},{seconds},-3", FAR * n, n)
    assert np.max(np.abs(x)) == pytest.approx(10 ** (-3 / 20), rel=1e-3)
    bound = 1 / (2 * np.pi * 20 * seconds)
    assert 2 * np.mean(np.square(x)) * 10**0.3 == pytest.approx(1.0, abs=bound + 1e-3)


def test_sweep_takes_equal_time_for_each_octave():
    """After half its time a sweep is at the geometric mean of its end frequencies."""
    x = generate("sweep,100,10000,2,-3", 47_520, 960)
    crossings = np.count_nonzero(np.diff(np.signbit(x)))
    assert crossings / 2 / 0.02 == pytest.approx(1000.0, rel=0.05)


@pytest.mark.parametrize(("text", "slope"), [("white,-20", 0.0), ("pink,-20", -10 * np.log10(2))])
def test_noise_follows_its_law_exactly(text, slope):
    """Over a period white noise is flat in every bin, and pink noise falls 3 dB per octave."""
    power = np.square(np.abs(np.fft.rfft(generate(text, 12345, PERIOD))))
    bins = 2 ** np.arange(6, 19)
    np.testing.assert_allclose(np.diff(10 * np.log10(power[bins])), slope, atol=1e-6)


def test_noise_is_about_gaussian():
    """The kurtosis of the noise is 3, to 5 standard deviations of its estimate."""
    x = generate("white,-20", 0, PERIOD)
    kurtosis = np.mean(x**4) / np.mean(x**2) ** 2
    assert kurtosis == pytest.approx(3.0, abs=5 * np.sqrt(24 / PERIOD))


# ---- phase and position


@pytest.mark.parametrize(("frequency_hz", "fs"), [(997.3, 48000), (0.7, 44100), (1000.1, 96000)])
def test_the_phase_of_a_sine_stays_exact(frequency_hz, fs):
    """After 10^10 samples a sine equals exact arithmetic, to the rounding of the sine."""
    x = generate(f"sine,{frequency_hz},0", FAR, 500, float(fs))
    cycles = [float((FAR + n) * Fraction(str(frequency_hz)) / fs % 1) for n in range(500)]
    np.testing.assert_allclose(x, np.sin(2 * np.pi * np.array(cycles)), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("period_s", "fs"),
    [("1", 48000), ("0.1", 44100), ("0.0333333", 48000), ("0.00003", 48000), ("0.0017", 11025)],
)
@pytest.mark.parametrize("start", [0, 1, FAR])
def test_impulses_stand_at_their_multiples(period_s, fs, start):
    """The k-th impulse is at the sample nearest to k periods, halves up, for any k."""
    n = 3 * fs
    x = generate(f"impulses,{period_s},-6", start, n, float(fs))
    period = Fraction(period_s) * fs
    first = int(start / period)
    expected = {int(k * period + Fraction(1, 2)) for k in range(first, first + int(n / period) + 3)}
    found = set((np.flatnonzero(x) + start).tolist())
    assert found == {position for position in expected if start <= position < start + n}
    assert set(np.unique(x)) <= {0.0, 10 ** (-6 / 20)}


@pytest.mark.parametrize(
    "text",
    [
        "sine,1000,-20",
        "white,-30",
        "pink,-25",
        "sweep,20,2000,0.01,-3",
        "multitone,-40,5,7",
        "impulses,0.0017,-3",
    ],
)
def test_signals_do_not_depend_on_block_sizes(text):
    """A signal does not depend on its division into blocks."""
    blocks = SignalSource(text, 48000.0, 1, "full").blocks(251)
    cut = np.concatenate([next(blocks)[0] for _ in range(5)])
    whole = next(SignalSource(text, 48000.0, 1, "full").blocks(1255))[0]
    np.testing.assert_allclose(cut, whole, rtol=0, atol=1e-7)


def test_a_signal_is_the_same_in_every_channel(collect):
    """All channels of a signal are equal, whatever their number."""
    source = open_source(SourceConfig(uri="signal:pink,-20", channels=3, samplerate=8000), "full")
    ((_, samples, *_),) = collect(source, n_samples=5000)
    np.testing.assert_array_equal(samples[1:], samples[:1].repeat(2, axis=0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("square,1,2", "signal:square,1,2: must be one of signal:sine,FREQ_HZ,LEVEL_DBFS, "),
        ("sine,1000", "signal:sine,1000: must be signal:sine,FREQ_HZ,LEVEL_DBFS"),
        ("sine,a,b", "signal:sine,a,b: must be signal:sine,FREQ_HZ,LEVEL_DBFS"),
        ("sine,24000,-20", "signal: 24000 Hz: must lie between 0 and fs/2 = 24000"),
        ("sine,1000,21", "signal: 21 dBFS: must be -200 to 20"),
        ("multitone,-20", "signal:multitone,-20: must be signal:multitone,LEVEL_DBFS,FREQ_HZ,..."),
        ("sweep,20,20,1,-3", "signal: sweep from 20 to 20 Hz: must not be the same"),
        ("sweep,20,40,0,-3", "signal: sweep of 0 s: must be above 0, a day at most"),
        ("impulses,1", "signal:impulses,1: must be signal:impulses,PERIOD_S,LEVEL_DBFS"),
        ("impulses,nan,0", "signal:impulses,nan,0: must be signal:impulses,PERIOD_S,LEVEL_DBFS"),
        ("impulses,0.00002,0", "signal: period of 2e-05 s: must be a sample (2.08333e-05 s) to a"),
        ("impulses,86401,0", "signal: period of 86401 s: must be a sample"),
    ],
)
def test_bad_signals(text, message):
    """An invalid signal is refused with the valid forms."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_source(SourceConfig(uri=f"signal:{text}"), "full")
