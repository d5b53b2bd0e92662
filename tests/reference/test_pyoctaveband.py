"""Fractional-octave filters against PyOctaveBand: its limits of class 1, and its levels."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from spectrod.measure.levels import OctaveMeter
from spectrod.measure.levels.octave_bank import OctaveFilterBank
from spectrod.measure.levels.octave_filters import FRACTIONS, octave_filters
from spectrod.measure.levels.recursive import CHUNK_SAMPLES

RATES = [44100, 48000, 96000]

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def checker():
    """Import PyOctaveBand's check of classes."""
    return pytest.importorskip("pyoctaveband.compliance", reason="is of the group reference")


def as_sos(cascade):
    """Return sections as SciPy has them."""
    pad = [0.0]
    return np.array([[*s.b, *pad * (3 - len(s.b)), *s.a, *pad * (3 - len(s.a))] for s in cascade])


@pytest.mark.parametrize("fs", RATES)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_every_filter_is_of_class_1(checker, fraction, fs):
    """PyOctaveBand finds every band from 10 Hz to 20 kHz in class 1, at the rate of its filter."""
    filters = octave_filters(fs, fraction, 10.0, 20000.0)
    bank = SimpleNamespace(
        fs=fs,
        fraction=fraction,
        num_bands=len(filters),
        freq=[one.centre_hz for one in filters],
        factor=[2**one.stage for one in filters],
        sos=[as_sos(one.cascade) for one in filters],
    )
    found = checker.verify_filter_class(bank, num_points=1 << 13)
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
def test_every_running_band_is_of_class_1(checker, fraction, fs):
    """Impulses through the bank, its decimators included, keep PyOctaveBand's limits of class 1."""
    filters = octave_filters(fs, fraction, 250.0, 20000.0)
    for _, same in itertools.groupby(filters, lambda one: one.stage):
        group = list(same)
        for one, (f_hz, power) in zip(group, responses(group, fs), strict=True):
            mid = np.interp(one.centre_hz, f_hz, power)
            relative = -10.0 * np.log10(np.maximum(power[1:] / mid, 1e-20))
            least, greatest = checker.class_limits(fraction, 1, f_hz[1:] / one.centre_hz)
            margin = min((relative - least).min(), (greatest - relative).min())
            assert margin > 0.39, one.name
            assert 10.0 * np.log10(mid) == pytest.approx(0.0, abs=0.03), one.name


@pytest.mark.parametrize("fs", [44100, 48000])
def test_levels_are_pyoctavebands(fs):
    """White noise has the levels of PyOctaveBand's filters of the same order, within 0.04 dB."""
    pyoctaveband = pytest.importorskip("pyoctaveband", reason="is of the group reference")
    x = 0.1 * np.random.default_rng(5).standard_normal(20 * fs)
    limits = {"f_min_hz": 31.5, "f_max_hz": 16000.0}
    meter = OctaveMeter(fs, fraction=3, interval_s=60.0, full_scale_db=0.0, **limits)
    (row,) = meter.push(x) + meter.finish()
    bank = pyoctaveband.OctaveFilterBank(fs, fraction=3, order=6, limits=[31.0, 16500.0])
    levels, frequencies = bank.filter(x, detrend=False)
    np.testing.assert_allclose(frequencies, [one.centre_hz for one in meter.filters], rtol=1e-6)
    expected = np.asarray(levels) + 20.0 * np.log10(20e-6)
    np.testing.assert_allclose(row.levels[:, 0], expected, rtol=0, atol=0.04)
