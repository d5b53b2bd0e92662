"""Queue from the analysis to the publisher: bounded in frames, drops the oldest."""

import time
from collections import Counter
from typing import NamedTuple

from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.lib.drop_oldest_queue import DropOldestQueue


class QueuedFrame(NamedTuple):
    """One frame of a batch in the queue."""

    batch: SpectrumBatch
    row: int
    """Index of the frame in the batch."""
    seq: int
    """Sequence number in its topics; dropped frames count."""
    gap_samples: int
    """Samples missing before it, with those that dropped frames had reported."""
    dropped: int = 0
    """Frames of its product dropped before it."""
    put_s: float = 0.0
    """Monotonic clock when it was queued [s]."""


class FrameQueue(DropOldestQueue[QueuedFrame]):
    """Queue of frames, bounded in number.

    A dropped frame keeps its sequence number, so subscribers see the hole, and the next frame of
    its product reports the gap before it.

    Parameters
    ----------
    limit : int
        Length of the queue [frames].
    next_seq : Counter or None
        Number of the next frame of each product's spectra, and of its bands; updated in place.
    """

    def __init__(self, limit: int, next_seq: Counter[str] | None = None) -> None:
        super().__init__(limit)
        self.rows = 0
        """Rows queued so far."""
        self._next_seq = Counter[str]() if next_seq is None else next_seq
        self._dropped_gap_samples = Counter[str]()
        self._dropped_of = Counter[str]()

    def put_batch(self, batch: SpectrumBatch) -> None:
        """Add every frame of a batch; never waits for room."""
        numbered = _numbered_as(batch.spec)
        # Skipped rows have numbers too: a hole in the numbers always has the length of the missing
        # time.
        first_seq = self._next_seq[numbered] + batch.skipped_rows
        now_s = time.monotonic()
        frames = (
            QueuedFrame(batch, row, first_seq + row, 0 if row else batch.gap_samples, put_s=now_s)
            for row in range(batch.n_frames)
        )
        self.put(*frames)
        self._next_seq[numbered] = first_seq + batch.n_frames
        self.rows += batch.n_frames

    def _drop(self, frame: QueuedFrame) -> int:
        product = frame.batch.spec.product
        self._dropped_gap_samples[product] += frame.gap_samples
        self._dropped_of[product] += 1
        return 1

    def _pass_on(self, frame: QueuedFrame) -> QueuedFrame:
        product = frame.batch.spec.product
        gap_samples = frame.gap_samples + self._dropped_gap_samples.pop(product, 0)
        return frame._replace(gap_samples=gap_samples, dropped=self._dropped_of[product])


def _numbered_as(spec: SpectrumSpec) -> str:
    """Return the beginning of the topics whose messages are numbered together.

    Spectra and bands of a product have topics of their own: if it becomes bands and spectra again,
    subscribers of the spectra have lost nothing.
    """
    return f"{'bands' if spec.bands else 'spec'}/{spec.product}"
