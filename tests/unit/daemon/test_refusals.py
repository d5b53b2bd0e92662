"""Refused connections: each is counted, and few are reported."""

import logging

import pytest

from spectrod.daemon.access.refusals import PERIOD_S, Refusals
from spectrod.lib.events import EventLog


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def events():
    return EventLog()


@pytest.fixture
def refusals(clock, events):
    return Refusals(events, lambda: clock[0])


def texts(events):
    return [(event.kind, event.text) for event in events.since()]


def test_the_first_is_reported_at_once_with_its_peer(refusals, events, caplog):
    """The first refusal gives a warning in the log and an event with its peer at once."""
    with caplog.at_level(logging.WARNING):
        refusals.add("unknown_key", "abc from 10.0.0.7")
    assert texts(events) == [
        ("security.unknown_key", "refused a connection with an unknown key: abc from 10.0.0.7")
    ]
    assert [record.getMessage() for record in caplog.records] == [events.since()[0].text]
    assert [record.about for record in caplog.records] == [{"event": "security.unknown_key"}]


def test_a_flood_is_reported_once_a_minute(refusals, clock, events):
    """A thousand refusals in a minute are all counted and give two lines."""
    for _ in range(1000):
        refusals.add("no_key")
        clock[0] += PERIOD_S / 1000.5
    assert len(texts(events)) == 1
    assert refusals.due_s == pytest.approx(1000.0 + PERIOD_S)
    refusals.report()
    assert len(texts(events)) == 1
    clock[0] = refusals.due_s
    refusals.report()
    assert texts(events)[1][1].startswith("refused 999 connections in a minute without a key")
    assert refusals.due_s is None
    assert refusals.counts["no_key"] == 1000


def test_kinds_are_reported_separately(refusals, events):
    """Each kind of refusal has its own count and its own minute."""
    for kind in ("no_key", "wrong_server_key", "unknown_key", "revoked_key", "flood", "other"):
        refusals.add(kind)
    assert len(texts(events)) == 6
    assert refusals.counts == dict.fromkeys(refusals.counts, 1)


def test_nothing_more_after_a_minute_of_peace(refusals, clock, events):
    """After a quiet minute the next refusal counts as a first one."""
    refusals.add("other", "x")
    clock[0] += PERIOD_S + 1.0
    refusals.report()
    assert len(texts(events)) == 1
    refusals.add("other", "y")
    assert texts(events)[1][1].endswith(": y")


def test_one_that_comes_when_the_rest_is_due_is_reported_with_it(refusals, clock, events):
    """A refusal that comes when a report is due is part of that report."""
    refusals.add("other")
    refusals.add("other")
    clock[0] += PERIOD_S
    refusals.add("other")
    assert "refused 2 connections in a minute" in texts(events)[1][1]
    assert refusals.counts["other"] == 3
