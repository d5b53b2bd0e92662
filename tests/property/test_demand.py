"""Streams with demand for parts of the time, compared with full demand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrod.analysis import batch_sizes
from spectrod.analysis.numpy_engine import NumpyEngine
from spectrod.analysis.stream import FrameStream
from spectrod.dsp.blocks import Block
from spectrod.dsp.spectrum import SpectrumSpec

FS = 1e6
N = 5000
NOISE = np.random.default_rng(6).uniform(-1, 1, (2, N)).astype(np.float32)

SPECS = [
    SpectrumSpec(FS, 2, win_length=128, hop=37, product="overlapping"),
    SpectrumSpec(FS, 2, "hamming", 501, 250, nfft=512, product="odd"),
    SpectrumSpec(FS, 2, win_length=65, hop=700, product="sparse"),
    SpectrumSpec(
        FS, 2, win_length=128, hop=64, averaging="mean", averaging_frames=3, product="mean"
    ),
    SpectrumSpec(FS, 2, win_length=64, hop=90, averaging="max", averaging_frames=4, product="held"),
    SpectrumSpec(
        FS, 2, win_length=128, hop=100, averaging="exponential", averaging_s=0.001, product="slow"
    ),
]
PRODUCTS = [spec.product for spec in SPECS]


@pytest.fixture(scope="module", autouse=True)
def _small_windows():
    """Make windows so small that samples are moved often."""
    kept, batch_sizes._REACH_BYTES_MIN = batch_sizes._REACH_BYTES_MIN, 0
    yield
    batch_sizes._REACH_BYTES_MIN = kept


def block(first, last):
    return Block(NOISE[:, first:last], first, first * 1000, first * 1000)


def always(spec, runs):
    """Return all row indices, and the gap directly before each, with every frame wanted."""
    frames = FrameStream(spec, NumpyEngine())
    batches = [b for run in runs for b in frames.push(block(*run))]
    values = [row for batch in batches for row in batch.values]
    index = [int(i) for batch in batches for i in batch.sample_index]
    gaps = [
        batch.gap_samples if row == 0 else 0
        for batch in batches
        for row in range(len(batch.sample_index))
    ]
    return values, index, gaps


def completed_in(spec, index, blocks):
    """Return the blocks with which the first and the last frame of a row are complete.

    A row that a gap cuts off is complete with the block after the gap.
    """
    first_end = index + spec.win_length
    last_end = first_end + (spec.averaging_frames - 1) * spec.hop
    begin = next(n for n, (_, stop) in enumerate(blocks) if first_end <= stop)
    for n in range(begin, len(blocks)):
        if last_end <= blocks[n][1] or (n > begin and blocks[n][0] != blocks[n - 1][1]):
            return begin, n
    raise AssertionError(f"a row at {index} that nothing completes")


schedules = st.lists(
    st.tuples(
        st.integers(1, 700),
        st.sampled_from([0, 0, 0, 0, 13, 400]),
        st.frozensets(st.sampled_from(PRODUCTS)),
    ),
    min_size=2,
    max_size=24,
)


@pytest.mark.slow
@settings(max_examples=120)
@given(
    schedule=schedules,
    max_latency_s=st.sampled_from([0.0, 0.0005, np.inf]),
    batch_frames=st.sampled_from([None, 1, 3]),
)
def test_any_demand_gives_the_rows_that_would_have_been(schedule, max_latency_s, batch_frames):
    """Rows wanted throughout have the same bits as with full demand, and others are counted."""
    blocks, demands, stop = [], [], 0
    for n, lost, products in schedule:
        start = stop + lost
        stop = min(N, start + n)
        if start < stop:
            blocks.append((start, stop))
            demands.append(products)
    frames = FrameStream(
        SPECS, NumpyEngine(), max_latency_s=max_latency_s, batch_frames=batch_frames
    )
    batches = []
    for span, products in zip(blocks, demands, strict=True):
        batches += frames.want(products)
        batches += frames.push(block(*span))
    batches += frames.flush()
    for spec, launcher in zip(SPECS, frames.launchers, strict=True):
        mine = [batch for batch in batches if batch.spec is spec]
        check_product(spec, mine, launcher, blocks, demands)


def check_product(spec, batches, launcher, blocks, demands):
    values, index, gaps = always(spec, blocks)
    position, reported, computed = 0, 0, []
    for batch in batches:
        position += batch.skipped_rows
        rows = slice(position, position + batch.n_frames)
        assert batch.sample_index.tolist() == index[rows]
        assert batch.gap_samples == sum(gaps[reported : position + 1])
        assert not any(gaps[position + 1 : rows.stop])
        if spec.averaging != "exponential":
            np.testing.assert_array_equal(batch.values, values[rows])
        computed += [(position + row, batch.values[row]) for row in range(batch.n_frames)]
        position = reported = rows.stop
    assert position + launcher.pending.skipped_rows == len(index)
    assert [number for number, _ in computed] == [
        number
        for number, first in enumerate(index)
        if is_in_demand_throughout(spec, first, blocks, demands)
    ]
    if spec.averaging == "exponential":
        check_averages_restart(spec, computed, index, blocks, demands)


def is_in_demand_throughout(spec, index, blocks, demands):
    first, last = completed_in(spec, index, blocks)
    return all(spec.product in products for products in demands[first : last + 1])


def check_averages_restart(spec, computed, index, blocks, demands):
    """Check that each stretch between two pauses or gaps is like the start of a stream."""
    stretches = []
    for number, row in computed:
        if stretches and follows(spec, stretches[-1][-1][0], number, index, blocks, demands):
            stretches[-1].append((number, row))
        else:
            stretches.append([(number, row)])
    for stretch in stretches:
        first, last = index[stretch[0][0]], index[stretch[-1][0]]
        alone = FrameStream(spec, NumpyEngine()).push(block(first, last + spec.win_length))
        expected = np.concatenate([batch.values for batch in alone])
        np.testing.assert_array_equal(np.stack([row for _, row in stretch]), expected)


def follows(spec, before, number, index, blocks, demands):
    """Return whether two rows are adjacent: no row, gap or unwanted block between them."""
    is_next = number == before + 1 and index[number] - index[before] == spec.hop
    span = slice(*(completed_in(spec, index[n], blocks)[0] for n in (before, number)))
    has_gap = any(a[1] != b[0] for a, b in pairwise(blocks[span.start : span.stop + 1]))
    return is_next and not has_gap and all(spec.product in products for products in demands[span])
