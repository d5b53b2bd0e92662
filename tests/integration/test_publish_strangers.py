"""Arbitrary peers at the publisher's endpoint, which neither end it nor make it grow."""

import contextlib
import socket
import threading

import numpy as np
import pytest
import zmq
from publishing import ANY_PORT, TIMEOUT_S, make_batch

from spectrod.daemon.publisher.subscriptions import PREFIXES_MAX
from spectrod.wire.schema import Frame, decode

GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL" + bytes(48)
READY = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"


def receive_frame(sub):
    while not isinstance(frame := decode(sub.recv_multipart()), Frame):
        pass
    return frame


@pytest.fixture
def stage(publish, raw_subscriber):
    """Make a publisher over TCP with a subscriber; return both with the address."""
    publisher = publish(ANY_PORT)
    sub = raw_subscriber(publisher.endpoints[0], "spec/mic/0/", "hb/")
    while not publisher.subscribers:
        sub.recv_multipart()
    return publisher, sub, ("127.0.0.1", int(publisher.endpoints[0].rpartition(":")[2]))


def shake_hands(peer):
    """Become a SUB socket step by step: libzmq takes no READY that comes with the greeting."""
    peer.sendall(GREETING)
    receive_until(peer, b"READY")
    peer.sendall(READY)


def receive_until(peer, expected):
    received = b""
    while expected not in received:
        received += (some := peer.recv(4096))
        assert some, "hung up"


def frames_of_zmtp():
    """List data that a peer could send after a valid handshake."""
    return {
        "a giant frame announced": b"\x02" + (1 << 62).to_bytes(8, "big") + bytes(99),
        "a frame above the limit": b"\x02" + (70_000).to_bytes(8, "big") + bytes(70_000),
        "a giant subscription": b"\x02" + (60_000).to_bytes(8, "big") + b"\1" * 60_000,
        "a command that is none": b"\x04\x05\x04WHAT",
        "flags that there are not": b"\xf8\x01\0",
        "a message of many parts": b"\x01\x01\x01" * 5000,
        "a second handshake": READY,
        "a heartbeat cut short": b"\x04\x05\x04PING",
    }


def garbage():
    """List data that a peer could send instead of a handshake."""
    rng = np.random.default_rng(6)
    return {
        "nothing": b"",
        "HTTP": b"GET / HTTP/1.1\r\nHost: spectrod\r\n\r\n" * 20,
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.bytes(500),
        "no mechanism of ours": GREETING.replace(b"NULL", b"NOPE") + READY,
        "half a greeting": GREETING[:40],
        "a greeting and no more": GREETING,
        "a truncated READY": GREETING + READY[:-10],
    } | {f"{n} random bytes": rng.bytes(n) for n in (1, 9, 10, 63, 64, 65, 5000, 200_000)}


def test_the_handshake_of_these_tests_is_a_right_one(stage):
    """The handshake used in these tests is valid: a bare socket can subscribe and read."""
    _, _, address = stage
    with socket.create_connection(address) as peer:
        peer.settimeout(TIMEOUT_S)
        shake_hands(peer)
        peer.sendall(b"\x00\x04\x01hb/")
        receive_until(peer, b"spectrod.heartbeat")


@pytest.mark.parametrize("shaken", [False, True], ids=["before", "after a handshake"])
def test_whatever_strangers_send_subscribers_get_their_frames(stage, fds, shaken):
    """HTTP, TLS, noise, half handshakes and giant frames disturb no subscriber and leak nothing."""
    publisher, sub, address = stage
    before = fds()
    every = frames_of_zmtp() if shaken else garbage()
    for seq, (what, sent) in enumerate([*every.items()] * 2):
        with socket.create_connection(address) as stranger:
            stranger.settimeout(TIMEOUT_S)
            if shaken:
                shake_hands(stranger)
            with contextlib.suppress(ConnectionError):  # it may hang up before all is sent
                stranger.sendall(sent)
                with contextlib.suppress(OSError):
                    stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(65536):
                    pass  # until the publisher closes it, too
        publisher.sources[0].write(make_batch())
        assert receive_frame(sub).header.seq == seq, what
    assert fds() <= before + 1
    assert publisher.failure is None


@pytest.mark.slow
def test_silent_connections_delay_no_other(stage, fds):
    """A hundred half-open handshakes delay nobody, and their descriptors are released."""
    publisher, sub, address = stage
    before = fds()
    strangers = [socket.create_connection(address) for _ in range(100)]
    for k, stranger in enumerate(strangers):
        stranger.sendall(GREETING[: k % 64])
    publisher.sources[0].write(make_batch())
    assert receive_frame(sub).header.seq == 0
    for stranger in strangers:
        stranger.shutdown(socket.SHUT_WR)
        stranger.settimeout(TIMEOUT_S)
        while stranger.recv(4096):
            pass
        stranger.close()
    assert fds() <= before + 1


@pytest.mark.slow
def test_a_flood_of_subscriptions_stops_no_frame(stage, raw_subscriber, resident_bytes):
    """A peer's 100 000 subscriptions are kept within a bound and released with the peer."""
    publisher, sub, _ = stage
    flooding = threading.Event()

    def flood():
        with zmq.Context() as context, context.socket(zmq.XSUB) as peer:
            peer.setsockopt(zmq.LINGER, 0)
            peer.setsockopt(zmq.SNDTIMEO, int(TIMEOUT_S * 1e3))
            peer.connect(publisher.endpoints[0])
            for k in range(100_000):
                peer.send(b"\x01spec/%d/" % k)
                if k == 1000:
                    flooding.set()
            peer.send(b"\x01hb/flooded/")

    thread = threading.Thread(target=flood)
    before = resident_bytes()
    thread.start()
    assert flooding.wait(TIMEOUT_S)
    for seq in range(20):
        publisher.sources[0].write(make_batch(first=seq))
        assert receive_frame(sub).header.seq == seq
    thread.join()
    late = raw_subscriber(publisher.endpoints[0], "spec/mic/1/", "last/mic/1/")
    publisher.sources[0].write(make_batch(first=20))
    assert decode(late.recv_multipart()).channel == "1"
    assert len(publisher._sender._book._arrivals) <= PREFIXES_MAX
    # libzmq's own tree of prefixes, while the peer is there, and the allocator's cache of it.
    assert resident_bytes() - before < 200 << 20
