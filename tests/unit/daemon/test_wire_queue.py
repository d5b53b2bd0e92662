from collections import Counter
from dataclasses import replace

import numpy as np

from spectrod.daemon.publisher.queue import FrameQueue
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch

SPEC = SpectrumSpec(fs=48000.0, win_length=64, hop=32)


def make_batch(n_frames, gap_samples=0):
    index = np.arange(n_frames, dtype=np.int64)
    values = np.zeros((n_frames, 1, SPEC.n_bins), np.float32)
    return SpectrumBatch(values, index, index, index, SPEC, "numpy", gap_samples)


def take_all(queue):
    return list(iter(queue.take, None))


def test_frames_leave_in_order_and_numbered():
    """Numbers go on from batch to batch."""
    queue = FrameQueue(8)
    queue.put_batch(make_batch(2))
    queue.put_batch(make_batch(3))
    frames = take_all(queue)
    assert [(frame.seq, frame.row) for frame in frames] == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 2)]
    assert (queue.rows, queue.dropped) == (5, 0)


def test_a_full_queue_drops_its_oldest_and_counts():
    """The newest frames remain, and the hole in the numbers is as long as the count."""
    queue = FrameQueue(3)
    queue.put_batch(make_batch(7))
    frames = take_all(queue)
    assert [frame.seq for frame in frames] == [4, 5, 6]
    assert queue.dropped == 4
    assert [frame.dropped for frame in frames] == [4, 4, 4]


def test_a_frame_knows_of_no_drop_after_it():
    """A frame's count explains the hole before it, not one that comes later."""
    queue = FrameQueue(2)
    queue.put_batch(make_batch(2))
    first = queue.take()
    queue.put_batch(make_batch(3))
    assert (first.seq, first.dropped) == (0, 0)
    assert [(frame.seq, frame.dropped) for frame in take_all(queue)] == [(3, 2), (4, 2)]


def test_only_a_batchs_first_frame_has_its_gap():
    """The gap lies before the batch."""
    queue = FrameQueue(8)
    queue.put_batch(make_batch(3, gap_samples=100))
    assert [frame.gap_samples for frame in take_all(queue)] == [100, 0, 0]


def test_the_gap_of_a_dropped_frame_is_passed_on():
    """No gap goes unreported because its frame was dropped; they add up, once."""
    queue = FrameQueue(2)
    queue.put_batch(make_batch(1, gap_samples=100))
    queue.put_batch(make_batch(1, gap_samples=10))
    queue.put_batch(make_batch(2, gap_samples=1))
    assert [frame.gap_samples for frame in take_all(queue)] == [111, 0]


def test_rows_without_demand_have_numbers():
    """The number says how many rows there could have been, of each product apart."""
    queue = FrameQueue(8)
    queue.put_batch(replace(make_batch(2), skipped_rows=5))
    levels = replace(SPEC, product="levels")
    queue.put_batch(replace(make_batch(1), spec=levels, skipped_rows=1))
    queue.put_batch(replace(make_batch(1), skipped_rows=2))
    seen = [(frame.batch.spec.product, frame.seq) for frame in take_all(queue)]
    assert seen == [("density", 5), ("density", 6), ("levels", 1), ("density", 9)]
    assert queue.rows == 4


def test_gaps_and_drops_are_reported_for_their_product():
    """Drops of one product explain no hole in another."""
    queue = FrameQueue(2)
    levels = replace(SPEC, product="levels")
    queue.put_batch(make_batch(1, gap_samples=100))
    queue.put_batch(replace(make_batch(1), spec=levels))
    queue.put_batch(make_batch(1))
    seen = [(f.batch.spec.product, f.gap_samples, f.dropped) for f in take_all(queue)]
    assert seen == [("levels", 0, 0), ("density", 100, 1)]
    assert queue.dropped == 1


def test_numbers_continue_from_the_given_ones():
    """A source that comes again under its name goes on where it ended."""
    numbers = Counter({"spec/density": 4})
    queue = FrameQueue(8, numbers)
    queue.put_batch(make_batch(2))
    assert [frame.seq for frame in take_all(queue)] == [4, 5]
    assert numbers == {"spec/density": 6}


def test_spectra_that_were_bands_for_a_while_have_no_hole():
    """Spectra and bands of a product are different topics: each numbers its own messages."""
    bands = replace(SPEC, nfft=4096, win_length=4096, bands="octave")
    queue = FrameQueue(8)
    queue.put_batch(make_batch(2))
    queue.put_batch(replace(make_batch(3), spec=bands))
    queue.put_batch(make_batch(1))
    seen = [(bool(frame.batch.spec.bands), frame.seq) for frame in take_all(queue)]
    spectra = [seq for is_bands, seq in seen if not is_bands]
    assert spectra == [0, 1, 2]
    assert [seq for is_bands, seq in seen if is_bands] == [0, 1, 2]
