"""Problems that a peer may cause without end: one line of the log at once, then one a minute."""

import logging

PERIOD_S = 60.0
"""Shortest time between two lines [s]."""


class Complaints:
    """Logs problems: the first of successive ones, and no more than one a minute.

    Parameters
    ----------
    log : Logger
        Takes the warnings.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._is_complaining = False
        self._next_s: float | None = None
        self._n_left_out = 0

    def report(self, text: str, now_s: float) -> None:
        """Report a problem at a time of the caller's clock [s]."""
        if self._is_complaining:
            return
        self._is_complaining = True
        if self._next_s is not None and now_s < self._next_s:
            self._n_left_out += 1
            return
        more = f" (and {self._n_left_out} more since the last line)" if self._n_left_out else ""
        self._log.warning("%s%s", text, more)
        self._n_left_out = 0
        self._next_s = now_s + PERIOD_S

    def end(self) -> None:
        """Note that there is no problem now: the next one is a new one."""
        self._is_complaining = False
