"""Access control over real sockets; every wait is for a message, an event or a descriptor."""

import errno
import math
import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from unittest.mock import Mock

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from spectrod.config.settings import SecurityConfig
from spectrod.daemon.access.access import Access
from spectrod.daemon.access.holders import KeyHolders
from spectrod.daemon.access.listeners import Listeners
from spectrod.daemon.access.peer import Peer
from spectrod.lib.errors import ConfigError
from spectrod.lib.events import EventLog
from spectrod.wire.endpoint import parse_endpoint
from spectrod.wire.keys import make_keys, read_secret

TIMEOUT_MS = 30_000
ANY_PORT = "tcp://127.0.0.1:*"


class Keys:
    """A folder of keys of a server and its clients."""

    def __init__(self, folder):
        self.folder = folder
        self.clients = folder / "clients"
        self.clients.mkdir()
        self.new("server")

    def new(self, name, right="read", *, known=False):
        own = self.folder / name
        public, _ = make_keys(own, name, right)
        if known:
            (self.clients / public.name).write_text(public.read_text())

    def revoke(self, name):
        (self.clients / f"{name}.pub").unlink()

    def pair(self, name):
        return read_secret(self.folder / name / f"{name}.key")

    @property
    def security(self):
        server = self.folder / "server" / "server.key"
        return SecurityConfig(str(server), str(self.clients), "always")


class Server:
    """A ROUTER with access control, at any free port."""

    def __init__(self, access, *endpoints):
        self.access = access
        self.woken = threading.Event()
        self.socket = access.context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        self.listeners = Listeners(self.socket, access, self.woken.set)
        self.endpoints = [self.listeners.bind(parse_endpoint(e), access.at_end) for e in endpoints]
        self.holders = KeyHolders(access, self.listeners.with_keys)

    def receive(self):
        """Return the sender and the content of the next message."""
        frames = self.socket.recv_multipart(copy=False)
        self.holders.note(self.access.link_of(frames[-1]), frames[-1])
        return self.access.user(frames[-1]), frames[-1].bytes


@pytest.fixture
def keys(tmp_path):
    keys = Keys(tmp_path)
    keys.new("alice", "read", known=True)
    keys.new("bob", "control", known=True)
    keys.new("eve", "control")
    return keys


@pytest.fixture
def serve():
    """Start access controls with a server each, and close them after the test."""
    with ExitStack() as cleanup:

        def start(security, *endpoints, **options):
            access = Access(security, **options)
            cleanup.callback(access.close)
            access.start()
            server = Server(access, *(endpoints or [ANY_PORT]))
            cleanup.callback(server.socket.close)
            return server

        yield start


CUTS = zmq.Event.DISCONNECTED | zmq.Event.CONNECTED


@pytest.fixture
def connect():
    """Connect DEALER sockets, each with a monitor of its handshakes."""
    with zmq.Context() as context, ExitStack() as cleanup:

        def open_(endpoint, own=None, server_key=None, events=CUTS):
            sock = context.socket(zmq.DEALER)
            cleanup.callback(sock.close)
            sock.setsockopt(zmq.LINGER, 0)
            sock.setsockopt(zmq.RECONNECT_IVL, 20)
            if own is not None:
                sock.setsockopt(zmq.CURVE_SERVERKEY, server_key)
                sock.setsockopt(zmq.CURVE_PUBLICKEY, own.key)
                sock.setsockopt(zmq.CURVE_SECRETKEY, own.secret)
            monitor = sock.get_monitor_socket(events)
            cleanup.callback(monitor.close)
            sock.connect(endpoint)
            sock.send(b"hello")
            return sock, monitor

        yield open_


def server_key(keys):
    return keys.pair("server").key


def wait_until(is_true):
    """Wait for what another thread does without a signal."""
    deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def next_event(monitor, expected, server):
    """Wait, and poll the server's socket as its owner would, since libzmq closes pipes then."""
    poller = zmq.Poller()
    for sock in (monitor, server.socket):
        poller.register(sock, zmq.POLLIN)
    while True:
        ready = dict(poller.poll(TIMEOUT_MS))
        assert ready
        if monitor in ready and recv_monitor_message(monitor)["event"] == expected:
            return


def test_a_known_key_comes_in_and_is_called_by_its_name(keys, serve, connect):
    """A known key connects under its name with the right that its public file gives."""
    server = serve(keys.security)
    for name, right in (("alice", "read"), ("bob", "control")):
        connect(server.endpoints[0], keys.pair(name), server_key(keys))
        assert server.receive() == (Peer(name, right), b"hello")
    assert set(server.access.refusals.counts.values()) == {0}


def test_an_unknown_key_is_refused_and_logged(keys, serve, connect, wait_for_refusals):
    """An unknown key is refused, and the log has the key and the address."""
    events = EventLog()
    server = serve(keys.security, events=events)
    connect(server.endpoints[0], keys.pair("eve"), server_key(keys))
    wait_for_refusals(server.access, "unknown_key")
    wait_until(events.since)  # a refusal is counted before it is reported
    event = events.since()[0]
    assert event.kind == "security.unknown_key"
    assert event.text.endswith(f": {keys.pair('eve').key.decode()} from 127.0.0.1")
    assert not server.socket.poll(0)


def test_a_wrong_server_key_is_refused(keys, serve, connect, wait_for_refusals):
    """A client that expects another server key is refused and exchanges no data."""
    server = serve(keys.security)
    connect(server.endpoints[0], keys.pair("alice"), keys.pair("eve").key)
    wait_for_refusals(server.access, "wrong_server_key")
    assert not server.socket.poll(0)


def test_a_client_without_a_key_is_refused(keys, serve, connect, wait_for_refusals):
    """A plain client without a key is refused by libzmq's greeting."""
    server = serve(keys.security)
    connect(server.endpoints[0])
    wait_for_refusals(server.access, "no_key", "other")
    assert not server.socket.poll(0)


def test_a_peer_of_another_protocol_is_cut_off(keys, serve):
    """A peer of another protocol, such as a web browser, gets the ZMTP signature and is cut off."""
    server = serve(keys.security)
    port = int(server.endpoints[0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_MS / 1e3) as stranger:
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        received = read_all(stranger)
    assert b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f".startswith(received)
    assert not server.socket.poll(0)


SERVER_GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)


def greeting(mechanism):
    return b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)


def read_all(sock):
    received = b""
    while part := _received(sock):
        received += part
    return received


@pytest.mark.parametrize(
    "handshake", [b"\x04\xc8\x05HELLO\x01\x00" + bytes(192), b"\x04\x06\x05READY"]
)
def test_a_refused_peer_receives_the_greeting_and_nothing_more(keys, serve, handshake):
    """A refused peer receives the 64 bytes of the greeting: no name, heartbeat or spectrum."""
    server = serve(keys.security)
    port = int(server.endpoints[0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_MS / 1e3) as stranger:
        stranger.sendall(greeting(b"CURVE"))
        with stranger.makefile("rb") as reader:
            assert reader.read(64) == SERVER_GREETING
            stranger.sendall(handshake)
            assert reader.read() == b""


def test_a_peer_of_an_unknown_key_receives_a_number_and_nothing_more(
    keys, serve, wait_for_refusals
):
    """A peer with an unknown key receives the handshake and ZMTP's error 400 and nothing more."""
    server = serve(keys.security)
    port = int(server.endpoints[0].rpartition(":")[2])
    with Tap(port) as tap, zmq.Context() as context, context.socket(zmq.DEALER) as sock:
        sock.setsockopt(zmq.LINGER, 0)
        eve = keys.pair("eve")
        sock.setsockopt(zmq.CURVE_SERVERKEY, server_key(keys))
        sock.setsockopt(zmq.CURVE_PUBLICKEY, eve.key)
        sock.setsockopt(zmq.CURVE_SECRETKEY, eve.secret)
        sock.connect(f"tcp://127.0.0.1:{tap.port}")
        wait_for_refusals(server.access, "unknown_key")
        sock.disconnect(f"tcp://127.0.0.1:{tap.port}")
        received = tap.all()
    # Greeting 64, WELCOME 170 of ZMTP's curve handshake, ERROR with "400".
    assert received[64:].startswith(b"\x04\xa8\x07WELCOME")
    assert received[64 + 170 :] == b"\x04\x0a\x05ERROR\x03400"


class Tap:
    """A proxy to a port that keeps all bytes from the server."""

    def __init__(self, port):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = port
        self._received = b""
        self._thread = threading.Thread(target=self._run)
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.close()
        self._thread.join(TIMEOUT_MS / 1e3)

    def all(self):
        """Return all received bytes, once one side has closed."""
        self._thread.join(TIMEOUT_MS / 1e3)
        assert not self._thread.is_alive()
        return self._received

    def _run(self):
        near, _ = self._listener.accept()
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            forward = threading.Thread(target=self._forward, args=(near, far))
            forward.start()
            while part := _received(far):
                self._received += part
                near.sendall(part)
            near.shutdown(socket.SHUT_WR)
            forward.join()

    def _forward(self, near, far):
        while part := _received(near):
            far.sendall(part)
        far.shutdown(socket.SHUT_WR)


def _received(sock):
    try:
        return sock.recv(65536)
    except ConnectionError:
        return b""


def test_one_socket_has_endpoints_with_keys_and_without(keys, serve, connect, tmp_path):
    """One socket has endpoints with and without keys, bound in any order."""
    paths = [f"ipc://{tmp_path}/{name}.sock" for name in "ab"]
    server = serve(keys.security, paths[0], ANY_PORT, paths[1])
    for path in paths:
        connect(path)
        peer, _ = server.receive()
        assert peer.name.startswith("uid ")
        assert peer.right == "control"
    connect(server.endpoints[1], keys.pair("alice"), server_key(keys))
    assert server.receive()[0] == Peer("alice", "read")


def test_loopback_requires_keys_only_if_configured(keys, serve, connect):
    """With keys for other machines, loopback needs no key unless that is configured."""
    security = SecurityConfig(keys.security.server_key, keys.security.client_keys)
    server = serve(security)
    connect(server.endpoints[0])
    assert server.receive() == (Peer("127.0.0.1", "control"), b"hello")
    for text, needed in (("tcp://0.0.0.0:1", True), ("tcp://*:1", True), ("ipc:///x", False)):
        assert server.access.is_curve(parse_endpoint(text)) is needed


def test_without_keys_everybody_comes_in(serve, connect):
    """Without keys every peer is accepted and counted."""
    server = serve(SecurityConfig())
    assert server.access.reload() == []
    connect(server.endpoints[0])
    assert server.receive()[0].right == "control"
    # The access thread counts it, maybe after its first message.
    wait_until(lambda: server.access.connections.status()["tcp"]["count"] == 1)


@pytest.mark.parametrize("sent", [b"", b"\xff\x00"], ids=["silent", "slow"])
@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_a_peer_that_does_not_finish_the_handshake_is_cut_off(serve, tmp_path, transport, sent):
    """A peer that does not finish its handshake is cut off in time, with or without keys."""
    path = tmp_path / "s.ipc"
    endpoint = ANY_PORT if transport == "tcp" else f"ipc://{path}"
    server = serve(SecurityConfig(), endpoint, handshake_s=0.05)
    family = socket.AF_INET if transport == "tcp" else socket.AF_UNIX
    with socket.socket(family) as stranger:
        stranger.settimeout(TIMEOUT_MS / 2e3)  # libzmq itself has 30 s
        port = server.endpoints[0].rpartition(":")[2]
        stranger.connect(("127.0.0.1", int(port)) if transport == "tcp" else str(path))
        stranger.sendall(sent)
        read_all(stranger)
    assert set(server.access.refusals.counts.values()) == {0}  # nobody is refused without keys


def test_a_name_cannot_be_claimed_where_no_key_is_asked_for(keys, serve, tmp_path):
    """On an endpoint without keys, a peer cannot claim a name by metadata."""
    security = SecurityConfig(keys.security.server_key, keys.security.client_keys)
    server = serve(security)
    port = int(server.endpoints[0].rpartition(":")[2])
    properties = b"".join(
        bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
        for name, value in (
            (b"Socket-Type", b"DEALER"),
            (b"User-Id", b"bob"),
            (b"Peer-Address", b""),
        )
    )
    body = b"\x05READY" + properties
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_MS / 1e3) as stranger:
        stranger.sendall(greeting(b"NULL") + bytes([4, len(body)]) + body)
        with stranger.makefile("rb") as reader:
            reader.read(64)
            reader.read(reader.read(2)[1])  # its READY, after which messages may come
        stranger.sendall(b"\x00\x02hi")
        assert server.receive() == (Peer("127.0.0.1", "control"), b"hi")


def test_a_revoked_key_is_cut_off_and_no_other(keys, serve, connect, wait_for_refusals):
    """Only the connections of a revoked key are cut, and a new attempt is refused."""
    server = serve(keys.security)
    _, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    bob, bobs = connect(server.endpoints[0], keys.pair("bob"), server_key(keys))
    assert {server.receive()[0].name for _ in range(2)} == {"alice", "bob"}
    keys.revoke("alice")
    assert server.access.reload() == ["key alice: revoked"]
    assert server.woken.is_set()
    server.holders.refresh()
    assert not server.listeners.refresh()
    next_event(alices, zmq.Event.DISCONNECTED, server)
    wait_for_refusals(server.access, "revoked_key")
    bob.send(b"again")
    assert server.receive() == (Peer("bob", "control"), b"again")
    next_event(bobs, zmq.Event.CONNECTED, server)
    assert not bobs.poll(0)
    assert not server.socket.poll(0)


def test_a_connection_whose_messages_were_not_read_yet_is_cut_by_a_revocation(keys, serve, connect):
    """A revocation cuts connections with unread messages, which may be the key's."""
    server = serve(keys.security)
    (endpoint,), events = server.endpoints, CUTS | zmq.Event.HANDSHAKE_SUCCEEDED
    _alice, alices = connect(endpoint, keys.pair("alice"), server_key(keys), events)
    bob, bobs = connect(endpoint, keys.pair("bob"), server_key(keys), events)
    # Both are let in; a connection that is let in after the revocation is not cut.
    next_event(alices, zmq.Event.HANDSHAKE_SUCCEEDED, server)
    next_event(bobs, zmq.Event.HANDSHAKE_SUCCEEDED, server)
    assert server.socket.poll(TIMEOUT_MS)  # a message is unread
    keys.revoke("alice")
    server.access.reload()
    server.holders.refresh()
    next_event(alices, zmq.Event.DISCONNECTED, server)
    next_event(bobs, zmq.Event.CONNECTED, server)
    bob.send(b"again")
    while (received := server.receive())[1] != b"again":
        pass
    assert received == (Peer("bob", "control"), b"again")


def test_a_revoked_key_is_cut_where_connections_cannot_be_listed(
    keys, serve, connect, monkeypatch, caplog
):
    """If connections cannot be listed, the known ones of a revoked key are cut, with a log line."""
    server = serve(keys.security)
    _alice, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0].name == "alice"

    scandir = os.scandir  # pathlib uses it too from Python 3.13 on

    def fail(path):
        if path != "/proc/self/fd":
            return scandir(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    monkeypatch.setattr("os.scandir", fail)
    keys.revoke("alice")
    server.access.reload()
    server.holders.refresh()
    next_event(alices, zmq.Event.DISCONNECTED, server)
    assert "connections whose key is still unknown are not cut: " in caplog.text


def test_a_connection_that_a_revocation_has_missed_is_cut_by_its_next_message(keys, serve, connect):
    """A connection that a revocation missed is cut with its next message."""
    server = serve(keys.security)
    _alice, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.socket.poll(TIMEOUT_MS)
    keys.revoke("alice")
    server.access.reload()
    assert server.receive()[0].right is None
    next_event(alices, zmq.Event.DISCONNECTED, server)


def test_a_revoked_key_lives_until_its_replies_are_out(keys, serve, connect, monkeypatch):
    """With a linger, connections of a revoked key are cut after it and not before."""
    server = serve(keys.security)
    server.holders = KeyHolders(server.access, server.listeners.with_keys, linger_s=0.2)
    _alice, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0].name == "alice"
    assert server.holders.due_s == math.inf
    keys.revoke("alice")
    server.access.reload()
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    server.holders.refresh()
    assert server.holders.due_s == now_s + 0.2
    next_event(alices, zmq.Event.CONNECTED, server)
    assert not alices.poll(0)
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 0.2)
    server.holders.refresh()
    monkeypatch.undo()
    assert server.holders.due_s == math.inf
    next_event(alices, zmq.Event.DISCONNECTED, server)


def test_a_connection_that_is_reported_late_is_not_cut_in_place_of_a_revoked_one(
    keys, serve, connect, monkeypatch
):
    """Connections are reported after their first messages: only the revoked one is cut."""
    server = serve(keys.security)
    connections = server.access.connections
    accepted, late = connections.accepted, []
    monkeypatch.setattr(connections, "accepted", lambda *report: late.append(report))
    endpoint = server.endpoints[0]
    _alice, alices = connect(endpoint, keys.pair("alice"), server_key(keys))
    bob, bobs = connect(endpoint, keys.pair("bob"), server_key(keys))
    assert {server.receive()[0].name for _ in range(2)} == {"alice", "bob"}
    keys.revoke("alice")
    server.access.reload()
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    server.holders.refresh()
    assert now_s < server.holders.due_s < now_s + 1.0
    for report in late:
        accepted(*report)
    now_s = server.holders.due_s
    server.holders.refresh()
    monkeypatch.undo()
    assert server.holders.due_s == math.inf
    next_event(alices, zmq.Event.DISCONNECTED, server)
    next_event(bobs, zmq.Event.CONNECTED, server)
    bob.send(b"again")
    while server.receive()[1] != b"again":
        pass
    assert not bobs.poll(0)


def test_a_connection_that_is_never_reported_is_cut_a_second_after_a_revocation(
    keys, serve, connect, monkeypatch
):
    """A connection whose report does not come is spared for a second, then cut, whoever has it."""
    server = serve(keys.security)
    monkeypatch.setattr(server.access.connections, "accepted", Mock())
    _bob, bobs = connect(server.endpoints[0], keys.pair("bob"), server_key(keys))
    assert server.receive()[0].name == "bob"
    keys.revoke("alice")
    server.access.reload()
    start_s = now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    server.holders.refresh()
    while server.holders.due_s < math.inf:
        assert now_s < start_s + 1.0
        now_s = server.holders.due_s
        server.holders.refresh()
    monkeypatch.undo()
    assert now_s >= start_s + 1.0
    next_event(bobs, zmq.Event.DISCONNECTED, server)


@pytest.mark.slow
def test_nobody_takes_the_port_while_connections_are_cut(keys, serve, connect):
    """While connections are cut, another process cannot bind the port at any moment."""
    server = serve(keys.security)
    port = int(server.endpoints[0].rpartition(":")[2])
    is_over, stolen = threading.Event(), []

    def steal():
        while not is_over.is_set() and not stolen:
            with socket.socket() as thief:
                thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with suppress(OSError):
                    thief.bind(("127.0.0.1", port))
                    thief.listen()
                    stolen.append(port)

    thread = threading.Thread(target=steal)
    thread.start()
    for _ in range(50):
        server.access.generation += 1
        assert server.listeners.refresh()
    is_over.set()
    thread.join(TIMEOUT_MS / 1e3)
    assert not stolen
    connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0].name == "alice"


def test_an_endpoint_that_cannot_accept_again_is_tried_again(keys, serve, connect, monkeypatch):
    """Without a free descriptor, a revocation cuts and logs, and reopens the endpoint later."""
    events = EventLog()
    server = serve(keys.security, events=events)
    alice, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0].name == "alice"
    with monkeypatch.context() as short:
        short.setattr("os.dup", no_descriptors)
        server.access.generation += 1
        assert server.listeners.refresh()
        next_event(alices, zmq.Event.DISCONNECTED, server)
        assert server.listeners.due_s < time.monotonic() + 1.0
        short.setattr(time, "monotonic", lambda: server.listeners.due_s)
        assert not server.listeners.refresh()
        short.undo()
    monkeypatch.setattr(time, "monotonic", lambda: server.listeners.due_s)
    assert not server.listeners.refresh()
    monkeypatch.undo()
    assert server.listeners.due_s == math.inf
    alice.send(b"again")
    assert server.receive() == (Peer("alice", "read"), b"again")
    reported = [(event.kind, event.text) for event in events.since()]
    assert [kind for kind, _ in reported] == ["listen.failed", "listen.failed", "listen.open"]
    assert "accepts no connections: Too many open files; next try in 0.1 s" in reported[0][1]
    assert reported[2][1] == f"{server.endpoints[0]}: accepts connections again"


def test_without_filters_an_endpoint_closes_by_cutting_everybody(keys, serve, connect, monkeypatch):
    """Without socket filters, an endpoint closes all connections, and those with rights return."""
    server = serve(keys.security)
    alice, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0].name == "alice"
    listening = server.listeners._all[0]
    monkeypatch.setattr("spectrod.daemon.access.listening._SO_ATTACH_FILTER", -1)
    listening.refuse_connections()
    assert server.woken.is_set()
    assert server.listeners.refresh()
    assert not server.listeners.refresh()
    assert server.listeners.due_s == math.inf
    next_event(alices, zmq.Event.DISCONNECTED, server)
    server.access.generation += 1
    assert server.listeners.refresh()
    server.woken.clear()
    listening.accept_connections()
    assert server.woken.is_set()
    assert not server.listeners.refresh()
    alice.send(b"again")
    assert server.receive() == (Peer("alice", "read"), b"again")


def no_descriptors(_fd):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_key_with_an_ipc_path_and_a_port_keeps_both(keys, serve, connect):
    """An IPC path and a chosen port are the same after the endpoint is bound again."""
    server = serve(keys.security)
    for _ in range(20):
        server.access.generation += 1
        server.listeners.refresh()
    connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0].name == "alice"


def test_a_key_that_is_added_cuts_nobody(keys, serve, connect):
    """An added key can connect at once, and existing connections stay."""
    server = serve(keys.security)
    connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    server.receive()
    keys.new("carol", "control", known=True)
    assert server.access.reload() == ["key carol: new, may control"]
    assert not server.woken.is_set()
    connect(server.endpoints[0], keys.pair("carol"), server_key(keys))
    assert server.receive()[0] == Peer("carol", "control")


def test_a_right_that_changes_holds_for_the_next_message(keys, serve, connect):
    """A changed right applies to the next message of an existing connection."""
    server = serve(keys.security)
    bob, _ = connect(server.endpoints[0], keys.pair("bob"), server_key(keys))
    assert server.receive()[0].right == "control"
    public = keys.clients / "bob.pub"
    public.write_text(public.read_text().replace('"control"', '"read"'))
    assert server.access.reload() == ["key bob: now bob, may read"]
    bob.send(b"again")
    assert server.receive()[0] == Peer("bob", "read")


def test_a_name_that_another_key_has_now_gives_no_right(keys, serve, connect):
    """If two keys exchange their names, connections keep the rights of their keys."""
    server = serve(keys.security)
    alice, _ = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.receive()[0] == Peer("alice", "read")
    alices, bobs = (keys.clients / f"{name}.pub" for name in ("alice", "bob"))
    texts = [path.read_text() for path in (alices, bobs)]
    alices.write_text(texts[0].replace('"alice"', '"bob"'))
    bobs.write_text(texts[1].replace('"bob"', '"alice"'))
    server.access.reload()
    alice.send(b"again")
    assert server.receive()[0] == Peer("bob", "read")


def test_a_new_server_key_cuts_everybody(keys, serve, connect, wait_for_refusals):
    """A new server key cuts all connections, and only clients with the new key return."""
    server = serve(keys.security)
    _, alices = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    server.receive()
    old = server_key(keys)
    for path in (keys.folder / "server").iterdir():
        path.unlink()
    make_keys(keys.folder / "server", "server", "read")
    assert server.access.reload() == [f"the server's key is now {server_key(keys).decode()}"]
    assert server.listeners.refresh()
    next_event(alices, zmq.Event.DISCONNECTED, server)
    wait_for_refusals(server.access, "wrong_server_key")
    connect(server.endpoints[0], keys.pair("bob"), server_key(keys))
    assert server.receive()[0].name == "bob"
    assert old != server_key(keys)


@pytest.mark.parametrize("damage", ["folder", "public", "secret", "mode"])
def test_keys_that_cannot_be_read_leave_all_as_it_was(keys, serve, connect, damage):
    """A reload of keys with an error changes nothing."""
    server = serve(keys.security)
    if damage == "folder":
        keys.clients.rename(keys.folder / "elsewhere")
    elif damage == "public":
        (keys.clients / "x.pub").write_text("?")
    elif damage == "secret":
        (keys.folder / "server" / "server.key").write_text("")
    else:
        (keys.folder / "server" / "server.key").chmod(0o644)
    with pytest.raises(ConfigError):
        server.access.reload()
    assert not server.woken.is_set()
    connect(server.endpoints[0], keys.pair("alice"), keys_of(server))
    assert server.receive()[0] == Peer("alice", "read")


def keys_of(server):
    return server.access._keys.server.key


@pytest.mark.parametrize(
    ("security", "message"),
    [
        (SecurityConfig(server_key="x"), r"security\.client_keys='': must be given with the other"),
        (SecurityConfig(client_keys="x"), r"security\.server_key='': must be given with the other"),
        (SecurityConfig(require="always"), r"security\.require='always': needs security"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(security, message):
    """Contradictory settings are refused with the key and the rule."""
    with pytest.raises(ConfigError, match=message):
        Access(security)


def test_no_peer_is_admitted_after_the_thread_fails(keys, serve, connect, monkeypatch):
    """If the access thread fails, nobody is accepted, and the failure is kept."""
    server = serve(keys.security)
    monkeypatch.setattr(server.access.connections, "admit", lambda: 1 / 0)
    connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    assert server.access._worker.wait(TIMEOUT_MS / 1e3)
    assert isinstance(server.access.failure.__cause__, ZeroDivisionError)
    connect(server.endpoints[0], keys.pair("bob"), server_key(keys))
    assert not server.socket.poll(200)


def test_a_message_of_a_connection_that_has_gone_has_none(keys, serve, connect):
    """A message of a closed connection has no peer, as its descriptor may be reused."""
    server = serve(keys.security)
    alice, _ = connect(server.endpoints[0], keys.pair("alice"), server_key(keys))
    frame = server.socket.recv_multipart(copy=False)[-1]
    link = server.access.link_of(frame)
    assert link.is_there
    alice.close()
    deadline_s = time.monotonic() + TIMEOUT_MS / 1e3
    while server.access.link_of(frame) is not None:
        assert time.monotonic() < deadline_s
        server.socket.poll(10)  # libzmq closes it
    assert server.access.user(frame).name == "alice"
