"""The ring against a model, in any order of writes, losses and reads."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spectrod.ring import SampleRing

CAPACITY = 64


class RingModel(RuleBasedStateMachine):
    """A ring beside the plain list of (index, contiguous) of every sample ever written."""

    def __init__(self):
        super().__init__()
        self.ring = SampleRing(1000.0, 1, CAPACITY)
        self.written = []
        self.next_index = self.next_read = self.lost = self.read = 0

    def teardown(self):
        self.ring.release()

    @rule(n=st.integers(1, CAPACITY), lost=st.sampled_from([0, 0, 0, 1, 17, 1000]))
    def write(self, n, lost):
        start = self.next_index + lost
        samples = np.arange(start, start + n, dtype=np.float32)[np.newaxis]
        self.ring.write(samples, start, start, start)
        self.written += range(start, start + n)
        self.next_index = start + n

    @rule(max_samples=st.integers(1, CAPACITY))
    def read_some(self, max_samples):
        block = self.ring.read(max_samples)
        unread = [index for index in self.written if index >= self.next_read]
        if not unread:
            assert block is None
            return
        indices = np.arange(block.sample_index, block.sample_index + block.n_samples)
        np.testing.assert_array_equal(block.samples[0], indices.astype(np.float32))
        assert set(indices) <= set(unread)
        assert block.lost_samples == block.sample_index - self.next_read
        assert block.discontinuity == (block.lost_samples > 0)
        self.lost += block.lost_samples
        self.read += block.n_samples
        self.next_read = block.sample_index + block.n_samples

    @precondition(lambda self: self.next_index - self.next_read <= CAPACITY)
    @rule()
    def nothing_recent_is_lost(self):
        block = self.ring.read(1)
        unread = [index for index in self.written if index >= self.next_read]
        if unread:
            assert block.sample_index == unread[0]
            self.lost += block.lost_samples
            self.read += 1
            self.next_read = block.sample_index + 1

    @invariant()
    def every_index_is_read_or_lost_once(self):
        assert self.read + self.lost == self.next_read


TestRing = RingModel.TestCase
TestRing.settings = settings(max_examples=150)
