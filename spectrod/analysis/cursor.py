"""Position of the next frame of a stream, and the row that it belongs to."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from spectrod.dsp.blocks import Block
from spectrod.dsp.row_grid import row_period_s
from spectrod.dsp.spectrum import SpectrumSpec
from spectrod.dsp.units import NS_PER_S

_EARLY = Fraction(1, 100)
"""Fraction of a sample by which a row may start before its instant: times are rounded to
nanoseconds, and the rounding must not move a row to the next sample."""
_DRIFT = Fraction(1, 500)
"""Fraction of a row by which a slewed clock and an inexact sample rate may change its length."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Relation between positions and times of samples.

    Attributes
    ----------
    offset : int
        Absolute index of a sample minus its position in the buffer.
    clock : Block
        Block that gives the time of its first sample.
    """

    offset: int
    clock: Block


class Cursor:
    """Moves from frame to frame over the row grid of a spec.

    Rows aligned to UTC start with the first sample at or after a whole multiple of the row period.
    The frames before the first of them make a shorter row, the *lead*. Each row uses the newest
    clock: it starts a sample earlier or later if the sample rate is inexact, and at the next
    multiple if UTC was stepped.

    Attributes
    ----------
    next : int
        Position of the next frame.
    phase : int
        Phase of its row, see ``RowGrid``.
    lead : int
        Remaining frames of the lead; 0 if the next frame belongs to a whole row.
    instant : int or None
        UTC of the start of the next frame's row, in row periods since 1970; None if rows are not
        aligned, and in the lead.
    """

    def __init__(self, spec: SpectrumSpec) -> None:
        self.grid = spec.grid
        self._hop, self._frames = spec.hop, spec.averaging_frames
        self._win_length = spec.win_length
        self._averages = spec.averaging != "none"
        self._fs = Fraction(repr(spec.fs))
        self._period_ns = row_period_s(spec.rate_hz) * NS_PER_S if spec.align == "utc" else None
        # Only the next frame's position matters then.
        self._is_plain = self.grid.is_even and self._period_ns is None
        self.restart(0)

    def restart(self, position: int) -> None:
        """Start a row with the frame at a position."""
        self.next = self._origin = position
        self.phase = self._number = self.lead = 0
        self.instant: int | None = None
        self._first_instant: int | None = None

    def shift(self, n_samples: int) -> None:
        """Move the origin of all positions forward by a number of samples."""
        self.next -= n_samples
        self._origin -= n_samples

    @property
    def is_at_row(self) -> bool:
        """Whether the next frame is the first of a whole row."""
        return self._number == 0 and not self.lead

    def count(self, end: int) -> int:
        """Count the frames from the next one on that end before a position.

        In the lead, count only its frames.
        """
        last = end - self.next - self._win_length
        if last < 0:
            return 0
        if self._is_plain:
            return last // self._hop + 1
        if self.lead:
            return min(self.lead, last // self._hop + 1)
        return max(0, self.grid.count(end - self._origin, self.phase) - self._number)

    def place(self, n_frames: int) -> int:
        """Return the position of the frame that is n_frames after the next one."""
        if self._is_plain or self.lead:
            return self.next + n_frames * self._hop
        return self._origin + self.grid.place(self._number + n_frames, self.phase)

    def advance(self, n_frames: int) -> None:
        """Advance by a number of frames."""
        if self._is_plain:
            self.next += n_frames * self._hop
            return
        if self.lead:
            self.lead -= n_frames
            self.next += n_frames * self._hop
            if not self.lead:
                self.drop_lead()
            return
        rows, self._number = divmod(self._number + n_frames, self._frames)
        self._origin += self.grid.begin(rows, self.phase)
        self.phase = self.grid.phase_of(rows, self.phase)
        self.next = self._origin + self._number * self._hop
        if self.instant is not None:
            self.instant += rows

    def drop_lead(self) -> None:
        """Advance to the first whole row."""
        self.lead = 0
        self.next = self._origin
        self.instant = self._first_instant

    # ---- rows aligned to UTC

    def align(self, timing: Timing) -> bool:
        """Move the next row to its UTC instant, if rows are aligned and the next frame starts one.

        Returns
        -------
        is_broken : bool
            Whether samples between the previous row and this one are skipped, because UTC was
            stepped.
        """
        if self._period_ns is None or not self.is_at_row:
            return False
        if self.instant is None:
            self._align_first(timing)
            return False
        expected = self._position_of(timing, self.instant)
        if abs(expected - self._origin) <= 1:
            return False
        # The first instant at or after the end of the previous row, except for some drift.
        slack = floor(self.grid.step * _DRIFT) + 2
        before = self._origin
        self._start_row(timing, self._instant_from(timing, before - slack))
        return self._origin - before > slack

    def _align_first(self, timing: Timing) -> None:
        """Place the first whole row, and the lead before it."""
        begin = self._origin
        self._start_row(timing, self._instant_from(timing, begin))
        if not self._averages or self._origin == begin:
            return
        room = self._origin - begin - self.grid.win_length
        if self.grid.span > self.grid.step:  # rows consist of frames that start in them
            room = self._origin - begin - 1
        self.lead = min(room // self._hop + 1, self._frames) if room >= 0 else 0
        if self.lead:
            self.next, self._first_instant, self.instant = begin, self.instant, None

    def _start_row(self, timing: Timing, instant: int) -> None:
        exact = self._position_of(timing, instant)
        self._origin = self.next = ceil(exact - _EARLY)
        late = max(Fraction(0), self._origin - exact)
        denominator = self.grid.step.denominator
        self.phase = max(0, denominator - 1 - floor(late * denominator)) if denominator > 1 else 0
        self.instant = instant

    def utc_ns(self, instant: int, n_rows: int) -> NDArray[np.int64]:
        """Return the starts of successive rows, the first at an instant, (n_rows,) [ns]."""
        assert self._period_ns is not None
        instants = range(instant, instant + n_rows)
        return np.array([round(one * self._period_ns) for one in instants], np.int64)

    def _position_of(self, timing: Timing, instant: int) -> Fraction:
        """Return the exact position of an instant."""
        assert self._period_ns is not None
        since_ns = instant * self._period_ns - timing.clock.t_utc_ns
        return timing.clock.sample_index - timing.offset + since_ns * self._fs / NS_PER_S

    def _instant_from(self, timing: Timing, position: int) -> int:
        """Find the first instant whose row starts at a position or later."""
        assert self._period_ns is not None
        away = position - _EARLY - (timing.clock.sample_index - timing.offset)
        t_ns = timing.clock.t_utc_ns + away * NS_PER_S / self._fs
        return ceil(t_ns / self._period_ns)
