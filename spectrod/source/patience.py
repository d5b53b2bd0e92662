"""How long a stream may be silent before something is wrong with it."""

from collections import deque

_STALLS = 3
_WITHIN_S = 30.0
_MARGIN = 1.5
_LONGEST_S = 5.0


class Patience:
    """Grows for streams that deliver in bursts: they pause regularly and lose nothing.

    Attributes
    ----------
    s : float
        Silence after which no samples are said to come [s].

    Parameters
    ----------
    first_s : float
        ``s`` at first [s].
    """

    def __init__(self, first_s: float) -> None:
        self.s = first_s
        self._stalls: deque[tuple[float, float]] = deque(maxlen=_STALLS)

    def bear(self, stall_s: float, now_s: float) -> bool:
        """Take note of a stall that ended by itself; at the third within 30 s ``s`` grows.

        Parameters
        ----------
        stall_s : float
            How long it was [s].
        now_s : float
            Monotonic clock at its end [s].

        Returns
        -------
        has_grown : bool
        """
        self._stalls.append((now_s, stall_s))
        if len(self._stalls) < _STALLS or now_s - self._stalls[0][0] > _WITHIN_S:
            return False
        wanted = min(_LONGEST_S, _MARGIN * max(length for _, length in self._stalls))
        self._stalls.clear()
        has_grown = wanted > self.s
        self.s = max(self.s, wanted)
        return has_grown

    def forget(self) -> None:
        """Let no stall count that was seen until now: samples were lost."""
        self._stalls.clear()
