"""Responses and distortion from recordings of sweeps: known systems, places, wrong recordings."""

import numpy as np
import pytest
from scipy import signal

from spectrod.lib.errors import ConfigError, InputError
from spectrod.measure.transfer.sweep import SAMPLES_MAX, Sweep
from spectrod.measure.transfer.sweep_response import measure_sweep

FS = 8000
SWEEP = Sweep(FS, 50.0, 3600.0, 1.0)
PEAK = signal.iirpeak(400.0, 5.0, fs=FS)


def recorded(x, before=0, after=4000):
    return np.concatenate((np.zeros(before), x, np.zeros(after)))


def in_band(found):
    low, high = found.band_hz
    return (found.frequencies >= low) & (found.frequencies <= high)


def error_db(found, expected):
    band = in_band(found)
    return np.abs(20.0 * np.log10(np.abs(found.h / expected(found.frequencies))[band])).max()


def resonance(frequencies):
    return 1.0 + signal.freqz(*PEAK, frequencies, fs=FS)[1]


@pytest.mark.parametrize(("before", "delay"), [(0, 0), (1501, 0), (1500, 37), (1, 1000)])
def test_resonance_re_a_reference(before, delay):
    """A resonance that a second channel records later has its response, without the delay."""
    x = recorded(0.3 * SWEEP.samples, before)
    y = np.roll(x + signal.lfilter(*PEAK, x), delay)
    found = measure_sweep(SWEEP, y, x)
    assert (found.delay_samples, found.begin) == (delay, before + delay)
    assert error_db(found, resonance) < 0.1  # the wire's is 0.1 dB at 7 periods
    alone = measure_sweep(SWEEP, y)
    assert (alone.delay_samples, alone.begin) == (None, before + delay)
    assert error_db(alone, lambda f: 0.3 * resonance(f)) < 0.15


def test_given_delay_stays_in_the_phase():
    """A delay of 0 keeps that of the response, as the slope of its phase."""
    x = recorded(SWEEP.samples, 100)
    found = measure_sweep(SWEEP, np.roll(x, 8), x, delay_samples=0)
    band = in_band(found)
    turns = np.exp(-2j * np.pi * found.frequencies * 8 / FS)
    np.testing.assert_allclose(found.h[band], turns[band], atol=0.01)
    assert (found.delay_samples, found.begin) == (8, 100)


def test_impulse_response_has_the_echo():
    """A reflection is in the impulse response at its time, and a shorter length leaves it out."""
    x = recorded(SWEEP.samples, 200)
    y = x + 0.25 * np.roll(x, 1000)
    found = measure_sweep(SWEEP, y, x).impulse_response(50)
    assert np.argmax(np.abs(found)) == 50
    assert found[1050] / found[50] == pytest.approx(0.25, abs=0.002)
    gated = measure_sweep(SWEEP, y, x, length=900)
    assert error_db(gated, np.ones_like) < 0.15


def test_distortion_of_a_polynomial():
    """Harmonics of x + a x^2 + b x^3 are a / 2 and b / 4 of the fundamental's 1 + 3 b / 4."""
    x = recorded(SWEEP.samples, 333)
    found = measure_sweep(SWEEP, x + 0.1 * x**2 + 0.05 * x**3, harmonics=3)
    fundamental = 1.0 + 0.75 * 0.05
    near = (found.frequencies > 200.0) & (found.frequencies < 1000.0)
    second, third = found.harmonics[:, near]
    np.testing.assert_allclose(second, 0.05 / fundamental, rtol=0.05)
    np.testing.assert_allclose(third, 0.0125 / fundamental, rtol=0.05)
    np.testing.assert_allclose(found.thd[near], np.hypot(second, third))
    top = found.band_hz[1]
    assert np.isnan(found.harmonics[0, found.frequencies > top / 2.0]).all()
    assert np.isnan(found.harmonics[1, found.frequencies > top / 3.0]).all()


def test_calibrated_response():
    """Factors scale the response, and harmonics by the factor at their own frequency."""
    x = recorded(SWEEP.samples, 10)
    found = measure_sweep(SWEEP, x + 0.1 * x**2, harmonics=2)
    factors = np.where(found.frequencies > 1500.0, 4.0, 1.0)
    scaled = found.scaled(np.full_like(factors, 0.25), factors)
    np.testing.assert_allclose(scaled.h, found.h * 2.0 * np.sqrt(factors))
    k = int(np.searchsorted(found.frequencies, 1000.0))
    assert scaled.harmonics[0, k] == pytest.approx(2.0 * found.harmonics[0, k])
    assert measure_sweep(SWEEP, x, harmonics=1).scaled(factors, factors).harmonics.size == 0


def test_a_sweep_that_is_cut_is_refused():
    """The recording must go on until the response has had the whole sweep."""
    x = SWEEP.samples
    cut = np.append(np.zeros(3), x[:-3])
    with pytest.raises(InputError, match=r"must have the whole sweep, 8000 samples from 3 on$"):
        measure_sweep(SWEEP, cut)
    with pytest.raises(InputError, match=r"samples from 3 on, and from 0 on$"):
        measure_sweep(SWEEP, cut, x, delay_samples=0)
    with pytest.raises(InputError, match=r"must have the whole sweep, 8000 samples from -900 on$"):
        measure_sweep(SWEEP, recorded(x[900:]))
    with pytest.raises(InputError, match=r"samples from 0 on, and from 4001 on$"):
        measure_sweep(SWEEP, recorded(x), delay_samples=4001)


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_no_sweep_is_refused(seed):
    """Noise, silence, and a sweep of another length do not stand out."""
    noise = np.random.default_rng(seed).standard_normal(20_001)
    other = recorded(Sweep(FS, 50.0, 3600.0, 0.6).samples, 1000)
    for y in (noise, np.zeros(9000), other):
        with pytest.raises(InputError, match="no sweep from 50 to 3600 Hz in 1 s stands out of it"):
            measure_sweep(SWEEP, y)


def test_wrong_arguments():
    """Lengths that break a rule are named."""
    with pytest.raises(ConfigError, match="length=15: must be 16 or more"):
        measure_sweep(SWEEP, SWEEP.samples, length=15)
    with pytest.raises(InputError, match=f"recording of 0 samples: must have 1 to {SAMPLES_MAX}"):
        SWEEP.begin_in(np.empty(0))
    with pytest.raises(ConfigError, match="harmonics=21: must be 1 to 20"):
        measure_sweep(SWEEP, SWEEP.samples, harmonics=21)
