"""The start of the daemon as the service manager sees it."""

import signal
import socket
import threading

import pytest

from spectrod.daemon.service import Notifier, caught_signals, watched_start
from spectrod.daemon.service.starting import _StartWatch

WAIT_S = 30.0


class Manager(Notifier):
    """Collects what the service manager would receive."""

    def __init__(self):
        super().__init__({})
        self.received = []

    def _send(self, message):
        self.received.append(message)


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def start():
    """Return the parts of a watched start, without its thread."""
    with caught_signals() as signals:
        manager, clock, ends = Manager(), Clock(), []
        watch = _StartWatch(manager, signals, ends.append, clock)

        def run(seconds):
            end_s = clock.now_s + seconds
            while clock.now_s < end_s:
                clock.now_s += 0.25
                watch.look()

        yield run, manager, ends, signals


def test_a_short_start_says_nothing(start, caplog):
    """A start of less than 5 s needs no more time."""
    caplog.set_level("INFO")
    run, manager, _, _ = start
    run(4.5)
    assert manager.received == []
    assert caplog.messages == []


def test_a_long_start_asks_for_time_every_five_seconds(start, caplog):
    """Each request asks for 30 s from then on, with a status; the journal has one line."""
    caplog.set_level("INFO")
    run, manager, _, _ = start
    run(12.0)
    assert manager.received == [
        "EXTEND_TIMEOUT_USEC=30000000",
        "STATUS=starting for 5 s: opening sources and compiling kernels",
        "EXTEND_TIMEOUT_USEC=30000000",
        "STATUS=starting for 10 s: opening sources and compiling kernels",
    ]
    (line,) = caplog.messages
    assert line == "the start takes longer than 5 s: opening sources and compiling kernels"


def test_a_start_that_hangs_gets_ten_minutes(start):
    """After 10 min no more time is requested, so that the manager ends the start."""
    run, manager, _, _ = start
    run(605.0)
    n_before = len(manager.received)
    assert manager.received[-1].startswith("STATUS=starting for 600 s")
    run(100.0)
    assert len(manager.received) == n_before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_a_start_that_does_not_end(start, number, code):
    """0.25 s after SIGTERM or SIGINT the process ends, and the signal stays unread."""
    run, manager, ends, signals = start
    signal.raise_signal(number)
    run(0.25)
    assert ends == []
    run(0.25)
    assert ends == [code]
    assert manager.received == ["STOPPING=1"]
    assert signals.exit_code() == code


def test_a_reload_does_not_end_the_start(start):
    """SIGHUP waits until the daemon has started."""
    run, _, ends, signals = start
    signal.raise_signal(signal.SIGHUP)
    run(10.0)
    assert ends == []
    assert signals.read() == [signal.SIGHUP]


def test_a_start_that_ends_leaves_the_signal_to_the_daemon():
    """The thread looks for signals during the start, and for none after it."""
    looked, ends = threading.Event(), []

    class Signals:
        def pending_exit_code(self):
            looked.set()
            return 0

    with watched_start(Manager(), Signals(), ends.append):
        assert looked.wait(WAIT_S)
    assert not [one for one in threading.enumerate() if one.name == "spectrod-start"]
    assert ends == []


def test_signals_that_are_looked_at_stay_unread():
    """``pending_exit_code`` finds the first signal that ends the daemon and removes none."""
    with caught_signals() as signals:
        assert signals.pending_exit_code() is None
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
        assert signals.pending_exit_code() == 130
        assert signals.pending_exit_code() == 130
        assert signals.read() == [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]


def test_more_time_is_one_datagram(tmp_path):
    """The request is in microseconds."""
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name)
        Notifier({"NOTIFY_SOCKET": name}).extend_timeout(30.0)
        assert receiver.recv(4096) == b"EXTEND_TIMEOUT_USEC=30000000"
