"""How long to wait before trying again."""

import random

_JITTER = 0.25


class Backoff:
    """Waiting times that double, each 25 % longer or shorter at random.

    The chance in them keeps many that wait for one thing from coming all at once.

    Parameters
    ----------
    first_s, last_s : float
        The first and the longest, before the chance in them [s].
    """

    def __init__(self, first_s: float = 0.1, last_s: float = 2.0) -> None:
        self._first_s, self._last_s = first_s, last_s
        self._s = first_s

    def next_s(self) -> float:
        """Return the next waiting time [s]."""
        s, self._s = self._s, min(2 * self._s, self._last_s)
        return s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Begin again with the first."""
        self._s = self._first_s
