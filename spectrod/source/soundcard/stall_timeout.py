"""Adaptive timeout for silence in a stream."""

from collections import deque

_STALLS = 3
_WITHIN_S = 30.0
_MARGIN = 1.5
_LONGEST_S = 5.0


class StallTimeout:
    """A timeout that grows for streams that deliver in bursts: they pause regularly, without loss.

    Attributes
    ----------
    s : float
        Silence after which the stream counts as stalled [s].

    Parameters
    ----------
    first_s : float
        Initial value of ``s`` [s].
    """

    def __init__(self, first_s: float) -> None:
        self.s = first_s
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_STALLS)

    def record_stall(self, stall_s: float, now_s: float) -> bool:
        """Record a stall that ended by itself; the third within 30 s increases ``s``.

        Parameters
        ----------
        stall_s : float
            Duration of the stall [s].
        now_s : float
            Monotonic clock at the end of the stall [s].

        Returns
        -------
        has_grown : bool
        """
        self._stalls.append((now_s, stall_s))
        if len(self._stalls) < _STALLS or now_s - self._stalls[0][0] > _WITHIN_S:
            return False
        needed = min(_LONGEST_S, _MARGIN * max(length for _, length in self._stalls))
        self._stalls.clear()
        has_grown = needed > self.s
        self.s = max(self.s, needed)
        return has_grown

    def forget(self) -> None:
        """Drop all recorded stalls, because samples were lost."""
        self._stalls.clear()
