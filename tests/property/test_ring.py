"""The ring against a model, in any order of writes, losses, restarts and reads."""

import contextlib
import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spectrod.dsp.sample_layout import SampleLayout
from spectrod.source.capture.ring_writer import RECORD, RECORDS_BYTES, RingWriter
from spectrod.source.ring import SampleRing
from spectrod.source.shared_samples import SharedSamples

CAPACITY, BLOCK = 64, 7
LOST = st.sampled_from([0, 0, 0, 1, 17, 1000])


class RingModel(RuleBasedStateMachine):
    """A ring beside the plain list of the indices of all samples that a thread ever wrote."""

    def __init__(self):
        super().__init__()
        self.ring = self.make_ring()
        self.published = []
        self.next_index = self.next_read = self.lost = self.read = 0

    def make_ring(self):
        return SampleRing(1000.0, 1, CAPACITY)

    def teardown(self):
        self.ring.release()

    @rule(n=st.integers(1, CAPACITY), lost=LOST)
    def write(self, n, lost):
        start = self.next_index + lost
        samples = np.arange(start, start + n, dtype=np.float32)[np.newaxis]
        self.ring.write(samples, start, start, start)
        self.published += range(start, start + n)
        self.next_index = start + n

    @property
    def unread(self):
        return [index for index in self.published if index >= self.next_read]

    @property
    def is_all_intact(self):
        return len(self.unread) <= CAPACITY

    @rule(max_samples=st.integers(1, CAPACITY))
    def read_some(self, max_samples):
        unread, is_all_intact, overruns = self.unread, self.is_all_intact, self.ring.overruns
        block = self.ring.read(max_samples)
        if block is None:
            assert not (unread and is_all_intact)
            return
        indices = np.arange(block.sample_index, block.sample_index + block.n_samples)
        np.testing.assert_array_equal(block.samples[0], indices.astype(np.float32))
        assert set(indices) <= set(unread)
        assert block.lost_samples == block.sample_index - self.next_read
        assert block.discontinuity == (block.lost_samples > 0)
        has_skipped = block.sample_index > unread[0]
        assert self.ring.overruns == overruns + has_skipped
        assert not (has_skipped and is_all_intact)
        self.lost += block.lost_samples
        self.read += block.n_samples
        self.next_read = block.sample_index + block.n_samples

    @invariant()
    def every_index_is_read_or_lost_once(self):
        assert self.read + self.lost == self.next_read


class SharedRingModel(RingModel):
    """The same where one process after another writes, and a thread publishes what they report."""

    def make_ring(self):
        self.shared = SharedSamples(
            SampleLayout(channels=2, interleaved=True), CAPACITY, [1], BLOCK
        )
        self.records_fd, self.records_write_fd = os.pipe()
        os.set_blocking(self.records_fd, False)
        os.set_blocking(self.records_write_fd, False)
        self.indices, self.positions = {}, {}
        self.start_writer()
        return SampleRing(1000.0, 1, shared=self.shared)

    def start_writer(self):
        where = self.shared.for_writer()
        self.position = where["position"]
        self.writer = RingWriter(block_frames=BLOCK, records_fd=self.records_write_fd, **where)

    def teardown(self):
        super().teardown()
        os.close(self.records_fd)
        os.close(self.records_write_fd)

    @rule(n=st.integers(1, 2 * CAPACITY), lost=LOST)
    def write(self, n, lost):
        self.next_index += lost
        for first in range(0, n, BLOCK):
            self.write_block(min(BLOCK, n - first))

    def write_block(self, n):
        index = np.arange(self.next_index, self.next_index + n, dtype=np.float32)
        self.writer.write(np.stack([-index, index], axis=1).tobytes(), n, flagged=False)
        self.indices[self.position] = self.next_index
        self.position += n
        self.next_index += n

    @rule()
    def publish(self):
        for position, _, _, n, _ in RECORD.iter_unpack(self.take_records()):
            start = self.indices[position]
            self.ring.publish(position, n, start, start, start)
            self.published += range(start, start + n)
            self.positions |= zip(
                range(start, start + n), range(position, position + n), strict=True
            )

    def take_records(self):
        with contextlib.suppress(BlockingIOError):
            return os.read(self.records_fd, RECORDS_BYTES)
        return b""

    @rule(lost=LOST)
    def restart(self, lost):
        """End the process before its newest blocks are published, and start the next one."""
        self.take_records()
        self.next_index += lost
        self.start_writer()

    @property
    def is_all_intact(self):
        # At any time the process may be writing the next block.
        return not self.unread or (
            self.position + BLOCK - self.positions[self.unread[0]] <= CAPACITY
        )


TestRing = RingModel.TestCase
TestRing.settings = settings(max_examples=150)
TestSharedRing = SharedRingModel.TestCase
TestSharedRing.settings = settings(max_examples=150)
