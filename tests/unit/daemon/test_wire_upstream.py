"""Messages that a publisher's socket accepts from its peers, over real connections."""

import contextlib
import os
import socket
import time
from pathlib import Path

import pytest

from spectrod.daemon.access.access import Access
from spectrod.daemon.access.holders import KeyHolders
from spectrod.daemon.access.listeners import Listeners
from spectrod.daemon.access.tcp_links import Link, Links, cut, traffic
from spectrod.daemon.publisher import upstream as upstream_module
from spectrod.daemon.publisher.upstream import PREFIX_MAX_BYTES, SUBSCRIPTIONS_A_LINK, Upstream
from spectrod.daemon.publisher.xpub import open_xpub
from spectrod.wire.endpoint import parse_endpoint

TIMEOUT_S = 10.0
GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL" + bytes(48)
READY = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"


class Stage:
    """A bound socket, its accepted messages, and the cut connections."""

    def __init__(self, access, endpoint):
        self.access = access
        self.socket = open_xpub(access.context, 100)
        listeners = Listeners(self.socket, access, lambda: None)
        self.endpoint = listeners.bind(parse_endpoint(endpoint), access.at_end)
        self.cut = []
        self.upstream = Upstream(access, KeyHolders(access, ()), self.cut.append, check_s=0.0)
        self.taken = []

    def connect(self):
        """Make a bare connection that is ready to subscribe."""
        if self.endpoint.startswith("ipc://"):
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(self.endpoint.removeprefix("ipc://"))
        else:
            peer = socket.create_connection(
                ("127.0.0.1", int(self.endpoint.rpartition(":")[2])), TIMEOUT_S
            )
        peer.settimeout(TIMEOUT_S)
        peer.sendall(GREETING)
        greeting = b""
        while b"READY" not in greeting:
            greeting += peer.recv(4096)
        peer.sendall(READY)
        return peer

    def take_until(self, condition):
        deadline_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline_s, (len(self.taken), self.cut)
            self.socket.poll(10)
            self.taken += self.upstream.take(self.socket)


@pytest.fixture(params=["tcp", "ipc"])
def stage(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(Access()) as access:
        access.start()
        made = Stage(access, "tcp://127.0.0.1:*" if request.param == "tcp" else "ipc://s.ipc")
        yield made
        made.socket.close()


def frame(request):
    return b"\x00" + bytes([len(request)]) + request


def is_hung_up(peer):
    with contextlib.suppress(ConnectionError):
        while peer.recv(4096):
            pass
    return True


@pytest.mark.parametrize("sent", [b"x", b"", b"\x02", b"\x01" + b"s" * (PREFIX_MAX_BYTES + 1)])
def test_only_the_sender_of_an_invalid_request_is_cut(stage, sent):
    """At its first message; others keep their subscriptions."""
    with stage.connect() as other, stage.connect() as peer:
        other.sendall(frame(b"\x01spec/"))
        stage.take_until(lambda: stage.taken == [b"\x01spec/"])
        peer.sendall(frame(sent))
        stage.take_until(lambda: stage.cut)
        assert stage.cut == [stage.endpoint[:3]]
        assert is_hung_up(peer)
        stage.socket.send(b"spec/x")
        assert b"spec/x" in other.recv(4096)
    stage.take_until(lambda: b"\x00spec/" in stage.taken)


def test_subscriptions_of_a_connection_are_bounded(stage):
    """It may take some back and make others; one more than it may have, and it is cut off."""
    with stage.connect() as peer:
        for k in range(SUBSCRIPTIONS_A_LINK):
            peer.sendall(frame(b"\x01%d/" % k))
        peer.sendall(frame(b"\x015/") + frame(b"\x000/") + frame(b"\x01a/"))
        stage.take_until(lambda: stage.taken[-1:] == [b"\x01a/"])
        assert not stage.cut
        peer.sendall(frame(b"\x01b/"))
        stage.take_until(lambda: stage.cut)
        assert is_hung_up(peer)
    stage.take_until(lambda: stage.taken.count(b"\x001/") == 1)
    assert stage.upstream._n_subscriptions == 0
    assert stage.upstream._prefixes_bytes == 0


def test_a_connection_is_not_cut_for_the_flood_of_the_former_one_on_its_descriptor(stage):
    """The data of a closed connection is read only after a new one has its descriptor."""
    links = Links([stage.endpoint])
    peer = stage.connect()
    (gone,) = links.find()
    peer.sendall(frame(b"nonsense") * 3)
    assert stage.socket.poll(1e3 * TIMEOUT_S)
    peer.close()
    deadline_s = time.monotonic() + TIMEOUT_S
    while gone.is_there:
        assert time.monotonic() < deadline_s
        time.sleep(0.001)
    with stage.connect() as connection:
        (there,) = links.find()
        assert there.fd == gone.fd
        connection.sendall(frame(b"\x01spec/"))
        stage.take_until(lambda: stage.taken == [b"\x01spec/"])
        stage.socket.send(b"spec/x")
        assert b"spec/x" in connection.recv(4096)
    assert not stage.cut


def test_of_all_connections_the_one_with_most_is_cut_off(stage, monkeypatch):
    """A prefix of several connections counts once; connections with few subscriptions remain."""
    monkeypatch.setattr(upstream_module, "PREFIXES_MAX_BYTES", 1000)
    with contextlib.ExitStack() as peers:
        small = [peers.enter_context(stage.connect()) for _ in range(5)]
        for peer in small:
            peer.sendall(frame(b"\x01" + b"s" * 100))
        stage.take_until(lambda: len(stage.taken) == 5)
        assert stage.upstream._prefixes_bytes == 100
        big = peers.enter_context(stage.connect())
        for k in range(9):
            big.sendall(frame(b"\x01" + b"%d" % k * 100))
        stage.take_until(lambda: len(stage.taken) == 14)
        assert not stage.cut
        small[0].sendall(frame(b"\x01t"))
        stage.take_until(lambda: stage.cut)
        assert is_hung_up(big)
        assert stage.upstream._prefixes_bytes == 101


def test_connections_that_have_gone_are_forgotten(stage):
    """Their descriptors' numbers are others' then."""
    for _ in range(5):
        with stage.connect() as peer:
            peer.sendall(frame(b"\x01spec/"))
            stage.take_until(lambda: stage.taken[-1:] == [b"\x01spec/"])
        stage.take_until(lambda: stage.taken[-1:] == [b"\x00spec/"])
    stage.take_until(lambda: not stage.upstream._of_link)
    assert not stage.cut


def test_links_are_those_to_the_endpoint_with_their_traffic(stage):
    """Not the other ends in this process, nor listening sockets."""
    links = Links([stage.endpoint])
    is_tcp = stage.endpoint.startswith("tcp")
    assert links.find() == {}
    with stage.connect() as peer:
        peer.sendall(frame(b"\x01spec/"))
        while not stage.socket.poll(10):
            pass
        received = stage.socket.recv(copy=False)
        found = links.find()
        assert found == {stage.access.link_of(received): is_tcp}
        assert links.find() == found
        (link,) = found
        seen = traffic(link, is_tcp=is_tcp)
        assert seen.received_bytes == (len(GREETING + READY) + 8 if is_tcp else 0)
        assert cut(link) == stage.endpoint[:3]
        assert is_hung_up(peer)
        deadline_s = time.monotonic() + TIMEOUT_S
        while link.is_there and time.monotonic() < deadline_s:
            time.sleep(0.001)
        assert cut(link) is None
        assert links.find() == {}


def test_a_descriptor_that_is_another_ones_now_is_left_alone():
    """The number alone says nothing."""
    own, peer = socket.socketpair()
    with own, peer:
        inode = os.fstat(own.fileno()).st_ino
        assert cut(Link(own.fileno(), inode + 1)) is None
        peer.sendall(b"x")
        assert own.recv(1) == b"x"
        assert cut(Link(own.fileno(), inode)) == "ipc"
        assert peer.recv(1) == b""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert cut(Link(server.fileno(), os.fstat(server.fileno()).st_ino)) is None
        with socket.create_connection(server.getsockname()):
            server.accept()[0].close()
    with Path(os.devnull).open("rb") as file:
        assert cut(Link(file.fileno(), os.fstat(file.fileno()).st_ino)) is None
