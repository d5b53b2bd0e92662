"""Events from a series of heights over a threshold: hysteresis, least duration, hold-off."""

import math
from typing import Literal

Change = Literal["begun", "ended"]

NO_EVENT = -(1 << 63)
"""Sample from which an event can begin where there was none before."""


class Hysteresis:
    """The state of one trigger: finds where events begin and end.

    The condition begins in a row whose height is at least 0, and lasts until the height is below
    ``-release_db`` in all rows that share samples with the last row above: a sound that dips for a
    part of a window is one condition, and no two conditions share samples. Once it has lasted
    ``least_samples``, an event begins; the event ends with the condition. For ``hold_off_samples``
    after an event no other one begins: a condition that lasts longer is then an event, from its own
    first row on, and one that does not is left out. Each event that begins ends before the next
    begins. Times are indices of samples, which no clock sets back.

    Parameters
    ----------
    release_db : float
        Hysteresis, at least 0 [dB].
    least_samples : int
        Least duration of the condition, from its first row's first sample to its last row's last.
    hold_off_samples : int
        Time from an event's last sample to the row with which the next one can begin; 0: the next
        row can.

    Attributes
    ----------
    is_active : bool
        Whether an event is in progress.
    is_held : bool
        Whether the condition holds, with or without an event.
    first, stop : int
        First sample of the condition, and the one after its last.
    n_pulses : int
        1: an event is one condition.
    n_left_out : int
        Conditions of ``least_samples`` or more that ended within the time after an event.
    """

    n_pulses = 1

    def __init__(self, release_db: float, least_samples: int, hold_off_samples: int) -> None:
        self._release_db = release_db
        self._least, self._hold_off = least_samples, hold_off_samples
        self.is_active = self.is_held = False
        self.first = self.stop = self.n_left_out = 0
        self._free_from = NO_EVENT
        self._row_first = 0

    @property
    def is_idle(self) -> bool:
        """Whether rows below the threshold change nothing."""
        return not self.is_held

    def push(self, first: int, stop: int, height_db: float) -> Change | None:
        """Take the next row; return what it changes.

        Parameters
        ----------
        first, stop : int
            First sample of the row, and the one after its last.
        height_db : float
            Level over the threshold [dB]; NaN ends the condition.
        """
        step, self._row_first = first - self._row_first, first
        if not self.is_held:
            if not height_db >= 0.0:
                return None
            self.is_held, self.first = True, first
        elif not height_db >= -self._release_db:
            shares_next = first + step < self.stop
            return None if shares_next and not math.isnan(height_db) else self.end()
        self.stop = stop
        if self.is_active or not self._is_long or first < self._free_from:
            return None
        self.is_active = True
        return "begun"

    @property
    def _is_long(self) -> bool:
        return self.stop - self.first >= self._least

    def end(self) -> Change | None:
        """End the condition with the row before, as before a gap; return what that changes."""
        was_active, was_held = self.is_active, self.is_held
        self.is_held = self.is_active = False
        if not was_active:
            self.n_left_out += was_held and self._is_long
            return None
        if self._hold_off:
            self._free_from = self.stop + self._hold_off
        return "ended"
