"""What a recorder says of itself: events and log lines, so many a minute."""

import logging
import threading
from dataclasses import dataclass

from spectrod.events import EventLog
from spectrod.recording.clock import Clock

_log = logging.getLogger(__name__)

_PERIOD_S = 10.0


@dataclass(slots=True)
class _Reported:
    """What of one kind was told last."""

    due_s: float
    untold: int = 0


class Reporter:
    """Notes what happens to a recording: an event and a line in the log for each.

    Of each kind one in 10 s, the rest counted and told with the next; trouble is always told, and
    those who tell of it wait between two. Any thread.

    Parameters
    ----------
    recording, source : str
        Their names.
    events : EventLog
        The daemon's.
    clock : Clock
        For the 10 s.
    """

    def __init__(self, recording: str, source: str, events: EventLog, clock: Clock) -> None:
        self._recording, self._source = recording, source
        self._events, self._clock = events, clock
        self._told: dict[str, _Reported] = {}
        self._lock = threading.Lock()

    def tell(self, kind: str, text: str) -> None:
        """Note what is as it should be."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            told = self._told.setdefault(kind, _Reported(now_s))
            if now_s < told.due_s:
                told.untold += 1
                return
            self._told[kind] = _Reported(now_s + _PERIOD_S)
        if told.untold:
            text = f"{text}; {told.untold} more like this since the last such line"
        self._note(kind, text, logging.INFO)

    def warn(self, kind: str, text: str) -> None:
        """Note trouble."""
        self._note(kind, text, logging.WARNING)

    def _note(self, kind: str, text: str, level: int) -> None:
        self._events.add(kind, f"{self._recording}: {text}", source=self._source)
        _log.log(level, "%s: recording %s: %s", self._source, self._recording, text)
