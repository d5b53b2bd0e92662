"""What listening at an endpoint refuses, and what it leaves as it is."""

import os
import socket
from contextlib import ExitStack

import pytest

from spectrod.errors import ConfigError, StorageError, UnavailableError
from spectrod.wire.bind import listen
from spectrod.wire.endpoint import parse_endpoint


@pytest.fixture
def cleanup():
    with ExitStack() as stack:
        yield stack


def test_localhost_that_is_another_address_is_refused(cleanup, monkeypatch):
    """A line of /etc/hosts must not open to the network what is meant for this machine alone."""
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, port, *_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.2", port))],
    )
    with pytest.raises(ConfigError, match=r"localhost is 192\.0\.2\.2 here, which other machines"):
        listen(parse_endpoint("tcp://localhost:0"), cleanup)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "127.0.0.1"),
        ("127.9.9.9", "127.9.9.9"),
        ("lo", "127.0.0.1"),
        ("*", "0.0.0.0"),  # noqa: S104 - that is what is tested
        ("[::1]", "::1"),
    ],
)
def test_where_a_host_listens(cleanup, host, address):
    """Names and interfaces are resolved; nothing blocks who accepts."""
    listening = listen(parse_endpoint(f"tcp://{host}:0"), cleanup)
    assert listening._sock.getsockname()[0] == address
    with pytest.raises(BlockingIOError):
        listening._sock.accept()


def test_a_host_that_nobody_knows_is_unavailable(cleanup):
    """Neither an interface nor a host: the error names it."""
    with pytest.raises(UnavailableError, match=r"tcp://nosuch\.invalid:0.*no interface or host"):
        listen(parse_endpoint("tcp://nosuch.invalid:0"), cleanup)


@pytest.mark.parametrize("kind", ["dangling link", "link", "fifo"])
def test_a_lock_file_that_others_have_placed_is_not_followed(cleanup, tmp_path, kind):
    """In a shared folder, no file is made or locked where a link points."""
    lock, target = tmp_path / "s.ipc.lock", tmp_path / "target"
    if kind == "fifo":
        os.mkfifo(lock)
    else:
        lock.symlink_to(target)
        if kind == "link":
            target.touch()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StorageError, match=r"s\.ipc\.lock: .*must be a regular file"):
        listen(parse_endpoint(f"ipc://{tmp_path}/s.ipc"), cleanup)
    assert sorted(tmp_path.iterdir()) == before
