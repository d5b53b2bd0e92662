"""Requests of the page to the control socket, against a peer that plays the daemon."""

import asyncio
import json

import msgspec
import pytest
import zmq

from spectrod.apps.web.control_requests import METHODS, ControlRelay
from spectrod.wire.requests import METHODS as ALL_METHODS


@pytest.fixture
def daemon(tmp_path):
    """A ROUTER socket at an IPC endpoint, and the endpoint."""
    endpoint = f"ipc://{tmp_path}/control.ipc"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.rcvtimeo = 10_000
        router.bind(endpoint)
        yield router, endpoint


def reply(router, **fields):
    """Receive a request, and answer it in one go."""
    peer, *_, body = router.recv_multipart()
    request = json.loads(body)
    answer = msgspec.json.encode({"v": 1, "id": request["id"], **fields})
    router.send_multipart([peer, answer])
    return request


async def exchange(endpoint, body, play=None):
    relay = ControlRelay([endpoint])
    try:
        answer = asyncio.create_task(relay.answer(body))
        played = await asyncio.to_thread(play) if play else None
        return await answer, played
    finally:
        relay.close()


def test_a_call_is_passed_on_and_its_result_returned(daemon):
    """Method and parameters arrive unchanged."""
    router, endpoint = daemon
    body = json.dumps({"method": "pause", "params": {"source": "mic"}}).encode()
    play = lambda: reply(router, ok=True, result={"paused": ["mic"]})  # noqa: E731
    answer, request = asyncio.run(exchange(endpoint, body, play))
    assert (request["method"], request["params"]) == ("pause", {"source": "mic"})
    assert (answer.status_code, json.loads(answer.body)) == (200, {"paused": ["mic"]})


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("bad_params", 400),
        ("denied", 403),
        ("not_found", 404),
        ("busy", 409),
        ("unavailable", 503),
        ("storage", 507),
        ("internal", 500),
    ],
)
def test_an_error_of_the_daemon_has_its_status(daemon, code, status):
    """The text is the daemon's."""
    router, endpoint = daemon
    error = {"code": code, "message": "no such\nsource"}
    play = lambda: reply(router, ok=False, error=error)  # noqa: E731
    answer, _ = asyncio.run(exchange(endpoint, b'{"method": "status"}', play))
    assert answer.status_code == status
    assert "no such" in json.loads(answer.body)["error"]
    assert "\n" not in json.loads(answer.body)["error"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "request: "),
        (b"[]", 400, "request: "),
        (b"{}", 400, "missing required field `method`"),
        (b'{"method": "status", "id": 1}', 400, "unknown field `id`"),
        (b'{"method": "status", "params": [1]}', 400, "request: "),
        (b'{"method": "statsu"}', 400, "is none that a page may call; did you mean status?"),
        (b'{"method": "source.add"}', 400, "method='source.add': is none that a page may call"),
        (b'{"method": "get", "params": {"timeout_s": 9e9}}', 400, "timeout_s: no such parameter"),
        (b'{"method": "get", "endpoint": "tcp://10.0.0.1:1"}', 404, "is none of this server's"),
        (b'{"method": ' + b"[" * 16000, 400, "request: "),
        (b'{"method": "\xff"}', 400, "request: "),
    ],
)
def test_a_bad_request_reaches_no_daemon(daemon, body, status, message):
    """One line names the value and the rule, and nothing is sent."""
    router, endpoint = daemon
    answer, _ = asyncio.run(exchange(endpoint, body))
    assert answer.status_code == status
    assert message in json.loads(answer.body)["error"]
    assert router.poll(0) == 0


def test_a_daemon_that_is_away_is_unavailable(tmp_path, monkeypatch):
    """The request ends with the error that every client gets."""
    monkeypatch.setattr("spectrod.apps.web.control_requests.REPLY_S", 0.05)
    answer, _ = asyncio.run(exchange(f"ipc://{tmp_path}/away.ipc", b'{"method": "status"}'))
    assert answer.status_code == 503
    assert "is the daemon running there" in json.loads(answer.body)["error"]


def test_pages_cannot_open_files_or_end_anything():
    """What a page may call is a part of what there is; none of it names a path or an address."""
    assert ALL_METHODS.keys() > METHODS
    assert not METHODS & {"source.add", "source.remove", "reload", "replay", "latest"}
