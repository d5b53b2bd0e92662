"""Changes that peers ask for: in the log and in the event log."""

import logging

import pytest

from spectrod.daemon.change_journal import Journal
from spectrod.lib.events import EventLog


@pytest.mark.parametrize("source", ["", "mic"])
def test_a_change_is_logged_with_its_kind_and_source(caplog, source):
    """The line and the event have the same text, and the record names the kind and the source."""
    events = EventLog()
    with caplog.at_level(logging.INFO):
        Journal(events).note("control.pause", "was running", source=source, who="bob")
    (record,), (event,) = caplog.records, events.since()
    of_source = "mic: " if source else ""
    assert record.getMessage() == f"control.pause: {of_source}was running (by bob)"
    assert record.about == {"event": "control.pause"} | ({"source": "mic"} if source else {})
    assert (event.kind, event.text, event.source, event.who) == (
        "control.pause",
        "was running",
        source,
        "bob",
    )
