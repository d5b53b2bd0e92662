"""Queue from the analysis to a recorder's thread; an overflow becomes a gap."""

from typing import TypeVar

from spectrod.dsp.blocks import Chunk
from spectrod.lib.drop_oldest_queue import DropOldestQueue

T = TypeVar("T", bound=Chunk)


class ChunkQueue(DropOldestQueue[T]):
    """Queue of blocks or batches, bounded in bytes.

    The first chunk after dropped ones reports the number of missing samples, as after any gap.
    ``dropped`` counts rows, or samples per channel.

    Parameters
    ----------
    limit_bytes : int
        Largest size of all waiting chunks together.
    """

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes, lambda chunk: chunk.n_bytes)
        self._missing_samples = 0

    def _drop(self, chunk: T) -> int:
        self._missing_samples += chunk.span_samples
        return chunk.length

    def _pass_on(self, chunk: T) -> T:
        missing, self._missing_samples = self._missing_samples, 0
        return chunk.after_gap(missing) if missing else chunk
