"""Counting connections, and closing endpoints to new connections at the bound."""

import math
import threading

import pytest

from spectrod.daemon.access.connections import RATE_MAX_PER_S, Connections, bounds
from spectrod.daemon.access.tcp_links import Link
from spectrod.lib.events import EventLog

TIMEOUT_S = 30.0
TCP, IPC = "tcp://127.0.0.1:5556", "ipc:///run/c.ipc"


class Door:
    """An endpoint that records the calls, and may fail."""

    def __init__(self):
        self.is_open, self.error = True, None

    def refuse_connections(self):
        self._set(is_open=False)

    def accept_connections(self):
        self._set(is_open=True)

    def _set(self, *, is_open):
        if self.error is not None:
            raise self.error
        self.is_open = is_open


class Stage:
    """Connections with a clock of their own, and two endpoints of each transport."""

    def __init__(self, max_connections=100, descriptors=10_000):
        self.now_s = 1000.0
        self.events = EventLog()
        self.connections = Connections(
            max_connections, descriptors, self.events, lambda: self.now_s
        )
        self.doors = {"tcp": (Door(), Door()), "ipc": (Door(), Door())}
        for transport, doors in self.doors.items():
            for door in doors:
                self.connections.add(transport, door)

    def accept(self, *fds, endpoint=TCP, monitor="m"):
        for fd in fds:
            self.connections.accepted(monitor, endpoint, fd)

    def end(self, *fds, monitor="m"):
        for fd in fds:
            self.connections.ended(monitor, fd)

    def after(self, seconds):
        self.now_s += seconds
        self.connections.regulate()
        return self

    def count(self, transport="tcp"):
        return self.connections.status()[transport]["count"]

    def is_open(self, transport="tcp"):
        first, second = (door.is_open for door in self.doors[transport])
        assert first is second is not self.connections.status()[transport]["is_closed"]
        return first

    def reported(self):
        return [(event.kind, event.text) for event in self.events.since()]


@pytest.fixture
def stage():
    return Stage()


@pytest.mark.parametrize(
    ("max_connections", "descriptors", "tcp", "ipc"),
    [
        (4096, 65536, 4096, 1024),
        (4096, 1024, 384, 128),
        (4096, 256, 96, 32),
        (50_000, 65536, 24576, 8192),
        (1, 65536, 1, 1),
        (4096, 3, 1, 1),
    ],
)
def test_connections_have_half_of_the_descriptors_at_most(max_connections, descriptors, tcp, ipc):
    """The rest stays for recordings, control and reload; there is always one connection."""
    assert bounds(max_connections, descriptors) == {"tcp": tcp, "ipc": ipc}


def test_at_the_bound_a_transport_is_closed_until_an_eighth_has_gone(stage):
    """All its endpoints, and none of the other transport's."""
    stage.accept(*range(10, 109))
    assert stage.after(0.0).is_open()
    stage.accept(109)
    assert not stage.after(0.0).is_open()
    assert stage.is_open("ipc")
    stage.end(*range(10, 22))
    assert not stage.after(1.0).is_open()
    stage.end(22)
    assert stage.after(0.0).is_open()
    assert stage.connections.status()["tcp"] == {
        "count": 87,
        "max": 100,
        "is_closed": False,
        "closings": 1,
    }


def test_ipc_has_a_bound_of_its_own(stage):
    """A full transport does not close the other."""
    stage.accept(*range(10, 35), endpoint=IPC)
    assert not stage.after(0.0).is_open("ipc")
    assert stage.is_open("tcp")


def test_too_many_new_ones_a_second_close_as_well(stage):
    """As many as the bound at once, then a bounded rate, however soon they go again."""
    for fd in range(10, 110):
        stage.accept(fd)
        stage.end(fd)
    assert not stage.after(0.0).is_open()
    assert stage.reported()[0][1].endswith(
        "closed to new connections: more than 500 new connections a second"
    )
    assert not stage.after(0.05).is_open()
    assert stage.after(0.06).is_open()
    n_taken = 0
    for _ in range(1000):
        if stage.after(0.01).is_open():
            for fd in range(10, 20):
                stage.accept(fd)
                stage.end(fd)
            n_taken += 10
    assert 0.8 * 10 * RATE_MAX_PER_S < n_taken < 1.2 * 10 * RATE_MAX_PER_S


def test_descriptors_that_run_short_close_everything(stage):
    """A high descriptor means that all lower ones are in use."""
    stage.accept(8749)
    assert stage.after(0.0).is_open()
    stage.accept(8750)
    stage.after(0.0)
    assert not stage.is_open("tcp")
    assert not stage.is_open("ipc")
    assert stage.reported()[0] == (
        "listen.closed",
        "tcp: closed to new connections: descriptors run short",
    )
    stage.after(1.0)
    assert stage.is_open("tcp")
    assert stage.is_open("ipc")


def test_a_descriptor_counts_once(stage):
    """A reused descriptor was closed; another socket's monitor may report its end late."""
    stage.accept(10, monitor="a")
    stage.accept(10, monitor="b")
    stage.end(10, monitor="a")
    assert stage.count() == 1
    stage.end(10, monitor="b")
    stage.end(10, 11, monitor="b")
    assert stage.count() == 0


def test_connections_of_an_unbound_endpoint_are_forgotten(stage):
    """ZeroMQ ends these without a word: those of one socket, at one port or path."""
    stage.accept(10, 11)
    stage.accept(12, endpoint="tcp://127.0.0.1:5557")
    stage.accept(13, monitor="other")
    stage.accept(14, endpoint=IPC)
    stage.connections.unbound("m", "tcp://0.0.0.0:5556")
    assert (stage.count("tcp"), stage.count("ipc")) == (2, 1)
    stage.connections.unbound("m", IPC)
    assert (stage.count("tcp"), stage.count("ipc")) == (2, 0)


def test_an_attack_is_two_events_however_often_it_closes(stage):
    """At the start, and when the endpoints have been open for 10 s."""
    for _ in range(20):
        stage.accept(*range(10, 110))
        stage.after(0.2)
        stage.end(*range(10, 110))
        stage.after(1.0)
    assert stage.connections.status()["tcp"]["closings"] == 20
    stage.after(9.9)
    assert len(stage.reported()) == 1
    stage.after(0.2)
    assert stage.reported() == [
        (
            "listen.closed",
            "tcp: closed to new connections: 100 connections, at most 100 are allowed",
        ),
        ("listen.open", "tcp: open to new connections; closed 20 times so far"),
    ]


def test_a_failed_closing_is_retried_and_reported_once(stage):
    """The system may not do it: nothing ends for that."""
    for door in stage.doors["tcp"]:
        door.error = PermissionError(1, "Operation not permitted")
    stage.accept(*range(10, 110))
    for _ in range(5):
        stage.after(0.5)
    assert [kind for kind, _ in stage.reported()] == ["listen.failed"]
    assert (
        "tcp: cannot be closed to new connections: [Errno 1] Operation not"
        in stage.reported()[0][1]
    )
    assert stage.connections.due_s <= stage.now_s + 1.0
    for door in stage.doors["tcp"]:
        door.error = None
    assert not stage.after(1.1).is_open()


def test_the_due_time_follows_the_state(stage):
    """Never while nothing happens, soon while something is closed, and once to say it is open."""
    assert stage.connections.due_s == math.inf
    stage.accept(*range(10, 110))
    stage.after(0.0)
    assert stage.connections.due_s == pytest.approx(stage.now_s + 0.1)
    stage.end(*range(10, 110))
    stage.after(1.0)
    assert stage.connections.due_s == pytest.approx(stage.now_s + 10.0)
    stage.after(10.0)
    assert stage.connections.due_s == math.inf


def test_a_descriptor_stands_for_the_connection_that_was_admitted_with_it():
    """Not for the next one with its number, nor the one before; unknown ones stand for none."""
    inodes = {5: 50}
    connections = Connections(100, 10_000, inode_of=inodes.get)
    assert connections.link_of(5, connections.admit()) is None
    connections.accepted("m", TCP, 5)
    first = connections.admit()
    assert connections.link_of(5, first) == Link(5, 50)
    inodes[5] = 51  # another has it, and that was not reported yet
    assert connections.link_of(5, first) is None
    connections.ended("m", 5)
    assert connections.link_of(5, first) is None
    connections.accepted("m", TCP, 5)
    assert connections.link_of(5, first) is None
    second = connections.admit()
    assert connections.link_of(5, second) == Link(5, 51)
    del inodes[5]
    assert connections.link_of(5, second) is None


def test_those_who_watch_connections_are_told_of_each_new_one():
    """After it is counted."""
    connections, counts = Connections(100, 10_000, inode_of={5: 50, 6: 60}.get), []
    connections.tell(lambda: counts.append(connections.count_of(TCP)))
    connections.accepted("m", TCP, 5)
    connections.accepted("m", TCP, 6)
    connections.ended("m", 5)
    assert counts == [1, 2]


def test_a_report_that_comes_after_the_first_message_is_awaited():
    """A connection whose message is read before libzmq reports it is found all the same."""
    asked = threading.Event()

    def inode_of(fd):
        asked.set()
        return {5: 50}.get(fd)

    connections = Connections(100, 10_000, inode_of=inode_of)
    admitted = connections.admit()

    def report():
        assert asked.wait(TIMEOUT_S)
        connections.accepted("m", TCP, 5)

    reporter = threading.Thread(target=report)
    reporter.start()
    assert connections.link_of(5, admitted) == Link(5, 50)
    reporter.join()


def test_descriptors_that_are_never_reported_cost_little_time(monkeypatch):
    """After one that was not reported, none is awaited for a second, whatever peers do."""
    now_s = [1000.0]
    connections = Connections(100, 10_000, now_s=lambda: now_s[0], inode_of=lambda fd: fd + 1)
    limits_s = []

    def wait_for(is_found, limit_s):
        limits_s.append(limit_s)
        return is_found()

    monkeypatch.setattr(connections._is_reported, "wait_for", wait_for)
    for fd in range(1500):
        assert connections.link_of(fd, connections.admit()) is None
        now_s[0] += 0.001
    assert limits_s == [0.1, 0.1]


def test_a_connection_may_be_admitted_before_it_is_reported():
    """Two threads of libzmq do it; the end that was not reported is that of the one before."""
    connections = Connections(100, 10_000, inode_of={5: 50}.get)
    early = connections.admit()
    connections.accepted("m", TCP, 5)
    assert connections.link_of(5, early) == Link(5, 50)
    connections.accepted("m", TCP, 5)
    assert connections.link_of(5, early) is None
    assert connections.link_of(5, connections.admit()) == Link(5, 50)
