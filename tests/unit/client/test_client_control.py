"""Requests over a real socket to a server with a test's answers."""

import asyncio
import json
import threading

import pytest
import zmq

from spectrod.client import Control, aio, conflate, latest
from spectrod.client.rpc_codec import encode_call, messages_of
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeniedError,
    InternalError,
    NotFoundError,
    SpectrodError,
    StorageError,
    UnavailableError,
    WireError,
)

TIMEOUT_S = 10.0


class Server:
    """A ROUTER in a thread, which answers by a function of the request."""

    def __init__(self, context, endpoint="tcp://127.0.0.1:*"):
        self._socket = context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(endpoint)
        self._stop = context.socket(zmq.PULL)
        self._stop.bind("inproc://stop")
        self._stopper = context.socket(zmq.PUSH)
        self._stopper.connect("inproc://stop")
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.requests = []
        self.answer = lambda request: [{"v": 1, "id": request["id"], "ok": True}]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self):
        self._stopper.send(b"")
        self._thread.join(TIMEOUT_S)
        for socket in (self._socket, self._stop, self._stopper):
            socket.close()

    def _run(self):
        poller = zmq.Poller()
        for socket in (self._socket, self._stop):
            poller.register(socket, zmq.POLLIN)
        while self._stop not in dict(poller.poll()):
            peer, body = self._socket.recv_multipart()
            self.requests.append(json.loads(body))
            for part in self.answer(self.requests[-1]) or ():
                parts = part if isinstance(part, list) else [json.dumps(part).encode()]
                self._socket.send_multipart([peer, *parts])


@pytest.fixture
def server():
    with zmq.Context() as context:
        server = Server(context)
        yield server
        server.close()


@pytest.fixture
def control(server):
    with Control(server.endpoint, timeout_s=TIMEOUT_S) as control:
        yield control


def test_a_control_that_nobody_holds_closes_itself(server):
    """Neither sockets nor descriptors are left, and nothing warns of them."""
    control = Control(server.endpoint, timeout_s=TIMEOUT_S)
    control.call("status")
    socket = control._connection.socket
    del control
    assert socket.closed


def test_a_call_has_its_parameters_and_gives_its_result(server, control):
    """Each request has a number of its own."""
    server.answer = lambda r: [{"v": 1, "id": r["id"], "ok": True, "result": r["params"]}]
    assert control.call("get", key="analysis") == {"key": "analysis"}
    assert control.call("status") == {}
    assert [(r["v"], r["id"], r["method"]) for r in server.requests] == [
        (1, 1, "get"),
        (1, 2, "status"),
    ]


def test_calls_within_an_event_loop(server, control):
    """The same, awaited."""
    server.answer = lambda r: [{"v": 1, "id": r["id"], "ok": True, "result": [1]}]

    async def ask():
        return [await control.call_async("status") for _ in range(3)]

    assert asyncio.run(ask()) == [[1]] * 3


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("bad_request", ConfigError),
        ("unknown_method", ConfigError),
        ("bad_params", ConfigError),
        ("denied", DeniedError),
        ("too_many", BusyError),
        ("not_found", NotFoundError),
        ("refused", ConfigError),
        ("unavailable", UnavailableError),
        ("storage", StorageError),
        ("busy", BusyError),
        ("internal", InternalError),
        ("of_a_later_version", SpectrodError),
    ],
)
def test_errors_are_raised_by_their_code(server, control, code, kind):
    """With the daemon's text; the next call works."""
    error = {"code": code, "message": "x=1: must be 2"}
    server.answer = lambda r: [{"v": 1, "id": r["id"], "ok": False, "error": error}]
    with pytest.raises(kind, match=r"^x=1: must be 2$") as raised:
        control.call("status")
    assert type(raised.value) is kind
    server.answer = lambda r: [{"v": 1, "id": r["id"], "ok": True, "result": 1}]
    assert control.call("status") == 1


def test_a_missing_reply_is_reported_and_the_request_withdrawn(server, control):
    """A reply that comes late is not taken for the next call's."""
    server.answer = lambda _: []
    control.timeout_s = 0.05
    with pytest.raises(
        UnavailableError, match=r"no reply to pause within 0\.05 s; .*control endpoint"
    ):
        control.call("pause")
    control.timeout_s = TIMEOUT_S
    server.answer = lambda r: [
        {"v": 1, "id": r["id"] - 1, "ok": True, "result": "late"},
        {"v": 1, "id": r["id"], "ok": True, "result": "mine"},
    ]
    assert control.call("status") == "mine"


def test_a_request_to_nobody_is_not_kept(tmp_path):
    """A daemon that starts after the caller has given up does not carry it out."""
    endpoint = f"ipc://{tmp_path}/c"
    with Control(endpoint, timeout_s=0.05) as control, zmq.Context() as context:
        with pytest.raises(UnavailableError):
            control.call("pause")
        with context.socket(zmq.ROUTER) as late:
            late.setsockopt(zmq.LINGER, 0)
            late.bind(endpoint)
            with pytest.raises(UnavailableError):
                control.call("status")
            assert late.poll(int(TIMEOUT_S * 1e3))
            assert json.loads(late.recv_multipart()[-1])["method"] == "status"
            assert not late.poll(0)


def test_waiting_in_the_daemon_does_not_count(server, control):
    """The time that ``latest`` may take is added to that for the reply."""
    server.answer = lambda _: []
    control.timeout_s = 0.05
    with pytest.raises(UnavailableError, match=r"no reply to latest within 0\.15 s"):
        control.call("latest", topic="spec/x/0/dbfs/", timeout_s=0.1)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([b"{"], "reply='{': Input data was truncated"),
        ([b'{"v":2,"id":1,"ok":true}'], "reply: v=2: must be 1"),
        ([b'{"v":1,"id":1,"ok":false}'], "ok=false: must name the error"),
        ([b"[" * 100000], "reply="),
    ],
)
def test_an_invalid_reply_is_reported(server, control, reply, message):
    """Whatever answers there."""
    server.answer = lambda _: [reply]
    with pytest.raises(WireError, match=message):
        control.call("status")


def test_parameters_that_json_cannot_express_are_refused():
    """Before anything is sent."""
    with pytest.raises(ConfigError, match="set: parameters that JSON cannot represent"):
        encode_call(1, "set", {"changes": {"x": object()}})


def test_messages_after_a_reply_are_taken_apart():
    """As many parts each as the reply says."""
    result = {"epoch": 1, "parts": [2, 3], "more": True}
    parts = [b"a", b"b", b"c", b"d", b"e"]
    assert messages_of(result, parts) == ([[b"a", b"b"], [b"c", b"d", b"e"]], True)
    assert messages_of({"epoch": 1, "parts": []}, []) == ([], False)
    for bad in ([2, 2], [5, 0], [6]):
        with pytest.raises(WireError, match="parts="):
            messages_of(result | {"parts": bad}, parts)
    with pytest.raises(WireError, match="reply: result: "):
        messages_of({"parts": "x"}, parts)


@pytest.mark.parametrize("endpoint", ["tcp://*:1", "tcp://x:0", "udp://x:1"])
def test_endpoints_that_cannot_be_connected_to_are_refused(endpoint):
    """When the object is made."""
    with pytest.raises(ConfigError, match="endpoint="):
        Control(endpoint)


# ---- the newest frame

TOPIC = "spec/tone/0/dbfs/"


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A server at the control socket of a daemon that publishes at TCP port 5556."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    with zmq.Context() as context:
        server = Server(context, f"ipc://{tmp_path}/control-5556.ipc")
        server.answer = lambda r: [
            {"v": 1, "id": r["id"], "ok": True, "result": {"epoch": 1, "parts": []}}
        ]
        yield server
        server.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_latest_takes_the_endpoint_that_subscribe_takes(beside, is_async):
    """For a daemon of this machine, the port leads to its control socket."""

    async def receive():
        async with aio.latest("tcp://127.0.0.1:5556", TOPIC) as frames:
            return await frames.receive_async(0.0)

    if is_async:
        assert asyncio.run(receive()) is None
    else:
        with latest("tcp://127.0.0.1:5556", TOPIC) as frames:
            assert frames.receive(0.0) is None
    assert beside.requests[0]["method"] == "latest"
    assert beside.requests[0]["params"]["topic"] == TOPIC


def test_a_control_looks_for_the_socket_at_each_connection(tmp_path, monkeypatch):
    """A daemon that starts after the control was made is found."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    with Control(f"ipc://{tmp_path}/frames.ipc", timeout_s=0.05) as control:
        with pytest.raises(UnavailableError, match=r"frames\.ipc: no reply to status"):
            control.call("status")
        control.timeout_s = TIMEOUT_S
        with zmq.Context() as context:
            server = Server(context, f"ipc://{tmp_path}/control-frames.ipc")
            try:
                assert control.call("status") is None
            finally:
                server.close()


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("timeout_s", [None, TIMEOUT_S])
def test_latest_of_a_daemon_that_never_replies_ends(server, timeout_s, is_async):
    """However long a frame may take; the next request tries again."""
    server.answer = lambda _: []
    text = rf"^{server.endpoint}: no reply to latest for 0\.1 s; is the daemon running there, and "
    control = Control(server.endpoint, timeout_s=0.02)
    waits = {"timeout_s": timeout_s, "wait_s": 0.0, "no_reply_s": 0.1}
    with conflate.Latest(control, TOPIC, **waits) as frames:
        for _ in range(2):
            with pytest.raises(UnavailableError, match=text):
                asyncio.run(anext(frames)) if is_async else next(frames)
    assert len(server.requests) >= 4


class Silent:
    """A control of which each call takes 6 s: "r" is a reply without a frame, "-" is none."""

    endpoint = "tcp://127.0.0.1:1"

    def __init__(self, replies):
        self._replies = iter(replies)
        self.now_s = 0.0

    def call_parts(self, _method, **_params):
        self.now_s += 6.0
        if next(self._replies) == "-":
            raise UnavailableError("no reply")
        return {"epoch": 1, "parts": []}, []


@pytest.mark.parametrize(("replies", "ends_at_s"), [("r-r-rr-r--", 60), ("--", 12), ("rrrr--", 36)])
def test_a_daemon_that_replies_may_take_as_long_as_it_likes(replies, ends_at_s):
    """Each reply restarts the 10 s, also one without a frame."""
    control = Silent(replies)
    with pytest.raises(UnavailableError, match="no reply to latest for 10 s"):
        conflate.Latest(control, TOPIC, timeout_s=None, clock=lambda: control.now_s).receive()
    assert control.now_s == ends_at_s


def test_a_control_prints_as_one_line():
    """It says where it connects to, and how long it waits; it makes no connection."""
    control = Control("tcp://127.0.0.1:1", timeout_s=0.25)
    assert repr(control) == "<Control: tcp://127.0.0.1:1, timeout 0.25 s>"
