"""The server's application and bounds over real sockets; the stream is an echo."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time

import pytest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from spectrod.apps.web import page_connection
from spectrod.apps.web.app import CONTROL_MAX_BYTES, Services, make_app
from spectrod.apps.web.gate import Gate
from spectrod.apps.web.guard import GuardLimits
from spectrod.apps.web.listen import open_listener, parse_address
from spectrod.apps.web.page_files import PageFile
from spectrod.apps.web.page_origin import server_names
from spectrod.apps.web.server import CLOSE_S, Server
from spectrod.apps.web.token import Token

TIMEOUT_S = 20.0
TOKEN = "t" * 22
FILES = {
    "index.html": PageFile(b"<!doctype html>", "text/html; charset=utf-8", '"1"'),
    "main.js": PageFile(b"export {}", "text/javascript; charset=utf-8", '"2"'),
}


class Echo:
    """Sends each text back; "flood" is answered by ten messages of 1 kB."""

    async def serve(self, websocket):
        with contextlib.suppress(WebSocketDisconnect):
            while True:
                text = await websocket.receive_text()
                for _ in range(10 if text == "flood" else 1):
                    await websocket.send_text("x" * 1000 if text == "flood" else text)


async def control(body):
    return JSONResponse({"bytes": len(body)})


async def history(request):
    return JSONResponse({"w": request.query_params["w"]})


HISTORY = [Route("/api/history", history)]


class Running:
    """A server in a thread of its own."""

    def __init__(
        self, *, needs_token=False, limits=None, root_path="", allow_hosts=(), connections_max=128
    ):
        address = parse_address("127.0.0.1:0")
        self.listener = open_listener(address)
        self.port = self.listener.getsockname()[1]
        gate = Gate(server_names(address, allow_hosts), Token(TOKEN), needs_token, "c", root_path)
        services = Services(FILES, Echo(), control, HISTORY)
        self.app = make_app(services, gate, limits or GuardLimits())
        self._connections_max = connections_max
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._started.wait(TIMEOUT_S)

    def _run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        self._loop = asyncio.get_running_loop()
        self.server = Server(self.app, self.listener, None, self._connections_max)
        self._task = asyncio.create_task(self.server.serve())
        self._started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def stop(self):
        with contextlib.suppress(RuntimeError):  # stopped by the test
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def request(self, method, path, body=None, **headers):
        """Return status, headers and body of an answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(client):
            client.request(method, path, body, fields)
            answer = client.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def get(self, path, **headers):
        return self.request("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.request("POST", path, body, **headers)

    def stream(self, path="/api/stream", origin="", host=None, **headers):
        """Open a WebSocket as the page does; origin=None is a program."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return connect(
            f"ws://{host or self.host}{path}",
            sock=self.raw(),
            origin=f"http://{self.host}" if origin == "" else origin,
            additional_headers=fields,
            compression=None,
            open_timeout=TIMEOUT_S,
        )

    def try_stream(self, *path, **headers):
        """Open a WebSocket, and close it after an echo."""
        with self.stream(*path, **headers) as stream:
            stream.send("a")
            assert stream.recv(TIMEOUT_S) == "a"

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)


@pytest.fixture
def start():
    """Return a function that starts servers; they end with the test."""
    running = []

    def start_one(**arguments):
        running.append(Running(**arguments))
        return running[-1]

    yield start_one
    for one in running:
        one.stop()


@pytest.fixture
def server(start):
    return start()


# ---- the page


def test_the_page_and_its_files_have_the_security_headers(server):
    """Nothing of another site is loaded, framed or asked to guess a type."""
    for path, kind in (("/", "text/html"), ("/page/main.js", "text/javascript")):
        status, headers, _ = server.get(path)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert headers["content-security-policy"].startswith("default-src 'self'; base-uri 'none'")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-cache"
        assert "server" not in headers
        assert "date" in headers


def test_a_file_that_the_browser_has_is_not_sent_again(server):
    """304 for the same version, the file for another."""
    assert server.get("/page/main.js", if_none_match='"0", "2"')[0] == 304
    assert server.get("/page/main.js", if_none_match='"3"')[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/page/../gate.py",
        "/page/%2e%2e%2fgate.py",
        "/page/away.js",
        "/page/",
        "/etc",
        "//page/main.js",
    ],
)
def test_no_other_file_can_be_read(server, path):
    """Paths are looked up in a table; none is opened."""
    status, headers, _ = server.get(path)
    assert status == 404
    assert "content-security-policy" in headers


def test_hello_says_what_a_page_must_know_before_its_stream(server):
    """Also that no token is needed on this machine."""
    status, headers, body = server.get("/api/hello")
    said = json.loads(body)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert (said["version"], said["needs_token"], said["refused"]) == (1, False, "")
    assert said["program"].startswith("spectrod ")


# ---- who


@pytest.mark.parametrize("host", ["evil.example", "10.0.0.1", ""])
def test_another_host_is_misdirected(server, host):
    """A name that was rebound to this machine gets neither page nor stream, but a reason."""
    assert server.get("/", host=host)[2].startswith(b"421 Misdirected Request: Host: names")
    assert json.loads(server.get("/api/hello", host=host)[2])["error"].startswith("Host: names")
    for path in ("/", "/api/hello", "/api/history?w=1"):
        status, _, body = server.get(path, host=host)
        assert status == 421
        assert b"Host: names another server; --allow-host NAME adds a name" in body
    if host:
        with pytest.raises(InvalidStatus) as caught, server.stream(host=host):
            pass
        assert caught.value.response.status_code == 421


def test_two_hosts_are_refused(server):
    """Which of them counts would be a guess."""
    with server.raw() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("origin", ["http://evil.example", "http://localhost:1", "null"])
def test_a_foreign_page_gets_no_stream_and_changes_nothing(server, origin):
    """Browsers send Origin with each WebSocket and POST; the token excuses no foreign one."""
    with (
        pytest.raises(InvalidStatus) as caught,
        server.stream(origin=origin, authorization=f"Bearer {TOKEN}"),
    ):
        pass
    assert caught.value.response.status_code == 403
    assert server.post("/api/control", b"{}", origin=origin)[0] == 403
    assert server.post("/api/token", TOKEN, origin=origin)[0] == 403


def test_a_foreign_page_does_not_ask_for_the_past(server):
    """It could not read the answer, but would make the server work."""
    assert server.get("/api/history?w=1", sec_fetch_site="cross-site")[0] == 403
    assert server.get("/api/history?w=1", sec_fetch_site="same-origin")[0] == 200


def test_the_page_streams_on_this_machine(server):
    """With its own Origin, and without a token."""
    server.try_stream()


def test_nobody_controls_without_the_token(server):
    """Any user's program on this machine can send the page's Origin."""
    own = {"origin": f"http://{server.host}"}
    status, _, body = server.post("/api/control", b"{}", **own)
    assert (status, json.loads(body)["error"][:25]) == (403, "token: needed to control;")
    assert server.post("/api/control", b"{}", cookie=f"c={TOKEN}", **own)[2] == b'{"bytes":2}'


def test_a_program_brings_the_token(server):
    """Without an Origin it may be any program of any user, or a page in an odd browser."""
    with pytest.raises(InvalidStatus) as caught, server.stream(origin=None):
        pass
    assert caught.value.response.status_code == 403
    assert server.post("/api/control", b"{}")[0] == 403
    server.try_stream(origin=None, authorization=f"Bearer {TOKEN}")
    assert server.post("/api/control", b"{}", authorization=f"Bearer {TOKEN}")[0] == 200


def test_where_browsers_need_the_token_they_exchange_it_for_a_cookie(start):
    """The page is public, everything in it is not; the cookie is out of reach of scripts."""
    server = start(needs_token=True)
    own = {"origin": f"http://{server.host}"}
    assert server.get("/")[0] == 200
    assert json.loads(server.get("/api/hello")[2])["needs_token"]
    assert server.get("/api/history?w=1")[0] == 403
    assert server.post("/api/control", b"{}", **own)[0] == 403
    with pytest.raises(InvalidStatus), server.stream():
        pass
    assert json.loads(server.get("/api/hello")[2])["refused"].startswith("token: missing or wrong")

    assert server.post("/api/token", "x" * 22, **own)[0] == 403
    status, headers, _ = server.post("/api/token", f"{TOKEN}\n", **own)
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert (status, cookie) == (204, f"c={TOKEN}")
    assert {text.lower() for text in attributes} == {
        "httponly",
        "max-age=2592000",
        "samesite=strict",
    }
    assert server.get("/api/history?w=1", cookie=cookie)[0] == 200
    assert server.post("/api/control", b"{}", cookie=cookie, **own)[0] == 200
    assert not json.loads(server.get("/api/hello", cookie=cookie)[2])["needs_token"]
    server.try_stream(cookie=cookie)
    assert json.loads(server.get("/api/hello")[2])["refused"] == ""
    assert server.get("/api/history?w=1", cookie="c=" + "x" * 22)[0] == 403
    assert server.get("/api/history?w=1", cookie='c="' + "\\" * 100)[0] == 403


def test_the_cookie_is_for_tls_alone_where_the_proxy_has_tls(start):
    """A proxy on this machine is believed; where it does not say so, the page's Origin does."""
    server = start(allow_hosts=["a.example"])
    page = {"host": "a.example", "origin": "https://a.example"}
    for proxy in ({}, {"x_forwarded_proto": "https"}):
        assert "; Secure" in server.post("/api/token", TOKEN, **page, **proxy)[1]["set-cookie"]
    plain = {"host": "a.example", "origin": "http://a.example"}
    assert "; Secure" not in server.post("/api/token", TOKEN, **plain)[1]["set-cookie"]


def test_a_page_from_elsewhere_controls_only_with_the_token(start):
    """Behind a proxy, too: the stream may be for everybody, the daemon's settings are not."""
    server = start(allow_hosts=["a.example"])
    far = {"host": "a.example", "origin": "http://a.example", "x_forwarded_for": "10.0.0.1"}
    server.try_stream(**far)
    status, _, body = server.post("/api/control", b"{}", **far)
    assert (status, json.loads(body)["error"][:14]) == (403, "token: needed ")
    assert server.post("/api/control", b"{}", cookie=f"c={TOKEN}", **far)[0] == 200


def test_a_proxy_may_leave_its_path_in_front_or_not(start):
    """Both forms lead to the same; the path is no other server's."""
    server = start(root_path="/spectra")
    for prefix in ("", "/spectra"):
        assert server.get(f"{prefix}/")[0] == 200
        assert server.get(f"{prefix}/page/main.js")[0] == 200
        server.try_stream(f"{prefix}/api/stream")
    assert server.get("/spectrahistory")[0] == 404
    assert server.get("/other/")[0] == 404


def test_a_path_in_front_does_not_hide_the_api_from_the_guard(start):
    """What needs the token needs it under the proxy's path as well."""
    server = start(root_path="/spectra", needs_token=True)
    for path in ("/api/history?w=1", "/spectra/api/history?w=1", "/%61pi/history?w=1"):
        assert server.get(path)[0] == 403
    for path in ("//api/history?w=1", "/spectra//api/history?w=1", "/spectra/spectra/api/history"):
        assert server.get(path)[0] == 404


# ---- how much


def test_the_client_after_the_last_is_refused(start):
    """The page learns why, and the place of one that left is free again."""
    server = start(limits=GuardLimits(clients=3))
    with contextlib.ExitStack() as streams:
        opened = [streams.enter_context(server.stream()) for _ in range(3)]
        with pytest.raises(InvalidStatus) as caught, server.stream():
            pass
        assert caught.value.response.status_code == 503
        refused = json.loads(server.get("/api/hello")[2])["refused"]
        assert refused == "clients: 3 are connected, the most allowed"
        opened[0].close()
        wait_until(lambda: server.app.n_clients == 2)
        server.try_stream()
    wait_until(lambda: server.app.n_clients == 0)


def test_one_address_does_not_take_all_places(start):
    """Four of an address that a proxy names; others still come in."""
    server = start(allow_hosts=["a.example"])
    far = {"host": "a.example", "origin": "http://a.example"}
    with contextlib.ExitStack() as streams:
        for _ in range(4):
            streams.enter_context(server.stream(x_forwarded_for="10.0.0.1", **far))
        with (
            pytest.raises(InvalidStatus) as caught,
            server.stream(x_forwarded_for="10.0.0.1", **far),
        ):
            pass
        assert caught.value.response.status_code == 429
        streams.enter_context(server.stream(x_forwarded_for="10.0.0.2", **far))


def test_a_message_that_is_too_long_ends_its_stream(server):
    """1009, as RFC 6455 says; other streams go on."""
    with server.stream() as other, server.stream() as stream:
        stream.send("x" * 16385)
        with pytest.raises(ConnectionClosed) as caught:
            stream.recv(TIMEOUT_S)
        assert caught.value.rcvd.code == 1009
        other.send("x" * 16384)
        assert len(other.recv(TIMEOUT_S)) == 16384


def test_all_together_send_no_more_than_the_limit(start):
    """After a second's worth at once, messages wait."""
    server = start(limits=GuardLimits(bytes_s=20_000.0))
    with server.stream() as stream:
        start_s = time.monotonic()
        for _ in range(3):
            stream.send("flood")
            for _ in range(10):
                stream.recv(TIMEOUT_S)
        # 30 kB, of which the first 20 kB are there.
        assert 0.45 < time.monotonic() - start_s < 5.0


def test_pages_that_ask_too_much_of_a_body_are_refused(server):
    """Both bodies are read up to their bounds only."""
    own = {"origin": f"http://{server.host}", "cookie": f"c={TOKEN}"}
    assert server.post("/api/token", b"x" * 257, **own)[0] == 413
    assert server.post("/api/control", b"x" * CONTROL_MAX_BYTES, **own)[0] == 200
    status, _, body = server.post("/api/control", b"x" * (CONTROL_MAX_BYTES + 1), **own)
    assert (status, json.loads(body)["error"]) == (413, "body: must be at most 16384 bytes")


def test_a_body_that_does_not_come_ends_in_time(server, monkeypatch):
    """408, and the connection is closed."""
    monkeypatch.setattr("spectrod.apps.web.app.BODY_S", 0.1)
    with server.raw() as sock:
        head = f"POST /api/token HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 9\r\n\r\nab"
        sock.sendall(head.encode())
        assert read_all(sock).startswith(b"HTTP/1.1 408")


def test_a_head_that_is_too_long_is_refused(server):
    """16 KiB for all fields; the server does not wait for the end."""
    with server.raw() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 20_000)
        assert read_all(sock).startswith(b"HTTP/1.1 400")
    assert server.get("/")[0] == 200


@pytest.mark.parametrize("data", [b"", b"GET / HT", b"\x16\x03\x01"])
def test_a_silent_or_slow_connection_is_closed(server, monkeypatch, data):
    """The deadline is for the whole head, however slowly it drips."""
    monkeypatch.setattr(page_connection, "HEAD_S", 0.1)
    with server.raw() as sock:
        if data:
            sock.sendall(data)
        read_all(sock)


def test_a_second_request_has_the_same_deadline(server, monkeypatch):
    """Also bytes that come before it, one by one."""
    with server.raw() as sock:
        request = f"GET /api/hello HTTP/1.1\r\nHost: {server.host}\r\n"
        sock.sendall(f"{request}\r\n".encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        monkeypatch.setattr(page_connection, "HEAD_S", 0.1)
        sock.sendall(f"{request}\r\n".encode() + b"GET /")
        read_all(sock)


def test_a_stream_outlives_the_deadlines_of_requests(server, monkeypatch):
    """A WebSocket has its own ways to end."""
    monkeypatch.setattr(page_connection, "HEAD_S", 0.05)
    monkeypatch.setattr(page_connection, "ANSWER_S", 0.05)
    with server.stream() as stream, server.raw() as silent:
        read_all(silent)  # ends by the deadline
        stream.send("a")
        assert stream.recv(TIMEOUT_S) == "a"


def test_an_answer_that_is_not_read_ends(start, monkeypatch):
    """A peer that asks and never reads keeps nothing."""
    monkeypatch.setattr(page_connection, "ANSWER_S", 0.2)
    monkeypatch.setitem(FILES, "big.js", PageFile(b"x" * 20_000_000, "text/javascript", '"3"'))
    server = start()
    with server.raw() as sock:
        sock.sendall(f"GET /page/big.js HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        wait_until(lambda: server.server._state.connections)
        wait_until(lambda: not server.server._state.connections)
        assert len(read_all(sock)) < 20_000_000


def test_an_answer_that_is_read_late_is_whole(start, monkeypatch):
    """The deadline for the next request begins when the answer is read, not when it is made."""
    monkeypatch.setattr(page_connection, "HEAD_S", 0.2)
    monkeypatch.setitem(FILES, "big.js", PageFile(b"x" * 20_000_000, "text/javascript", '"3"'))
    server = start()
    with server.raw() as sock:
        sock.sendall(f"GET /page/big.js HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        for _ in range(2):
            with server.raw() as silent:
                read_all(silent)  # ends by the deadline for heads
        assert len(read_all(sock)) > 20_000_000


def test_waiting_connections_make_room_for_new_ones(start):
    """Who holds all places without a request loses the oldest; who has a stream keeps it."""
    server = start(connections_max=4)
    with contextlib.ExitStack() as opened:
        stream = opened.enter_context(server.stream())
        silent = [opened.enter_context(server.raw()) for _ in range(5)]
        for sock in silent[:2]:
            read_all(sock)
        assert server.get("/")[0] == 200
        stream.send("a")
        assert stream.recv(TIMEOUT_S) == "a"


def test_requests_whose_bodies_do_not_come_make_room_for_new_ones(start):
    """Who sends a head and the beginning of its body holds a place no better than who is silent."""
    server = start(connections_max=4)
    head = f"POST /api/token HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 200\r\n\r\n"
    with contextlib.ExitStack() as opened:
        slow = [opened.enter_context(server.raw()) for _ in range(4)]
        for sock in slow:
            sock.sendall(f"{head}a".encode())
        for _ in range(8):
            assert server.get("/api/hello")[0] == 200


def test_a_body_has_a_deadline_of_its_own(start, monkeypatch):
    """A body that comes byte by byte does not renew it."""
    monkeypatch.setattr(page_connection, "BODY_S", 0.2)
    server = start()
    head = f"POST /api/token HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 200000\r\n\r\n"
    with server.raw() as sock:
        sock.sendall(head.encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(100_000):
                sock.sendall(b"a")
        with pytest.raises(ConnectionError):
            sock.sendall(b"a")


def test_some_places_are_kept_for_networks_that_have_none(start):
    """Who holds all other places with streams keeps nobody out who has no connection."""
    server = start(connections_max=16)
    with contextlib.ExitStack() as opened:
        for _ in range(14):
            opened.enter_context(server.stream())
        with server.raw() as refused, contextlib.suppress(ConnectionError):
            assert read_all(refused) == b""
        newcomer = socket.create_connection(
            ("127.0.0.1", server.port), timeout=TIMEOUT_S, source_address=("127.0.0.2", 0)
        )
        with newcomer:
            request = f"GET /api/hello HTTP/1.1\r\nHost: {server.host}\r\n\r\n"
            newcomer.sendall(request.encode())
            assert newcomer.recv(65536).startswith(b"HTTP/1.1 200")


def test_an_address_elsewhere_has_few_connections(server, monkeypatch):
    """The bound is for peers that are not this machine, which loopback stands for here."""
    monkeypatch.setattr(page_connection, "is_loopback", lambda _: False)
    monkeypatch.setattr(page_connection, "CONNECTIONS_OF_NETWORK", 2)
    with server.raw() as first, server.raw() as second, server.raw() as third:
        read_all(third)
        request = f"GET /api/hello HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()
        for sock in (first, second):
            sock.sendall(request)
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")


# ---- the end


def test_the_end_closes_streams_in_time(start):
    """Pages read 1012, a restart; one that reads nothing does not hold the server up."""
    server = start()
    with server.stream() as stream, server.stream() as deaf:
        deaf.send("a")
        start_s = time.monotonic()
        server.stop()
        assert time.monotonic() - start_s < CLOSE_S + 0.7
        with pytest.raises(ConnectionClosed) as caught:
            stream.recv(TIMEOUT_S)
        assert caught.value.rcvd.code == 1012


def read_all(sock):
    """Return what comes until the peer ends the connection."""
    data = bytearray()
    while piece := sock.recv(65536):
        data += piece
    return bytes(data)


def wait_until(holds):
    """Wait for something that the server does in its own time."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
