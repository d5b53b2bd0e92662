"""Time of every sample: a piecewise linear function that never decreases."""

from collections import deque
from typing import NamedTuple

_SLEW_NS = 2e9
_SLEW_MAX = 0.5
_PIECES = 64


class Line(NamedTuple):
    """Monotonic time of samples: ``t_ns`` at ``sample``, then ``period_ns`` per sample."""

    sample: int
    t_ns: int
    period_ns: float

    def at(self, index: int) -> int:
        """Time of a sample [ns]."""
        return self.t_ns + round((index - self.sample) * self.period_ns)

    def delay_ns(self, index: int, t_ns: int) -> float:
        """Delay of an arrival behind the line [ns]."""
        return (t_ns - self.t_ns) - (index - self.sample) * self.period_ns


class Timeline:
    """Converts sample index to monotonic time and back, without steps when the clock is corrected.

    The timeline approaches a new line over 2 s, changing the pace by at most half: time stays
    monotonic, and the times of earlier samples stay fixed. It keeps the last ``_PIECES`` pieces;
    the oldest of them extends to all earlier samples.
    """

    def __init__(self, line: Line) -> None:
        self._pieces = deque([line], maxlen=_PIECES)

    def mono_ns(self, index: int) -> int:
        """Time of a sample [ns]; increases with the index."""
        for piece in reversed(self._pieces):
            if piece.sample <= index:
                return piece.at(index)
        return self._pieces[0].at(index)

    def index_at(self, t_ns: int) -> int:
        """Index of the sample nearest to a time."""
        for piece in reversed(self._pieces):
            if piece.t_ns <= t_ns:
                break
        else:
            piece = self._pieces[0]
        return piece.sample + round((t_ns - piece.t_ns) / piece.period_ns)

    def follow(self, line: Line, index: int) -> None:
        """Approach a line from a sample on; earlier times stay unchanged."""
        t_ns = self.mono_ns(index)
        while self._pieces and self._pieces[-1].sample >= index:
            self._pieces.pop()
        pace = (line.at(index) - t_ns) / _SLEW_NS
        slewing = Line(index, t_ns, line.period_ns * (1 + max(-_SLEW_MAX, min(_SLEW_MAX, pace))))
        end = index + max(1, round(_SLEW_NS / line.period_ns))
        self._pieces.append(slewing)
        self._pieces.append(Line(end, slewing.at(end), line.period_ns))
