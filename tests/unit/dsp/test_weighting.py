"""Frequency weightings against the standard's table."""

import numpy as np
import pytest

from spectrod.dsp.weighting import WEIGHTINGS, power_factors

# IEC 61672-1:2013, table 3: nominal weightings [dB] at the exact frequencies of 10 Hz to 20 kHz.
NOMINAL_A = [
    -70.4, -63.4, -56.7, -50.5, -44.7, -39.4, -34.6, -30.2, -26.2, -22.5, -19.1, -16.1, -13.4,
    -10.9, -8.6, -6.6, -4.8, -3.2, -1.9, -0.8, 0.0, 0.6, 1.0, 1.2, 1.3, 1.2, 1.0, 0.5, -0.1, -1.1,
    -2.5, -4.3, -6.6, -9.3,
]  # fmt: skip
NOMINAL_C = [
    -14.3, -11.2, -8.5, -6.2, -4.4, -3.0, -2.0, -1.3, -0.8, -0.5, -0.3, -0.2, -0.1, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.1, -0.2, -0.3, -0.5, -0.8, -1.3, -2.0, -3.0, -4.4, -6.2, -8.5,
    -11.2,
]  # fmt: skip
FREQUENCIES = 10.0 ** (np.arange(10, 44) / 10.0)


@pytest.mark.parametrize(("weighting", "nominal"), [("A", NOMINAL_A), ("C", NOMINAL_C)])
def test_levels_are_the_standards(weighting, nominal):
    """The weightings agree with the whole table within its rounding."""
    levels = 10.0 * np.log10(power_factors(weighting, FREQUENCIES))
    np.testing.assert_allclose(levels, nominal, rtol=0, atol=0.05 + 1e-3)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_nothing_is_changed_at_one_kilohertz(weighting):
    """All weightings are 0 dB at 1 kHz."""
    assert power_factors(weighting, np.array([1000.0]))[0] == pytest.approx(1.0, abs=1e-15)


def test_constant_sound_is_not_heard():
    """At 0 Hz A and C are zero, and Z is one everywhere."""
    zero = np.zeros(3)
    assert not power_factors("A", zero).any()
    assert not power_factors("C", zero).any()
    assert (power_factors("Z", zero) == 1.0).all()
