"""Palette entries of powers by table, against those of their levels."""

import numpy as np
import pytest

from spectrod.dsp.units import FLOOR_DBFS
from spectrod.formats.picture.colour_range import colour_range
from spectrod.formats.picture.peak_entries import PeakLevels, level_entries, peak_entries
from spectrod.formats.picture.picture_settings import PictureOptions

SCALES = (PeakLevels(), PeakLevels(-3.0102999566398120))


def powers_of(shape, seed=1):
    """Make powers over 200 dB, with silence, the least and the largest numbers, and infinity."""
    rng = np.random.default_rng(seed)
    powers = (10.0 ** rng.uniform(-18.0, 2.0, shape)).astype(np.float32)
    powers.flat[:5] = 0.0, 1e-45, np.finfo(np.float32).tiny, np.finfo(np.float32).max, np.inf
    return powers


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    "limits", [(-80.0, -15.0), (-100.0, -10.0), (-30.0, 0.0), (-62.5, -61.5), (-210.0, -190.0)]
)
def test_entries_are_those_of_the_levels(scale, limits):
    """Each power has exactly its level's entry, also on short scales and around silence."""
    powers = powers_of((131, 1009))
    expected = level_entries(scale(powers), *limits)
    np.testing.assert_array_equal(peak_entries(powers, scale, *limits), expected)
    assert expected.min() < expected.max()


@pytest.mark.parametrize("scale", SCALES)
def test_steps_are_exact_to_the_last_bit(scale):
    """Powers next to each step of the palette have the entries of their levels."""
    limits = -80.0, -15.0
    steps = np.linspace(*limits, 2 * 239 + 1)[1::2]
    near = (0.5 * 10.0 ** ((steps - scale.offset_db) / 10.0)).astype(np.float32)
    bits = near.view(np.uint32)[:, np.newaxis] + np.arange(-40, 41).astype(np.uint32)
    powers = bits.view(np.float32)
    expected = level_entries(scale(powers), *limits)
    assert (expected.min(axis=1) < expected.max(axis=1)).all()
    np.testing.assert_array_equal(peak_entries(powers, scale, *limits), expected)


def test_rows_may_be_a_reversed_view():
    """The rows of a picture are turned without a copy."""
    powers = powers_of((70, 1000))[::-1]
    expected = level_entries(SCALES[0](powers), -80.0, -20.0)
    np.testing.assert_array_equal(peak_entries(powers, SCALES[0], -80.0, -20.0), expected)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("level", [FLOOR_DBFS + 1.0, -73.21, 0.0])
def test_the_least_power_above_a_level_is_exact(scale, level):
    """The level of the least power is above the given one, that of the next lower power not."""
    least = scale.least(level)
    both = np.array([np.nextafter(least, np.float32(0.0)), least], np.float32)
    assert (scale(both) > level).tolist() == [False, True]


@pytest.mark.parametrize("options", [{}, {"percentiles": (1.0, 99.0)}, {"dynamic_range_db": 60.0}])
@pytest.mark.parametrize("scale", SCALES)
def test_the_colour_range_of_powers_is_that_of_their_levels(scale, options):
    """Percentiles are the same from powers, whose silent and missing pixels do not count."""
    powers = powers_of((40, 500), seed=7)
    powers[powers == np.inf] = 1.0
    powers[3] = np.nan
    chosen = PictureOptions(**options)
    assert colour_range(powers, chosen, scale) == colour_range(scale(powers), chosen)
