"""Pre-roll: holds data in memory and passes on those around events."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from spectrod.config.schedule import NEVER_NS
from spectrod.dsp.blocks import Chunk
from spectrod.recording.recorder_clock import SET_BACK_NS
from spectrod.recording.triggers import Triggers

T = TypeVar("T", bound=Chunk)


class PrerollBuffer(Generic[T]):
    """Holds chunks until it is known whether they are around an event.

    Chunks older than ``Triggers.held_ns`` that are around no event are given up. The buffer is
    bounded in bytes: a pre-roll that does not fit is shortened, and ``short_by`` counts the missing
    part. One thread.

    Parameters
    ----------
    triggers : Triggers
        The events. Each must be added before the data of its time arrive here.
    limit_bytes : int
        Largest size of all held chunks together.
    """

    def __init__(self, triggers: Triggers, limit_bytes: int) -> None:
        self._triggers, self._limit_bytes = triggers, limit_bytes
        self._held: deque[T] = deque()
        self._n_bytes = 0
        self.short_by = 0
        """Rows or samples of pre-rolls that did not fit into memory."""

    def push(self, piece: T) -> Iterator[tuple[T, bool]]:
        """Add the next chunk; yield the decided ones, each with whether it is recorded."""
        if self._is_set_back(piece):
            # Held chunks would stay until the clock reaches their time again.
            yield from self.drain()
        self._hold(piece, at_end=True)
        oldest_ns = piece.last_utc_ns - self._triggers.held_ns
        while self._held:
            t_ns = self._held[0].begin_utc_ns
            is_wanted, until_ns = self._triggers.at(t_ns)
            if not is_wanted and until_ns == NEVER_NS:
                until_ns = self._give_up_before(t_ns, oldest_ns)
                if until_ns <= t_ns:
                    return
            yield from self._release(until_ns, is_wanted=is_wanted)

    def drain(self) -> Iterator[tuple[T, bool]]:
        """Yield all held chunks, each with whether it is around an event."""
        while self._held:
            t_ns = self._held[0].begin_utc_ns
            is_wanted, until_ns = self._triggers.at(t_ns)
            yield from self._release(until_ns, is_wanted=is_wanted)

    def _is_set_back(self, piece: T) -> bool:
        """Return whether the clock was set back since the last chunk."""
        if not self._held:
            return False
        last_ns = self._held[-1].last_utc_ns
        return piece.begin_utc_ns < last_ns - SET_BACK_NS

    def _give_up_before(self, t_ns: int, oldest_ns: int) -> int:
        """Return the time before which unwanted chunks from ``t_ns`` on are given up."""
        if self._n_bytes <= self._limit_bytes or len(self._held) == 1:
            return oldest_ns
        first = self._held[0]
        if first.last_utc_ns >= oldest_ns:
            self.short_by += first.length
        return max(oldest_ns, first.last_utc_ns + 1, t_ns + 1)

    def _release(self, until_ns: int, *, is_wanted: bool) -> Iterator[tuple[T, bool]]:
        """Yield the part of the first chunk before a time; it must not be empty."""
        piece = self._held.popleft()
        self._n_bytes -= piece.n_bytes
        head, tail = piece.split_at(until_ns)
        if tail is not None:
            self._hold(tail, at_end=False)
        if head is not None:
            yield head, is_wanted

    def _hold(self, piece: T, *, at_end: bool) -> None:
        (self._held.append if at_end else self._held.appendleft)(piece)
        self._n_bytes += piece.n_bytes
