"""Rate-limited events and log lines of a recorder."""

import logging
import threading
from dataclasses import dataclass

from spectrod.lib.events import EventLog
from spectrod.recording.recorder_clock import Clock

_log = logging.getLogger(__name__)

_PERIOD_S = 10.0


@dataclass(slots=True)
class _Reported:
    """The last report of one kind."""

    due_s: float
    n_suppressed: int = 0


class Reporter:
    """Reports what happens to a recording: an event and a log line each.

    ``report`` reports each kind at most once in 10 s; it counts the others and adds their number to
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
        self._reported: dict[str, _Reported] = {}
        self._lock = threading.Lock()

    def report(self, kind: str, text: str) -> None:
        """Report a normal event, rate-limited."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            reported = self._reported.setdefault(kind, _Reported(now_s))
            if now_s < reported.due_s:
                reported.n_suppressed += 1
                return
            self._reported[kind] = _Reported(now_s + _PERIOD_S)
        if reported.n_suppressed:
            text = f"{text}; {reported.n_suppressed} more like this since the last such line"
        self._note(kind, text, logging.INFO)

    def warn(self, kind: str, text: str) -> None:
        """Report a fault."""
        self._note(kind, text, logging.WARNING)

    def _note(self, kind: str, text: str, level: int) -> None:
        self._events.add(kind, f"{self._recording}: {text}", source=self._source)
        about = {"source": self._source, "recording": self._recording, "event": kind}
        text = f"{self._source}: recording {self._recording}: {text}"
        _log.log(level, "%s", text, extra={"about": about})
