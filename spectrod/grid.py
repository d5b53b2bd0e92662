"""Where the frames of a stream begin: one every hop, or rows of frames at an exact rate."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

WHOLE_SECONDS_TOLERANCE = 5e-4
"""Relative. 1/n written with four digits, as 0.01667 for 1/60, is so near to it."""
_DENOMINATOR_MAX = 1_000_000
"""So that products of the kernels' integers stay below 2^63."""


def row_period_s(rate_hz: float) -> Fraction:
    """Time from one row to the next [s].

    The exact inverse of the rate as it is written in decimal; a whole number of seconds if the rate
    is within ``WHOLE_SECONDS_TOLERANCE`` of the inverse of one, because 1/60 has no end in decimal.

    Parameters
    ----------
    rate_hz : float
        Rows a second, > 0 [Hz].
    """
    rate = Fraction(repr(float(rate_hz)))
    whole = round(1 / rate)
    if whole and abs(whole * rate - 1) <= WHOLE_SECONDS_TOLERANCE:
        return Fraction(whole)
    return 1 / rate


def exact_row_step(fs: float, rate_hz: float) -> Fraction:
    """Count the samples from one row to the next at an exact rate; they need not be whole.

    Exact for sample rates of up to six decimals.
    """
    step = Fraction(repr(float(fs))) * row_period_s(rate_hz)
    return step.limit_denominator(_DENOMINATOR_MAX)


def as_number(step: Fraction) -> int | float:
    """Write a number of samples as JSON can, as a whole one if it is."""
    return int(step) if step.denominator == 1 else float(step)


@dataclass(frozen=True, slots=True)
class RowGrid:
    """Places of frames: row r begins at sample ``floor(phase + r * step)``, its frames every hop.

    A phase is the part of a sample by which the exact begin of a row lies after the sample it
    begins with, in units of 1 / ``step.denominator``. Frames are numbered from the first of row 0,
    and places count from the begin of that row.

    Attributes
    ----------
    win_length, hop : int
        Of frames [samples].
    frames : int
        Frames a row, >= 1.
    step : Fraction
        From one row to the next, >= 1 [samples].
    """

    win_length: int
    hop: int
    frames: int
    step: Fraction

    @property
    def is_even(self) -> bool:
        """Whether all frames are hop apart, those of different rows too."""
        return self.step == self.frames * self.hop

    @property
    def span(self) -> int:
        """Samples from the first to the last of a row's frames, both included."""
        return self.row_span(self.frames)

    def row_span(self, frames: int) -> int:
        """Count the samples that a row of so many frames is made of."""
        return (frames - 1) * self.hop + self.win_length

    def begin(self, row: int, phase: int = 0) -> int:
        """Place where a row begins."""
        return (phase + row * self.step.numerator) // self.step.denominator

    def phase_of(self, row: int, phase: int = 0) -> int:
        """Phase of a row, if that of row 0 is given."""
        return (phase + row * self.step.numerator) % self.step.denominator

    def begins(self, n_rows: int, phase: int = 0) -> NDArray[np.int64]:
        """Places where the first rows begin, (n_rows,) int64."""
        whole, part = divmod(self.step.numerator, self.step.denominator)
        rows = np.arange(n_rows)
        return rows * whole + (phase + rows * part) // self.step.denominator

    def place(self, frame: int, phase: int = 0) -> int:
        """Place where a frame begins."""
        row, number = divmod(frame, self.frames)
        return self.begin(row, phase) + number * self.hop

    def count(self, n_samples: int, phase: int = 0) -> int:
        """Count the frames that lie wholly within the first samples."""
        last = n_samples - self.win_length
        if last < 0:
            return 0
        if self.is_even:
            return last // self.hop + 1
        whole = self._rows_that_begin_by(last - (self.frames - 1) * self.hop, phase)
        rest = last - self.begin(whole, phase)
        return whole * self.frames + (rest // self.hop + 1 if rest >= 0 else 0)

    def _rows_that_begin_by(self, place: int, phase: int) -> int:
        if place < 0:
            return 0
        numerator, denominator = self.step.numerator, self.step.denominator
        return ((place + 1) * denominator - 1 - phase) // numerator + 1


def frames_within(step: int, win_length: int, hop: int) -> int:
    """Count the frames that lie within a row of so many samples, as many as fit.

    Where a row is shorter than a window, none would: then those that begin within.
    """
    if win_length <= step:
        return (step - win_length) // hop + 1
    return frames_that_begin(step, hop)


def frames_that_begin(step: int, hop: int) -> int:
    """Count the frames that begin in a row of so many samples."""
    return max(1, -(-step // hop))


def hop_that_covers(step: int, win_length: int, hop: int) -> int:
    """Find the longest hop, no longer than the one given, that leaves out no sample of a row.

    The frames that lie within the row then end with it; 0 if a row is shorter than a window.
    """
    rest = step - win_length
    if rest <= 0:
        return hop if rest == 0 else 0
    return next(h for h in range(min(hop, rest, win_length), 0, -1) if rest % h == 0)
