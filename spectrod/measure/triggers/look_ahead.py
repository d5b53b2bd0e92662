"""Triggers of stored sound: the noise floor is known before the first event."""

from spectrod.dsp.spectrum_batch import SpectrumBatch
from spectrod.measure.triggers.adaptive_floor import LEAST_ROWS
from spectrod.measure.triggers.trigger import MeasuredRows, Trigger, TriggerEvent

WAITING_MAX_BYTES = 1 << 28
"""Maximum memory of the levels that wait for their floor [bytes]."""


class LookAhead:
    """Finds the events of a trigger in rows that can wait, with its floor known from the first on.

    The first ``floor_s`` of rows wait until all of them are there, or 256 MiB of their levels; the
    floor of these rows holds for them. From then on the floor is that of the rows before, as that
    of the daemon. It is counted in rows, so it goes on over gaps: a recorder that sleeps between
    files of seconds has the floor of many of them.

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
        self._waiting: list[MeasuredRows] | None = [] if self._n_rows else None
        self.unexamined_rows = 0

    @property
    def n_left_out(self) -> int:
        """Events so far that began and ended within the hold-off of another one."""
        return self._trigger.n_left_out

    @property
    def fs(self) -> float:
        """Sample rate [Hz]."""
        return self._trigger.spec.fs

    def measure(self, batch: SpectrumBatch) -> MeasuredRows:
        """Measure rows one by one, in any order; see ``Trigger.measure``."""
        return self._trigger.measure(batch)

    def push(self, batch: SpectrumBatch) -> list[TriggerEvent]:
        """Take the next rows; return the events that are known now, in order."""
        return self.push_measured(self.measure(batch))

    def push_measured(self, rows: MeasuredRows) -> list[TriggerEvent]:
        """Take the next rows that ``measure`` has measured; see ``push``."""
        if self._waiting is None:
            return self._trigger.push_measured(rows)
        self._waiting.append(rows)
        n_rows = sum(one.n_rows for one in self._waiting)
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
        n_rows = sum(one.n_rows for one in waiting)
        if n_rows < LEAST_ROWS:
            self.unexamined_rows += n_rows
        return [event for rows in waiting for event in self._trigger.push_measured(rows)]
