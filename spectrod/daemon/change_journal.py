"""Audit of changes: a log line and an event for each change."""

import logging

from spectrod.lib.events import EventLog
from spectrod.lib.text import printable

_log = logging.getLogger(__name__)

_TEXT_MAX_CHARS = 500


class Journal:
    """Records changes; any thread.

    Parameters
    ----------
    events : EventLog
        Event log of the daemon.
    """

    def __init__(self, events: EventLog) -> None:
        self.events = events

    def note(
        self, kind: str, text: str, *, source: str = "", who: str = "", log: bool = True
    ) -> None:
        """Record a change.

        Parameters
        ----------
        kind : str
            Kind of the event; see ``Event.kind``.
        text : str
            Readable description, with the old and the new value if there are any.
        source : str
            Name of the source concerned; empty for the daemon.
        who : str
            Peer that requested the change; empty if none did.
        log : bool
            False if the caller logs the change.
        """
        text = printable(text, _TEXT_MAX_CHARS)
        self.events.add(kind, text, source=source, who=who)
        if not log:
            return
        of_source = f"{source}: " if source else ""
        by = f" (by {who})" if who else ""
        about = {"event": kind} | ({"source": source} if source else {})
        _log.info("%s", f"{kind}: {of_source}{text}{by}", extra={"about": about})
