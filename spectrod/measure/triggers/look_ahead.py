"""Triggers of stored sound: the noise floor is known before the first event."""

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.measure.triggers.adaptive_floor import LEAST_ROWS
from spectrod.measure.triggers.trigger import Trigger, TriggerEvent

WAITING_MAX_BYTES = 1 << 28
"""Maximum memory of the rows that wait for their floor [bytes]."""


class LookAhead:
    """Finds the events of a trigger in rows that can wait, with its floor known from the first on.

    The first ``floor_s`` of rows wait until all of them are there, or 256 MiB of them; the floor of
    these rows holds for them. From then on the floor is that of the rows before, as that of the
    daemon. It is counted in rows, so it goes on over gaps: a recorder that sleeps between files
    of seconds has the floor of many of them.

    Parameters
    ----------
    trigger : Trigger
        A new one. Without an adaptive floor no row waits.

    Attributes
    ----------
    unexamined_rows : int
        Rows of a source with less than 16 of them, which have no floor.
    """

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger
        self._n_rows = trigger.floor_rows
        self._waiting: list[SpectrumBatch] | None = [] if self._n_rows else None
        self.unexamined_rows = 0

    @property
    def n_left_out(self) -> int:
        """Events so far that began and ended within the hold-off of another one."""
        return self._trigger.n_left_out

    @property
    def fs(self) -> float:
        """Sample rate [Hz]."""
        return self._trigger.spec.fs

    def push(self, batch: SpectrumBatch) -> list[TriggerEvent]:
        """Take the next rows; return the events that are known now, in order."""
        if self._waiting is None:
            return self._trigger.push(batch)
        self._waiting.append(batch)
        n_rows = sum(one.n_frames for one in self._waiting)
        n_bytes = sum(one.n_bytes for one in self._waiting)
        is_full = n_rows >= self._n_rows or n_bytes >= WAITING_MAX_BYTES
        return self._release() if is_full else []

    def finish(self, reason: str = "stopped") -> list[TriggerEvent]:
        """Return the events of the rows that wait, and the one that lasts to the end."""
        return self._release() + self._trigger.end(reason)

    def _release(self) -> list[TriggerEvent]:
        """Let the trigger read the rows that wait, with their floor."""
        waiting, self._waiting = self._waiting, None
        if not waiting:
            return []
        self._trigger.learn(waiting)
        n_rows = sum(one.n_frames for one in waiting)
        if n_rows < LEAST_ROWS:
            self.unexamined_rows += n_rows
        return [event for batch in waiting for event in self._trigger.push(batch)]
