import contextlib
import os
import re
import socket

import pytest

from spectrod.daemon.service import Notifier
from spectrod.lib.errors import ConfigError


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """The manager's end, and the value of NOTIFY_SOCKET."""
    name = str(tmp_path / "notify")
    if request.param == "abstract":
        name = f"@spectrod-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(name.replace("@", "\0") if name[0] == "@" else name)
        receiver.settimeout(5.0)
        yield receiver, name


def test_each_call_is_one_datagram(manager):
    """Each method sends one datagram with its sd_notify text, in order."""
    receiver, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    for call in (notifier.ready, notifier.watchdog, notifier.stopping):
        call()
    assert [receiver.recv(4096) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_reloading_carries_the_monotonic_time(manager):
    """RELOADING=1 carries the monotonic timestamp that notify-reload services require."""
    receiver, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.reloading()
    assert re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=[1-9]\d+", receiver.recv(4096))


def test_status_is_one_line(manager):
    """A status cannot contain another assignment or bytes that are not UTF-8."""
    receiver, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.status("mic\nREADY=1 caf\udce9")
    assert receiver.recv(4096) == rb"STATUS=mic\nREADY=1 caf\xe9"


def test_without_a_manager_nothing_happens():
    """Without NOTIFY_SOCKET every call does nothing."""
    notifier = Notifier({})
    notifier.ready()
    notifier.status("running")
    assert notifier.watchdog_s is None


def test_a_dead_manager_is_logged_once(tmp_path, caplog):
    """Two datagrams to a missing socket give one warning and no error."""
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    notifier.ready()
    notifier.watchdog()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cannot notify the service manager" in caplog.text


@pytest.mark.slow
def test_a_manager_that_does_not_read_cannot_block(manager, caplog):
    """If the manager's queue is full, a call gives up and logs it."""
    receiver, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
        filler.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            while True:
                filler.sendto(b"", receiver.getsockname())
    notifier.stopping()
    assert "cannot notify the service manager: timed out" in caplog.text


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
    ],
)
def test_the_watchdog_is_for_the_process_it_names(environ, watchdog_s):
    """A WATCHDOG_PID of another process, such as a parent, disables the watchdog."""
    assert Notifier(environ).watchdog_s == watchdog_s


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"NOTIFY_SOCKET": "run/notify"}, "NOTIFY_SOCKET='run/notify': must be an absolute path"),
        ({"WATCHDOG_USEC": "0"}, "WATCHDOG_USEC='0': must be a positive whole number"),
        ({"WATCHDOG_USEC": "1e6"}, "WATCHDOG_USEC='1e6': must be a positive whole number"),
    ],
)
def test_a_malformed_variable_is_refused(environ, message):
    """A malformed variable is refused with its value and the rule."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        Notifier(environ)
