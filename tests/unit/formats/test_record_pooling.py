from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.formats.picture.pooling import ColumnPool
from spectrod.lib.errors import InternalError

HOP = 10
SPEC = SpectrumSpec(fs=1000.0, channels=2, win_length=16, hop=HOP, scaling="spectrum")


def batch_of(values, sample_index):
    index = np.asarray(sample_index, np.int64)
    return SpectrumBatch(np.asarray(values, np.float32), index, index, index, SPEC, "numpy")


def noise(n_frames, seed=1, bins=3):
    return np.random.default_rng(seed).exponential(size=(n_frames, 2, bins)).astype(np.float32)


def columns_of(pool, channel=0):
    lo = np.arange(pool.n_columns, dtype=np.float64)
    return pool.power(channel, lo, lo + 1.0)


def whole_of(pool, channel=0):
    return pool.power(channel, np.zeros(1), np.array([float(pool.n_columns)]))[0]


def test_frames_that_fit_are_their_own_columns():
    """Below the limit every frame is a column, unchanged."""
    values = noise(7)
    pool = ColumnPool(HOP, 8)
    pool.add(batch_of(values, np.arange(7) * HOP + 123))
    assert pool.rows_per_column == 1
    np.testing.assert_array_equal(columns_of(pool, 1), values[:, 1])


@pytest.mark.parametrize("max_columns", [2, 5, 8])
@pytest.mark.parametrize("n_frames", [1, 9, 16, 33])
def test_columns_are_means_of_neighbours(n_frames, max_columns):
    """After any number of merges a column is the mean of its frames, and memory is bounded."""
    values = noise(n_frames)
    pool = ColumnPool(HOP, max_columns)
    for frame in range(n_frames):
        pool.add(batch_of(values[frame : frame + 1], [frame * HOP]))
    k = pool.rows_per_column
    assert pool.n_columns <= max_columns
    expected = [values[i : i + k, 0].mean(axis=0, dtype=float) for i in range(0, n_frames, k)]
    np.testing.assert_allclose(columns_of(pool), expected, rtol=2e-6)


@settings(max_examples=100)
@given(
    n_frames=st.integers(1, 60),
    max_columns=st.integers(2, 9),
    cuts=st.sets(st.integers(1, 59)),
    skips=st.sets(st.integers(1, 59)),
)
def test_batches_may_be_cut_anywhere(n_frames, max_columns, cuts, skips):
    """Any split into batches, with any gaps, gives the same columns and loses no frame."""
    values = noise(n_frames)
    index = np.cumsum([HOP * (37 if n in skips else 1) for n in range(n_frames)])
    whole, parts = ColumnPool(HOP, max_columns), ColumnPool(HOP, max_columns)
    whole.add(batch_of(values, index))
    limits = [0, *sorted(cut for cut in cuts if cut < n_frames), n_frames]
    for first, stop in pairwise(limits):
        parts.add(batch_of(values[first:stop], index[first:stop]))
    assert whole.n_frames == parts.n_frames == n_frames
    np.testing.assert_allclose(columns_of(parts), columns_of(whole), rtol=2e-6)
    mean = values[:, 0].mean(axis=0, dtype=float)
    np.testing.assert_allclose(whole_of(parts), mean, rtol=2e-6)


def test_a_gap_is_nan_and_not_zero():
    """Columns without frames are NaN, and those around them are complete."""
    values = noise(4)
    pool = ColumnPool(HOP, 16)
    pool.add(batch_of(values, [0, 10, 60, 70]))
    columns = columns_of(pool)
    assert np.isnan(columns[2:6]).all()
    np.testing.assert_array_equal(columns[[0, 1, 6, 7]], values[:, 0])


def test_frames_off_the_grid_take_the_nearest_slot():
    """After a gap that is no multiple of the hop, frames go to the slot nearest in time."""
    pool = ColumnPool(HOP, 16)
    pool.add(batch_of(noise(3), [0, 44, 54]))
    assert np.flatnonzero(~np.isnan(columns_of(pool)[:, 0])).tolist() == [0, 4, 5]


def test_a_gap_of_months_needs_no_memory():
    """A jump of the sample index beyond all columns merges columns and allocates nothing."""
    pool = ColumnPool(HOP, 8)
    pool.add(batch_of(noise(2), [0, 48_000 * 86_400 * 90]))
    assert pool.n_columns <= 8
    assert pool.n_frames == 2


def test_a_span_that_cuts_columns_weighs_them():
    """If a span cuts a column, the column's frames count by the part inside."""
    values = noise(3)
    pool = ColumnPool(HOP, 8)
    pool.add(batch_of(values, [0, 10, 20]))
    got = pool.power(0, np.array([0.5]), np.array([2.25]))[0]
    expected = (0.5 * values[0, 0] + values[1, 0] + 0.25 * values[2, 0]) / 1.75
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_quiet_frames_survive_loud_ones():
    """Silence beside full scale stays exactly silent."""
    values = np.ones((4, 2, 3), np.float32)
    values[1] = 0.0
    pool = ColumnPool(HOP, 8)
    pool.add(batch_of(values, np.arange(4) * HOP))
    assert (columns_of(pool)[1] == 0.0).all()


def test_an_empty_batch_changes_nothing():
    """An empty batch changes nothing and is not the first batch."""
    pool = ColumnPool(HOP, 8)
    pool.add(batch_of(np.zeros((0, 2, 3)), []))
    assert pool.n_frames == pool.n_slots == pool.n_columns == 0


def test_frames_in_the_past_are_a_bug():
    """A frame before the last one is an internal error that names it."""
    pool = ColumnPool(HOP, 8)
    pool.add(batch_of(noise(1), [50]))
    with pytest.raises(InternalError, match="frame at sample 40 after one at 50"):
        pool.add(batch_of(noise(1), [40]))


@pytest.mark.parametrize("max_columns", [2, 5, 64])
@pytest.mark.parametrize("pooling", ["max", "min"])
def test_extremes_of_neighbours(pooling, max_columns):
    """After any number of merges a column is the extreme of its rows, and a gap stays NaN."""
    values = noise(33)
    index = np.arange(33) * HOP
    index[20:] += 200 * HOP
    pool = ColumnPool(HOP, max_columns, pooling)
    for row in range(33):
        pool.add(batch_of(values[row : row + 1], [index[row]]))
    reduce, k = getattr(np, pooling), pool.rows_per_column
    columns = index // HOP // k
    expected = np.full((pool.n_columns, 3), np.nan, np.float32)
    for column in set(columns):
        expected[column] = reduce(values[columns == column, 0], axis=0)
    np.testing.assert_array_equal(columns_of(pool), expected)
    wide = pool.power(0, np.zeros(1), np.array([float(pool.n_columns)]))[0]
    np.testing.assert_array_equal(wide, reduce(values[:, 0], axis=0))


def test_rows_weigh_by_their_frames():
    """A row that was cut off weighs by its frames, and the columns end with its last frame."""
    values = noise(3)
    spec = replace(SPEC, averaging="mean", averaging_frames=5)
    pool = ColumnPool(5 * HOP, 8)
    whole = batch_of(values[:2], [0, 5 * HOP])
    pool.add(replace(whole, spec=spec))
    cut = batch_of(values[2:], [10 * HOP])
    pool.add(replace(cut, spec=spec, cut_frames=2))
    expected = np.average(values[:, 0], axis=0, weights=[5, 5, 2])
    np.testing.assert_allclose(whole_of(pool), expected, rtol=1e-6)
    assert pool.end_sample == 11 * HOP + SPEC.win_length


@pytest.mark.parametrize("max_columns", [2, 5, 64])
@pytest.mark.parametrize("pooling", ["mean", "max", "min"])
@pytest.mark.parametrize("n_each", [1, 4, 7])
def test_columns_are_cleared_before_use(monkeypatch, pooling, max_columns, n_each):
    """What was in the memory of the table before shows in no column, whatever gaps there are."""
    values = noise(28)
    index = np.arange(28) * HOP
    index[9:] += 3 * HOP
    index[16:] += 90 * HOP
    expected = batches_pooled(values, index, n_each, max_columns, pooling)
    empty = np.empty

    def dirty(*args, **kwargs):
        made = empty(*args, **kwargs)
        made[...] = 77.0
        return made

    monkeypatch.setattr(np, "empty", dirty)
    found = batches_pooled(values, index, n_each, max_columns, pooling)
    np.testing.assert_array_equal(found, expected)
    assert np.nanmax(found) < 77.0


def batches_pooled(values, index, n_each, max_columns, pooling):
    """Return the columns, and wide spans of them, of rows in batches."""
    pool = ColumnPool(HOP, max_columns, pooling)
    for first in range(0, len(values), n_each):
        part = slice(first, first + n_each)
        pool.add(batch_of(values[part], index[part]))
    lo = np.linspace(0.0, pool.n_columns, 8)
    return np.concatenate([columns_of(pool), pool.power(0, lo[:-1], lo[1:])])
