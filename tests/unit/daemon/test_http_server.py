"""The monitoring endpoint's HTTP: what it accepts, and that hostile peers hold nobody up."""

import contextlib
import socket
import time
import urllib.request
from http import HTTPStatus

import pytest

from spectrod.daemon.monitoring import http_server
from spectrod.daemon.monitoring.http_request import (
    REQUEST_MAX_BYTES,
    HttpRequest,
    parse_request,
    text_response,
)
from spectrod.daemon.monitoring.http_server import CONNECTIONS_MAX, HttpServer
from spectrod.lib.errors import BusyError, ConfigError, UnavailableError
from spectrod.wire.endpoint import parse_listen

GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
TIMEOUT_S = 30.0


@pytest.fixture
def server():
    """Run a server that replies with the path."""
    running = HttpServer(
        "127.0.0.1:0", lambda request: text_response(HTTPStatus.OK, request.path), hosts=["Roof"]
    )
    running.start()
    yield running
    running.stop()


def connect(server):
    host, _, port = server.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_S)


def ask(server, data):
    """Send bytes; return all that comes back until the connection is closed."""
    with connect(server) as sock:
        sock.sendall(data)
        parts = []
        with contextlib.suppress(ConnectionResetError):
            while part := sock.recv(65_536):
                parts.append(part)
        return b"".join(parts)


def test_a_client_gets_the_reply(server):
    """Python's own client reads status, type, length and body."""
    with urllib.request.urlopen(f"http://{server.address}/x?y=1", timeout=TIMEOUT_S) as reply:
        assert reply.status == 200
        assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert reply.read() == b"/x\n"


def test_head_has_no_body(server):
    """HEAD has the fields of GET, with the length, and no body."""
    got, headed = ask(server, GET), ask(server, GET.replace(b"GET", b"HEAD"))
    assert got.endswith(b"\r\n\r\n/metrics\n")
    assert headed == got.removesuffix(b"/metrics\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 421),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        (b"\x00\xff\r\n\r\n", 400),
        (b"GET /" + b"a" * REQUEST_MAX_BYTES + b" HTTP/1.1\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"f%d: x\r\n" % k for k in range(65)) + b"\r\n", 400),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused(server, request_bytes, status):
    """Each refused request has its status, and the next request is served."""
    reply = ask(server, request_bytes)
    assert reply.split(b" ")[1] == str(status).encode()
    assert ask(server, GET).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9733", "127.0.0.1:9733", "192.168.1.4", "[::1]:9733", "roof"]
)
def test_hosts_of_this_machine_are_served(host):
    """Addresses, localhost and configured names are served, with and without a port."""
    data = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert isinstance(parse_request(data, {"roof"}), HttpRequest)


def test_accept_is_read_by_media_type():
    """The type that Prometheus asks for is found among others, with its parameters."""
    accept = b"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2"
    data = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: " + accept + b"\r\n\r\n"
    request = parse_request(data, set())
    assert request.accepts("application/openmetrics-text")
    assert not request.accepts("application/json")


def test_a_hundred_hostile_connections_hold_nobody_up(server):
    """With 100 connections that send nothing, garbage or half a request, others are served."""
    beginnings = (b"", b"\xff" * 100, GET[:20], b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50)
    with contextlib.ExitStack() as cleanup:
        for k in range(100):
            sock = cleanup.enter_context(connect(server))
            sock.sendall(beginnings[k % len(beginnings)])
            if k % 10 == 0:
                assert ask(server, GET).startswith(b"HTTP/1.1 200 OK\r\n")
        assert ask(server, GET).startswith(b"HTTP/1.1 200 OK\r\n")
        assert len(server._connections) <= CONNECTIONS_MAX


def test_a_slow_peer_is_cut_off(monkeypatch):
    """A request that is not complete in time, and a reply that is not read, end."""
    monkeypatch.setattr(http_server, "CONNECTION_MAX_S", 0.2)
    large = "x" * (1 << 24)  # more than the sockets' buffers hold
    slow = HttpServer("127.0.0.1:0", lambda _request: text_response(HTTPStatus.OK, large))
    slow.start()
    try:
        with connect(slow) as unfinished, connect(slow) as unread:
            unfinished.sendall(GET[:10])
            unread.sendall(GET)
            assert unfinished.recv(1) == b""
            deadline_s = time.monotonic() + TIMEOUT_S
            while slow._connections:
                assert time.monotonic() < deadline_s
            with contextlib.suppress(ConnectionResetError):
                n = 0
                while part := unread.recv(1 << 20):
                    n += len(part)
                assert n < 1 << 24
    finally:
        slow.stop()


def test_connections_above_the_rate_wait(monkeypatch):
    """Above the rate connections wait in the system's queue, and are served in their turn."""
    monkeypatch.setattr(http_server, "CONNECTIONS_PER_S", 4.0)
    server = HttpServer("127.0.0.1:0", lambda _request: text_response(HTTPStatus.OK, "ok"))
    server.start()
    try:
        start_s = time.monotonic()
        replies = [ask(server, GET) for _ in range(6)]
        # Four at once, the others at four a second.
        assert time.monotonic() - start_s >= 2 / 4.0 * 0.9
        assert all(reply.endswith(b"ok\n") for reply in replies)
    finally:
        server.stop()


def test_an_address_in_use_is_busy(server):
    """A second server at the address is refused, with the address and the reason."""
    with pytest.raises(BusyError, match=rf"http.listen='{server.address}': Address already in use"):
        HttpServer(server.address, lambda _request: text_response(HTTPStatus.OK, "")).start()


@pytest.mark.parametrize(
    ("listen", "text"),
    [
        ("9733", "must be HOST:PORT"),
        ("127.0.0.1:99999", "must be HOST:PORT"),
        ("127.0.0.1", "must be HOST:PORT"),
        ("0.0.0.0:9733", "anyone on the network could read the metrics"),
        ("*:9733", "anyone on the network"),
        ("[::]:9733", "anyone on the network"),
    ],
)
def test_an_address_is_checked(listen, text):
    """A malformed address, and one that other machines reach, is refused by its text."""
    with pytest.raises(ConfigError, match=text) as refused:
        parse_listen(listen)
    assert str(refused.value).startswith(f"http.listen={listen!r}: ")


def test_an_address_of_another_machine_is_unavailable():
    """An address that no interface has is refused when it is bound."""
    server = HttpServer(
        "192.0.2.1:0", lambda _request: text_response(HTTPStatus.OK, ""), insecure=True
    )
    with pytest.raises(UnavailableError, match=r"http.listen='192.0.2.1:0': Cannot assign"):
        server.start()


def test_stop_ends_open_connections_and_is_idempotent(server):
    """A stop closes connections that are open, and a second one does nothing."""
    with connect(server) as sock:
        sock.sendall(GET[:5])
        server.stop()
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
    server.stop()
