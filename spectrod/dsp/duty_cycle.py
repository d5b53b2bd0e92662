"""Duty cycles: recordings that begin at equal distances, with pauses between them. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.units import Float64Array, Int64Array

OWN_TIME, NOTHING = -1, -2
"""What a column stands for that stands for no recording."""
PAUSE_MIN_S = 2.0
"""Shortest pause of a schedule [s]: names of files give whole seconds, and what is shorter may be a
loss."""
_PERIODS_MIN, _PERIODS_MAX = 0.5, 1.5
"""Times between two begins that a schedule explains [periods]: shorter ones are losses within a
recording, longer ones recordings that are missing."""
_SCHEDULED_MIN = 2
"""Fewest pauses of a schedule: between two recordings alone any pause is one period."""
_SPREAD_MAX = 0.02
"""Largest deviation of a time between begins from the period [periods]."""
_ON_COLUMNS_MAX = 8.0
"""A recording of fewer columns cannot be read by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class DutyCycle:
    """Recordings of which most begin one period after the one before.

    Attributes
    ----------
    begins_s, ends_s : (recordings,) float64
        Begin and end of each recording, ascending [s].
    period_s : float
        Median of the times between begins [s].
    on_s : float
        Median of the recordings' lengths [s].
    is_scheduled : (recordings - 1,) bool
        Whether the schedule explains the pause after each recording but the last.
    """

    begins_s: Float64Array
    ends_s: Float64Array
    period_s: float
    on_s: float
    is_scheduled: NDArray[np.bool_]

    @property
    def pauses_s(self) -> Float64Array:
        """Lengths of the pauses that the schedule explains, shape (pauses,) [s]."""
        lengths: Float64Array = self.begins_s[1:] - self.ends_s[:-1]
        return lengths[self.is_scheduled]

    def recording_of(self, edges_s: Float64Array, row_s: float = 0.0) -> Int64Array:
        """Return the recording that each column of a picture stands for.

        Columns that are shorter than the period stand for the recording of the period that their
        centre lies in, if a recording is narrower than eight of them, and pauses are long enough
        that a column could have less than a pause's time of sound. Where the recording of a period
        is missing, they stand for nothing.

        Parameters
        ----------
        edges_s : (columns + 1,) float64
            Edges of the columns, evenly spaced, ascending [s].
        row_s : float
            Resolution of what is drawn in the columns [s].

        Returns
        -------
        recordings : (columns,) int64
            Index of each column's recording; ``NOTHING``: it is missing; ``OWN_TIME``: the column
            stands for what was recorded in its own time, as in a recording that is longer than a
            period.
        """
        column_s = (edges_s[-1] - edges_s[0]) / (len(edges_s) - 1)
        pause_s = self.period_s - self.on_s
        long_enough_s = max(min(self.period_s, 2.0 * pause_s), pause_s + row_s)
        if column_s >= long_enough_s or self.on_s >= _ON_COLUMNS_MAX * column_s:
            return np.full(len(edges_s) - 1, OWN_TIME)
        centres_s = 0.5 * (edges_s[:-1] + edges_s[1:])
        nearest = np.searchsorted(self.begins_s, centres_s, side="right") - 1
        # Where a recording is missing, the one before stands for its own period.
        until_s = np.append(self.begins_s[1:], np.inf)
        is_last = np.append(~self.is_scheduled, [True])
        until_s[is_last] = self.begins_s[is_last] + self.period_s
        is_long = self.ends_s - self.begins_s > self.period_s
        found = np.where(centres_s < until_s[nearest], nearest, NOTHING)
        found[is_long[nearest]] = OWN_TIME
        # A picture may begin in a pause; what was recorded before it is not known.
        is_before = nearest < 0
        found[is_before] = np.where(centres_s[is_before] < self.begins_s[0] - pause_s, NOTHING, 0)
        return found


def find_duty_cycle(
    begins_s: Float64Array, ends_s: Float64Array, resolution_s: float = PAUSE_MIN_S
) -> DutyCycle | None:
    """Find the schedule of recordings.

    The period is the median of the times between begins. There is a schedule if more than half of
    these are within 2 % or ``resolution_s`` of it, so that losses at any times are none. It
    explains the pauses between begins that are 0.5 to 1.5 periods apart: they are closer where
    samples are missing within a recording, and farther apart where a whole one is.

    Parameters
    ----------
    begins_s, ends_s : (recordings,) float64
        Begin and end of each recording, ascending, with a pause before the next [s].
    resolution_s : float
        Accuracy of the times [s].

    Returns
    -------
    found : DutyCycle or None
        None without a schedule.
    """
    apart_s = np.diff(begins_s)
    if len(apart_s) < _SCHEDULED_MIN:
        return None
    period_s = float(np.median(apart_s))
    is_alike = np.abs(apart_s - period_s) <= max(resolution_s, _SPREAD_MAX * period_s)
    is_scheduled = (apart_s >= _PERIODS_MIN * period_s) & (apart_s <= _PERIODS_MAX * period_s)
    if 2 * np.count_nonzero(is_alike) <= len(apart_s):
        return None
    on_s = float(np.median(ends_s - begins_s))
    return DutyCycle(begins_s, ends_s, period_s, on_s, is_scheduled)


def pauses_of_schedule(begins_s: Float64Array, ends_s: Float64Array) -> NDArray[np.bool_]:
    """Return which times between recordings are pauses of a schedule, and no losses.

    A recording that the schedule has and that is not there makes a longer pause: what is around it
    has all that was to be in it. Parameters are those of ``find_duty_cycle``.

    Returns
    -------
    is_pause : (recordings - 1,) bool
        None is True without a schedule.
    """
    found = find_duty_cycle(begins_s, ends_s)
    if found is None:
        return np.zeros(max(0, len(begins_s) - 1), bool)
    is_pause: NDArray[np.bool_] = found.is_scheduled | (np.diff(begins_s) > found.period_s)
    return is_pause
