"""Bins taken together, and the slices that views need."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.apps.web.pooling import BinSlice, MaxLevels, pool_mean, to_power
from spectrod.apps.web.quantize import to_bytes, to_codes
from spectrod.apps.web.slicing import TopicAxis, slices_of
from spectrod.dsp.bands import hz_to_mel, mel_to_hz

LEVELS = st.integers(1, 300).map(
    lambda n: np.random.default_rng(n).uniform(-150.0, 20.0, n).astype(np.float32)
)


def bins_of(piece, n_bins):
    """Return the bins of each value of a slice."""
    starts = piece.first + piece.per_value * np.arange(piece.values)
    return [range(start, min(start + piece.per_value, n_bins)) for start in starts]


@settings(max_examples=50)
@given(LEVELS, st.integers(0, 9), st.data())
def test_maxima_are_those_of_all_bins_of_a_value(levels, k, data):
    """Pooled integers are the integers of the pooled levels, at every step and cut."""
    n, per_value = len(levels), 1 << k
    first = data.draw(st.integers(0, (n - 1) // per_value))
    values = data.draw(st.integers(1, -((first * per_value - n) // per_value)))
    piece = BinSlice(first * per_value, per_value, values)
    best = np.array([levels[list(bins)].max() for bins in bins_of(piece, n)])
    assert np.array_equal(MaxLevels(to_codes(levels)).pool(piece), to_codes(best))
    some = MaxLevels(to_bytes(levels, -120.0)).pool(piece)
    assert np.array_equal(some, to_bytes(best, -120.0))


@settings(max_examples=50)
@given(LEVELS, st.integers(0, 9))
def test_means_are_of_power_and_of_bins_with_data(levels, k):
    """A value's power is the mean of its bins; missing ones count for nothing."""
    levels[::7] = np.nan
    piece = BinSlice(0, 1 << k, -(-len(levels) >> k))
    power = to_power(levels)
    found = pool_mean(power, piece)
    for value, bins in zip(found, bins_of(piece, len(levels)), strict=True):
        some = power[list(bins)]
        some = some[~np.isnan(some)]
        if len(some):
            assert value == pytest.approx(some.mean())
        else:
            assert np.isnan(value)


AXES = st.builds(
    TopicAxis, st.integers(1, 1 << 20), st.sampled_from([0.0, -24000.0, 1e8]), st.floats(0.01, 1e4)
)
KINDS = st.sampled_from(["linear", "log", "mel", "octave"])


@settings(max_examples=50)
@given(AXES, st.data(), st.integers(1, 4096), KINDS)
def test_slices_cover_the_range_without_holes(axis, data, px, kind):
    """Each bin of the range is in exactly one value, and values are of whole powers of two."""
    first, end = sorted(data.draw(st.tuples(*[st.integers(0, axis.n_bins)] * 2)))
    f0, f1 = (axis.first_hz + k * axis.bin_hz for k in (first, end + 1))
    slices = slices_of(axis, f0, f1, px, kind)
    assert slices
    place = slices[0].first
    for piece in slices:
        assert piece.first == place
        assert piece.first % piece.per_value == 0
        assert piece.per_value & (piece.per_value - 1) == 0
        assert piece.values >= 1
        place += piece.per_value * piece.values
    last = slices[-1]
    assert last.first + last.per_value * (last.values - 1) < axis.n_bins
    assert place >= min(end, axis.n_bins)
    assert slices[0].first <= first or kind != "linear"
    assert sum(piece.values for piece in slices) <= 3 * px + 2 * len(slices) + 2


def pixel_width_hz(hertz, f0, f1, px, kind):
    """Return the width of the pixel above a frequency."""
    if kind == "linear":
        return (f1 - f0) / px
    if kind == "mel":
        low, high, here = (hz_to_mel(np.array(f)) for f in (f0, f1, hertz))
        return float(mel_to_hz(here + (high - low) / px)) - hertz
    return hertz * ((f1 / f0) ** (1.0 / px) - 1.0)


@settings(max_examples=50)
@given(AXES, st.integers(2, 2000), KINDS)
def test_values_are_no_wider_than_pixels(axis, px, kind):
    """Within each value's bins a pixel of the axis fits at least once, or it is a single bin."""
    top = axis.first_hz + axis.n_bins * axis.bin_hz
    f0 = max(axis.first_hz, axis.bin_hz if kind != "linear" else axis.first_hz)
    if not f0 < top:
        return
    for piece in slices_of(axis, f0, top, px, kind):
        low = max(axis.first_hz + piece.first * axis.bin_hz, f0)
        pixel_hz = pixel_width_hz(low, f0, top, px, kind)
        assert piece.per_value == 1 or piece.per_value * axis.bin_hz <= pixel_hz * 1.001


def test_a_log_axis_takes_few_values():
    """Ten octaves of 2^20 bins on 1000 pixels are some 2000 values, not a million."""
    axis = TopicAxis(1 << 20, 0.0, 24000.0 / (1 << 20))
    slices = slices_of(axis, 20.0, 24000.0, 1000, "log")
    assert 1000 <= sum(piece.values for piece in slices) <= 3000
    assert len(slices) == 11


def test_bands_are_chosen_by_their_edges():
    """Bands that the range touches are sent, and no others."""
    edges = np.array([[10.0, 20.0, 40.0, 80.0], [20.0, 40.0, 80.0, 160.0]])
    axis = TopicAxis(4, 0.0, 1.0, edges)
    assert slices_of(axis, 30.0, 70.0, 100, "log") == (BinSlice(1, 1, 2),)
    assert slices_of(axis, 1.0, 2.0, 100, "log") == (BinSlice(0, 1, 1),)
    assert slices_of(axis, 500.0, 600.0, 100, "linear") == (BinSlice(3, 1, 1),)


def test_a_range_beside_the_topic_takes_its_nearest_bin():
    """A view that shows nothing of the topic gets one value, not an error."""
    axis = TopicAxis(100, 0.0, 10.0)
    assert slices_of(axis, 5000.0, 6000.0, 100, "linear") == (BinSlice(99, 1, 1),)
    assert slices_of(axis, -300.0, -200.0, 100, "log")[0].first == 1
