"""The ring: indices, gaps, overruns, times, and concurrent threads."""

import threading

import numpy as np
import pytest

from spectrod.dsp.sample_layout import SAMPLE_BYTES, SampleLayout
from spectrod.lib.errors import ConfigError, InternalError
from spectrod.source.ring import SampleRing, default_capacity


def ramp(start, n, channels=1):
    """Make samples that contain their own index, exact in float32 up to 2^24."""
    return np.tile(np.arange(start, start + n, dtype=np.float32), (channels, 1))


def write(ring, start, n, **kwargs):
    ring.write(ramp(start, n, ring.channels), start, start * 1000, start * 1000 + 7, **kwargs)


@pytest.fixture
def ring():
    ring = SampleRing(1e6, 2, 100)
    yield ring
    ring.release()


def test_samples_come_out_in_order_and_across_the_wrap(ring):
    """Samples are read back in order, also across the ring's wrap."""
    for start in range(0, 700, 70):
        write(ring, start, 70)
        block = ring.read(1000)
        assert block.sample_index == start
        np.testing.assert_array_equal(block.samples, ramp(start, 70, 2))
        assert not block.discontinuity
    assert ring.read(1000) is None


def test_a_ring_larger_than_the_memory_is_refused():
    """A ring larger than the available memory is an error with the channels and the size."""
    with pytest.raises(ConfigError, match=r"^channels=4096: no memory for a ring of .* GiB\)$"):
        SampleRing(1e6, 4096, 1 << 44)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("sample_format", SAMPLE_BYTES)
@pytest.mark.parametrize("has_place", [False, True])
def test_samples_keep_their_format(sample_format, interleaved, has_place):
    """Samples keep their format in any layout, also when read into a given array."""
    layout = SampleLayout(sample_format, 3, interleaved)
    ring = SampleRing(1e6, layout, 100)
    data = np.random.default_rng(2).integers(0, 100, layout.step_bytes * 700, np.uint8)
    samples = layout.arranged(data, 700)
    place = layout.arranged(np.zeros(layout.step_bytes * 50, np.uint8), 50)
    got = []
    for start in range(0, 700, 70):
        ring.write(samples[:, start : start + 70], start, 0, 0)
        while (block := ring.read(70, place if has_place else None)) is not None:
            assert np.may_share_memory(block.samples, place) == has_place
            assert block.n_samples <= (50 if has_place else 70)
            got.append(block.samples.copy())
    np.testing.assert_array_equal(np.concatenate(got, axis=1), samples)
    ring.release()


def test_reads_are_limited(ring):
    """A read returns at most max_samples, and the next one continues after them."""
    write(ring, 0, 50)
    assert ring.read(20).n_samples == 20
    assert ring.read(100).sample_index == 20


def test_block_is_a_copy(ring):
    """A block is a copy and keeps its samples when the ring is overwritten later."""
    write(ring, 0, 100)
    block = ring.read(100)
    write(ring, 100, 100)
    np.testing.assert_array_equal(block.samples, ramp(0, 100, 2))


def test_gap_splits_blocks_and_is_counted_in_samples(ring):
    """A source's loss splits blocks, and the second one gives the number of missing samples."""
    write(ring, 0, 10)
    write(ring, 25, 10)
    first, second = ring.read(100), ring.read(100)
    assert (first.sample_index, first.n_samples, first.discontinuity) == (0, 10, False)
    assert (second.sample_index, second.n_samples) == (25, 10)
    assert (second.discontinuity, second.lost_samples) == (True, 15)
    assert ring.overruns == 0


@pytest.mark.parametrize(("gap", "n"), [(90, 10), (91, 20), (100, 100), (10**6, 77)])
def test_gap_longer_than_the_ring_is_no_overrun(ring, gap, n):
    """A gap longer than the ring overwrites nothing if everything before it was read."""
    write(ring, 0, 10)
    ring.read(100)
    write(ring, 10 + gap, n)
    block = ring.read(100)
    assert (block.sample_index, block.n_samples, block.lost_samples) == (10 + gap, n, gap)
    assert block.discontinuity
    assert ring.overruns == 0


def test_overflow_flag_marks_a_gap_of_unknown_size(ring):
    """A loss flagged by the sound system without a size still interrupts the stream."""
    write(ring, 0, 10)
    write(ring, 10, 10, overflow=True)
    assert ring.read(100).n_samples == 10
    block = ring.read(100)
    assert (block.discontinuity, block.lost_samples) == (True, 0)
    assert ring.overflows == 1


def test_overrun_skips_to_the_middle_and_is_counted(ring):
    """After an overrun, lost samples are counted and the reader restarts at the ring's middle."""
    write(ring, 0, 60)
    write(ring, 60, 60)
    block = ring.read(100)
    assert (block.sample_index, block.lost_samples, block.discontinuity) == (70, 70, True)
    np.testing.assert_array_equal(block.samples, ramp(70, 50, 2))
    assert ring.overruns == 1


def test_overrun_and_gap_together_lose_nothing_twice(ring):
    """A gap inside overwritten samples is counted once."""
    write(ring, 0, 30)
    write(ring, 40, 30)
    write(ring, 100, 80)
    block = ring.read(1000)
    assert (block.sample_index, block.lost_samples) == (130, 130)
    assert ring.read(10) is None


def test_more_gaps_than_the_table_holds(ring):
    """If there is no room for a gap, the older half of the gaps counts as lost."""
    for k in range(80):
        write(ring, 2 * k, 1)
    block = ring.read(100)
    assert (block.sample_index, block.lost_samples, block.discontinuity) == (64, 64, True)
    assert ring.overruns == 1
    for k in range(33, 80):
        block = ring.read(100)
        assert (block.sample_index, block.lost_samples) == (2 * k, 1)
    assert ring.overruns == 1


def test_gaps_that_come_while_samples_are_copied(ring, overtaken):
    """Gaps that are dropped during a copy do not mix up samples, which are still there."""
    write(ring, 0, 10)
    write(ring, 15, 10)

    def meanwhile():
        for k in range(70):
            write(ring, 30 + 2 * k, 1)

    into = overtaken(np.empty((2, 1000), np.float32), meanwhile)
    first, second = ring.read(1000, into), ring.read(1000)
    assert (first.sample_index, first.n_samples) == (0, 10)
    np.testing.assert_array_equal(first.samples, ramp(0, 10, 2))
    assert (second.n_samples, second.lost_samples) == (1, second.sample_index - 10)
    np.testing.assert_array_equal(second.samples, ramp(second.sample_index, 1, 2))
    assert ring.overruns == 1


def test_samples_overwritten_while_they_are_copied_are_read_again(ring, overtaken):
    """A copy that the producer overwrote is dropped, and the samples of the middle are read."""
    write(ring, 0, 60)
    into = overtaken(np.empty((2, 1000), np.float32), lambda: write(ring, 60, 60))
    block = ring.read(1000, into)
    assert (block.sample_index, block.n_samples, ring.overruns) == (70, 50, 1)
    np.testing.assert_array_equal(block.samples, ramp(70, 50, 2))


@pytest.mark.parametrize(
    ("fs", "capacity"), [(8000.0, 1 << 17), (48000.0, 192_000), (1e7, 1 << 24)]
)
def test_a_ring_holds_four_seconds_within_limits(fs, capacity):
    """The default capacity is 4 s, at least 2^17 and at most 2^24 samples."""
    assert default_capacity(fs) == capacity


def test_a_backlog_is_read_in_several_blocks():
    """A block has at most 65536 samples, so that checks and catching up stay incremental."""
    ring = SampleRing(48000.0, 1)
    write(ring, 0, 150_000)
    assert [ring.read(1 << 18).n_samples for _ in range(3)] == [65536, 65536, 18928]
    ring.release()


def test_a_source_waits_for_room_in_the_ring(ring):
    """A source that waits for room never causes an overrun."""
    write(ring, 0, 80)
    assert ring.wait_for_room(20, 0.0)
    assert not ring.wait_for_room(21, 0.0)
    ring.read(1)
    assert ring.wait_for_room(21, 0.0)


def test_closed_ring_is_exhausted_only_when_read(ring):
    """A closed ring is exhausted only after its last sample was read."""
    write(ring, 0, 5)
    ring.close()
    assert not ring.exhausted
    ring.read(5)
    assert ring.exhausted


def test_times_follow_the_index(ring):
    """A block's times are those of its first sample at the nominal rate."""
    write(ring, 0, 50)
    ring.read(20)
    block = ring.read(30)
    assert (block.t_mono_ns, block.t_utc_ns) == (20_000, 20_007)


def test_times_restart_after_a_gap(ring):
    """After a discontinuity the clock takes the new block's time at once."""
    write(ring, 0, 10)
    ring.read(10)
    ring.write(ramp(10, 10, 2), 10, 5_000_000, 5_000_000, overflow=True)
    assert ring.read(10).t_mono_ns == 5_000_000


@pytest.mark.parametrize(("start", "n"), [(0, 101), (3, 10)])
def test_writes_that_cannot_be_right_are_refused(ring, start, n):
    """A block larger than the ring or before its end is an internal error."""
    write(ring, 0, 5)
    with pytest.raises(InternalError, match=f"block of {n} samples at {start} does not fit"):
        write(ring, start, n)


@pytest.mark.slow
def test_two_threads_lose_and_tear_nothing():
    """With a writer that never waits and a slow reader, every block is complete and in order."""
    ring = SampleRing(48000.0, 3, 512)
    total = 200_000

    def produce():
        rng, index = np.random.default_rng(1), 0
        while index < total:
            n = int(rng.integers(1, 200))
            ring.write(ramp(index, n, 3), index, index, index)
            index += n
        ring.close()

    thread = threading.Thread(target=produce)
    thread.start()
    expected = lost = 0
    while not ring.exhausted:
        block = ring.read(300)
        if block is None:
            ring.data.wait(1.0)
            continue
        np.testing.assert_array_equal(block.samples, ramp(block.sample_index, block.n_samples, 3))
        assert block.sample_index == expected + block.lost_samples
        assert block.discontinuity == (block.lost_samples > 0)
        lost += block.lost_samples
        expected = block.sample_index + block.n_samples
    thread.join()
    assert expected == ring.written
    assert (lost > 0) == (ring.overruns > 0)
    ring.release()


def test_many_gaps_push_out_no_sample():
    """A writer that waits for room also waits for room among the gap records."""
    ring = SampleRing(48000.0, 1, 4096)
    one = np.zeros((1, 1), np.float32)
    n_written = n_read = 0
    for number in range(500):
        if not ring.wait_for_room(2, timeout_s=0.0):
            n_read += ring.read(1).n_samples
        ring.write(one, 2 * number + 1, 0, 0)
        n_written += 1
    while (block := ring.read(1)) is not None:
        n_read += block.n_samples
    assert (n_read, ring.overruns) == (n_written, 0)
    ring.release()
