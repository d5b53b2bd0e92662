"""Who has changed what: a line in the log and an event, for each change."""

import logging

from spectrod.events import EventLog
from spectrod.text import printable

_log = logging.getLogger(__name__)

_TEXT_MAX_CHARS = 500


class Journal:
    """Notes changes; any thread.

    Parameters
    ----------
    events : EventLog
        The daemon's.
    """

    def __init__(self, events: EventLog) -> None:
        self.events = events

    def note(
        self, kind: str, text: str, *, source: str = "", who: str = "", log: bool = True
    ) -> None:
        """Note a change.

        Parameters
        ----------
        kind : str
            As ``Event.kind``.
        text : str
            What it is, for a person, with the old value and the new one where there are any.
        source : str
            Name of the source that it is about; empty if of the daemon.
        who : str
            Who asked for it; empty if nobody did.
        log : bool
            False if the caller logs it.
        """
        text = printable(text, _TEXT_MAX_CHARS)
        self.events.add(kind, text, source=source, who=who)
        if not log:
            return
        of_source = f"{source}: " if source else ""
        by = f" (by {who})" if who else ""
        _log.info("%s", f"{kind}: {of_source}{text}{by}")
