"""How long a live source has been absent."""

import time

from spectrod.source.open_source import Source

STILL_ABSENT = "the duration is over, and the source has not come back"


class Absence:
    """Measures how many samples an absent live source has missed.

    Parameters
    ----------
    source : Source
        Started.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._written, self._since_s = -1, 0.0

    def reaches(self, written: int, n_samples: int) -> bool:
        """Return True if the source is absent, and would return after the first n_samples.

        Parameters
        ----------
        written : int
            Samples per channel that it has delivered.
        n_samples : int
            Samples per channel of the duration.
        """
        now_s = time.monotonic()
        if written != self._written:
            self._written, self._since_s = written, now_s
        if not (self._source.is_live and self._source.capture().waiting_for):
            return False
        return written + (now_s - self._since_s) * self._source.fs >= n_samples
