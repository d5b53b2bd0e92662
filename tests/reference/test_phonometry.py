"""Filters, weightings, levels, loudness against phonometry; before Python 3.13 PyOctaveBand."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import signal

from spectrod.measure.levels import LevelMeter, OctaveMeter
from spectrod.measure.levels.octave_bank import OctaveFilterBank
from spectrod.measure.levels.octave_filters import FRACTIONS, octave_filters
from spectrod.measure.levels.recursive import CHUNK_SAMPLES

RATES = [44100, 48000, 96000]

pytestmark = pytest.mark.extended


IS_PHONOMETRY = sys.version_info >= (3, 13)
"""phonometry asks for Python 3.13; PyOctaveBand is what it was called before."""
REASON = "is of the group reference"


@pytest.fixture(scope="module")
def phonometry():
    """Import what has the filters and weightings."""
    return pytest.importorskip("phonometry" if IS_PHONOMETRY else "pyoctaveband", reason=REASON)


@pytest.fixture(scope="module")
def class_limits():
    """Import the limits of classes, which PyOctaveBand has in a module of their own."""
    name = "phonometry" if IS_PHONOMETRY else "pyoctaveband.compliance"
    return pytest.importorskip(name, reason=REASON).class_limits


def as_sos(cascade):
    """Return sections as SciPy has them."""
    pad = [0.0]
    return np.array([[*s.b, *pad * (3 - len(s.b)), *s.a, *pad * (3 - len(s.a))] for s in cascade])


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_every_filter_is_of_class_1(phonometry, fraction, fs):
    """Phonometry finds every band from 10 Hz to 20 kHz in class 1, at the rate of its filter."""
    filters = octave_filters(fs, fraction, 10.0, 20000.0)
    bank = SimpleNamespace(
        fs=fs,
        fraction=fraction,
        num_bands=len(filters),
        freq=[one.centre_hz for one in filters],
        factor=[2**one.stage for one in filters],
        sos=[as_sos(one.cascade) for one in filters],
    )
    found = phonometry.verify_filter_class(bank, num_points=1 << 13)
    assert found["overall_class"] == 1
    assert len(found["bands"]) == len(filters)
    margin = min(one["margin_class1_db"] for one in found["bands"])
    assert margin > 0.39


def responses(filters, fs):
    """Return power gains of the running bank from a sine to each band, and their frequencies [Hz].

    Each channel has an impulse at another place between two samples of a decimated band. Together
    they are the impulse response of the whole chain at the full rate, so that what decimators alias
    counts.
    """
    stage = filters[0].stage
    n_places = 1 << stage
    chunks = int(np.ceil(2.5 * max(one.settle_s for one in filters) * fs / CHUNK_SAMPLES)) + 1
    bank = OctaveFilterBank(filters, n_places)
    samples = np.zeros((n_places, CHUNK_SAMPLES))
    samples[range(n_places), range(n_places)] = 1.0
    parts = []
    for _ in range(chunks):
        parts.append([band for bands in bank.run(samples) for band in bands])
        samples = np.zeros_like(samples)
    f_hz = np.fft.rfftfreq(chunks * CHUNK_SAMPLES, 1.0 / fs)
    for number in range(len(filters)):
        band = np.concatenate([part[number] for part in parts], axis=1)
        impulse = np.zeros(band.shape[1] * n_places)
        for place in range(n_places):
            index = np.arange(band.shape[1]) * n_places - place
            impulse[index[index >= 0]] = band[place, index >= 0]
        yield f_hz, np.abs(np.fft.rfft(impulse)) ** 2


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_every_running_band_is_of_class_1(class_limits, fraction, fs):
    """Impulses through the bank, its decimators included, keep phonometry's limits of class 1."""
    filters = octave_filters(fs, fraction, 250.0, 20000.0)
    for _, same in itertools.groupby(filters, lambda one: one.stage):
        group = list(same)
        for one, (f_hz, power) in zip(group, responses(group, fs), strict=True):
            mid = np.interp(one.centre_hz, f_hz, power)
            relative = -10.0 * np.log10(np.maximum(power[1:] / mid, 1e-20))
            least, greatest = class_limits(fraction, 1, f_hz[1:] / one.centre_hz)
            margin = min((relative - least).min(), (greatest - relative).min())
            assert margin > 0.39, one.name
            assert 10.0 * np.log10(mid) == pytest.approx(0.0, abs=0.03), one.name


@pytest.mark.parametrize("fs", [44100, 48000])
def test_levels_are_phonometrys(phonometry, fs):
    """White noise has the levels of phonometry's filters of the same order, within 0.04 dB."""
    x = 0.1 * np.random.default_rng(5).standard_normal(20 * fs)
    limits = {"f_min_hz": 31.5, "f_max_hz": 16000.0}
    meter = OctaveMeter(fs, fraction=3, interval_s=60.0, full_scale_db=0.0, **limits)
    (row,) = meter.push(x) + meter.finish()
    bank = phonometry.OctaveFilterBank(fs, fraction=3, order=6, limits=[31.0, 16500.0])
    levels, frequencies = bank.filter(x, detrend=False)
    np.testing.assert_allclose(frequencies, [one.centre_hz for one in meter.filters], rtol=1e-6)
    expected = np.asarray(levels) + 20.0 * np.log10(20e-6)
    np.testing.assert_allclose(row.levels[:, 0], expected, rtol=0, atol=0.04)


def dark_noise(fs, seconds=5, channels=1):
    """Make noise of changing level, most of it below 1 kHz, where digital weightings agree."""
    rng = np.random.default_rng(5)
    n = seconds * fs
    gain = np.repeat(10.0 ** rng.uniform(-2.0, -0.5, n // 6000 + 1), 6000)[:n]
    shaped = signal.lfilter([0.05], [1.0, -0.95], rng.standard_normal((channels, n)))
    return np.ascontiguousarray(gain * shaped)


def measured(x, fs, names):
    """Return the values of (channels, n) samples by name, the greatest of the channels."""
    meter = LevelMeter(fs, len(x), quantities=names, interval_s=60.0)
    (row,) = meter.push(x) + meter.finish()
    return dict(zip(names, row.values.max(axis=1), strict=True))


def db(power):
    """Return the level of a mean square [dB], 0 for a sine of full scale."""
    return 10.0 * np.log10(2.0 * power)


@pytest.mark.parametrize("fs", [44100, 48000])
def test_levels_with_weightings(phonometry, fs):
    """A and C, averages, F, S and percentiles read the same within 0.05 dB on dark noise.

    I is left out: phonometry averages the square itself with 35 ms up and 1.5 s down, so that a
    steady sine reads 2.6 dB too high; in IEC 61672-1:2002 the decay follows the average of 35 ms.
    """
    x = dark_noise(fs)
    weighted = {name: phonometry.weighting_filter(x[0], fs, name) for name in "AC"}
    fast = phonometry.time_weighting(weighted["A"], fs, "fast")
    percentiles = np.percentile(db(fast[fs // 2 :]), [90, 50, 10])  # 0.5 s to settle
    expected = {
        "LAeq": db(np.mean(weighted["A"] ** 2)),
        "LCeq": db(np.mean(weighted["C"] ** 2)),
        "LZeq": db(np.mean(x**2)),
        "LAFmax": db(fast.max()),
        "LCSmax": db(phonometry.time_weighting(weighted["C"], fs, "slow").max()),
        **dict(zip(("LAF10", "LAF50", "LAF90"), percentiles, strict=True)),
    }
    found = measured(x, fs, list(expected))
    assert found == pytest.approx(expected, abs=0.05)


def test_impulse_reads_a_steady_sine():
    """With I a steady sine reads its level, 0 dB of full scale."""
    x = np.sin(2.0 * np.pi * 1000.0 / 48000 * np.arange(96000))[np.newaxis]
    assert measured(x, 48000, ["LZImax"])["LZImax"] == pytest.approx(0.0, abs=0.02)


def test_programme_loudness():
    """Loudness, range of ten values a second, maxima each 10 ms and true peak are within 0.02."""
    reason = "is of the group reference, from Python 3.13 on"
    phonometry = pytest.importorskip("phonometry", reason=reason)
    x = dark_noise(48000, 20, 2)
    by = phonometry.program_loudness(x, 48000, short_term_step=0.01)
    slow = phonometry.program_loudness(x, 48000, short_term_step=0.1)
    expected = {
        "LUFS_I": by.integrated,
        "LRA": slow.loudness_range,
        "LUFS_Mmax": by.max_momentary,
        "LUFS_Smax": by.max_short_term,
        "true_peak": max(by.true_peak_per_channel),
    }
    found = measured(x, 48000, list(expected))
    assert found == pytest.approx(expected, abs=0.02)
