"""The time of every sample: a line in pieces that never goes back."""

from collections import deque
from typing import NamedTuple

_SLEW_NS = 2e9
_SLEW_MAX = 0.5
_PIECES = 64


class Line(NamedTuple):
    """Monotonic time of samples, ``t_ns`` at ``sample`` and ``period_ns`` from one to the next."""

    sample: int
    t_ns: int
    period_ns: float

    def at(self, index: int) -> int:
        """Time of a sample [ns]."""
        return self.t_ns + round((index - self.sample) * self.period_ns)

    def delay_ns(self, index: int, t_ns: int) -> float:
        """How far an arrival lies behind the line [ns]."""
        return (t_ns - self.t_ns) - (index - self.sample) * self.period_ns


class Timeline:
    """Sample index to monotonic time and back, without steps however the clock is corrected.

    A new line is approached over 2 s, by changing the pace by half at most: time runs on, and is
    fixed for every sample that was there when the line came. The last ``_PIECES`` pieces are kept;
    what is older is reckoned by the oldest of them.
    """

    def __init__(self, line: Line) -> None:
        self._pieces = deque([line], maxlen=_PIECES)

    def mono_ns(self, index: int) -> int:
        """Time of a sample [ns]; rises with the index."""
        for piece in reversed(self._pieces):
            if piece.sample <= index:
                return piece.at(index)
        return self._pieces[0].at(index)

    def index_at(self, t_ns: int) -> int:
        """Index of the sample that is nearest to a time."""
        for piece in reversed(self._pieces):
            if piece.t_ns <= t_ns:
                break
        else:
            piece = self._pieces[0]
        return piece.sample + round((t_ns - piece.t_ns) / piece.period_ns)

    def follow(self, line: Line, index: int) -> None:
        """Approach a line from a sample on; what comes before stays as it is."""
        t_ns = self.mono_ns(index)
        while self._pieces and self._pieces[-1].sample >= index:
            self._pieces.pop()
        pace = (line.at(index) - t_ns) / _SLEW_NS
        slewing = Line(index, t_ns, line.period_ns * (1 + max(-_SLEW_MAX, min(_SLEW_MAX, pace))))
        end = index + max(1, round(_SLEW_NS / line.period_ns))
        self._pieces.append(slewing)
        self._pieces.append(Line(end, slewing.at(end), line.period_ns))
