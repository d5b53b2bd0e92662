"""Bounds of the page's server that no other test attacks; tests that the documentation names."""

import asyncio
import contextlib
import json
import re
import subprocess
import threading
from pathlib import Path

import pytest
import zmq
from starlette.applications import Starlette

from spectrod.apps.web import control_requests, server
from spectrod.apps.web.control_requests import ControlRelay
from spectrod.apps.web.gate import Gate
from spectrod.apps.web.guard import ADDRESSES_MAX, Guard, GuardLimits
from spectrod.apps.web.history import routes
from spectrod.apps.web.history.recording_index import RecordingIndex
from spectrod.apps.web.history.row_ring import Ring
from spectrod.apps.web.listen import load_certificate, open_listener, parse_address
from spectrod.apps.web.page_origin import server_names
from spectrod.apps.web.server import Server
from spectrod.apps.web.token import Token

ROOT = Path(__file__).parents[4]
SOON_S = 20.0


def run(work):
    async def bounded():
        async with asyncio.timeout(SOON_S):
            return await work()

    return asyncio.run(bounded())


def test_a_handshake_of_tls_that_does_not_come_ends(tmp_path, monkeypatch):
    """A peer that connects and says nothing, or no handshake, is closed in time."""
    new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    files = ["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*new.split(), *files], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.2)
    listener = open_listener(parse_address("127.0.0.1:0"))
    tls = load_certificate(tmp_path / "cert.pem", tmp_path / "key.pem")
    asked = b"GET / HTTP/1.1\r\n\r\n"

    async def work():
        serving = asyncio.create_task(Server(Starlette(), listener, tls).serve())
        for said in (b"", b"\x16", asked):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(said)
            with contextlib.suppress(ConnectionError):
                assert asked not in await reader.read()
            writer.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    run(work)


def test_only_two_files_are_made_at_a_time(tmp_path, monkeypatch):
    """A third is refused with 503, and made when one of the two is done."""
    begun, may_go = threading.Semaphore(0), threading.Event()

    def to_csv(_answer):
        begun.release()
        assert may_go.wait(SOON_S)
        return b"csv"

    monkeypatch.setattr(routes, "to_csv", to_csv)
    monkeypatch.setattr(routes, "answer", lambda *_, **__: None)
    app = Starlette(routes=routes.history_routes(RecordingIndex([tmp_path]), Ring(), dict))
    query = b"topic=7&t0=0&t1=1000&f0=0&f1=100&w=4&h=5&format=csv"

    async def get():
        sent = []

        async def receive():
            await asyncio.get_running_loop().create_future()

        async def send(message):
            sent.append(message)

        path = {"path": "/api/export", "root_path": "", "query_string": query, "headers": []}
        await app({"type": "http", "method": "GET", **path}, receive, send)
        return sent[0]["status"], sent[1]["body"]

    async def work():
        two = [asyncio.create_task(get()) for _ in range(routes.EXPORTS_MAX)]
        for _ in two:
            await asyncio.to_thread(begun.acquire)
        status, body = await get()
        assert status == 503
        assert b"2 files are being made: try again later" in body
        may_go.set()
        return [*await asyncio.gather(*two), await get()]

    assert run(work) == [(200, b"csv")] * 3


def test_refusals_of_many_addresses_are_remembered_in_part():
    """The newest 256; the page of an older one learns no reason."""
    gate = Gate(server_names(parse_address("127.0.0.1:1"), ()), Token("t" * 22), needs_token=True)
    guard = Guard(Starlette(), gate, GuardLimits())

    async def work():
        async def send(_message):
            pass

        for k in range(3 * ADDRESSES_MAX):
            scope = {"type": "websocket", "scheme": "ws", "path": "/api/stream", "headers": []}
            await guard(scope | {"client": (f"10.0.{k >> 8}.{k & 255}", 1)}, None, send)

    run(work)
    assert guard.why_refused("10.0.1.255") == ""
    assert guard.why_refused("10.0.2.0").startswith("Host: ")
    assert guard.why_refused("10.0.2.255").startswith("Host: ")


def test_a_daemon_that_does_not_answer_has_one_call_at_a_time(tmp_path, monkeypatch):
    """Those who wait for their turn get 409 in time, also while a slow change is made."""
    monkeypatch.setattr(control_requests, "REPLY_S", 0.2)
    endpoint = f"ipc://{tmp_path}/control.ipc"

    async def work():
        relay = ControlRelay([endpoint])
        try:
            body = b'{"method":"set","params":{"key":"a","value":1}}'
            change = asyncio.create_task(relay.answer(body))
            await asyncio.to_thread(router.poll, 10_000)
            others = [relay.answer(b'{"method":"status"}') for _ in range(9)]
            statuses = [one.status_code for one in await asyncio.gather(*others)]
            peer, *_, request = router.recv_multipart()
            reply = {"v": 1, "id": json.loads(request)["id"], "ok": False}
            reply["error"] = {"code": "bad_params", "message": "a: no such key"}
            router.send_multipart([peer, json.dumps(reply).encode()])
            assert not router.poll(0)
            return statuses, (await change).status_code
        finally:
            relay.close()

    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.bind(endpoint)
        assert run(work) == ([409] * 9, 400)


FORWARDED = (
    *("10.0.0.7", "unknown", "", ",,,,", "1.2.3.4:99999", "[::1]:80", "a" * 5000, "\xff\xfe"),
    *("127.0.0.1", "127.0.0.1, 10.0.0.8", "10.0.0.7\t,\t10.0.0.8", "fe80::1%eth0", "::1"),
    "10.0.0.7" + ", 10.0.0.7" * 800,
)


@pytest.mark.parametrize("proto", ["https", "wss", "javascript", "https,http", "", "HTTPS"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.9"])
def test_headers_of_a_proxy_are_believed_of_this_machine_alone(peer, proto):
    """Whatever they say, an address is short, a scheme is one of two, and nothing fails."""
    seen = []

    async def app(scope, _receive, _send):
        seen.append(gate.visitor(scope))

    gate = Gate(server_names(parse_address("127.0.0.1:1"), ()), Token("t" * 22))
    with open_listener(parse_address("127.0.0.1:0")) as listener:
        config = Server(app, listener)._config()
    config.load()

    async def work():
        for text in FORWARDED:
            headers = [
                (b"x-forwarded-for", text.encode("latin-1")),
                (b"x-forwarded-proto", proto.encode()),
            ]
            scope = {"type": "http", "scheme": "http", "path": "/", "headers": headers}
            await config.loaded_app(scope | {"client": (peer, 1)}, None, None)

    run(work)
    assert len(seen) == len(FORWARDED)
    if peer == "10.0.0.9":
        assert {(one.address, one.scheme) for one in seen} == {("10.0.0.9", "http")}
        return
    by_text = dict(zip(FORWARDED, (one.address for one in seen), strict=True))
    assert by_text["10.0.0.7"] == by_text["10.0.0.7" + ", 10.0.0.7" * 800] == "10.0.0.7"
    assert by_text["127.0.0.1, 10.0.0.8"] == "10.0.0.8"
    assert max(map(len, by_text.values())) <= 64
    is_https = proto in ("https", "wss", "HTTPS")
    assert {one.scheme for one in seen} <= {"https" if is_https else "http", "http"}


def test_each_limit_of_the_documentation_names_tests_that_exist():
    """The last column of the table has the names of tests in the files it links."""
    text = (ROOT / "docs" / "limits.md").read_text("utf-8").partition("## The page's server")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 30
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row.rsplit("|", 2)[1])
        assert names, row
        for name in names:
            assert [*ROOT.glob(f"tests/**/{name}.py")], name
