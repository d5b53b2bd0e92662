"""The bins of peaks: above the noise, apart from higher ones, and quickly found."""

import numpy as np
import pytest

from spectrod.dsp.peak_search import find_peak_bins
from spectrod.dsp.units import FLOOR_DBFS


def with_peaks(n, *peaks, floor_db=-100.0):
    """Return a level floor with peaks (bin, dB) whose flanks fall by 20 dB a bin."""
    levels = np.full(n, floor_db)
    for k, level in peaks:
        levels = np.maximum(levels, level - 20.0 * np.abs(np.arange(n) - k))
    return levels


@pytest.mark.parametrize("n", [3, 50, 127, 128, 129, 1000, 4097])
def test_the_highest_come_first(n):
    """Peaks are in order of level, in spectra of any length, and no more than asked for."""
    peaks = [(n // 2, -20.0)]
    if n > 30:
        peaks += [(n // 2 + 12, -30.0), (n // 2 - 12, -10.0)]
    ordered = [k for k, _ in sorted(peaks, key=lambda peak: -peak[1])]
    levels = with_peaks(n, *peaks)
    assert find_peak_bins(levels, 10) == ordered
    assert find_peak_bins(levels, 1) == ordered[:1]
    assert find_peak_bins(levels, 0) == []


@pytest.mark.parametrize(("valley_db", "n_peaks"), [(-25.9, 1), (-26.1, 2)])
def test_a_peak_is_prominent(valley_db, n_peaks):
    """A peak that is not 6 dB above the valley to a higher one is part of that."""
    levels = with_peaks(200, (100, -10.0), (102, -20.0))
    levels[101] = valley_db
    assert len(find_peak_bins(levels, 10)) == n_peaks


def test_noise_has_few_peaks():
    """0.1 % of the bins of noise without averaging may be peaks, and no more."""
    power = np.random.default_rng(1).exponential(size=1 << 16)
    found = find_peak_bins(10.0 * np.log10(power), 1000)
    assert len(found) <= 1.5e-3 * (1 << 16)


def test_silence_and_short_spectra_have_none():
    """Neither the floor nor an end is a peak."""
    assert find_peak_bins(np.full(100, FLOOR_DBFS), 10) == []
    for n in range(3):
        assert find_peak_bins(np.zeros(n), 10) == []
    assert find_peak_bins(np.array([0.0, -50.0, 0.0]), 10) == []


@pytest.mark.parametrize(("level", "n_peaks"), [(-99.0, 2), (-101.0, 1)])
def test_rounding_noise_is_no_peak(level, n_peaks):
    """More than 90 dB below the highest bin there are no peaks, however quiet all else is."""
    levels = with_peaks(200, (50, -10.0), (150, level), floor_db=-190.0)
    assert len(find_peak_bins(levels, 10)) == n_peaks
