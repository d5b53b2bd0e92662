"""Loudness and true peak: the test signals of EBU Tech 3341 and 3342, made from their text."""

import math

import numpy as np
import pytest
from scipy import signal

from spectrod.lib.errors import ConfigError
from spectrod.measure.levels.histogram import LevelHistogram, PowerHistogram
from spectrod.measure.levels.loudness import (
    LoudnessMeter,
    LoudnessSteps,
    LoudnessTally,
    channel_weights,
    loudness,
)
from spectrod.measure.levels.recursive import CHUNK_SAMPLES
from spectrod.measure.levels.true_peak import BetweenSamples

FS = 48000
STEREO = (2.0,)
"""Weight of one channel that stands for two equal ones."""


def tone(*parts, fs=FS):
    """Make 1 kHz without jumps of phase: pairs of seconds and peak level [dBFS]."""
    gains = [np.full(round(seconds * fs), 10.0 ** (db / 20.0)) for seconds, db in parts]
    gain = np.concatenate(gains)
    return (gain * np.sin(2.0 * np.pi * 1000.0 / fs * np.arange(len(gain))))[np.newaxis]


def measured(x, weights=STEREO, fs=FS):
    """Return the loudness of (channels, n) samples as a tally, and the steps."""
    meter, tally, parts = LoudnessMeter(fs, weights), LoudnessTally(), []
    n = x.shape[1]
    padded = np.pad(x, ((0, 0), (0, -n % CHUNK_SAMPLES)))
    for first in range(0, n, CHUNK_SAMPLES):
        chunk = np.ascontiguousarray(padded[:, first : first + CHUNK_SAMPLES])
        parts.append(meter.run(chunk).ending_in(0, n))
        tally.add(parts[-1])
    fields = ("ends", "momentary", "short_term", "gates")
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in fields]
    return tally, LoudnessSteps(*joined)


SILENCE = -300.0


@pytest.mark.parametrize("level", [-23.0, -33.0])
def test_3341_cases_1_and_2(level):
    """A steady stereo tone reads its level as M, S and I."""
    tally, steps = measured(tone((20, level)))
    assert loudness(steps.momentary[50:]) == pytest.approx(level, abs=0.1)
    assert loudness(steps.short_term[300:]) == pytest.approx(level, abs=0.1)
    assert tally.integrated_lufs == pytest.approx(level, abs=0.1)


@pytest.mark.parametrize(
    "parts",
    [
        [(10, -36), (60, -23), (10, -36)],
        [(10, -72), (10, -36), (60, -23), (10, -36), (10, -72)],
        [(20, -26), (20.1, -20), (20, -26)],
    ],
    ids=["3", "4", "5"],
)
def test_3341_cases_3_to_5(parts):
    """Both gates leave quiet parts out of the integrated loudness."""
    assert measured(tone(*parts))[0].integrated_lufs == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("has_lfe", [False, True])
def test_3341_case_6(has_lfe):
    """The channels of 5.1 have their weights, and that of low frequencies none."""
    levels = [-28, -28, -24, *([-10] if has_lfe else []), -30, -30]
    x = np.concatenate([tone((20, level)) for level in levels])
    tally, _ = measured(x, channel_weights(len(levels)))
    assert tally.integrated_lufs == pytest.approx(-23.0, abs=0.1)


def test_3341_case_9():
    """Short-term loudness is constant where the level changes with a period of 3 s."""
    _, steps = measured(tone(*[(1.34, -20), (1.66, -30)] * 5))
    assert loudness(steps.short_term[299:]) == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("i", range(20))
def test_3341_case_10(i):
    """3 s of a tone are found as a maximum of short-term loudness wherever they lie."""
    tally, _ = measured(tone((0.15 * i, SILENCE), (3, -23), (1, SILENCE)))
    assert loudness(tally.short_term_max) == pytest.approx(-23.0, abs=0.1)


def test_3341_case_11():
    """Maxima of short-term loudness follow tones of 3 s that get louder by 1 LU each."""
    parts = [((0.15 * i, SILENCE), (3, -38 + i), (3 - 0.15 * i, SILENCE)) for i in range(20)]
    _, steps = measured(tone(*[part for three in parts for part in three]))
    for i in range(20):
        found = np.nanmax(steps.short_term[600 * i : 600 * (i + 1)])
        assert loudness(found) == pytest.approx(-38.0 + i, abs=0.1)


def test_3341_case_12():
    """Momentary loudness is constant where the level changes with a period of 400 ms."""
    _, steps = measured(tone(*[(0.18, -20), (0.22, -30)] * 25))
    assert loudness(steps.momentary[99:]) == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("i", range(20))
def test_3341_case_13(i):
    """400 ms of a tone are found as a maximum of momentary loudness wherever they lie."""
    tally, steps = measured(tone((0.02 * i, SILENCE), (0.4, -23), (1, SILENCE)))
    assert loudness(tally.momentary_max) == pytest.approx(-23.0, abs=0.1)
    assert np.diff(steps.ends).max() <= FS / 100


def test_3341_case_14():
    """Maxima of momentary loudness follow tones of 400 ms that get louder by 1 LU each."""
    parts = [((0.02 * i, SILENCE), (0.4, -38 + i), (0.4 - 0.02 * i, SILENCE)) for i in range(20)]
    _, steps = measured(tone(*[part for three in parts for part in three]))
    for i in range(20):
        found = np.nanmax(steps.momentary[80 * i : 80 * (i + 1)])
        assert loudness(found) == pytest.approx(-38.0 + i, abs=0.1)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [((-20, -30), 10), ((-20, -15), 5), ((-40, -20), 20), ((-50, -35, -20, -35, -50), 15)],
)
def test_3342_cases_1_to_4(levels, expected):
    """The range of tones of 20 s is the difference of their levels above the gates."""
    tally, _ = measured(tone(*[(20, level) for level in levels]))
    assert tally.range_lu == pytest.approx(expected, abs=1.0)


@pytest.mark.parametrize("levels", [(-20, -30), (-20, -15), (-40, -20), (-50, -35, -20, -35, -50)])
def test_silence_after_a_programme(levels):
    """1.5 s of silence after tones of 20 s change the range by 0.001 LU, after noise by 0.5 LU."""
    x = tone(*[(20, level) for level in levels])
    rng = np.random.default_rng(len(levels) - sum(levels))
    gains = np.repeat(10.0 ** (rng.uniform(-40, -15, 90) / 20.0), FS)
    noise = (gains * rng.standard_normal(90 * FS))[np.newaxis]
    for given, limit in ((x, 0.001), (noise, 0.5)):
        alone, _ = measured(given)
        padded, _ = measured(np.pad(given, ((0, 0), (0, 3 * FS // 2))))
        assert padded.range_lu == pytest.approx(alone.range_lu, abs=limit)


@pytest.mark.parametrize("fs", [8000, 44100, 96000, 11025])
def test_other_rates(fs):
    """A tone reads the same at other rates, with steps of a fraction of a sample, too."""
    tally, steps = measured(tone((4, -23), fs=fs), fs=fs)
    assert tally.integrated_lufs == pytest.approx(-23.0, abs=0.1)
    assert steps.ends[-1] == 4 * fs


def test_one_full_scale_channel():
    """997 Hz at full scale in one channel reads -3.01 LKFS."""
    x = np.sin(2.0 * np.pi * 997.0 / FS * np.arange(2 * FS))[np.newaxis]
    assert measured(x, (1.0,))[0].integrated_lufs == pytest.approx(-3.01, abs=0.01)


def test_noise_against_scipy():
    """Integrated loudness equals gating by hand of SciPy's filters in float64."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal((2, 20 * FS)) * np.repeat(10.0 ** rng.uniform(-3, -1, 40), FS // 2)
    sos = [
        (1.53512485958697, -2.69169618940638, 1.19839281085285),
        (1.0, -1.69065929318241, 0.73248077421585),
        (1.0, -2.0, 1.0),
        (1.0, -1.99004745483398, 0.99007225036621),
    ]
    power = np.square(signal.sosfilt(np.reshape(sos, (2, 6)), x)).sum(axis=0)
    blocks = [power[k : k + 19200].mean() for k in range(0, len(power) - 19199, 4800)]
    blocks = np.array([one for one in blocks if loudness(one) > -70.0])
    gated = blocks[blocks > blocks.mean() / 10.0]
    tally, _ = measured(x, (1.0, 1.0))
    assert tally.integrated_lufs == pytest.approx(float(loudness(gated.mean())), abs=0.01)


def test_silence_has_no_integrated_loudness():
    """Digital silence is below the absolute gate: no integrated loudness and no range."""
    tally, steps = measured(np.zeros((1, 5 * FS)))
    assert math.isnan(tally.integrated_lufs)
    assert math.isnan(tally.range_lu)
    assert loudness(steps.momentary[-1]) == -np.inf


def test_weights_of_channels():
    """Numbers of channels without a layout, and wrong weights, are errors."""
    with pytest.raises(ConfigError, match="channels=3: loudness has channel weights for 1, 2, 5"):
        channel_weights(3)
    with pytest.raises(ConfigError, match="channel_weights: 2 values for 3 channels"):
        channel_weights(3, [1.0, 1.0])
    with pytest.raises(ConfigError, match="channel_weights=nan: must be 0 to 10"):
        channel_weights(1, [float("nan")])
    assert channel_weights(2, [0.0, 10]) == (0.0, 10.0)


# ---- true peak


def true_peak_db(x):
    meter = BetweenSamples(1)
    padded = np.pad(x, (0, -len(x) % CHUNK_SAMPLES + CHUNK_SAMPLES))
    peaks = [meter.run(part[np.newaxis]).max() for part in np.split(padded, len(padded) // 4096)]
    return 20.0 * np.log10(max(*peaks, np.abs(x).max()))


@pytest.mark.parametrize(
    ("period", "degrees", "amplitude", "expected"),
    [
        (4, 0, 0.5, -6.0),
        (4, 45, 0.5, -6.0),
        (6, 60, 0.5, -6.0),
        (8, 67.5, 0.5, -6.0),
        (4, 45, 1.41, 3.0),
    ],
    ids=["15", "16", "17", "18", "19"],
)
def test_3341_cases_15_to_19(period, degrees, amplitude, expected):
    """True peaks between samples are found within +0.2 and -0.4 dB, with 0.1 dB to spare."""
    n = np.arange(FS)
    fade = np.minimum(1.0, np.minimum(n, n[::-1]) / (0.01 * FS))
    x = amplitude * fade * np.sin(2.0 * np.pi * n / period + math.radians(degrees))
    assert -0.3 <= true_peak_db(x) - expected <= 0.1


@pytest.mark.parametrize("offset", range(4))
def test_3341_cases_20_to_23(offset):
    """The peak of one period of a higher tone is found whatever the phase of the samples."""
    fs = 4 * FS
    low = 2.0 * np.pi * np.arange(24 * 500) / 24
    once = 2.0 * np.pi * np.arange(16) / 16
    x = np.concatenate((0.5 * np.sin(low), np.sin(once), 0.5 * np.sin(low)))
    # A filter of linear phase that is flat to fs / 3 of the lower rate.
    x = signal.convolve(x, signal.firwin(511, 0.45 * FS, fs=fs), mode="same")
    assert -0.3 <= true_peak_db(x[offset::4]) <= 0.1


# ---- histograms


@pytest.mark.parametrize("n", [1, 2, 1001, 20_000])
def test_percentiles_of_levels(n):
    """Percentiles are within a class of the two sorted levels that NumPy interpolates."""
    levels = np.random.default_rng(9).normal(-40.0, 6.0, (2, n))
    histogram = LevelHistogram(2)
    for part in np.array_split(10.0 ** (levels / 10.0), 3, axis=1):
        other = LevelHistogram(2)
        other.add(part)
        histogram.merge(other)
    for percent in (1.0, 10.0, 50.0, 90.0, 99.9):
        found = 10.0 * np.log10(histogram.exceeded(percent))
        low, high = (
            np.percentile(levels, 100.0 - percent, axis=1, method=method)
            for method in ("lower", "higher")
        )
        assert (found >= low - 0.0101).all()
        assert (found <= high + 0.0101).all()


def test_ends_of_the_histogram():
    """Silence and absurd levels count in the first and the last class; nothing counts as NaN."""
    histogram = LevelHistogram(2)
    assert np.isnan(histogram.exceeded(50.0)).all()
    histogram.add(np.array([[0.0, 0.0], [1e30, 1e30]]))
    np.testing.assert_allclose(10.0 * np.log10(histogram.exceeded(50.0)), [-204, 56], atol=0.011)
    empty = PowerHistogram()
    assert math.isnan(empty.mean_above(0.0))
    assert math.isnan(empty.ranked_above(0.0, 10.0))
