import numpy as np
import pytest

from spectrod.formats.picture.colour_range import colour_range, neighbours
from spectrod.formats.picture.options import PictureOptions


def ranged(values, **options):
    return colour_range(np.array(values, np.float32), PictureOptions(**options))


def test_the_automatic_range_is_robust():
    """Single extremes and digital silence do not set the range; its ends are multiples of 5 dB."""
    rng = np.random.default_rng(5)
    levels = rng.uniform(-83.0, -21.0, 100_000)
    levels[:10] = 40.0
    levels[10:30_000] = -200.0
    levels[30_000:40_000] = np.nan
    assert ranged(levels) == (-80.0, -20.0)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([-50.0, -50.0], (-80.0, -50.0)),
        ([-150.0, -1.0], (-90.0, 0.0)),
        ([-200.0, np.nan], (-100.0, -20.0)),
    ],
)
def test_the_automatic_range_has_bounds(levels, expected):
    """Constant levels, huge ranges and silence all get a usable range."""
    assert ranged(levels) == expected


def test_levels_stand_as_they_are():
    """Levels given as numbers do not depend on the picture."""
    assert ranged([-50.0], levels=(-33.3, -22.2)) == (-33.3, -22.2)


@pytest.mark.parametrize(
    ("percentiles", "expected"),
    [((0.0, 100.0), (-100.0, 0.0)), ((10.0, 90.0), (-90.0, -10.0)), ((2.5, 50.0), (-98.0, -50.0))],
)
def test_percentiles_ignore_gaps_and_silence(percentiles, expected):
    """Percentile ends, rounded outwards to whole dB, ignore gaps and silence."""
    levels = [*np.linspace(-100.0, 0.0, 1001), *[np.nan] * 99, *[-200.0] * 500]
    assert ranged(levels, percentiles=percentiles) == expected


def test_percentiles_of_a_flat_picture_are_apart():
    """A picture of one level still has a range with different ends."""
    assert ranged([-50.0, -50.0], percentiles=(1.0, 99.0)) == (-51.0, -50.0)


@pytest.mark.parametrize("levels", [[-150.0, -12.0], [-14.0, -13.0], [-10.0]])
def test_a_dynamic_range_is_kept_below_the_top(levels):
    """The lower end lies at the dynamic range below the upper one, whatever is quiet."""
    assert ranged(levels, dynamic_range_db=72.5) == (-82.5, -10.0)


def test_a_dynamic_range_counts_from_a_percentile():
    """With both options, the dynamic range counts from the percentile."""
    levels = np.linspace(-100.0, 0.0, 1001)
    options = {"percentiles": (0.0, 90.0), "dynamic_range_db": 40.0}
    assert ranged(levels, **options) == (-50.0, -10.0)
    assert ranged([np.nan], **options) == (-60.0, -20.0)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).normal(-60.0, 10.0, 20_000),
        np.random.default_rng(2).normal(0.0, 1.0, 61),
        np.sort(np.random.default_rng(3).exponential(size=5_001)),
        np.tile(np.arange(61.0), 100),  # all values of the sample are the same
        np.repeat([-1.0, 2.0], [700, 800]),
        np.full(1000, -50.0),
        [0.0, -3.0],
        [-7.0],
    ],
)
def test_neighbours_are_those_of_the_sorted_values(values):
    """The two values from an index on are exact, also where a sample of the values misleads."""
    values = np.array(values, np.float32)
    ordered = np.sort(values)
    before = values.copy()
    for place in np.unique(np.linspace(0, values.size - 1, 29).astype(int)).tolist():
        after = min(place + 1, values.size - 1)
        assert neighbours(values, place).tolist() == [ordered[place], ordered[after]]
    np.testing.assert_array_equal(values, before)
