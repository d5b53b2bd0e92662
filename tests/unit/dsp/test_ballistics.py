"""Decaying extremes and the exponential average."""

import math

import numpy as np
import pytest

from spectrod.dsp.ballistics import Ballistics, DecayingExtreme, ExponentialMean


def followed(kind, ballistics, rows):
    """Return the levels of one bin after each row, a pair of time [s] and level [dB]."""
    hold, found = DecayingExtreme(kind, ballistics), []
    for t_s, level in rows:
        hold.push(np.array([level]), t_s)
        found.append(float(hold.levels[0]))
    return found


@pytest.mark.parametrize(("kind", "sign"), [("max", 1.0), ("min", -1.0)])
def test_an_extreme_decays_at_its_rate_after_its_hold_time(kind, sign):
    """1.5 s after a peak, of 1 s hold time, it has moved 5 dB; it ends at the newest level."""
    rows = [(0, 0.0), *((t_s, sign * -80) for t_s in (1, 1.5, 3, 99))]
    found = followed(kind, Ballistics(10.0, 1.0), rows)
    assert found == pytest.approx([sign * level for level in (0, 0, -5, -20, -80)])


def test_a_level_above_the_decayed_one_is_a_new_peak_with_its_own_hold_time():
    """-15 dB exceeds a peak of 0 dB that has fallen to -20 dB, and stands for a second."""
    rows = [(0, 0), (3, -15), (4, -60), (4.5, -60)]
    assert followed("max", Ballistics(10.0, 1.0), rows) == pytest.approx([0, -15, -15, -20])


@pytest.mark.parametrize("rows_s", [2, 47])
def test_a_decay_does_not_depend_on_the_rate_of_rows(rows_s):
    """3 dB/s are 6 dB in 2 s however many rows come."""
    rows = [(n / rows_s, -200.0 if n else 0.0) for n in range(2 * rows_s + 1)]
    assert followed("max", Ballistics(3.0), rows)[-1] == pytest.approx(-6.0)


def test_a_clock_that_is_set_back_neither_raises_nor_stops_a_hold():
    """The time of a day before counts as none; from there on the hold falls as before."""
    rows = [(86400.0, 0.0), (86401.0, -90.0), (10.0, -90.0), (11.0, -90.0)]
    assert followed("max", Ballistics(6.0), rows) == pytest.approx([0, -6, -6, -12])


def test_no_data_neither_exceeds_nor_ends_a_hold():
    """NaN lets a hold decay; the first data of a bin are its extreme."""
    hold = DecayingExtreme("max", Ballistics(5.0))
    for t_s, levels in enumerate(([-10.0, np.nan], [np.nan, np.nan], [np.nan, -70.0])):
        hold.push(np.array(levels), float(t_s))
    assert hold.levels == pytest.approx([-20.0, -70.0])
    assert hold.size_bytes == 32


def test_other_bins_start_again():
    """A row of another length is compared with nothing."""
    hold, mean = DecayingExtreme("min"), ExponentialMean(1.0)
    for t_s, n_bins in enumerate((4, 5)):
        hold.push(np.full(n_bins, float(t_s)), t_s)
        mean.push(np.full(n_bins, float(t_s)), t_s)
    assert (hold.levels == np.ones(5)).all()
    assert (mean.power == np.ones(5)).all()


@pytest.mark.parametrize("steps", [1, 8])
def test_an_exponential_average_has_its_time_constant(steps):
    """One time constant after a step of power 1 to 0 it is 1/e, in one row or in eight."""
    mean = ExponentialMean(0.125)
    for n in range(steps + 1):
        mean.push(np.array([0.0 if n else 1.0, np.nan if n else 1.0]), 0.125 * n / steps)
    assert mean.power == pytest.approx([math.exp(-1.0), 1.0])
    assert mean.size_bytes == 16


def test_an_average_takes_the_first_data_of_a_bin():
    """A bin without data has no mean; its first power is the mean, also after an infinite one."""
    mean = ExponentialMean(1.0)
    for t_s, power in enumerate(([np.nan, np.inf], [4.0, np.inf], [4.0, 2.0], [4.0, 2.0])):
        mean.push(np.array(power), float(t_s))
    assert mean.power == pytest.approx([4.0, 2.0])
