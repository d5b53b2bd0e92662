"""Events of a running trigger: the log, and the log of events."""

from types import SimpleNamespace

import pytest

from spectrod.daemon import live_triggers
from spectrod.daemon.live_triggers import LiveTrigger, LiveTriggers
from spectrod.lib.events import EventLog
from spectrod.measure.triggers.trigger import TriggerEvent

S = 10**9


class Script:
    """A trigger whose every batch begins or ends an event in turn."""

    is_active = False
    config = SimpleNamespace(name="hum", kind="level")

    def __init__(self, _config=None, spec=None, *_rest):
        self.spec, self._state = spec or SimpleNamespace(product="dbfs"), "ended"
        self.n_left_out = 0

    def push(self, _batch):
        self._state = "begun" if self._state == "ended" else "ended"
        return [event(self._state)]

    def end(self, _reason):
        return []


def event(state):
    """Make an event with a state."""
    levels = {"level": -26.0, "threshold": -46.8, "floor": -61.8, "unit": "dBFS"}
    times = {"begin_utc_ns": 1, "end_utc_ns": 2, "peak_utc_ns": 1, "duration_s": 1e-9}
    where = {"f_min_hz": 0.0, "f_max_hz": 100.0, "frequency_hz": 50.0, "channel": "0"}
    names = {"name": "hum", "kind": "level", "product": "dbfs", "reason": "", "state": state}
    return TriggerEvent(**names, **where, **levels, **times)


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr(live_triggers.time, "monotonic", lambda: now.s)
    return now


def test_a_trigger_logs_one_event_in_ten_seconds(clock, tmp_path, caplog):
    """Each event is in the log of events; the log has one in 10 s, and counts the others."""
    caplog.set_level("INFO")
    events = EventLog(lambda: None)
    owner = LiveTriggers(events, tmp_path)
    owner.source_name = "mic"
    trigger = Script()
    live = LiveTrigger(trigger, ["0"], None, owner)
    batch = SimpleNamespace(spec=trigger.spec)
    for _ in range(101):  # 0 to 20 s
        live.write(batch)
        clock.s += 0.2
    assert len(list(events.since(0))) == 101
    begins, ends = caplog.records[::2], caplog.records[1::2]
    assert [record.getMessage().partition(";")[2] for record in begins] == [
        "",
        " 24 more since the last such line",
        " 24 more since the last such line",
    ]
    assert [record.about["event"] for record in ends] == ["trigger.ended"] * 2
    for record in begins:
        assert record.getMessage().startswith("mic: trigger hum: begun: ")
        assert record.about == {"source": "mic", "event": "trigger.begun"}


def test_the_log_has_an_end_for_each_begin(clock, tmp_path, caplog):
    """An end is logged if its begin was; what is left out is counted as events."""
    caplog.set_level("INFO")
    owner = LiveTriggers(EventLog(lambda: None), tmp_path)
    live = LiveTrigger(Script(), ["0"], None, owner)
    for state, step_s in [("begun", 1), ("ended", 1)] * 2 + [("begun", 9), ("ended", 1)] * 2:
        live._log(SimpleNamespace(name="hum", state=state, text="x", begin_utc_ns=0, end_utc_ns=S))
        clock.s += step_s
    states = [record.about["event"] for record in caplog.records]
    assert states == ["trigger.begun", "trigger.ended"] * 2
    begin, end = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z"
    more = "; 2 more since the last such line"
    assert [record.getMessage() for record in caplog.records[1:3]] == [
        f": trigger hum: ended: x, {begin} to {end}",
        f": trigger hum: begun: x, since {begin}{more}",
    ]


def test_the_status_counts_events_that_the_hold_off_left_out(clock, tmp_path):
    """The count goes on where the rows change, and with them the trigger."""
    trigger = Script()
    owner = LiveTriggers(EventLog(lambda: None), tmp_path)
    live = LiveTrigger(trigger, ["0"], None, owner)
    trigger.n_left_out = 3
    assert live.status()["left_out"] == 3
    live.write(SimpleNamespace(spec=SimpleNamespace(product="other")))
    assert live.status()["left_out"] == 3
