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
    """Frames of its product dropped so far, all of them older than this one."""


class FrameQueue:
    """Frames from one thread to another.

    Bounded: when it is full, the oldest frame is dropped and counted, so that what is sent stays
    fresh and the analysis never waits. A dropped frame keeps its sequence number, so subscribers
    see the hole, and hands its gap report on to the next frame of its product.

    Parameters
    ----------
    limit_frames : int
        Frames that may wait.
    next_seq : Counter or None
        Number of each product's next frame, to go on from; counted on in place.
    """

    def __init__(self, limit_frames: int, next_seq: Counter[str] | None = None) -> None:
        self.limit_frames = limit_frames
        self.frames = 0
        """Frames put in so far."""
        self.dropped = 0
        """Frames dropped so far."""
        self._queue: deque[QueuedFrame] = deque()
        self._next_seq = Counter[str]() if next_seq is None else next_seq
        self._dropped_gap_samples = Counter[str]()
        self._dropped_of = Counter[str]()
        self._lock = threading.Lock()

    def put(self, batch: SpectrumBatch, overflows: int = 0, suspected: int = 0) -> None:
        """Add every frame of a batch, with counts of losses so far; never waits for room."""
        with self._lock:
            product = batch.spec.product
            # Rows that nobody wanted have numbers too, so that a hole is always as long as the time
            # that it stands for.
            first_seq = self._next_seq[product] + batch.skipped_rows
            for row in range(batch.n_frames):
                self._make_room()
                gap_samples = batch.gap_samples if row == 0 else 0
                self._queue.append(
                    QueuedFrame(batch, row, first_seq + row, gap_samples, overflows, suspected)
                )
            self._next_seq[product] = first_seq + batch.n_frames
            self.frames += batch.n_frames

    def take(self) -> QueuedFrame | None:
        """Remove the oldest frame; None if there is none."""
        with self._lock:
            if not self._queue:
                return None
            frame = self._queue.popleft()
            product = frame.batch.spec.product
            gap_samples = frame.gap_samples + self._dropped_gap_samples.pop(product, 0)
            dropped = self._dropped_of[product]
        return frame._replace(gap_samples=gap_samples, dropped=dropped)

    def _make_room(self) -> None:
        if len(self._queue) >= self.limit_frames:
            frame = self._queue.popleft()
            product = frame.batch.spec.product
            if frame.gap_samples:
                self._dropped_gap_samples[product] += frame.gap_samples
            self._dropped_of[product] += 1
            self.dropped += 1
