"""Fractional-octave filters against the limits of IEC 61260-1:2014, class 1, and pink noise."""

import numpy as np
import pytest

from spectrod.measure.levels import OctaveMeter
from spectrod.measure.levels.octave_bank import OctaveFilterBank
from spectrod.measure.levels.octave_filters import FRACTIONS, decimator, octave_filters
from spectrod.measure.levels.recursive import CHUNK_SAMPLES, response

FS = 48000.0
G = 10.0**0.3
PASS = ((0.0, 0.4), (0.125, 0.5), (0.25, 0.7), (0.375, 1.4), (0.5, 5.3))
STOP = ((0.5, 1.2), (1.0, 16.6), (2.0, 40.5), (3.0, 60.0), (4.0, 70.0))
"""Powers of G of the octave's breakpoints, and greatest and least relative attenuation [dB]."""


def breakpoint_of(power, fraction):
    """Return the normalized frequency of a breakpoint (IEC 61260-1:2014, 5.10.4)."""
    return 1.0 + (G ** (0.5 / fraction) - 1.0) / (G**0.5 - 1.0) * (G**power - 1.0)


def margin(attenuation, ratio, fraction):
    """Return by how much relative attenuations [dB] at ratios f / fm keep the limits [dB]."""
    ratio = np.log10(np.maximum(ratio, 1.0 / ratio))
    upper_points = [np.log10(breakpoint_of(power, fraction)) for power, _ in PASS]
    lower_points = [np.log10(breakpoint_of(power, fraction)) for power, _ in STOP]
    is_inside = ratio < upper_points[-1]
    greatest = np.interp(ratio, upper_points, [limit for _, limit in PASS])
    least = np.interp(ratio, lower_points, [limit for _, limit in STOP])
    least[is_inside] = -0.4
    greatest[~is_inside] = np.inf
    return np.minimum(greatest - attenuation, attenuation - least)


def chain_power(one, f_hz):
    """Return the power gain from a sine to a band, with what the decimators alias."""
    gain, rate, f_hz = np.ones_like(f_hz), FS, f_hz.copy()
    for _ in range(one.stage):
        gain *= response(decimator(), f_hz, rate)
        rate /= 2.0
        f_hz = np.abs(f_hz - rate * np.round(f_hz / rate))
    return gain * response(one.cascade, f_hz, rate)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_every_band_is_of_class_1(fraction):
    """Every band keeps the limits of class 1 at its breakpoints and between, up to fs/2."""
    powers = np.concatenate([np.linspace(0.0, 4.0, 200), [point for point, _ in PASS + STOP]])
    above = breakpoint_of(powers, fraction)
    ratios = np.concatenate([above, 1.0 / above, np.logspace(-2, 2, 200)])
    for one in octave_filters(FS, fraction, 10.0, 20000.0):
        f_hz = one.centre_hz * ratios[one.centre_hz * ratios < FS / 2.0]
        mid = chain_power(one, np.array([one.centre_hz]))[0]
        relative = -10.0 * np.log10(np.maximum(chain_power(one, f_hz) / mid, 1e-20))
        assert margin(relative, f_hz / one.centre_hz, fraction).min() > 0.35, one.name
        assert abs(10.0 * np.log10(mid)) <= 0.02


@pytest.mark.parametrize(
    ("fraction", "centre_hz"), [(1, 16000.0), (1, 500.0), (3, 20000.0), (3, 1000.0), (24, 4000.0)]
)
def test_the_chain_keeps_class_1_with_sines(fraction, centre_hz):
    """Sines through the bank's own filters and decimators keep the limits of class 1."""
    (one,) = octave_filters(FS, fraction, centre_hz / 1.01, centre_hz * 1.01)[:1]
    powers = np.array([0.0, 0.1, 0.25, 0.375, 0.48, 0.52, 1.0, 1.5, 2.0, 2.9, 3.1, 4.0, 5.0])
    above = breakpoint_of(powers, fraction)
    f_hz = one.centre_hz * np.concatenate([above, 1.0 / above[1:]])
    f_hz = f_hz[f_hz < 0.499 * FS]
    n = int(np.ceil(4.0 * one.settle_s * FS / CHUNK_SAMPLES) + 2) * CHUNK_SAMPLES
    sines = np.sin(2.0 * np.pi * f_hz[:, None] / FS * np.arange(n))
    bank = OctaveFilterBank([one], len(f_hz))
    parts = [next(bank.run(part))[0] for part in np.split(sines, n // CHUNK_SAMPLES, axis=1)]
    last = np.concatenate(parts, axis=1)[:, -(CHUNK_SAMPLES >> one.stage) :]
    power = np.mean(last**2 * np.hanning(last.shape[1]), axis=1) / np.mean(
        np.hanning(last.shape[1])
    )
    relative = -10.0 * np.log10(np.maximum(power / power[0], 1e-20))
    assert margin(relative, f_hz / one.centre_hz, fraction).min() > 0.3
    assert 10.0 * np.log10(power[0] / 0.5) == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize("fraction", [1, 3, 12])
def test_bands_of_pink_noise_sum_to_the_whole(fraction):
    """The power of all bands of pink noise is that of the noise between their ends, to 0.1 dB."""
    n = 1 << 19
    f_hz = np.fft.rfftfreq(n, 1.0 / FS)
    spectrum = np.fft.rfft(np.random.default_rng(7).standard_normal(n))
    spectrum[1:] /= np.sqrt(f_hz[1:])
    x = np.fft.irfft(spectrum, n)
    meter = OctaveMeter(FS, fraction=fraction, interval_s=60.0, f_min_hz=200.0, full_scale_db=0.0)
    (row,) = meter.push(x) + meter.finish()
    lower, upper = meter.filters[0].lower_hz, meter.filters[-1].upper_hz
    inside = spectrum[(f_hz >= lower) & (f_hz < upper)]
    whole = 2.0 * np.sum(np.abs(inside) ** 2) / n**2
    total = np.sum(10.0 ** (row.levels / 10.0))
    assert 10.0 * np.log10(total / whole) == pytest.approx(0.0, abs=0.1)
