"""The control socket over real sockets, with a handler that only plays a part."""

import contextlib
import ctypes
import json
import os
import re
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
import zmq

from spectrod.client import Control
from spectrod.config.config import SecurityConfig
from spectrod.daemon.access.access import Access
from spectrod.daemon.access.peer import Peer
from spectrod.daemon.control.control_server import ControlServer
from spectrod.daemon.control.dispatch import Answer, Later
from spectrod.daemon.control.unread import RESERVED_BYTES, RESERVED_PEERS, TOTAL_MAX_BYTES
from spectrod.lib.errors import (
    BusyError,
    ConfigError,
    DeniedError,
    InternalError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from spectrod.wire.keys import make_keys
from spectrod.wire.requests import REQUEST_MAX_BYTES, GetParams

TIMEOUT_MS = 20_000
GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL" + bytes(48)
STATUS = b'{"v":1,"id":1,"method":"status"}'


class Part:
    """A handler that returns what a test sets, and records the requests."""

    def __init__(self, answer=None):
        self.asked, self._answer = [], answer or (lambda *_: Answer("done"))

    def call(self, method, params, peer):
        self.asked.append((method, params, peer, threading.current_thread().name))
        return self._answer(method, params)


@contextmanager
def served(handler, folder=None, access=None, **limits):
    """Run a server at an IPC endpoint in a folder, else at a port."""
    endpoint = f"ipc://{folder}/c.ipc" if folder else "tcp://127.0.0.1:*"
    access = access or Access()
    access.start()
    server = ControlServer([endpoint], handler, access, **limits)
    try:
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        access.close()


@contextmanager
def dealer(server, kind=zmq.DEALER, **options):
    """Connect a bare socket."""
    with zmq.Context() as context, context.socket(kind) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        for name, value in options.items():
            socket.setsockopt(getattr(zmq, name), value)
        socket.connect(server.endpoints[0])
        yield socket


def reply_to(socket, *parts):
    socket.send_multipart(parts)
    return json.loads(socket.recv())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder whose path is short enough for a socket's address."""
    monkeypatch.chdir(tmp_path)
    return "."


def test_a_request_reaches_the_handler_with_its_parameters(folder):
    """Method, typed parameters and peer; the result has the request's id."""
    handler = Part(lambda _, params: Answer({"key": params.key}))
    with served(handler, folder) as server, dealer(server) as socket:
        request = b'{"v":1,"id":"a","method":"get","params":{"key":"log"}}'
        assert reply_to(socket, request) == {
            "v": 1,
            "id": "a",
            "ok": True,
            "result": {"key": "log"},
        }
    [(method, params, peer, thread)] = handler.asked
    assert (method, params, thread) == ("get", GetParams(key="log"), "spectrod-control")
    assert peer.right == "control"
    assert peer.name.startswith(f"uid {os.getuid()}")


def test_requests_of_a_req_socket_come_back_in_its_envelope(folder):
    """ZeroMQ's simplest client, which puts an empty part in front, works too."""
    with served(Part(), folder) as server, dealer(server, zmq.REQ) as socket:
        assert reply_to(socket, STATUS)["result"] == "done"


BAD = {
    "nothing": b"",
    "no JSON": b"\x00\xff{",
    "bad UTF-8": b'{"v":1,"id":1,"method":"\xff"}',
    "an array": b"[1]",
    "deep nesting": b"[" * 60_000,
    "deep parameters": b'{"v":1,"id":1,"method":"set","params":{"changes":{"a":' + b"[" * 60_000,
    "another version": b'{"v":2,"id":1,"method":"status"}',
    "no method": b'{"v":1,"id":1}',
    "NaN": b'{"v":1,"id":NaN,"method":"status"}',
    "one field more": b'{"v":1,"id":1,"method":"status","x":1}',
    "a huge number": b'{"v":1,"id":' + b"9" * 5000 + b',"method":"status"}',
    "text after it": STATUS + b"{}",
}


@pytest.mark.parametrize("what", BAD)
def test_an_invalid_request_gets_an_error(what, folder):
    """The socket lives on, and the next request is answered."""
    with served(Part(), folder) as server, dealer(server) as socket:
        reply = reply_to(socket, BAD[what])
        assert (reply["ok"], reply["error"]["code"]) == (False, "bad_request")
        assert reply["error"]["message"]
        assert reply_to(socket, STATUS)["ok"]
        assert server.counts["bad_request"] == 1


@pytest.mark.parametrize("n_parts", [2, 3, 1000])
def test_a_request_of_several_parts_is_refused(n_parts, folder):
    """Whatever the parts are."""
    with served(Part(), folder) as server, dealer(server) as socket:
        reply = reply_to(socket, *[STATUS] * n_parts)
        assert reply["error"] == {
            "code": "bad_request",
            "message": f"message of {n_parts} parts: must be one part, of JSON",
        }


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (b'{"id":7,"method":"explode"}', "unknown_method", "method='explode': must be one of st"),
        (b'{"id":7,"method":"get","params":{"x":1}}', "bad_params", "get: Object contains unknown"),
        (b'{"id":7,"method":"get","params":[]}', "bad_params", "get: Expected `object`"),
        # msgspec before 0.23: 'utf-8' codec can't decode ...; since then: Invalid UTF-8 ...
        (b'{"id":7,"method":"get","params":{"key":"\xff"}}', "bad_params", "get: .*(?i:utf-8)"),
        (b'{"id":7,"method":"set","params":{"changes":{}}}', "bad_params", "set: Expected `object"),
        (b'{"id":7,"method":"status","v":3}', "bad_request", "request: Invalid enum value 3"),
    ],
)
def test_a_refusal_has_the_id_of_its_request(request_, code, text, folder):
    """The id of each refused request comes back."""
    with served(Part(), folder) as server, dealer(server) as socket:
        reply = reply_to(socket, request_)
        assert (reply["id"], reply["error"]["code"]) == (7, code)
        assert re.match(text, reply["error"]["message"])


def test_a_request_may_have_64_kb_and_not_one_byte_more(folder):
    """A larger one ends the connection: nothing of it is read, and others are not disturbed."""
    whole = STATUS.ljust(REQUEST_MAX_BYTES)
    with served(Part(), folder) as server, dealer(server) as small, dealer(server) as large:
        assert reply_to(small, whole)["ok"]
        with large.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
            large.send(whole + b" ")
            assert monitor.poll(TIMEOUT_MS)
            large.disable_monitor()
        assert reply_to(small, STATUS)["ok"]
        assert server.counts["requests"] == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("hop=0: must be"), "refused"),
        (NotFoundError("source='x': does not exist"), "not_found"),
        (DeniedError("no"), "denied"),
        (BusyError("later"), "busy"),
        (StorageError("disk"), "storage"),
        (UnavailableError("away"), "unavailable"),
        (InternalError("bug"), "internal"),
    ],
)
@pytest.mark.parametrize("method", ["status", "reload"])
def test_each_error_of_the_handler_has_its_code(error, code, method, folder):
    """In either thread; the text is the error's."""

    def raising(*_):
        raise error

    with served(Part(raising), folder) as server, dealer(server) as socket:
        reply = reply_to(socket, json.dumps({"id": 1, "method": method}).encode())
        assert reply["error"] == {"code": code, "message": str(error)}


@pytest.mark.parametrize("method", ["status", "reload"])
def test_a_bug_in_a_method_is_reported_and_ends_nothing(method, folder, caplog):
    """The traceback is in the log, the peer sees a line."""
    handler = Part(lambda *_: 1 // 0)
    with served(handler, folder) as server, dealer(server) as socket:
        for _ in range(2):
            reply = reply_to(socket, json.dumps({"id": 1, "method": method}).encode())
            assert reply["error"]["code"] == "internal"
            assert reply["error"]["message"].startswith("ZeroDivisionError")
    assert "Traceback" in caplog.text


def test_names_that_are_not_utf8_are_sent_with_their_bytes_escaped(folder):
    """A file name of other bytes does not keep the status from being sent."""
    handler = Part(lambda *_: Answer({"uri": "a\udcff"}))
    with served(handler, folder) as server, dealer(server) as socket:
        assert reply_to(socket, STATUS)["result"] == {"uri": r"a\xff"}


# ---- who may


@pytest.mark.parametrize(
    ("right", "method", "allowed"),
    [
        ("read", "status", True),
        ("read", "reload", False),
        ("control", "status", True),
        ("control", "reload", True),
        (None, "status", False),
    ],
)
def test_a_right_allows_its_methods_and_no_others(right, method, allowed, folder, monkeypatch):
    """The right to read allows no change, and a revoked key may not even read."""
    monkeypatch.setattr(Access, "user", lambda *_: Peer("ann", right))
    handler = Part()
    with served(handler, folder) as server, dealer(server) as socket:
        reply = reply_to(socket, json.dumps({"id": 1, "method": method}).encode())
    assert reply["ok"] == allowed == bool(handler.asked)
    if not allowed:
        needed = "control" if method == "reload" else "read"
        text = f"{method}: needs the right {needed!r}, which ann does not have"
        assert reply["error"] == {"code": "denied", "message": text}


@pytest.mark.parametrize("host", ["*", "198.51.100.1", "192.0.2.1", "[::]"])
def test_strangers_cannot_control(host):
    """An endpoint that other machines can reach needs keys; nothing like --insecure opens it."""
    access = Access()
    with pytest.raises(ConfigError, match="anyone on the network could control the daemon"):
        ControlServer([f"tcp://{host}:5557"], Part(), access)
    access.close()


# ---- how much, how often


def test_a_peer_above_its_rate_gets_an_error_and_others_do_not(folder):
    """Each peer has a second's worth of requests at once, whatever another has used up."""
    with (
        served(Part(), folder, requests_per_s=5) as server,
        dealer(server) as first,
        dealer(server) as second,
    ):
        codes = [reply_to(first, STATUS).get("error", {}).get("code") for _ in range(20)]
        assert codes[:5] == [None] * 5
        assert codes.count("too_many") >= 10
        assert reply_to(second, STATUS)["ok"]
        assert server.counts["too_many"] == codes.count("too_many")


def test_all_peers_together_are_read_no_faster_than_the_bound(folder):
    """Requests above the limit wait, and are answered in turn: none is lost."""
    with served(Part(), folder, requests_per_s=20) as server, dealer(server) as socket:
        n = 230  # of which 200 may come at once, and 200 a second after that
        for _ in range(n):
            socket.send(STATUS)
        for _ in range(n):
            assert socket.recv()
        assert server.counts["requests"] == n


@pytest.mark.slow
@pytest.mark.parametrize(("n_chars", "n_held"), [(100, 256), (60_000, 174)])
def test_a_peer_that_never_reads_keeps_nobody_waiting(n_chars, n_held, folder):
    """As many replies as may wait for it, in number and in bytes; more are dropped and counted."""
    handler = Part(lambda method, _: Answer("x" * n_chars if method == "get" else None))
    with (
        served(handler, folder, requests_per_s=100_000) as server,
        dealer(server, RCVHWM=1, RCVBUF=4096) as deaf,
        dealer(server) as other,
    ):
        n = 3000
        for _ in range(n):
            deaf.send(b'{"id":1,"method":"get"}')
        while [asked[0] for asked in handler.asked].count("get") < n:
            assert reply_to(other, STATUS)["ok"]
        # So many wait, and what the kernel's buffers and its own queue hold.
        n_kernel = 1_000_000 // n_chars
        assert n - n_held - n_kernel < server.counts["dropped"] <= n - n_held // 2


@pytest.mark.slow
def test_peers_that_never_read_take_a_bounded_amount_of_memory(folder):
    """Forty of them ask for 4 MB ten times each: 64 MiB are held, the others get their replies."""
    with served(Part(lambda *_: Answer("x", LARGE)), folder, requests_per_s=1000) as server:
        with ExitStack() as peers, dealer(server) as other:
            for _ in range(40):
                deaf = peers.enter_context(dealer(server, RCVHWM=1))
                for _ in range(10):
                    deaf.send(b'{"id":1,"method":"get"}')
            while server.counts["requests"] < 400:
                assert reply_to(other, b'{"id":2,"method":"none"}')["error"]["code"]
            assert server._unread.n_bytes <= TOTAL_MAX_BYTES + RESERVED_PEERS * RESERVED_BYTES
        deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
        while server._unread.n_bytes and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert server._unread.n_bytes == 0


def read_until(peer, expected):
    received = b""
    while expected not in received:
        received += (some := peer.recv(4096))
        assert some, received


@pytest.mark.parametrize("routing_id", [b"\0", b"\0abcde", b"a" * 256])
def test_a_routing_id_that_no_peer_may_choose_is_refused(routing_id, folder):
    """Ids that start with zero are ZeroMQ's own, and longer ones break its protocol."""
    with served(Part(), folder) as server, socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(TIMEOUT_MS / 1e3)
        peer.connect(server.endpoints[0].removeprefix("ipc://"))
        peer.sendall(GREETING)
        read_until(peer, b"READY")
        ready = b"\5READY\x0bSocket-Type\0\0\0\6DEALER\x08Identity"
        ready += len(routing_id).to_bytes(4, "big") + routing_id
        peer.sendall(b"\x06" + len(ready).to_bytes(8, "big") + ready)
        peer.sendall(b"\0" + bytes([len(STATUS)]) + STATUS)
        read_until(peer, b"routing id of %d bytes: must have at most 255" % len(routing_id))


def test_routing_ids_cannot_be_guessed(folder):
    """ZeroMQ would number them from ``rand``; a peer that claims the next one would end us."""
    seen = set()
    for _ in range(2):
        ctypes.CDLL(None).srand(5)
        with served(Part(), folder) as server, dealer(server) as peer:
            assert reply_to(peer, STATUS)["ok"]
            seen.update(server._of_each._buckets)
    assert len(seen) == 2


def test_a_routing_id_stays_with_the_connection_that_has_it(folder):
    """A peer that claims it neither ends that connection nor receives any reply."""
    release = threading.Event()
    handler = Part(lambda *_: Answer(release.wait(TIMEOUT_MS / 1e3) and "secret"))
    with served(handler, folder) as server, dealer(server, IDENTITY=b"alice") as alice:
        alice.send(b'{"id":1,"method":"pause"}')
        deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
        while not handler.asked and time.monotonic() < deadline_s:
            time.sleep(0.001)
        with dealer(server, IDENTITY=b"alice") as thief, dealer(server) as other:
            for _ in range(3):
                thief.send(STATUS)
            assert reply_to(other, b"{}")["error"]["code"] == "bad_request"
            release.set()
            assert json.loads(alice.recv())["result"] == "secret"
            assert reply_to(alice, STATUS)["ok"]
            assert not thief.poll(100)


LARGE = [bytes(1 << 20)] * 4


def outcome(parts):
    """Tell a whole large reply from the reason why there is none."""
    reply, *rest = parts
    return [len(part) for part in rest] or json.loads(reply)["error"]["message"]


@pytest.mark.slow
def test_large_replies_wait_for_a_peer_two_at_a_time(folder):
    """Peers that read get any number; a peer that does not gets the reason for the refusal."""
    whole = [len(part) for part in LARGE]
    unread = "status: too many large replies are unread; read them first"
    crowd = "status: more than may wait at once, 8 a peer"
    with (
        served(Part(lambda *_: Answer("x", LARGE)), folder, requests_per_s=1000) as server,
        dealer(server, RCVHWM=1) as deaf,
        dealer(server) as other,
    ):
        for _ in range(20):
            deaf.send(STATUS)
        for _ in range(30):
            other.send(STATUS)
            assert outcome(other.recv_multipart()) == whole
        while server.counts["too_many"] < 20 - 6:
            other.send(STATUS)
            assert outcome(other.recv_multipart()) == whole
        reported = [outcome(deaf.recv_multipart()) for _ in range(20)]
        assert 2 <= reported.count(whole) <= 6
        assert 1 <= reported.count(unread) <= 8
        assert reported.count(whole) + reported.count(unread) + reported.count(crowd) == 20
        deaf.send(STATUS)
        assert outcome(deaf.recv_multipart()) == whole


@pytest.mark.slow
def test_a_late_reader_gets_its_large_replies_too(folder):
    """Seven asked for before the first is read: five have to wait for room."""
    handler = Part(lambda method, _: Answer("x", LARGE if method == "get" else ()))
    with (
        served(handler, folder) as server,
        dealer(server, RCVHWM=1) as late,
        dealer(server) as other,
    ):
        for _ in range(7):
            late.send(b'{"id":1,"method":"get"}')
        while [asked[0] for asked in handler.asked].count("get") < 7:
            assert reply_to(other, STATUS)["ok"]
        assert [outcome(late.recv_multipart()) for _ in range(7)] == [[1 << 20] * 4] * 7


def test_the_32nd_change_waits_and_the_next_is_refused(folder):
    """A long change does not delay the status for other peers."""
    started, resume = threading.Event(), threading.Event()

    def slow(method, _params):
        if method == "reload":
            started.set()
            assert resume.wait(20)
        return Answer(method)

    reload = b'{"id":1,"method":"reload"}'
    with served(Part(slow), folder) as server, dealer(server) as socket:
        socket.send(reload)
        assert started.wait(20)
        for _ in range(33):
            socket.send(reload)
        refused = json.loads(socket.recv())
        assert refused["error"] == {
            "code": "busy",
            "message": "reload: 32 changes wait already; try again later",
        }
        assert reply_to(socket, STATUS)["result"] == "status"
        resume.set()
        assert [json.loads(socket.recv())["result"] for _ in range(33)] == ["reload"] * 33


# ---- answers that come later


class Slow:
    """Something that is there once a test says so."""

    def __init__(self):
        self.watchers, self.is_there, self.watched = [], False, threading.Event()

    def later(self, timeout_s):
        return Later(self.look, self.watch, timeout_s, Answer("too late"))

    def look(self):
        return Answer("there", [b"part"]) if self.is_there else None

    def watch(self, wake):
        self.watchers.append(wake)
        self.watched.set()
        return lambda: self.watchers.remove(wake)

    def come(self):
        self.is_there = True
        for wake in tuple(self.watchers):  # each that is woken takes itself off the list
            wake()


LATEST = b'{"id":1,"method":"latest","params":{"topic":"spec/a/0/dbfs/"}}'


def test_a_late_answer_does_not_delay_others(folder):
    """Others are answered meanwhile, and the answer comes with its parts as soon as it is there."""
    slow = Slow()
    handler = Part(lambda method, _: slow.later(60) if method == "latest" else Answer("now"))
    with served(handler, folder) as server, dealer(server) as socket:
        socket.send(LATEST)
        assert slow.watched.wait(20)
        assert reply_to(socket, STATUS)["result"] == "now"
        slow.come()
        reply, *parts = socket.recv_multipart()
        assert (json.loads(reply)["result"], parts) == ("there", [b"part"])
        assert slow.watchers == []


def test_an_answer_that_never_comes_times_out(folder):
    """The reply is the one that the handler has prepared."""
    slow = Slow()
    with served(Part(lambda *_: slow.later(0.05)), folder) as server, dealer(server) as socket:
        assert reply_to(socket, LATEST)["result"] == "too late"
        assert slow.watchers == []


def test_one_that_was_there_before_the_watch_is_not_missed(folder):
    """An answer that came between the request and the watch is found."""
    slow = Slow()
    slow.is_there = True
    with served(Part(lambda *_: slow.later(60)), folder) as server, dealer(server) as socket:
        assert reply_to(socket, LATEST)["result"] == "there"


def test_a_topic_that_is_gone_before_the_watch_is_refused(folder):
    """As a product that a change takes away in between; the socket lives on."""

    def watch(_):
        raise NotFoundError("product='slow': is gone")

    later = Later(lambda: None, watch, 60, Answer())
    handler = Part(lambda method, _: later if method == "latest" else Answer("now"))
    with served(handler, folder) as server, dealer(server) as socket:
        assert reply_to(socket, LATEST)["error"] == {
            "code": "not_found",
            "message": "product='slow': is gone",
        }
        assert reply_to(socket, STATUS)["result"] == "now"


def test_a_peer_may_wait_for_eight_answers_at_once(folder):
    """More are refused, which does not end those that wait."""
    slow = Slow()
    with served(Part(lambda *_: slow.later(60)), folder) as server, dealer(server) as socket:
        for _ in range(9):
            socket.send(LATEST)
        refused = json.loads(socket.recv())
        assert refused["error"]["code"] == "too_many"
        slow.come()
        for _ in range(8):
            assert json.loads(socket.recv_multipart()[0])["result"] == "there"


# ---- start and stop


def test_a_stop_answers_all_pending_requests(folder):
    """Nobody is left without a reply when the daemon ends."""
    slow = Slow()
    with served(Part(lambda *_: slow.later(60)), folder) as server, dealer(server) as socket:
        socket.send(LATEST)
        assert slow.watched.wait(20)
        server.stop()
        reply = json.loads(socket.recv())
        assert reply["error"] == {"code": "unavailable", "message": "latest: the daemon stops"}
        assert slow.watchers == []
        server.stop()  # idempotent


@pytest.mark.slow
def test_a_stop_answers_whose_change_takes_too_long_for_it(folder):
    """Its outcome is unknown, and its peer gets an error instead of waiting."""
    started, end = threading.Event(), threading.Event()

    def change(*_):
        started.set()
        assert end.wait(20)
        return Answer("late")

    with served(Part(change), folder) as server, dealer(server) as socket:
        socket.send(b'{"id":1,"method":"reload"}')
        assert started.wait(20)
        server.stop()
        reply = json.loads(socket.recv())
        end.set()
        text = "reload: the daemon stops before the change is done"
        assert reply["error"] == {"code": "unavailable", "message": text}


def test_a_second_server_on_the_same_socket_is_refused(folder):
    """It does not take the socket away from the first, which goes on to answer."""
    with served(Part(), folder) as server:
        access = Access()
        access.start()
        second = ControlServer(server.endpoints, Part(), access)
        with pytest.raises(BusyError, match="in use by another process"):
            second.start()
        access.close()
        with dealer(server) as socket:
            assert reply_to(socket, STATUS)["ok"]


def test_its_files_are_for_user_and_group_alone_and_gone_after_it(folder, tmp_path):
    """Socket 0660, whatever the umask; neither socket nor lock is left behind."""
    before = os.umask(0)
    try:
        with served(Part(), folder):
            assert (tmp_path / "c.ipc").stat().st_mode & 0o777 == 0o660
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_two_clients_at_once_get_their_own_answers(folder):
    """Concurrent requests never get each other's replies."""
    handler = Part(lambda _, params: Answer(params.key))
    failures = []
    with served(handler, folder, requests_per_s=10_000) as server:

        def ask(name):
            with Control(server.endpoints[0]) as control:
                keys = [f"{name}.{k}" for k in range(300)]
                if [control.call("get", key=key) for key in keys] != keys:
                    failures.append(name)

        threads = [threading.Thread(target=ask, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert failures == []
    assert len(handler.asked) == 600


@pytest.fixture
def keys(tmp_path):
    """Keys of a daemon and of two clients."""
    make_keys(tmp_path, "server", "control")
    for name, right in (("ann", "read"), ("bob", "control")):
        make_keys(tmp_path / "clients", name, right)
    return tmp_path


@contextmanager
def served_with_keys(keys, handler):
    access = Access(
        SecurityConfig(
            server_key=str(keys / "server.key"),
            client_keys=str(keys / "clients"),
            require="always",
        )
    )
    access.start()
    with served(handler, access=access) as server:
        yield server, access


def with_key(keys, server, name):
    return Control(
        server.endpoints[0],
        timeout_s=1,
        server_key=keys / "server.pub",
        key_file=keys / "clients" / f"{name}.key",
    )


def test_keys_are_required_as_configured(keys):
    """The request of a peer without a key is not even read."""
    with served_with_keys(keys, Part()) as (server, _):
        with (
            Control(server.endpoints[0]) as control,
            pytest.raises(DeniedError, match="the endpoint requires keys"),
        ):
            control.call("status")
        assert server.counts["requests"] == 0


def test_bytes_of_the_oldest_protocol_are_no_way_around_keys(keys):
    """An HTTP request passes for a message of ZMTP 1.0, which has no keys: it is hung up on."""
    with served_with_keys(keys, Part()) as (server, _):
        port = int(server.endpoints[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n" * 20)
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(4096):
                    pass
        assert server.counts["requests"] == 0


def test_a_key_gives_name_and_right(keys):
    """Names and rights are those of the public keys' files."""
    handler = Part()
    with (
        served_with_keys(keys, handler) as (server, _),
        with_key(keys, server, "ann") as ann,
        with_key(keys, server, "bob") as bob,
    ):
        assert ann.call("status") == bob.call("reload") == "done"
        with pytest.raises(DeniedError, match="reload: needs the right 'control', which ann does"):
            ann.call("reload")
    assert [(method, peer) for method, _, peer, _ in handler.asked] == [
        ("status", Peer("ann", "read")),
        ("reload", Peer("bob", "control")),
    ]


@pytest.mark.slow
def test_a_revoked_key_is_cut_off_and_the_others_continue(keys):
    """It is not answered once more, whether it was connected or comes again."""
    with (
        served_with_keys(keys, Part()) as (server, access),
        with_key(keys, server, "ann") as ann,
        with_key(keys, server, "bob") as bob,
    ):
        assert ann.call("status") == bob.call("status") == "done"
        (keys / "clients" / "bob.pub").unlink()
        assert access.reload() == ["key bob: revoked"]
        for _ in range(3):
            # What is under way in the moment of the cut is lost, and nobody can tell.
            with pytest.raises((DeniedError, UnavailableError)):
                bob.call("status")
        assert answered(ann)


def answered(control):
    """Ask until there is an answer."""
    for _ in range(20):
        with contextlib.suppress(UnavailableError):
            return control.call("status") == "done"
    return False
