"""Strangers at the page's server: none ends it, holds it up, fills its memory or its log."""

import contextlib
import http.client
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.sync.client import connect

TIMEOUT_S = 30.0
GROWTH_MAX_BYTES = 48 << 20
OPEN = (
    "GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
MASK = b"\0\0\0\0"
TEXT, PING, PONG, PART = 0x81, 0x89, 0x8A, 0x00
pytestmark = pytest.mark.slow


class Server:
    """``spectrod web`` of a daemon that is away."""

    def __init__(self):
        arguments = ["ipc:///nonexistent/spectrum.ipc", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spectrod", "web", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline())[1])

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)

    def upgraded(self):
        """Open a WebSocket of which the test writes every byte."""
        sock = self.raw()
        sock.sendall(OPEN.encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(1)
        assert head.startswith(b"HTTP/1.1 101 ")
        return sock

    def hello(self):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        with contextlib.closing(client):
            client.request("GET", "/api/hello")
            return client.getresponse().status

    def resident_bytes(self):
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def processor_s(self):
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().split()[13:15]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """End it, and return its log."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == 0
        return log


@pytest.fixture
def server():
    """A server that a page is connected to, which must go on, and whose log must stay empty."""
    running = Server()
    try:
        url, origin = (
            f"ws://127.0.0.1:{running.port}/api/stream",
            f"http://127.0.0.1:{running.port}",
        )
        with connect(url, origin=origin, compression=None) as page:
            before = running.resident_bytes()
            yield running
            assert running.resident_bytes() - before < GROWTH_MAX_BYTES
            assert running.hello() == 200
            page.ping().wait(TIMEOUT_S)
        assert running.end() == ""
    finally:
        running.process.kill()
        running.process.communicate(timeout=TIMEOUT_S)


def frame(kind, data=b""):
    """Return a frame of a client, masked with zeros."""
    if len(data) < 126:
        return bytes((kind, 0x80 | len(data))) + MASK + data
    return bytes((kind, 0x80 | 126)) + struct.pack("!H", len(data)) + MASK + data


def send_until_closed(sock, data, most_bytes):
    """Send the same bytes over and over; return how many were taken before the peer closed."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most_bytes:
            sock.sendall(data)
            sent += len(data)
    return sent


def test_replies_to_pings_that_nobody_reads_end_the_connection(server):
    """Each ping asks for as many bytes as it has, and no flow control stops the replies."""
    with server.upgraded() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert send_until_closed(sock, frame(PING, b"x" * 125) * 500, 256 << 20) < 256 << 20


def test_a_message_of_endless_empty_fragments_ends_the_connection(server):
    """No fragment counts towards the size of the message."""
    with server.upgraded() as sock:
        sock.sendall(frame(TEXT & 0x7F, b"{"))
        assert send_until_closed(sock, frame(PART) * 100, 4 << 20) < 4 << 20


def test_a_burst_of_tiny_messages_ends_the_connection(server):
    """Forty thousand of them fit in what is read at once."""
    with server.upgraded() as sock:
        assert send_until_closed(sock, frame(TEXT, b"{}") * 40_000, 16 << 20) < 16 << 20


def test_a_text_that_is_no_utf8_ends_its_stream_without_a_line(server):
    """1007, whole or in fragments."""
    for data in (b"\xff\xfe", b"\xc3", b"{}\xed\xa0\x80"):
        for pieces in (frame(TEXT, data), frame(TEXT & 0x7F, data) + frame(PART | 0x80)):
            with server.upgraded() as sock:
                sock.sendall(pieces)
                received = b""
                while part := sock.recv(65536):
                    received += part
                assert struct.pack("!BBH", 0x88, 2, 1007) in received


def test_silent_connections_do_not_keep_others_out(server):
    """More than the server keeps, of which the oldest make room."""
    with contextlib.ExitStack() as silent:
        for _ in range(300):
            silent.enter_context(server.raw())
        assert server.hello() == 200


def test_bodies_that_do_not_come_do_not_keep_others_out(server):
    """More than the server keeps, each with one byte of its body."""
    head = "POST /api/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 200\r\n\r\na"
    with contextlib.ExitStack() as slow:
        for _ in range(300):
            sock = slow.enter_context(server.raw())
            sock.sendall(head.encode())
        for _ in range(20):
            assert server.hello() == 200


@pytest.mark.parametrize("kind", [PING, PONG])
def test_floods_of_control_frames_cost_little_and_end_their_connections(server, kind):
    """Each of 25 connections is closed long before it has sent a megabyte."""
    data = frame(kind) * 40_000
    before_s = server.processor_s()
    for _ in range(25):
        with server.upgraded() as sock:
            assert send_until_closed(sock, data, 64 << 20) < 64 << 20
    # Processing all that one connection had sent took 0.3 s; a handshake takes some milliseconds.
    assert server.processor_s() - before_s < 25 * 0.1


def test_a_burst_of_connections_waits_while_the_server_is_busy(server):
    """Nobody of four hundred is sent away for a second by the system."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with contextlib.ExitStack() as burst:
            for _ in range(400):
                sock = burst.enter_context(socket.socket())
                sock.settimeout(0.9)  # an attempt that is not taken is made again after a second
                sock.connect(("127.0.0.1", server.port))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert server.hello() == 200


def test_refused_streams_cost_nothing_that_stays(server):
    """A thousand strangers leave no line in the log."""
    stranger = OPEN.replace("//127.0.0.1", "//evil.example").encode()
    for _ in range(1000):
        with server.raw() as sock:
            sock.sendall(stranger)
            assert sock.recv(64).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_answered_by_refusals_or_by_nothing(server, seed):
    """Mutations of requests and frames, and bytes at random: no answer is a server's error."""
    rng = random.Random(seed)  # noqa: S311 - reproducible
    request = (
        b"POST /api/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
        b"Cookie: spectrod=%\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"
    )
    samples = [
        request,
        OPEN.encode(),
        OPEN.encode() + frame(TEXT, b'{"op":"view"}'),
        b"\x16\x03\x01",
    ]
    for _ in range(150):
        data = bytearray(rng.choice(samples))
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(data) + 1)
            data[place : place + rng.randrange(4)] = rng.randbytes(rng.randrange(4))
        with server.raw() as sock, contextlib.suppress(ConnectionError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            assert not sock.recv(4096).startswith(b"HTTP/1.1 5")


def test_a_body_that_turns_out_malformed_is_refused_once(server):
    """While it is read, while it is answered, and after: the fixture looks into the log."""
    head = b"POST /api/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    for path in (b"/api/token", b"/api/hello", b"/"):
        for data in (b"zz\r\n", b"4\r\nabcdXX", b"101\r\n" + b"x" * 257 + b"\r\nzz\r\n"):
            for pieces in ([head + data], [head, data]):
                with server.raw() as sock, contextlib.suppress(ConnectionError):
                    for piece in pieces:
                        sock.sendall(piece.replace(b"/api/token", path))
                    while sock.recv(4096):
                        pass


def test_streams_that_are_not_read_do_not_hold_up_the_end():
    """Thirty that send and never read."""
    server = Server()
    with contextlib.ExitStack() as deaf:
        deaf.callback(server.process.kill)
        for _ in range(30):
            sock = deaf.enter_context(server.upgraded())
            sock.sendall(frame(TEXT, b'{"op":"view","generation":1,"visible":true,"streams":[]}'))
        start_s = time.monotonic()
        assert server.end() == ""
        assert time.monotonic() - start_s < 1.0
