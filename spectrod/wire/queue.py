"""The hand-over from the analysis to the publisher: bounded in frames, the oldest go first."""

import threading
from collections import Counter, deque
from typing import NamedTuple

from spectrod.types import SpectrumBatch


class QueuedFrame(NamedTuple):
    """One frame of a batch on its way out."""

    batch: SpectrumBatch
    row: int
    """Which frame of the batch."""
    seq: int
    """Number of the frame in its product's topics, counted before anything is dropped."""
    gap_samples: int
    """Samples missing before it, those reported by frames dropped before it included."""
    overflows: int
    """Losses flagged when it was put in."""
    suspected: int
    """Losses found by counting when it was put in."""
    dropped: int = 0
    """Frames dropped so far, all of them older than this one."""


class FrameQueue:
    """Frames from one thread to another.

    Bounded: when it is full, the oldest frame is dropped and counted, so that what is sent stays
    fresh and the analysis never waits. A dropped frame keeps its sequence number, so subscribers
    see the hole, and hands its gap report on to the frame after it.
    """

    def __init__(self, limit_frames: int) -> None:
        self.limit_frames = limit_frames
        self.frames = 0
        """Frames put in so far."""
        self.dropped = 0
        """Frames dropped so far."""
        self._queue: deque[QueuedFrame] = deque()
        self._next_seq: Counter[str] = Counter()
        self._dropped_gap_samples = 0
        self._lock = threading.Lock()

    def put(self, batch: SpectrumBatch, overflows: int = 0, suspected: int = 0) -> None:
        """Add every frame of a batch, with counts of losses so far; never waits for room."""
        with self._lock:
            first_seq = self._next_seq[batch.spec.scaling]
            for row in range(batch.n_frames):
                self._make_room()
                gap_samples = batch.gap_samples if row == 0 else 0
                self._queue.append(
                    QueuedFrame(batch, row, first_seq + row, gap_samples, overflows, suspected)
                )
            self._next_seq[batch.spec.scaling] += batch.n_frames
            self.frames += batch.n_frames

    def take(self) -> QueuedFrame | None:
        """Remove the oldest frame; None if there is none."""
        with self._lock:
            if not self._queue:
                return None
            frame = self._queue.popleft()
            gap_samples = frame.gap_samples + self._dropped_gap_samples
            self._dropped_gap_samples = 0
            dropped = self.dropped
        return frame._replace(gap_samples=gap_samples, dropped=dropped)

    def _make_room(self) -> None:
        if len(self._queue) >= self.limit_frames:
            self._dropped_gap_samples += self._queue.popleft().gap_samples
            self.dropped += 1
