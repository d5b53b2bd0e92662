"""Positions of the frames of a stream: one every hop, or rows of frames at an exact rate."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

WHOLE_SECONDS_TOLERANCE = 5e-4
"""Relative tolerance; 1/n written with four digits, such as 0.01667 for 1/60, is within it."""
_DENOMINATOR_MAX = 1_000_000
"""Bound that keeps products of the kernels' integers below 2^63."""


def row_period_s(rate_hz: float) -> Fraction:
    """Return the time from one row to the next [s].

    It is the exact inverse of the rate's decimal representation, or a whole number of seconds if
    the rate is within ``WHOLE_SECONDS_TOLERANCE`` of its inverse, because 1/60 has no finite
    decimal form.

    Parameters
    ----------
    rate_hz : float
        Rows per second, > 0 [Hz].
    """
    rate = Fraction(repr(float(rate_hz)))
    whole = round(1 / rate)
    if whole and abs(whole * rate - 1) <= WHOLE_SECONDS_TOLERANCE:
        return Fraction(whole)
    return 1 / rate


def exact_row_step(fs: float, rate_hz: float) -> Fraction:
    """Return the exact number of samples from one row to the next, which need not be whole.

    Exact for sample rates of up to six decimals.
    """
    step = Fraction(repr(float(fs))) * row_period_s(rate_hz)
    return step.limit_denominator(_DENOMINATOR_MAX)


def as_number(step: Fraction) -> int | float:
    """Return a number of samples as JSON can represent it, whole numbers as int."""
    return int(step) if step.denominator == 1 else float(step)


@dataclass(frozen=True, slots=True)
class RowGrid:
    """Positions of frames: row r starts at ``floor(phase + r * step)``, its frames are hop apart.

    A phase is the fraction of a sample by which the exact start of a row lies after its first
    sample, in units of 1 / ``step.denominator``. Frames are numbered from the first of row 0,
    and positions count from the start of that row.

    Attributes
    ----------
    win_length, hop : int
        Length and distance of frames [samples].
    frames : int
        Frames per row, >= 1.
    step : Fraction
        Distance from one row to the next, >= 1 [samples].
    """

    win_length: int
    hop: int
    frames: int
    step: Fraction

    @property
    def is_even(self) -> bool:
        """True if all frames are hop apart, across rows as well."""
        return self.step == self.frames * self.hop

    @property
    def span(self) -> int:
        """Samples from the first to the last of a row's frames, inclusive."""
        return self.row_span(self.frames)

    def row_span(self, frames: int) -> int:
        """Return the number of samples that a row of ``frames`` frames covers."""
        return (frames - 1) * self.hop + self.win_length

    def begin(self, row: int, phase: int = 0) -> int:
        """Return the position of a row's start."""
        return (phase + row * self.step.numerator) // self.step.denominator

    def phase_of(self, row: int, phase: int = 0) -> int:
        """Return the phase of a row, for the given phase of row 0."""
        return (phase + row * self.step.numerator) % self.step.denominator

    def begins(self, n_rows: int, phase: int = 0) -> NDArray[np.int64]:
        """Return the positions of the first rows' starts, (n_rows,) int64."""
        whole, part = divmod(self.step.numerator, self.step.denominator)
        rows = np.arange(n_rows)
        if part == 0:
            return rows * whole
        return rows * whole + (phase + rows * part) // self.step.denominator

    def place(self, frame: int, phase: int = 0) -> int:
        """Return the position of a frame's start."""
        row, number = divmod(frame, self.frames)
        return self.begin(row, phase) + number * self.hop

    def count(self, n_samples: int, phase: int = 0) -> int:
        """Count the frames that lie completely within the first samples."""
        last = n_samples - self.win_length
        if last < 0:
            return 0
        if self.is_even:
            return last // self.hop + 1
        whole = self._rows_starting_by(last - (self.frames - 1) * self.hop, phase)
        rest = last - self.begin(whole, phase)
        return whole * self.frames + (rest // self.hop + 1 if rest >= 0 else 0)

    def _rows_starting_by(self, place: int, phase: int) -> int:
        if place < 0:
            return 0
        numerator, denominator = self.step.numerator, self.step.denominator
        return ((place + 1) * denominator - 1 - phase) // numerator + 1


def frames_within(step: int, win_length: int, hop: int) -> int:
    """Count the frames that fit into a row of ``step`` samples.

    If a row is shorter than a window, none fit: then count the frames that start in it.
    """
    if win_length <= step:
        return (step - win_length) // hop + 1
    return frames_starting_in(step, hop)


def frames_starting_in(step: int, hop: int) -> int:
    """Count the frames that start in a row of ``step`` samples."""
    return max(1, -(-step // hop))


def hop_that_covers(step: int, win_length: int, hop: int) -> int:
    """Return the longest hop, at most the given one, with which frames cover all samples of a row.

    The last frame within the row then ends with it; 0 if a row is shorter than a window.
    """
    rest = step - win_length
    if rest <= 0:
        return hop if rest == 0 else 0
    return next(h for h in range(min(hop, rest, win_length), 0, -1) if rest % h == 0)
