import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.formats.picture.axes import FrequencyAxis
from spectrod.formats.picture.raster import band_spans, bin_spans, column_spans


@settings(max_examples=100)
@given(
    scale=st.sampled_from(["linear", "log"]),
    rows=st.integers(1, 300),
    nfft=st.sampled_from([64, 256, 8192]),
    limits=st.tuples(st.floats(0.001, 1.0), st.floats(0.001, 1.0)),
)
def test_every_bin_in_range_is_shown(scale, rows, nfft, limits):
    """Each bin whose cell is on the axis is in a row, and the row of f contains f's bin."""
    lo, hi = min(limits) * 24000.0, max(limits) * 24000.0
    if hi - lo < 1.0:
        hi = min(lo + 1.0, 24000.0)
        lo = hi - 1.0
    delta_f, n_bins = 48000.0 / nfft, nfft // 2 + 1
    edges = FrequencyAxis(scale, lo, hi).edges(rows)
    first, stop = bin_spans(edges, delta_f, n_bins)
    assert (first >= 0).all()
    assert (stop <= n_bins).all()
    assert (stop > first).all()
    assert (first[1:] <= stop[:-1]).all()
    f = np.random.default_rng(rows).uniform(edges[:-1], edges[1:])
    nearest = np.rint(f / delta_f)
    # A frequency within the rounding margin of a cell's edge belongs to either bin.
    clear = np.abs(f / delta_f - np.floor(f / delta_f) - 0.5) > 2e-6
    assert (first <= nearest)[clear].all()
    assert (nearest < stop)[clear].all()


def test_rows_narrower_than_a_bin_take_one_bin():
    """Pixel rows within one bin's cell show that bin and no other."""
    first, stop = bin_spans(np.linspace(95.0, 105.0, 11), 10.0, 33)
    assert first.tolist() == [10] * 10
    assert stop.tolist() == [11] * 10


def test_even_division_gives_even_rows():
    """With two bins per row all rows are alike, so noise has no stripes."""
    first, stop = bin_spans(np.linspace(0.0, 24000.0, 513), 24000.0 / 1024, 1025)
    assert set(stop - first) == {3}
    assert stop[-1] == 1025


def test_bands_belong_to_the_rows_they_touch():
    """A row takes each band that reaches into it, or the nearest one outside all bands."""
    lower, upper = np.array([100.0, 200.0, 400.0]), np.array([200.0, 400.0, 800.0])
    spans = band_spans(np.array([50.0, 80.0, 100.0, 200.0, 450.0, 800.0, 900.0]), lower, upper)
    assert spans.T.tolist() == [[0, 1], [0, 1], [0, 1], [1, 3], [2, 3], [2, 3]]


def test_wide_pixels_take_their_exact_area():
    """Pixels wider than a column are cut exactly and together cover everything once."""
    lo, hi = column_spans(np.linspace(0.0, 10.0, 5), 10, 1)
    np.testing.assert_allclose(lo, [0.0, 2.5, 5.0, 7.5])
    np.testing.assert_allclose(hi, [2.5, 5.0, 7.5, 10.0])


@pytest.mark.parametrize("n_slots", [1, 2, 7])
def test_narrow_pixels_take_the_nearest_column(n_slots):
    """If pixels outnumber columns, each shows one column, in order and without omission."""
    lo, hi = column_spans(np.linspace(-1.5, n_slots + 1.5, 101), n_slots, 1)
    assert (hi - lo == 1.0).all()
    assert sorted(set(lo)) == list(range(n_slots))
    assert (np.diff(lo) >= 0.0).all()


def test_merged_columns_are_measured_in_slots():
    """Five slots in columns of two end in the middle of the third column."""
    lo, hi = column_spans(np.linspace(0.0, 5.0, 3), 5, 2)
    np.testing.assert_allclose(lo, [0.0, 1.25])
    np.testing.assert_allclose(hi, [1.25, 2.5])
