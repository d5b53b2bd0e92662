"""Listening at an endpoint: refused addresses, and files that stay untouched."""

import os
import socket
from contextlib import ExitStack

import pytest
import zmq

from spectrod.daemon.access.bind import listen
from spectrod.lib.errors import ConfigError, StorageError, UnavailableError
from spectrod.wire.endpoint import parse_endpoint

TIMEOUT_MS = 10_000
SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"


@pytest.fixture
def cleanup():
    with ExitStack() as stack:
        yield stack


def test_localhost_that_is_another_address_is_refused(cleanup, monkeypatch):
    """A line of /etc/hosts must not expose a local endpoint to the network."""
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
    """Names and interfaces are resolved; the sockets do not block."""
    listening = listen(parse_endpoint(f"tcp://{host}:0"), cleanup)
    assert listening._sock.getsockname()[0] == address
    with pytest.raises(BlockingIOError):
        listening._sock.accept()


def test_an_unknown_host_is_unavailable(cleanup):
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


@pytest.fixture
def publish(cleanup):
    """Publish at an endpoint with a subscriber in a context of its own."""

    def start(text):
        server, client = zmq.Context(), zmq.Context()
        cleanup.callback(server.term)
        cleanup.callback(client.term)
        undo = cleanup.enter_context(ExitStack())
        listening = listen(parse_endpoint(text), undo)
        sockets = server.socket(zmq.XPUB), client.socket(zmq.SUB)
        for sock in sockets:
            cleanup.callback(sock.close)
            sock.setsockopt(zmq.LINGER, 0)
            sock.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        listening.lend(sockets[0])
        sockets[1].subscribe(b"")
        sockets[1].connect(listening.text)
        sockets[0].recv()
        return listening, *sockets

    return start


def connect(text):
    """Connect, and return the peer's first bytes; raises OSError."""
    family = socket.AF_UNIX if text.startswith("ipc") else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(0.2)
        host, _, port = text.removeprefix("tcp://").rpartition(":")
        client.connect(
            text.removeprefix("ipc://") if family == socket.AF_UNIX else (host, int(port))
        )
        client.settimeout(TIMEOUT_MS / 1e3)
        return client.recv(10)


@pytest.mark.slow
@pytest.mark.usefixtures("_socket_filters")
@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_an_endpoint_that_is_closed_to_new_connections_keeps_its_connections(
    publish, tmp_path, transport
):
    """Not one message is lost to them, and others come in as soon as it is open again."""
    text = "tcp://127.0.0.1:0" if transport == "tcp" else f"ipc://{tmp_path}/s.ipc"
    listening, publisher, subscriber = publish(text)
    for _ in range(3):
        listening.refuse_connections()
        listening.refuse_connections()
        with pytest.raises(OSError, match=r"timed out|No such file"):
            connect(listening.text)
        publisher.send(b"closed")
        assert subscriber.recv() == b"closed"
        listening.accept_connections()
        listening.accept_connections()
        assert connect(listening.text) == SIGNATURE
        publisher.send(b"open")
        assert subscriber.recv() == b"open"


def test_a_closed_ipc_socket_admits_no_peer_under_its_other_name(cleanup, tmp_path):
    """Its mode lets only root in there; it is as it was once it is open."""
    listening = listen(parse_endpoint(f"ipc://{tmp_path}/s.ipc"), cleanup)
    listening.refuse_connections()
    assert not (tmp_path / "s.ipc").exists()
    assert (tmp_path / "s.ipc.closed").stat().st_mode & 0o777 == 0
    listening.accept_connections()
    assert (tmp_path / "s.ipc").stat().st_mode & 0o777 == 0o660
    assert not (tmp_path / "s.ipc.closed").exists()


def test_opening_an_ipc_socket_replaces_nothing(cleanup, tmp_path):
    """Another file in its place stays, and is reported."""
    listening = listen(parse_endpoint(f"ipc://{tmp_path}/s.ipc"), cleanup)
    listening.refuse_connections()
    (tmp_path / "s.ipc").write_text("mine")
    with pytest.raises(FileExistsError):
        listening.accept_connections()
    assert (tmp_path / "s.ipc").read_text() == "mine"


def test_nothing_is_left_of_a_closed_ipc_socket(cleanup, tmp_path):
    """Neither by its own end, nor by the next start after it was killed."""
    endpoint = parse_endpoint(f"ipc://{tmp_path}/s.ipc")
    with ExitStack() as first:
        listen(endpoint, first).refuse_connections()
    assert list(tmp_path.iterdir()) == []
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(f"{tmp_path}/s.ipc.closed")
    (tmp_path / "s.ipc.closed").chmod(0)
    with ExitStack() as second:
        listen(endpoint, second)
        assert not (tmp_path / "s.ipc.closed").exists()
