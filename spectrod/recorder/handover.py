"""The hand-over from the analysis to a recorder's thread: bounded in bytes, the oldest go first."""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from spectrod.chunks import Chunk

T = TypeVar("T", bound=Chunk)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[T]):
    piece: T
    missing_samples: int
    """Of pieces dropped directly before it."""


class Handover(Generic[T]):
    """Pieces from one thread to another.

    Bounded in bytes: when it is full, the oldest piece is dropped and counted, so that the analysis
    never waits for a disk. The piece after it says how many samples are missing, as it does of any
    gap. One piece always fits, whatever its size.

    Parameters
    ----------
    limit_bytes : int
        That may wait.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._waiting: deque[_Waiting[T]] = deque()
        self._n_bytes = 0
        self._lock = threading.Lock()
        self.dropped = 0
        """Rows or samples dropped so far."""
        self.peak_bytes = 0
        """Most that has waited."""

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, piece: T) -> None:
        """Add a piece, which must not be changed; never waits."""
        n_bytes, missing = piece.n_bytes, 0
        with self._lock:
            while self._waiting and self._n_bytes + n_bytes > self._limit_bytes:
                missing = self._drop()
                if self._waiting:
                    self._tell_next(missing)
                    missing = 0
            self._waiting.append(_Waiting(piece, missing))
            self._n_bytes += n_bytes
            self.peak_bytes = max(self.peak_bytes, self._n_bytes)

    def take(self) -> T | None:
        """Remove the oldest piece; None if there is none."""
        with self._lock:
            if not self._waiting:
                return None
            first = self._waiting.popleft()
            self._n_bytes -= first.piece.n_bytes
        if not first.missing_samples:
            return first.piece
        return first.piece.after_gap(first.missing_samples)

    def _drop(self) -> int:
        """Drop the oldest; return how many samples are missing by it."""
        first = self._waiting.popleft()
        self._n_bytes -= first.piece.n_bytes
        self.dropped += first.piece.length
        return first.missing_samples + first.piece.span_samples

    def _tell_next(self, missing_samples: int) -> None:
        first = self._waiting.popleft()
        told = _Waiting(first.piece, first.missing_samples + missing_samples)
        self._waiting.appendleft(told)
