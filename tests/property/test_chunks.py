"""Blocks and batches cut anywhere: the parts add up to the whole."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrod.dsp.blocks import Block, RangeTrimmer
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.errors import InternalError

NS = 1_000_000_000
BEGIN_NS = 1_777_609_800 * NS
SPECS = {
    (broadband, signals): SpectrumSpec(
        44100.0,
        channels=signals,
        win_length=63,
        hop=100,
        nfft=64,
        bands="octave" if broadband else "",
        broadband=broadband,
    )
    for broadband in (False, True)
    for signals in (1, 2, 3)
}
RATES = [0.25, 999.0, 7999.5, 44100.0, 48000.0, 128_000.0, 2.4e6]


@st.composite
def blocks(draw):
    """Generate blocks of 1 to 999 samples at any rate, some after a gap."""
    channels, n = draw(st.integers(1, 3)), draw(st.integers(1, 999))
    samples = np.arange(channels * n, dtype=np.float32).reshape(channels, n)
    lost = draw(st.sampled_from([0, 0, 1, 12345]))
    return Block(
        samples,
        draw(st.integers(0, 2**40)),
        draw(st.integers(0, 2**50)),
        BEGIN_NS + draw(st.integers(0, NS)),
        bool(lost),
        lost,
        draw(st.sampled_from(RATES)),
    )


@st.composite
def batches(draw):
    """Generate batches of 0 to 40 rows, some after a gap or after skipped rows."""
    n, signals = draw(st.integers(0, 40)), draw(st.integers(1, 3))
    broadband = draw(st.booleans())
    spec = SPECS[broadband, signals]
    index = draw(st.integers(0, 2**40)) + 100 * np.arange(n, dtype=np.int64)
    t_ns = np.round(np.arange(n) * 100 / spec.fs * NS).astype(np.int64)
    values = np.arange(n * signals * spec.n_values, dtype=np.float32)
    gap = draw(st.sampled_from([0, 0, 7]))
    return SpectrumBatch(
        values.reshape(n, signals, spec.n_values),
        index,
        t_ns,
        BEGIN_NS + draw(st.integers(0, NS)) + t_ns,
        spec,
        "numpy",
        gap_samples=gap,
        discontinuity=bool(gap),
        skipped_rows=draw(st.sampled_from([0, 0, 3])),
        broadband=np.arange(n * signals, dtype=np.float32).reshape(n, signals)
        if broadband
        else None,
    )


def times(chunk):
    """Return the UTC of each item, as the chunk gives it."""
    if isinstance(chunk, SpectrumBatch):
        return chunk.t_utc_ns.tolist()
    return [chunk.between(k, k + 1).t_utc_ns for k in range(chunk.n_samples)]


def fields(chunk):
    """Return the count missing before a chunk, and all fields that are not arrays."""
    if isinstance(chunk, SpectrumBatch):
        missing = chunk.gap_samples, chunk.skipped_rows, chunk.discontinuity
        return missing, (chunk.spec, chunk.engine, chunk.cut_frames)
    return (chunk.lost_samples, 0, chunk.discontinuity), (chunk.fs,)


def assert_is_whole(parts, whole):
    """Check that every item is in one part, in order, and only the first has a gap before it."""
    assert all(part.length for part in parts)
    assert sum(part.length for part in parts) == whole.length
    assert sum(part.n_bytes for part in parts) == whole.n_bytes
    assert sum(part.span_samples for part in parts) == whole.span_samples
    assert [fields(part)[1] for part in parts] == [fields(whole)[1]] * len(parts)
    assert fields(parts[0])[0] == fields(whole)[0]
    assert {fields(part)[0] for part in parts[1:]} <= {(0, 0, False)}
    if isinstance(whole, SpectrumBatch):
        for name in ("values", "sample_index", "t_mono_ns", "t_utc_ns"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_array_equal(joined, getattr(whole, name))
        if whole.broadband is not None:
            joined = np.concatenate([part.broadband for part in parts])
            np.testing.assert_array_equal(joined, whole.broadband)
        return
    joined = np.concatenate([part.samples for part in parts], axis=1)
    np.testing.assert_array_equal(joined, whole.samples)
    first = 0
    for part in parts:
        since_ns = first / whole.fs * NS
        assert part.sample_index == whole.sample_index + first
        # Each cut rounds once.
        assert abs(part.t_utc_ns - whole.t_utc_ns - since_ns) <= len(parts) / 2 + since_ns * 1e-12
        assert part.t_utc_ns - whole.t_utc_ns == part.t_mono_ns - whole.t_mono_ns
        first += part.n_samples


@given(blocks() | batches(), st.lists(st.integers(0, 999), max_size=5))
def test_a_chunk_that_is_cut_at_indices_is_the_sum_of_its_parts(whole, indices):
    """Parts cut at any indices add up to the chunk; empty parts appear only if requested."""
    edges = sorted({0, whole.length, *(k for k in indices if k < whole.length)})
    parts = [whole.between(*pair) for pair in itertools.pairwise(edges)]
    if parts:
        assert_is_whole(parts, whole)
    for k in edges:
        assert whole.between(k, k).length == 0


@given(blocks() | batches(), st.floats(-0.5, 1.5))
def test_a_cut_at_a_time_leaves_later_items_behind_it(whole, share):
    """Items before a time are in the head, all others in the tail, by their stated times."""
    t_all = times(whole)
    span_ns = t_all[-1] - t_all[0] if t_all else NS
    t_ns = (t_all[0] if t_all else BEGIN_NS) + round(share * span_ns)
    head, tail = whole.split_at(t_ns)
    assert (head.length if head else 0) == sum(t < t_ns for t in t_all)
    if whole.length:
        assert_is_whole([part for part in (head, tail) if part], whole)
    else:
        assert (head, tail) == (None, whole)
    if head:
        assert head.last_utc_ns < t_ns
    if tail and tail.length:
        assert tail.begin_utc_ns >= t_ns


@given(blocks(), st.integers(-20000, 1100))
def test_samples_and_gaps_before_an_index_are_dropped(block, offset):
    """After a drop, samples count as missing only from the index on, and none before a cut."""
    begin = block.sample_index + offset
    kept = block.drop_before(begin)
    if offset >= block.n_samples:
        assert kept is None
        return
    assert kept.sample_index == max(begin, block.sample_index)
    assert kept.n_samples == block.n_samples - max(0, offset)
    assert kept.lost_samples == min(block.lost_samples, max(0, -offset))
    assert kept.samples[0, -1] == block.samples[0, -1]


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 5, 40]), st.integers(1, 30)), min_size=1),
    st.integers(0, 120),
    st.none() | st.integers(0, 150),
)
def test_a_trimmed_stream_has_the_samples_of_its_range(parts, first, n_samples):
    """Each sample of the range is in one trimmed block or missing, and no other sample is."""
    trimmer, index, there = RangeTrimmer(first, n_samples), 0, set()
    trimmed = []
    for lost, n in parts:
        index += lost
        if trimmer.left != 0:
            samples = np.arange(index, index + n, dtype=np.float32)[np.newaxis]
            trimmed.append(trimmer.trim(Block(samples, index, 0, 0, bool(lost), lost, 1.0)))
        there |= set(range(index, index + n))
        index += n
    kept = [block for block in trimmed if block is not None]
    stop = index if n_samples is None else min(index, first + n_samples)
    expected = sorted(there & set(range(first, stop)))
    assert [int(one) for block in kept for one in block.samples[0]] == expected
    assert all(block.sample_index == block.samples[0, 0] for block in kept)
    assert trimmer.read_samples == len(expected)
    assert trimmer.missing_samples == max(0, stop - first) - len(expected)
    assert trimmer.left == (None if n_samples is None else n_samples - max(0, stop - first))


@given(blocks() | batches(), st.integers(1, 10**6), st.integers(0, 1200))
def test_a_gap_before_a_chunk_adds_to_its_own_and_stays_with_its_head(whole, n_missing, n):
    """An added gap changes the count of missing samples and marks the chunk as not contiguous."""
    after = whole.after_gap(n_missing)
    assert after.span_samples == whole.span_samples + n_missing
    assert (after.length, after.discontinuity) == (whole.length, True)
    head = after.head(n)
    assert head.length == min(n, whole.length)
    assert fields(head)[0] == fields(after)[0]


def test_a_block_without_a_rate_is_not_cut():
    """A block without a rate is not cut, as the times of its later samples are unknown."""
    block = Block(np.zeros((1, 9), np.float32), 0, 0, 0)
    assert block.head(4).n_samples == 4
    assert block.begin_utc_ns == 0
    for cut in (lambda: block.between(1, 9), lambda: block.split_at(5), lambda: block.last_utc_ns):
        with pytest.raises(InternalError, match="without a sample rate"):
            cut()
    assert replace(block, fs=3.0).between(1, 9).t_utc_ns == 333_333_333
