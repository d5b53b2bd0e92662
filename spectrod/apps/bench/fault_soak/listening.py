"""A subscriber that checks every row of the main products."""

import threading
import time

from spectrod.apps.bench.accounting import Audit, Listened
from spectrod.client import subscribe
from spectrod.lib.errors import SpectrodError
from spectrod.wire.schema import BandFrame, Frame

_WAIT_S = 0.2
_MAIN = "/dbfs/"
_UNCHECKED = "scratch"


class Listener(threading.Thread):
    """Subscribes to all spectra, and audits the main products of all sources but ``scratch``.

    Parameters
    ----------
    endpoint : str
        Where the daemon publishes.

    Attributes
    ----------
    errors : list of str
        What the client raised.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__(name="listener", daemon=True)
        self._endpoint = endpoint
        self._over = threading.Event()
        self._audit = Audit()
        self._last_s: dict[str, float] = {}

    @property
    def found(self) -> Listened:
        """What it has counted so far."""
        return self._audit.phase

    def last_s(self, source: str) -> float:
        """Return when the last row of a source came, by the monotonic clock [s]."""
        return self._last_s.get(source, 0.0)

    def run(self) -> None:
        """See the class."""
        with subscribe(self._endpoint, "spec/") as frames:
            while not self._over.is_set():
                try:
                    frame = frames.receive(_WAIT_S)
                except SpectrodError as error:  # the next call goes on
                    self.found.errors.append(str(error))
                    continue
                if isinstance(frame, Frame | BandFrame) and frame.topic.endswith(_MAIN):
                    self._take(frame)

    def _take(self, frame: Frame | BandFrame) -> None:
        source = frame.topic.split("/")[1]
        self._last_s[source] = time.monotonic()
        if source != _UNCHECKED:
            self._audit.take(frame)

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self.join()
