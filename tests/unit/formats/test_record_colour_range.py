import numpy as np
import pytest

from spectrod.formats.picture.colour_range import colour_range
from spectrod.formats.picture.picture_settings import PictureOptions


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


def rounded_percentiles(levels, percentiles):
    """Return percentiles of all sorted levels, rounded outwards to whole dB."""
    audible = levels[levels > -199.0].astype(np.float64)
    low, high = np.percentile(audible, percentiles)
    low, high = np.floor(low), np.ceil(high)
    return min(low, high - 1.0), high


@pytest.mark.parametrize(
    "levels",
    [
        np.random.default_rng(1).normal(-60.0, 10.0, 20_000),
        np.random.default_rng(2).normal(0.0, 1.0, 61),
        np.sort(-80.0 * np.random.default_rng(3).exponential(size=5_001)),
        np.tile(np.arange(61.0) - 70.0, 100),  # all values of the sample are the same
        np.tile([-20.0, *[-90.0] * 60], 100),  # the sample misleads
        np.repeat([-10.0, 20.0], [700, 800]),
        np.full(1000, -50.0),
        [*[-200.0] * 500, *[np.nan] * 61, *np.linspace(-70.0, -60.0, 300)],
        [0.0, -3.0],
        [-7.0],
        [np.nan, -7.25, np.nan],
    ],
)
def test_percentiles_are_those_of_the_sorted_levels(levels):
    """Percentiles by counts are exact, also where a sample misleads, and change no level."""
    levels = np.array(levels, np.float32)
    before = levels.copy()
    for percentiles in ((0.0, 100.0), (5.0, 99.95), (33.3, 66.7), (49.9, 50.0), (50.0, 50.1)):
        expected = rounded_percentiles(levels, percentiles)
        assert colour_range(levels, PictureOptions(percentiles=percentiles)) == expected
    np.testing.assert_array_equal(levels, before)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_percentiles_next_to_a_multiple_are_exact(share):
    """A percentile between two levels on both sides of whole dB is interpolated."""
    levels = np.repeat(np.float32([-80.0, -40.25, -39.5, -20.0]), [499, 1, 1, 499])
    place = 100.0 * (499.0 + share) / 999.0
    expected = rounded_percentiles(levels, (place, 100.0))
    assert colour_range(levels, PictureOptions(percentiles=(place, 100.0))) == expected
