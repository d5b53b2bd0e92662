"""What a bridge reads back from its broker: each source once, in time or not at all."""

import pytest

from spectrod.apps.mqtt.discovery import Discovery
from spectrod.apps.mqtt.kept_devices import ANSWER_S, CONNECTIONS_MAX, KeptDevices
from spectrod.apps.mqtt.mqtt_topics import Topics

DISCOVERY = Discovery("ha", Topics("spectrod", "box"), 10.0, qos=1)
ROOF, POND = map(DISCOVERY.device_topic, ("roof", "pond"))


class SlowBroker:
    """A broker whose answers come when the test says so."""

    def __init__(self):
        self.calls, self.waiting = [], {}

    def ask(self, topic):
        self.calls.append(("ask", topic))

    def answers(self):
        answers, self.waiting = self.waiting, {}
        return answers

    def end_question(self, topic):
        self.calls.append(("end", topic))


@pytest.fixture
def broker():
    return SlowBroker()


@pytest.fixture
def kept(broker):
    return KeptDevices(broker, DISCOVERY)


def test_each_source_is_asked_once_and_has_its_answer(broker, kept):
    assert list(kept.read(["roof"], 0.0)) == []
    assert not kept.is_read("roof")
    assert list(kept.read(["roof", "pond"], 1.0)) == []
    broker.waiting = {ROOF: b"{}", "another": b""}
    assert list(kept.read(["roof", "pond"], 1.5)) == [("roof", b"{}")]
    assert (kept.is_read("roof"), kept.is_read("pond")) == (True, False)
    assert broker.calls == [("ask", ROOF), ("ask", POND), ("end", ROOF)]
    broker.waiting = {ROOF: b"late"}
    assert list(kept.read(["roof", "pond"], 2.0)) == []


def test_a_broker_that_has_none_says_nothing(broker, kept):
    """The time begins with the question."""
    assert list(kept.read(["roof"], 5.0)) == []
    assert list(kept.read(["roof"], 5.0 + ANSWER_S - 0.1)) == []
    assert list(kept.read(["roof"], 5.0 + ANSWER_S)) == [("roof", b"")]
    assert list(kept.read(["roof"], 100.0)) == []
    assert broker.calls == [("ask", ROOF), ("end", ROOF)]


def test_a_new_connection_is_asked_what_has_no_answer(broker, kept):
    list(kept.read(["roof", "pond"], 0.0))
    broker.waiting = {POND: b"{}"}
    list(kept.read(["roof", "pond"], 1.0))
    broker.calls.clear()
    kept.ask_again()
    assert list(kept.read(["roof", "pond"], ANSWER_S)) == []
    assert broker.calls == [("end", ROOF), ("ask", ROOF)]


def test_a_source_that_is_forgotten_is_new_when_it_comes_again(broker, kept):
    list(kept.read(["roof"], 0.0))
    broker.waiting = {ROOF: b"{}"}
    list(kept.read(["roof"], 0.0))
    kept.forget("roof")
    assert not kept.is_read("roof")
    list(kept.read(["roof"], 1.0))
    kept.forget("roof")
    assert list(kept.read([], 100.0)) == []
    assert [what for what, _ in broker.calls] == ["ask", "end", "ask", "end"]


def test_what_ends_each_connection_is_not_asked_for_again(broker, kept):
    """A message that is too long; the bridge then replaces it."""
    for _ in range(CONNECTIONS_MAX):
        assert list(kept.read(["roof"], 0.0)) == []
        kept.ask_again()
    assert list(kept.read(["roof"], 0.0)) == [("roof", b"")]
    assert [what for what, _ in broker.calls] == ["ask", "end"] * CONNECTIONS_MAX
    assert (kept._asked, kept._n_asked) == ({}, {})
