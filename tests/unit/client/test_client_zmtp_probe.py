"""Which keys an endpoint asks for, and what it is for, also where ZeroMQ does not get to know."""

import asyncio
import socket
import threading
import time

import pytest
import zmq

from spectrod.client import Control, connection, subscribe
from spectrod.client.zmtp_probe import ZmtpPeer, read_peer
from spectrod.lib.errors import ConfigError, DeniedError, UnavailableError
from spectrod.wire.endpoint import parse_remote
from spectrod.wire.keys import make_keys

TIMEOUT_S = 20.0
SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"


def greeting(mechanism):
    return SIGNATURE + b"\x03\x01" + mechanism.ljust(20, b"\0") + bytes(32)


class Listener:
    """Takes connections one after the other, as a function says."""

    def __init__(self, serve):
        self._serve = serve
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exc):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _run(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(TIMEOUT_S)
                self._serve(connection)


def breaking_off(mechanism):
    """Serve like a faster libzmq: read all, and close before the whole greeting was sent."""

    def serve(connection):
        received = connection.recv(64)
        if len(received) > len(SIGNATURE):
            connection.sendall(greeting(mechanism))  # to who does not tell a mechanism
            return
        connection.sendall(SIGNATURE + b"\x03")
        while len(received) < 64 and (part := connection.recv(64)):
            received += part

    return serve


def asked(kind, endpoint, **keys):
    """Ask for something, in each of the ways there are."""
    if kind == "subscribe":
        with subscribe(endpoint, "", timeout_s=TIMEOUT_S, **keys) as subscription:
            return subscription.receive(TIMEOUT_S)
    with Control(endpoint, timeout_s=TIMEOUT_S, **keys) as control:
        if kind == "call":
            return control.call("status")
        return asyncio.run(control.call_async("status"))


@pytest.mark.parametrize("kind", ["call", "call_async", "subscribe"])
def test_a_connection_that_is_broken_off_is_explained(kind):
    """Not for the time that may be waited, and not in the words of a daemon that is not there."""
    with (
        Listener(breaking_off(b"CURVE")) as listener,
        pytest.raises(DeniedError, match=r"the endpoint requires keys; give server_key"),
    ):
        asked(kind, listener.endpoint)


def test_keys_where_none_are_asked_for_are_explained(tmp_path):
    """The other way round."""
    make_keys(tmp_path, "server", "control")
    make_keys(tmp_path, "ann", "control")
    keys = {"server_key": str(tmp_path / "server.pub"), "key_file": str(tmp_path / "ann.key")}
    with (
        Listener(breaking_off(b"NULL")) as listener,
        pytest.raises(DeniedError, match=r"the endpoint requires no keys; omit server_key"),
    ):
        asked("call", listener.endpoint, **keys)


def test_a_peer_that_hangs_up_silently_is_not_reported_as_requiring_keys():
    """As a forwarded port does with nothing behind it."""
    with (
        Listener(lambda _connection: None) as listener,
        Control(listener.endpoint, timeout_s=2.0) as control,
        pytest.raises(UnavailableError, match=r"no reply to status within 2 s"),
    ):
        control.call("status")


def test_a_slow_answer_is_waited_for_in_silence():
    """An accepted client sends no probe: to the daemon that would be a broken handshake."""
    ends = 0
    with zmq.Context() as context, context.socket(zmq.ROUTER) as server:
        port = server.bind_to_random_port("tcp://127.0.0.1")
        monitor = server.get_monitor_socket(
            zmq.Event.HANDSHAKE_FAILED_NO_DETAIL | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
        )
        with Control(f"tcp://127.0.0.1:{port}", timeout_s=2.5) as control:
            with pytest.raises(UnavailableError, match="no reply to status"):
                control.call("status")
            assert server.poll(TIMEOUT_S * 1e3)
            ends = monitor.poll(0)
        monitor.close()
    assert not ends


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize("mechanism", ["NULL", "CURVE"])
def test_what_a_real_endpoint_says_of_itself(transport, mechanism, tmp_path, monkeypatch):
    """The mechanism of libzmq's endpoints and, without keys, their kind."""
    monkeypatch.chdir(tmp_path)
    with zmq.Context() as context, context.socket(zmq.XPUB) as server:
        if mechanism == "CURVE":
            server.curve_server = True
            server.curve_publickey, server.curve_secretkey = zmq.curve_keypair()
        server.bind("ipc://x.ipc" if transport == "ipc" else "tcp://127.0.0.1:*")
        endpoint = parse_remote(server.getsockopt_string(zmq.LAST_ENDPOINT))
        kind = "XPUB" if mechanism == "NULL" else ""
        assert read_peer(endpoint, TIMEOUT_S) == ZmtpPeer(mechanism, kind)


READY = b"\x05READY"
KIND = b"\x0bSocket-Type"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (READY + b"\x08Identity" + bytes(4) + KIND + b"\0\0\0\x03PUB", "PUB"),
        (READY + KIND.upper() + b"\0\0\0\x06ROUTER", "ROUTER"),
        (READY + KIND + b"\xff\0\0\0PUB", ""),
        (READY + KIND, ""),
        (READY, ""),
        (b"\x05ERROR" + KIND + b"\0\0\0\x03PUB", ""),
        (b"", ""),
    ],
)
def test_the_kind_is_a_property_of_the_first_command(command, kind):
    """Wherever it stands; what breaks the rules is none."""

    def serve(connection):
        connection.sendall(greeting(b"NULL") + bytes((4, len(command))) + command)
        while connection.recv(64):
            pass

    with Listener(serve) as listener:
        found = read_peer(parse_remote(listener.endpoint), TIMEOUT_S)
    assert found == ZmtpPeer("NULL", kind)


@pytest.mark.parametrize("kind", ["call", "call_async"])
@pytest.mark.parametrize("publishes", [zmq.XPUB, zmq.PUB])
def test_requests_to_where_a_daemon_publishes_are_refused(kind, publishes):
    """Not after the time of a reply, and with what to give instead."""
    with zmq.Context() as context, context.socket(publishes) as server:
        port = server.bind_to_random_port("tcp://127.0.0.1")
        text = rf"^tcp://127.0.0.1:{port}: the daemon publishes there .* control\.endpoints, which"
        begin_s = time.monotonic()
        with pytest.raises(ConfigError, match=text):
            asked(kind, f"tcp://127.0.0.1:{port}")
        assert time.monotonic() - begin_s < TIMEOUT_S / 2


def test_a_subscriber_of_a_control_endpoint_gets_to_know(monkeypatch):
    """And goes on: what it waits for may start later."""
    monkeypatch.setattr(connection, "_GREETING_S", TIMEOUT_S)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as server:
        port = server.bind_to_random_port("tcp://127.0.0.1")
        with subscribe(f"tcp://127.0.0.1:{port}", "") as subscription:
            while not (hint := subscription.silence_hint()):
                assert subscription.receive(0.05) is None
    assert hint.startswith("the daemon answers requests there and publishes nothing; give")


@pytest.mark.parametrize(
    "reported",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"x" * 64, SIGNATURE + b"\x03\x01CURVE", b"\xff"],
)
def test_an_invalid_greeting_says_nothing(reported):
    """Whatever it is, and however long."""
    with Listener(lambda connection: connection.sendall(reported)) as listener:
        assert read_peer(parse_remote(listener.endpoint), TIMEOUT_S) is None


def test_nobody_names_no_mechanism(tmp_path):
    """Neither at a port nor at a path."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert read_peer(parse_remote(f"tcp://127.0.0.1:{port}"), TIMEOUT_S) is None
    assert read_peer(parse_remote(f"ipc://{tmp_path}/none"), TIMEOUT_S) is None


def test_a_silent_endpoint_times_out():
    """A listener whose queue takes the connection, and that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = parse_remote(f"tcp://127.0.0.1:{listening.getsockname()[1]}")
        begin_s = time.monotonic()
        assert read_peer(endpoint, 0.1) is None
        assert time.monotonic() - begin_s >= 0.1
