"""Rate-limited events and log lines of a recorder."""

import logging
import threading
from dataclasses import dataclass

from spectrod.events import EventLog
from spectrod.recording.clock import Clock

_log = logging.getLogger(__name__)

_PERIOD_S = 10.0


@dataclass(slots=True)
class _Reported:
    """The last report of one kind."""

    due_s: float
    untold: int = 0


class Reporter:
    """Reports what happens to a recording: an event and a log line each.

    ``tell`` reports each kind at most once in 10 s; it counts the others and adds their number to
    the next report. ``warn`` always reports; its callers limit the rate themselves. Any thread.

    Parameters
    ----------
    recording, source : str
        Names of the recording and the source.
    events : EventLog
        The daemon's events.
    clock : Clock
        Clock of the 10 s.
    """

    def __init__(self, recording: str, source: str, events: EventLog, clock: Clock) -> None:
        self._recording, self._source = recording, source
        self._events, self._clock = events, clock
        self._told: dict[str, _Reported] = {}
        self._lock = threading.Lock()

    def tell(self, kind: str, text: str) -> None:
        """Report a normal event, rate-limited."""
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
        """Report a fault."""
        self._note(kind, text, logging.WARNING)

    def _note(self, kind: str, text: str, level: int) -> None:
        self._events.add(kind, f"{self._recording}: {text}", source=self._source)
        _log.log(level, "%s: recording %s: %s", self._source, self._recording, text)
