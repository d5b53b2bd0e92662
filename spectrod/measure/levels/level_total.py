"""Sums of an interval of levels, and of the local days that intervals make up."""

from dataclasses import dataclass, replace

from spectrod.measure.intervals import IntervalGrid
from spectrod.measure.levels.level_tally import Tally
from spectrod.measure.levels.octave_levels import BandTally


@dataclass(slots=True)
class LevelTotal:
    """An interval that is being measured, a day, or the total.

    Attributes
    ----------
    first, last : int
        Indices of the first and the last measured sample.
    end : int
        Index after the interval.
    due_samples : int
        Samples of the whole interval.
    begin_utc_ns : int
        UTC of the first sample [ns].
    tally : Tally
    bands : BandTally
    has_gap, is_settling : bool
        See ``LevelFlag``.
    is_day : bool
        Whether it is a local day beside shorter intervals.
    """

    first: int
    last: int
    end: int
    due_samples: int
    begin_utc_ns: int
    tally: Tally
    bands: BandTally
    has_gap: bool
    is_settling: bool
    is_day: bool = False

    def add(self, later: "LevelTotal") -> None:
        """Add the sums of later samples."""
        self.has_gap |= later.has_gap or later.first > self.last + 1 > self.first + 1
        self.is_settling |= later.is_settling
        self.last = later.last
        self.tally.merge(later.tally)
        self.bands.merge(later.bands)


class DayTotals:
    """Sums intervals to local days.

    Parameters
    ----------
    days : IntervalGrid
        Bounds of the days, which are bounds of intervals, too.
    """

    def __init__(self, days: IntervalGrid) -> None:
        self._days = days
        self._day: LevelTotal | None = None

    def add(self, span: LevelTotal, tally: Tally, bands: BandTally) -> list[LevelTotal]:
        """Add the next interval; return the days that have ended, in order.

        Parameters
        ----------
        span : LevelTotal
        tally : Tally
        bands : BandTally
            Empty sums, which a new day takes.
        """
        # Where the clock was corrected, bounds of an interval may lie a little beside a midnight.
        middle = (span.first + span.end) // 2
        ended = self.ended_by(middle)
        if self._day is None:
            begin, end = self._days.around(middle)
            self._day = replace(
                span, tally=tally, bands=bands, end=end, due_samples=end - begin, is_day=True
            )
        self._day.add(span)
        return ended + self.ended_by(2 * span.end - middle)

    def ended_by(self, index: int) -> list[LevelTotal]:
        """Return the day that has ended before a sample."""
        return self.finish() if self._day is not None and index >= self._day.end else []

    def finish(self) -> list[LevelTotal]:
        """Return the day that has not ended, if there is one."""
        day, self._day = self._day, None
        return [] if day is None else [day]
