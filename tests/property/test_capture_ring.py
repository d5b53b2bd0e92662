"""The ring between two processes against a model, in any order of writes, reads and sizes."""

import mmap
import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spectrod.capture.layout import Layout, RingReader, RingWriter

BLOCK_FRAMES, FRAME_BYTES, N_SLOTS = 7, 3, 9


class CaptureRingModel(RuleBasedStateMachine):
    """A shared ring beside the list of every block ever written."""

    def __init__(self):
        super().__init__()
        layout = Layout(BLOCK_FRAMES, FRAME_BYTES, N_SLOTS)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        memory = mmap.mmap(-1, layout.size)
        self.writer = RingWriter(layout, memory, self.bell)
        self.reader = RingReader(layout, memory, self.bell)
        self.written = []
        self.frames = 0
        self.unread = 0

    def teardown(self):
        os.close(self.bell)

    @rule(n=st.integers(1, BLOCK_FRAMES), flagged=st.booleans())
    def write(self, n, flagged):
        data = bytes(byte % 251 for byte in range(self.frames, self.frames + n * FRAME_BYTES))
        self.writer.write(data, n, flagged=flagged)
        self.written.append((self.frames, n, flagged, data))
        self.frames += n

    @rule(n=st.integers(1, 3 * N_SLOTS))
    def write_many(self, n):
        for _ in range(n):
            self.write(BLOCK_FRAMES, flagged=False)

    @rule()
    def read(self):
        blocks = self.reader.read()
        n_unread = len(self.written) - self.unread
        assert len(blocks) == min(n_unread, N_SLOTS // 4)
        # The writer may be in the last slot at any time, so one block fewer than slots is safe.
        start = self.unread if n_unread < N_SLOTS else len(self.written) - N_SLOTS // 2
        expected = self.written[start : start + len(blocks)]
        assert [(b.frame, b.n_frames, b.flagged, b.data) for b in blocks] == expected
        times = [b.t_mono_ns for b in blocks]
        assert times == sorted(times)
        self.unread = start + len(blocks)

    @invariant()
    def what_is_unread_is_known(self):
        if self.reader.has_unread:
            assert self.unread < len(self.written)


TestCaptureRing = CaptureRingModel.TestCase
TestCaptureRing.settings = settings(max_examples=150)
