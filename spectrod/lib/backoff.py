"""Delays between retries."""

import random

_JITTER = 0.25


class Backoff:
    """Delays that double from one to the next, each changed by up to 25 % at random.

    The jitter keeps many clients that wait for one service from retrying at the same moment.

    Parameters
    ----------
    first_s, last_s : float
        The first and the longest delay, without jitter [s].
    """

    def __init__(self, first_s: float = 0.1, last_s: float = 2.0) -> None:
        self._first_s, self._last_s = first_s, last_s
        self._s = first_s

    def next_s(self) -> float:
        """Return the next delay [s]."""
        s, self._s = self._s, min(2 * self._s, self._last_s)
        return s * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Restart with the first delay."""
        self._s = self._first_s
