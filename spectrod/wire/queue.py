"""The hand-over from the analysis to the publisher: bounded in frames, the oldest go first."""

from collections import Counter
from typing import NamedTuple

from spectrod.drop_oldest_queue import DropOldestQueue
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
    dropped: int = 0
    """Frames of its product dropped so far, all of them older than this one."""


class FrameQueue(DropOldestQueue[QueuedFrame]):
    """Frames of batches, bounded in number.

    A dropped frame keeps its sequence number, so that subscribers see the hole, and the next frame
    of its product reports the gap before it.

    Parameters
    ----------
    limit : int
        Frames that may wait.
    next_seq : Counter or None
        Number of each product's next frame, to go on from; counted on in place.
    """

    def __init__(self, limit: int, next_seq: Counter[str] | None = None) -> None:
        super().__init__(limit)
        self.frames = 0
        """Frames put in so far."""
        self._next_seq = Counter[str]() if next_seq is None else next_seq
        self._dropped_gap_samples = Counter[str]()
        self._dropped_of = Counter[str]()

    def put_batch(self, batch: SpectrumBatch) -> None:
        """Add every frame of a batch; never waits for room."""
        product = batch.spec.product
        # Rows that nobody wanted have numbers too, so that a hole is always as long as the time
        # that it stands for.
        first_seq = self._next_seq[product] + batch.skipped_rows
        frames = (
            QueuedFrame(batch, row, first_seq + row, 0 if row else batch.gap_samples)
            for row in range(batch.n_frames)
        )
        self.put(*frames)
        self._next_seq[product] = first_seq + batch.n_frames
        self.frames += batch.n_frames

    def _drop(self, frame: QueuedFrame) -> int:
        product = frame.batch.spec.product
        self._dropped_gap_samples[product] += frame.gap_samples
        self._dropped_of[product] += 1
        return 1

    def _pass_on(self, frame: QueuedFrame) -> QueuedFrame:
        product = frame.batch.spec.product
        gap_samples = frame.gap_samples + self._dropped_gap_samples.pop(product, 0)
        return frame._replace(gap_samples=gap_samples, dropped=self._dropped_of[product])
